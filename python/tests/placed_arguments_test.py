"""Programs that name a mesh and get one, two or three arrays that lie on it: every spelling, with gradients, loops,
donation and trees of parameters, in one process and in two."""

import os
import shutil

os.environ.setdefault("WEFT_NUM_CPU_DEVICES", "4")

import numpy as np
import pytest
import several_processes

import weft
import weft.numpy as wnp
from weft import P, lax

weft.distributed.initialize()
MESH = weft.make_mesh((weft.device_count(),), ("x",))
ROWS, WHOLE = weft.NamedSharding(MESH, P("x")), weft.NamedSharding(MESH, P())
COUNTS = [1, 2, 3]


def values(n):
    return [np.random.default_rng(k).uniform(-1, 1, (8, 4)).astype(np.float32) for k in range(n)]


def placed(arrays):
    """Arrays on the mesh, cut and whole by turns."""
    return [weft.device_put(a, WHOLE if k % 2 else ROWS) for k, a in enumerate(arrays)]


def total(*arrays):
    """A function of any number of arrays, with a product of all of them."""
    product = arrays[0]
    for a in arrays[1:]:
        product = product * a
    return wnp.tanh(product) + arrays[-1]


def expected(*arrays):
    return np.tanh(np.prod(arrays, axis=0)) + arrays[-1]


def slopes(*arrays):
    """The gradients of the sum of total's results."""
    product = np.prod(arrays, axis=0)
    slope = 1 - np.tanh(product) ** 2
    rest = [np.prod([a for j, a in enumerate(arrays) if j != k] + [np.ones_like(product)], axis=0) * slope
            for k in range(len(arrays))]  # fmt: skip
    rest[-1] = rest[-1] + 1
    return rest


def same(got, want):
    """Compares what this process has of an array."""
    assert tuple(got.shape) == np.shape(want)
    for shard in got.addressable_shards:
        np.testing.assert_allclose(np.asarray(shard.data), want[shard.index], rtol=2e-6, atol=2e-6)


# --- Spellings --------------------------------------------------------------------------------------------------------


def constrained(*arrays):
    return weft.with_sharding_constraint(total(*arrays), ROWS)


def constrained_inside(*arrays):
    return total(*(weft.with_sharding_constraint(a, ROWS) for a in arrays))


def specs(n):
    return tuple(P() if k % 2 else P("x") for k in range(n))


def mapped_whole(n):
    return weft.shard_map(total, MESH, (P("x"),) * n, P("x"))


def shardings(n):
    return tuple(weft.NamedSharding(MESH, spec) for spec in specs(n))


SPELLINGS = {
    "jit": lambda n: weft.jit(total),
    "out_shardings": lambda n: weft.jit(total, out_shardings=ROWS),
    "in_shardings": lambda n: weft.jit(total, in_shardings=shardings(n)),
    "in_shardings of one": lambda n: weft.jit(total, in_shardings=ROWS),
    "both": lambda n: weft.jit(total, in_shardings=shardings(n), out_shardings=WHOLE),
    "constraint": lambda n: weft.jit(constrained),
    "constraints on arguments": lambda n: weft.jit(constrained_inside),
    "pjit": lambda n: weft.pjit(total, MESH, specs(n), P("x")),
    "pjit of results": lambda n: weft.pjit(total, MESH, None, P()),
    "shard_map": lambda n: weft.jit(mapped_whole(n)),
    "shard_map and more": lambda n: weft.jit(lambda *a: mapped_whole(n)(*a) * 1 + 0 * a[0]),
    "deterministic": lambda n: weft.jit(total, out_shardings=ROWS, deterministic=True),
    "nested": lambda n: weft.jit(lambda *a: weft.jit(total, out_shardings=ROWS)(*a)),
    "scan inside": lambda n: weft.jit(
        lambda *a: weft.with_sharding_constraint(
            lax.scan(lambda c, k: (c + total(*a) * k, c), wnp.zeros((8, 4)), wnp.arange(3.0))[0] / 3, ROWS
        )
    ),
    "cond inside": lambda n: weft.jit(
        lambda *a: lax.cond(a[0].sum() < 100, constrained, lambda *b: b[0] * 0, *a), out_shardings=ROWS
    ),
    "fori inside": lambda n: weft.jit(
        lambda *a: weft.fori_loop(0, 3, lambda i, c: c + constrained(*a), wnp.zeros((8, 4))) / 3
    ),
}


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_values(spelling, n):
    f, arrays = SPELLINGS[spelling](n), values(n)
    given = placed(arrays)
    for _ in range(2):
        same(f(*given), expected(*arrays))
    assert f._cache_size() == 1


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("spelling", [s for s in SPELLINGS if s != "deterministic"])
def test_gradients_outside_and_inside(spelling, n):
    f, arrays = SPELLINGS[spelling](n), values(n)
    given = placed(arrays)
    grad = weft.grad(lambda *a: f(*a).sum(), tuple(range(n)))
    step = weft.jit(lambda *a: tuple(x - 0.5 * g for x, g in zip(a, grad(*a))), out_shardings=ROWS)
    for got, x, slope in zip(step(*given), arrays, slopes(*arrays)):
        same(got, x - 0.5 * slope)
    if weft.process_count() == 1:
        for got, slope in zip(grad(*given), slopes(*arrays)):
            same(got, slope)


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("spelling", ["jit", "out_shardings", "both", "constraint", "pjit", "shard_map"])
def test_trees_of_parameters(spelling, n):
    arrays = values(n)

    def of_tree(tree, last):
        return {"y": SPELLINGS[spelling](n)(*tree["layers"], last)}

    out = {"y": ROWS}
    given = placed(arrays)
    f = weft.jit(of_tree, out_shardings=out)
    same(f({"layers": given[:-1]}, given[-1])["y"], expected(*arrays))
    g = weft.jit(of_tree, in_shardings=({"layers": ROWS}, ROWS), out_shardings=out)
    same(g({"layers": given[:-1]}, given[-1])["y"], expected(*arrays))


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("spelling", ["out_shardings", "pjit", "constraint"])
def test_donated(spelling, n):
    arrays = values(n)
    options = {"donate_argnums": tuple(range(n))}
    f = {
        "out_shardings": lambda: weft.jit(total, out_shardings=ROWS, **options),
        "pjit": lambda: weft.pjit(total, MESH, specs(n), P("x"), **options),
        "constraint": lambda: weft.jit(constrained, **options),
    }[spelling]()
    for _ in range(2):
        given = placed(arrays)
        same(f(*given), expected(*arrays))
        # Memory that a whole array shares with nobody is gone; what it shared stays.
        assert any(g.is_deleted() for g in given)


@pytest.mark.parametrize("n", COUNTS)
def test_pmap(n):
    if weft.process_count() > 1:
        pytest.skip("pmap takes the devices of one process")
    arrays = values(n)
    rows = [a.reshape(weft.device_count(), -1, 4) for a in arrays]
    given = [weft.device_put(r, ROWS) for r in rows]
    want = expected(*rows)
    same(weft.pmap(total)(*given), want)
    same(weft.jit(weft.pmap(total))(*given), want)
    summed = weft.pmap(lambda *a: lax.psum(total(*a), "i"), axis_name="i")
    same(summed(*given), np.broadcast_to(want.sum(0), want.shape))


@pytest.mark.parametrize("n", COUNTS)
def test_a_training_step(n):
    """Parameters that are whole, a batch that is cut, a state that is donated, a loop over steps inside."""
    rng = np.random.default_rng(0)
    params = {f"w{k}": rng.uniform(-0.5, 0.5, (4, 4)).astype(np.float32) for k in range(n)}
    x, y = (rng.uniform(-1, 1, (8, 4)).astype(np.float32) for _ in range(2))

    def loss(params, x, y):
        for name in sorted(params):
            x = wnp.tanh(x @ params[name])
        return ((x - y) ** 2).mean()

    def steps(params, x, y):
        def one(params, _):
            value, grads = weft.value_and_grad(loss)(params, x, y)
            return weft.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

        return lax.scan(one, params, None, 3)

    want, losses = weft.jit(steps)(params, x, y)
    step = weft.jit(
        steps,
        donate_argnums=0,
        in_shardings=(WHOLE, ROWS, ROWS),
        out_shardings=(dict.fromkeys(params, WHOLE), WHOLE),
    )
    state, batch = weft.device_put(params, WHOLE), placed([x, x, y])[::2]
    got, found = step(state, *batch)
    for name in params:
        same(got[name], np.asarray(want[name]))
    same(found, np.asarray(losses))


@pytest.mark.parametrize("n", [2, 3])
def test_one_array_elsewhere_is_named(n):
    """The first of those that lie on other devices, or in another order."""
    if weft.process_count() > 1:
        pytest.skip("devices in another order belong to other processes")
    order = weft.Mesh(MESH.devices[::-1], ("x",))
    arrays = values(n)
    for place in range(n):
        given = placed(arrays)
        given[place] = weft.device_put(arrays[place], weft.NamedSharding(order, P("x")))
        f = weft.jit(lambda *a: weft.with_sharding_constraint(total(*(v * 1 for v in a)), ROWS))
        expected = rf"mesh on \[0, 1, 2, 3\], argument a\[{place}\], \S+, on \[3, 2, 1, 0\]"
        with pytest.raises(ValueError, match=expected):
            f(*given)


def test_on_two_processes():
    """All of this file, in two processes with half of the devices each."""
    if "OMPI_COMM_WORLD_SIZE" in os.environ:
        return
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is missing (Debian's package openmpi-bin)")
    arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    done = several_processes.run(2, arguments, devices=2, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_looks_at_the_program(spelling, n):
    """comms(), stages and export see the same arguments."""
    if weft.process_count() > 1:
        pytest.skip("once is enough")
    f, arrays = SPELLINGS[spelling](n), values(n)
    given = placed(arrays)
    lowered = f.lower(*given)
    for record in lowered.comms():
        assert record.bytes > 0 and record.operation and str(record)
    assert "mesh(" in lowered.as_text("partitioned")
    same(lowered.compile()(*given), expected(*arrays))
    types = [weft.ShapeDtype(a.shape, a.dtype) for a in arrays]
    assert f.eval_shape(*types).shape == (8, 4)
