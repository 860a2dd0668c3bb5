"""Arrays that lie on devices: ways to make them x numbers of arguments x meshes x what is done with them."""

import copy
import gc
import os
import pickle
import subprocess
import sys
import threading

os.environ.setdefault("WEFT_NUM_CPU_DEVICES", "8")

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import P, _weft, lax

DEVICES = weft.devices()
LINE = weft.make_mesh((8,), ("x",))
LAST = weft.make_mesh((4,), ("x",), devices=DEVICES[4:])
GRID = weft.make_mesh((4, 2), ("x", "y"))
CUBE = weft.make_mesh((2, 2, 2), ("x", "y", "z"))
# What is cut how: rows lie in order in memory, columns and both do not; the last ones are the same on some devices.
PLACES = {
    "rows": weft.NamedSharding(LINE, P("x")),
    "columns": weft.NamedSharding(LINE, P(None, "x")),
    "rows of the last devices": weft.NamedSharding(LAST, P("x")),
    "both": weft.NamedSharding(GRID, P("x", "y")),
    "both, turned": weft.NamedSharding(GRID, P("y", "x")),
    "rows by two axes": weft.NamedSharding(GRID, P(("y", "x"))),
    "rows of some": weft.NamedSharding(GRID, P("x")),
    "columns of some": weft.NamedSharding(GRID, P(None, "y")),
    "three axes": weft.NamedSharding(CUBE, P("z", ("x", "y"))),
    "one of three": weft.NamedSharding(CUBE, P(None, "z")),
    "replicated": weft.NamedSharding(GRID, P()),
    "one device": weft.SingleDeviceSharding(DEVICES[3]),
}
MESHES = {name: s for name, s in PLACES.items() if isinstance(s, weft.NamedSharding)}
SHAPE = (8, 16)


def values(n=1, shape=SHAPE):
    return [np.random.default_rng(k).uniform(-1, 1, shape).astype(np.float32) for k in range(n)]


def lies(x, sharding, want, **close):
    """Compares the array, and what each device holds of it."""
    assert x.sharding.is_equivalent_to(sharding, x.ndim), (x.sharding, sharding)
    np.testing.assert_allclose(np.asarray(x), want, **close or {"rtol": 2e-6, "atol": 2e-6})
    shards = x.addressable_shards
    assert {s.device for s in shards} == x.devices() == sharding.device_set
    for shard in shards:
        np.testing.assert_allclose(np.asarray(shard.data), want[shard.index], **close or {"rtol": 2e-6, "atol": 2e-6})
        assert shard.data.devices() == {shard.device}


# --- Ways to make them -----------------------------------------------------------------------------------------------


def by_device_put(a, s):
    return weft.device_put(a, s)


def by_jit(a, s):
    f = weft.jit(lambda x: x * 2)
    return f(weft.device_put(a / 2, s))


def by_jit_from_numpy(a, s):
    return weft.jit(lambda x: x * 2, out_shardings=s)(a / 2)


def by_constraint(a, s):
    return weft.with_sharding_constraint(wnp.asarray(a), s)


def by_constraint_inside(a, s):
    return weft.jit(lambda x: weft.with_sharding_constraint(x * 2, s))(a / 2)


def by_shard_map(a, s):
    return weft.jit(weft.shard_map(lambda v: v * 2, s.mesh, s.spec, s.spec))(a / 2)


def eagerly(a, s):
    return weft.device_put(a / 2, s) * 2


def by_callback(a, s):
    return weft.make_array_from_callback(a.shape, s, lambda index: a[index])


def from_parts(a, s):
    parts = [weft.device_put(a[index], device) for device, index in s.addressable_devices_indices_map(a.shape).items()]
    return weft.make_array_from_single_device_arrays(a.shape, s, parts)


def by_grad(a, s):
    return weft.grad(lambda x: (x * x).sum() / 2)(weft.device_put(a, s))


def by_vmap(a, s):
    return weft.vmap(lambda x: x * 2)(weft.device_put(a / 2, s))


def moved(a, s):
    other = MESHES["both, turned"] if s.device_set == MESHES["both, turned"].device_set else None
    return weft.device_put(weft.device_put(a, other) if other else wnp.asarray(a), s)


WAYS = [by_device_put, by_jit, by_jit_from_numpy, by_constraint, by_constraint_inside, by_shard_map, eagerly,
        by_callback, from_parts, by_grad, by_vmap, moved]  # fmt: skip
ON_ONE_DEVICE = [by_device_put, by_jit, eagerly, by_callback, from_parts, by_grad, by_vmap]


def all_ways():
    for name in PLACES:
        for way in WAYS if name in MESHES else ON_ONE_DEVICE:
            yield pytest.param(way, PLACES[name], id=f"{way.__name__}-{name}")


def total(*arrays):
    product = arrays[0]
    for a in arrays[1:]:
        product = product * a
    return wnp.tanh(product) + arrays[-1]


def expected(*arrays):
    return np.tanh(np.prod(arrays, axis=0)) + arrays[-1]


@pytest.mark.parametrize("way, place", list(all_ways()))
def test_every_way_to_make_one(way, place):
    (a,) = values()
    x = way(a, place)
    lies(x, place, a)
    assert x.is_fully_addressable and x.is_fully_replicated == place.is_fully_replicated
    assert x.shape == SHAPE and x.dtype == np.float32 and x.nbytes == a.nbytes and not x.weak_type
    assert x.block_until_ready() is x
    # Views, copies and pickles.
    np.testing.assert_array_equal(np.from_dlpack(x), np.asarray(x))
    np.testing.assert_array_equal(np.asarray(memoryview(x)), np.asarray(x))
    assert str(x) == str(np.asarray(x)) and x.tolist() == np.asarray(x).tolist()
    for same in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), x.copy()):
        assert same.sharding == x.sharding
        lies(same, place, np.asarray(x), rtol=0)
    # Operations outside of jit.
    lies(x + 1, place, a + 1)
    lies(-x * x, place, -a * a)
    lies(wnp.exp(x), place, np.exp(a), rtol=1e-6)
    lies(x + x.copy(), place, a + a)
    assert (x.sum() - a.sum()) ** 2 < 1e-8
    assert (x.sum()).devices() == x.devices()
    # Gone.
    x.delete()
    assert x.is_deleted() and x.sharding.is_equivalent_to(place, 2)
    for use in (lambda: x + 1, lambda: np.asarray(x), lambda: x.addressable_shards[0].data, x.block_until_ready):
        with pytest.raises(RuntimeError, match="deleted"):
            use()


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("way", [by_device_put, by_jit, eagerly, from_parts])
def test_arguments(way, count, place):
    """One, two and three arrays: eager, jitted, differentiated, batched, donated."""
    arrays = values(count)
    xs = [way(a, place) for a in arrays]
    want = expected(*arrays)
    lies(total(*xs), place, want)
    lies(weft.jit(total)(*xs), place, want)
    both = weft.jit(lambda *xs: (total(*xs), [x + 1 for x in xs]))(*xs)
    lies(both[0], place, want)
    for y, a in zip(both[1], arrays):
        lies(y, place, a + 1)
    every = tuple(range(count))
    for wrap in (lambda f: f, weft.jit):
        grads = wrap(weft.grad(lambda *xs: (total(*xs) ** 2).sum(), argnums=every))(*xs)
        plain = weft.grad(lambda *xs: (total(*xs) ** 2).sum(), argnums=every)(*arrays)
        for g, p in zip(grads, plain):
            lies(g, place, np.asarray(p), rtol=1e-5, atol=1e-5)
        lies(wrap(weft.vmap(total))(*xs), place, want)
        y, dy = wrap(lambda *xs: weft.jvp(total, xs, xs))(*xs)
        lies(y, place, want)
        assert dy.sharding.is_equivalent_to(place, 2)
    donating = weft.jit(total, donate_argnums=every)
    del both, grads
    lies(donating(*xs), place, want)
    assert all(x.is_deleted() for x in xs) or way is from_parts


@pytest.mark.parametrize("place", MESHES.values(), ids=MESHES)
def test_mixed_operands(place):
    """With numbers, NumPy arrays, arrays that are nowhere in particular, and arrays that lie otherwise."""
    a, b, c = values(3)
    x = weft.device_put(a, place)
    for other in (2.5, b, wnp.asarray(b), b[0], wnp.asarray(b[0]), np.float32(3)):
        want = np.asarray(other)
        lies(x + other, place, a + want)
        lies(other * x, place, a * want)
        lies(weft.jit(lambda x, y: x * y)(x, other), place, a * want)
    whole = weft.device_put(b, weft.NamedSharding(place.mesh, P()))
    lies(x * whole, place, a * b)
    lies(whole * x, place, a * b)
    lies(wnp.where(x > 0, x, whole), place, np.where(a > 0, a, b))
    lies(wnp.minimum(x, wnp.asarray(c)), place, np.minimum(a, c))
    for name, there in MESHES.items():
        if [d.id for d in there.mesh.devices.flat] != [d.id for d in place.mesh.devices.flat]:
            continue
        y = weft.device_put(b, there)
        np.testing.assert_allclose(x - y, a - b, rtol=1e-6, err_msg=name)
        np.testing.assert_allclose(x @ y.T, a @ b.T, rtol=1e-4, atol=1e-5, err_msg=name)
        assert (x - y).devices() == x.devices()


OPERATIONS = {
    "T": lambda np, x: x.T,
    "reshape": lambda np, x: x.reshape(8, 4, 4),
    "flat": lambda np, x: x.reshape(-1),
    "row": lambda np, x: x[3],
    "element": lambda np, x: x[2, 5],
    "rows": lambda np, x: x[2:6],
    "strided": lambda np, x: x[::-2, 1::3],
    "new axis": lambda np, x: x[:, None],
    "gather": lambda np, x: x[np.asarray([0, 7, 3])],
    "mask": lambda np, x: x[np.asarray([True, False] * 4)],
    "sum": lambda np, x: x.sum(),
    "sum 0": lambda np, x: x.sum(0),
    "mean 1": lambda np, x: x.mean(axis=1, keepdims=True),
    "max": lambda np, x: np.max(x, axis=0),
    "argmin": lambda np, x: np.argmin(x, axis=1),
    "cumsum": lambda np, x: np.cumsum(x, axis=0),
    "sort": lambda np, x: np.sort(x, axis=0),
    "matmul": lambda np, x: x @ x.T,
    "product with one": lambda np, x: x @ np.ones((16, 3), np.float32),
    "concatenate": lambda np, x: np.concatenate([x, x], axis=1),
    "stack": lambda np, x: np.stack([x, x + 1]),
    "astype": lambda np, x: (x * 10).astype("int32"),
    "compare": lambda np, x: x > 0,
    "powers": lambda np, x: x**2 + x**3,
    "outer": lambda np, x: np.outer(x[0], x[1]),
    "pad": lambda np, x: np.pad(x, 1),
    "roll": lambda np, x: np.roll(x, 3, axis=0),
    "svd": lambda np, x: np.abs(np.linalg.svd(x)[1]),
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_outside_jit(name, place):
    (a,) = values()
    x = weft.device_put(a, place)
    f = OPERATIONS[name]
    got, want = f(wnp, x), f(np, a)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    assert got.devices() == x.devices()
    # A program of one operation lies as the jitted function does.
    if name in ("T", "reshape", "sum", "sum 0", "matmul", "product with one", "compare"):
        assert got.sharding == weft.jit(lambda x: f(wnp, x))(x).sharding


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_rows_of_an_iteration(place):
    (a,) = values()
    x = weft.device_put(a, place)
    with weft.no_execution(True):  # they are copies: no program finds them
        rows = [*x]
    np.testing.assert_array_equal(np.stack(rows), a)
    if place.is_fully_replicated:
        assert all(row.devices() == x.devices() for row in rows)
        return
    # Those of what is cut are on no device in particular, and go together with arrays anywhere.
    there = weft.device_put(np.ones(16, np.float32), DEVICES[5])
    for row in rows:
        assert row.sharding == weft.SingleDeviceSharding(DEVICES[0])
        assert (row + there).devices() == {DEVICES[5]}
        assert (row + weft.device_put(a, place)).devices() == x.devices()


def test_where_results_of_operations_lie():
    on = lambda *spec: weft.NamedSharding(GRID, P(*spec))
    a, b, _ = values(3)
    x = weft.device_put(a, on("x", "y"))
    spec = lambda y: tuple(y.sharding.spec) + (None,) * (y.ndim - len(y.sharding.spec))
    assert spec(x.T) == ("y", "x")
    assert spec(x.sum(0)) == ("y",) and spec(x.sum(1)) == ("x",) and spec(x.sum()) == ()
    assert spec(x[:, None]) == ("x", None, "y")
    assert spec(x @ weft.device_put(b.T, on("y"))) == ("x", None)
    assert spec(x.reshape(8, 4, 4)) == ("x", "y", None)
    assert spec(wnp.sort(x, axis=1)) == ("x", None)
    assert spec(x + x.sum(0)) == ("x", "y")
    assert spec(weft.device_put(a, on()) + 1) == (None, None)


def test_operands_on_different_devices():
    a, b, _ = values(3)
    here, there = weft.device_put(a, DEVICES[0]), weft.device_put(b, DEVICES[3])
    cut, last = weft.device_put(a, PLACES["rows"]), weft.device_put(b, PLACES["rows of the last devices"])
    backwards = weft.NamedSharding(weft.Mesh(np.array(DEVICES[::-1]), ("x",)), P("x"))
    for x, y in ((here, there), (here, cut), (cut, last), (there, last), (cut, weft.device_put(b, backwards))):
        for f in (lambda x, y: x + y, wnp.dot, lambda x, y: wnp.concatenate([x, y]), lambda x, y: wnp.where(x, x, y)):
            with pytest.raises(ValueError, match=r"devices.* operand 1, \S+, on \[.*device_put") as error:
                f(x, y.T if f is wnp.dot else y)
            assert "sharded_arrays_test.py" in str(error.value)
        with pytest.raises(ValueError, match="devices"):
            weft.jit(lambda x, y: x + y)(x, y)


def test_one_device_stays():
    a, b, _ = values(3)
    x = weft.device_put(a, DEVICES[3])
    for y in (x + 1, x + x, wnp.sin(x), x.T, x[2], x @ x.T, x.sum(), x + b, x > 0, x.astype("int32"), x.reshape(-1),
              weft.grad(lambda x: (x * x).sum())(x), wnp.concatenate([x, x]), 2 * wnp.ones(SHAPE) * x):  # fmt: skip
        assert y.devices() == {DEVICES[3]}, y.sharding
    assert (wnp.ones(3) + 1).sharding == weft.SingleDeviceSharding(DEVICES[0])
    assert (weft.device_put(x, DEVICES[5]) + 1).devices() == {DEVICES[5]}
    # Nobody says where it is: it follows.
    assert (wnp.ones(SHAPE) + x).devices() == {DEVICES[3]}


# --- Memory ----------------------------------------------------------------------------------------------------------


def addresses(x):
    return [address for _, address, _, _ in _weft.buffers(x)]


def test_buffers():
    (a,) = values()
    for name, place in PLACES.items():
        x = weft.device_put(a, place)
        buffers = _weft.buffers(x)
        assert [device for device, _, _, _ in buffers] == [d.id for d in place._device_list()]
        assert all(ready for _, _, _, ready in buffers)
        block = int(np.prod(place.shard_shape(SHAPE))) * 4
        assert {bytes for _, _, bytes, _ in buffers} == {block}
        # Each block is there once, and blocks that differ do not overlap.
        distinct = sorted(set(addresses(x)))
        assert len(distinct) * block == (a.nbytes), name
        assert all(q - p >= block for p, q in zip(distinct, distinct[1:]))
        # A shard is a view.
        for shard, address in zip(x.addressable_shards, addresses(x)):
            assert addresses(shard.data) == [address]
        assert addresses(x) == addresses(x)


def test_parts_are_taken_without_copies():
    (a,) = values()
    for place in MESHES.values():
        index = place.addressable_devices_indices_map(SHAPE)
        parts = [weft.device_put(a[i].copy(), d) for d, i in index.items()]
        before = _weft.shard_copies()
        x = weft.make_array_from_single_device_arrays(SHAPE, place, parts)
        assert addresses(x) == [addresses(p)[0] for p in parts]
        assert _weft.shard_copies() == before
        del parts
        gc.collect()
        lies(x, place, a)
    for wrong, error in (
        (lambda p: p[1:], "7 arrays for 8"),
        (lambda p: [p[0][:, 1:], *p[1:]], "has shape"),
        (lambda p: [*p[:-1], p[-1].astype("int32")], "dtype"),
    ):
        parts = [weft.device_put(a[i : i + 1], d) for i, d in enumerate(DEVICES)]
        with pytest.raises(ValueError, match=error):
            weft.make_array_from_single_device_arrays(SHAPE, PLACES["rows"], wrong(parts))


@pytest.mark.parametrize("place", MESHES.values(), ids=MESHES)
def test_steps_put_nothing_together(place):
    """Parameters, and what follows from them, stay cut from step to step."""
    a, b, _ = values(3)
    step = weft.jit(lambda w, x: (w - 0.1 * weft.grad(lambda w: ((w * x) ** 2).sum())(w), x + 0))
    w, x = weft.device_put(a, place), weft.device_put(b, place)
    w, x = step(w, x)
    before = _weft.shard_copies()
    for _ in range(5):
        w, x = step(w, x)
        y = w * x + 1  # outside of jit, too
        (y.T.sum() + 1).block_until_ready()
    assert _weft.shard_copies() == before
    np.asarray(w)
    in_order = (place.spec[0:1] == ("x",) and len(place.spec) == 1) or place.is_fully_replicated
    assert _weft.shard_copies()[0] == before[0] + (0 if in_order else 1)
    np.asarray(w)  # kept
    assert _weft.shard_copies()[0] == before[0] + (0 if in_order else 1)


def test_memory_of_cut_parameters_is_there_once():
    """A program that takes and gives blocks needs no whole array beside them."""
    code = """
import os, resource
os.environ["WEFT_NUM_CPU_DEVICES"] = "8"
import numpy as np, weft, weft.numpy as wnp
columns = weft.NamedSharding(weft.make_mesh((8,), ("x",)), weft.P(None, "x"))
step = weft.jit(lambda w: w * 0.5 + 1, donate_argnums=0)
step(weft.device_put(np.ones((8, 8), np.float32), columns))
n = 4096
parts = [weft.device_put(np.ones((n, n // 8), np.float32), d) for d in weft.devices()]
w = weft.make_array_from_single_device_arrays((n, n), columns, parts)
del parts
w = step(w)
w = step(w)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(5): w = step(w)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 // (n * n * 4))
np.asarray(w)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 // (n * n * 4) >= 0)
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
    assert out.split() == ["0", "True"]


@pytest.mark.parametrize("place", MESHES.values(), ids=MESHES)
def test_donation(place):
    a, b, _ = values(3)
    f = weft.jit(lambda x, y: x * y, donate_argnums=0)
    x, y = weft.device_put(a, place), weft.device_put(b, place)
    lies(f(x, y), place, a * b)
    assert x.is_deleted() and not y.is_deleted()
    with pytest.raises(RuntimeError, match="donated as argument x of"):
        x + 1
    # Somebody else holds its memory.
    for hold in (lambda x: x.addressable_shards[1].data, lambda x: np.asarray(x.addressable_shards[-1].data)):
        x = weft.device_put(a, place)
        held = hold(x)
        with pytest.warns(UserWarning, match="not donated"):
            lies(f(x, y), place, a * b)
        assert not x.is_deleted()
        np.testing.assert_array_equal(x, a)
        del held
    x = weft.device_put(a, place)
    with pytest.raises(ValueError, match="also passed"):
        f(x, x)


def test_donated_blocks_of_another_array_live_on():
    """An array of another mesh over the same memory."""
    (a,) = values()
    x = weft.device_put(a, PLACES["rows"])
    y = weft.device_put(x, weft.NamedSharding(weft.make_mesh((8,), ("other",)), P("other")))
    assert addresses(x) == addresses(y)
    with pytest.warns(UserWarning, match="not donated"):
        weft.jit(lambda x: x + 1, donate_argnums=0)(x)
    np.testing.assert_array_equal(x, a)
    np.testing.assert_array_equal(y, a)


def test_resharding():
    (a,) = values()
    for here in MESHES.values():
        for there in MESHES.values():
            x = weft.device_put(a, here)
            y = weft.device_put(x, there)
            lies(y, there, a)
            lies(x, here, a)
            if [d.id for d in here.mesh.devices.flat] == [d.id for d in there.mesh.devices.flat]:
                f = weft.jit(lambda x: x + 1, in_shardings=there, out_shardings=there)
                lies(f(x), there, a + 1)
    with pytest.raises(ValueError, match="share evenly"):
        weft.device_put(np.ones((6, 16), np.float32), PLACES["rows"])


# --- Pickles ---------------------------------------------------------------------------------------------------------


def test_pickles_keep_the_sharding():
    (a,) = values()
    for place in PLACES.values():
        x = weft.device_put(a, place)
        tree = {"x": x, "y": [x + 1, np.ones(2)], "s": place}
        again = pickle.loads(pickle.dumps(tree))
        assert again["x"].sharding == place == again["s"] and again["y"][0].sharding == x.sharding
        np.testing.assert_array_equal(again["x"], a)
    weak = weft.device_put(wnp.asarray(2.0) * 1, PLACES["replicated"])
    assert pickle.loads(pickle.dumps(weak)).weak_type == weak.weak_type
    keys = weft.device_put(weft.random.split(weft.random.key(3), 8), PLACES["rows"])
    again = pickle.loads(pickle.dumps(keys))
    assert again.sharding == PLACES["rows"]
    np.testing.assert_array_equal(weft.random.key_data(again), weft.random.key_data(keys))


@pytest.mark.parametrize("devices", [1, 2])
def test_pickles_where_devices_are_missing(tmp_path, devices):
    path = tmp_path / "array.pickle"
    x = weft.device_put(values()[0], PLACES["rows of the last devices"])
    path.write_bytes(pickle.dumps([x]))
    code = f"import pickle; pickle.loads(open({str(path)!r}, 'rb').read())"
    env = {**os.environ, "WEFT_NUM_CPU_DEVICES": str(devices), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode != 0
    assert f"names device 4, but there are {devices} devices (WEFT_NUM_CPU_DEVICES" in done.stderr


def test_files(tmp_path):
    (a,) = values()
    for k, place in enumerate(PLACES.values()):
        x = weft.device_put(a, place)
        wnp.savez(tmp_path / f"{k}.npz", x=x) if hasattr(wnp, "savez") else np.savez(tmp_path / f"{k}.npz", x=x)
        np.testing.assert_array_equal(np.load(tmp_path / f"{k}.npz")["x"], a)
        np.save(tmp_path / "x.npy", x)
        np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), a)


# --- Transforms, control flow, threads -------------------------------------------------------------------------------


@pytest.mark.parametrize("place", MESHES.values(), ids=MESHES)
def test_transforms_outside_jit(place):
    a, b, _ = values(3)
    x, y = weft.device_put(a, place), weft.device_put(b, place)
    f = lambda x, y: wnp.sin(x) * y
    value, pullback = weft.vjp(f, x, y)
    lies(value, place, np.sin(a) * b)
    for _ in range(2):
        dx, dy = pullback(value)
        lies(dx, place, np.cos(a) * b * np.sin(a) * b, rtol=1e-5, atol=1e-5)
        lies(dy, place, np.sin(a) * np.sin(a) * b, rtol=1e-5, atol=1e-5)
    value, linear = weft.linearize(f, x, y)
    lies(linear(x, y), place, np.cos(a) * a * b + np.sin(a) * b, rtol=1e-5, atol=1e-5)
    got, slope = weft.value_and_grad(lambda x: (f(x, y) ** 2).sum())(x)  # y is captured
    np.testing.assert_allclose(got, np.sum((np.sin(a) * b) ** 2), rtol=1e-5)
    lies(slope, place, 2 * np.sin(a) * np.cos(a) * b * b, rtol=1e-5, atol=1e-5)
    second = weft.grad(lambda x: weft.grad(lambda x: (x**3).sum())(x).sum())(x)
    lies(second, place, 6 * a, rtol=1e-5)
    branch = weft.grad(lambda x: (x * x).sum() if x.sum() > -1e9 else x.sum())(x)  # Python asks for a number
    lies(branch, place, 2 * a, rtol=1e-6)
    remat = weft.grad(lambda x: weft.checkpoint(lambda x: wnp.sin(wnp.sin(x)))(x).sum())
    lies(remat(x), weft.jit(remat)(x).sharding, np.cos(np.sin(a)) * np.cos(a), rtol=1e-5)
    hessian_product = weft.jvp(weft.grad(lambda x: (wnp.sin(x)).sum()), (x,), (x,))[1]
    lies(hessian_product, place, -np.sin(a) * a, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("place", MESHES.values(), ids=MESHES)
def test_control_flow_outside_jit(place):
    a, b, _ = values(3)
    x, y = weft.device_put(a, place), weft.device_put(b, place)
    np.testing.assert_allclose(lax.scan(lambda c, r: (c + r, c * r), x[0] * 0, x)[0], a.sum(0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(lax.cond(True, lambda x: x + 1, lambda x: x - 1, x), a + 1, rtol=1e-6)
    np.testing.assert_allclose(lax.fori_loop(0, 3, lambda i, x: x * y, x), a * b**3, rtol=1e-5)
    double = weft.grad(lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 2), (0, x))[1].sum())
    _, tangent = weft.jvp(lambda x: lax.fori_loop(0, 3, lambda i, x: x * y, x), (x,), (x,))
    np.testing.assert_allclose(tangent, a * b**3, rtol=1e-5)
    # Reverse mode of a while records on tapes, which lie on no mesh.
    np.testing.assert_allclose(double(x), np.full(SHAPE, 8), rtol=1e-6)
    np.testing.assert_allclose(weft.pure_callback(lambda v: v * 2, x, x), a * 2, rtol=1e-6)


def test_captured_arrays():
    """A function that closes over arrays on a mesh."""
    a, b, _ = values(3)
    for place in MESHES.values():
        x, y = weft.device_put(a, place), weft.device_put(b, place)
        f = weft.jit(lambda x, y=y: x * y)
        for _ in range(2):
            lies(f(x), place, a * b)
        np.testing.assert_allclose(f(wnp.asarray(a)), a * b, rtol=1e-6)
        lies(weft.grad(lambda x, y=y: (x * y).sum())(x), place, b)


def test_pmap_takes_and_gives_shards():
    a = values(1, (8, 4, 3))[0]
    f = weft.pmap(lambda v: v * lax.axis_index("i"), "i")
    want = a * np.arange(8)[:, None, None]
    x = f(a)
    before = _weft.shard_copies()
    y = f(x)
    assert _weft.shard_copies() == before
    np.testing.assert_allclose(x, want, rtol=1e-6)
    np.testing.assert_allclose(y, want * np.arange(8)[:, None, None], rtol=1e-6)
    assert len(y.devices()) == 8
    np.testing.assert_allclose((y + 1).sum(0), (want * np.arange(8)[:, None, None] + 1).sum(0), rtol=1e-5)
    assert len((y + 1).devices()) == 8
    np.testing.assert_allclose(
        weft.grad(lambda v: (f(v) ** 2).sum())(x), 2 * want * np.arange(8)[:, None, None] ** 2, rtol=1e-5
    )


def test_settings_meet_cut_arrays():
    """debug_nans and disable_jit, which run operations in other ways."""
    (a,) = values()
    for place in MESHES.values():
        x = weft.device_put(a, place)
        with weft.debug_nans(True):
            lies(x * 2, place, a * 2)
            for f in (lambda x: wnp.log(x - 5), weft.jit(lambda x: wnp.log(x - 5) + 1)):
                with pytest.raises(FloatingPointError, match="log"):
                    f(x)
        with weft.disable_jit():
            lies(weft.jit(lambda x: wnp.sin(x) * 2)(x), place, np.sin(a) * 2)


def test_interpreter_takes_cut_arrays():
    a, b, _ = values(3)
    for place in MESHES.values():
        x, y = weft.device_put(a, place), weft.device_put(b, place)
        lies(weft.jit(lambda x, y: x * y + 1, backend="interpreter")(x, y), place, a * b + 1)


def test_dtypes_and_shapes():
    line = lambda *spec: weft.NamedSharding(weft.make_mesh((2,), ("x",)), P(*spec))
    for dtype in ("bool", "int8", "uint16", "int32", "float16", "bfloat16", "float32", "float64", "complex64"):
        with weft.enable_x64(True):
            whole = (np.arange(24).reshape(4, 2, 3) % 2).astype(wnp.dtype(dtype) if dtype != "bfloat16" else "float32")
            x = weft.device_put(wnp.asarray(whole, dtype=dtype), line(None, "x"))
            assert str(x.dtype) == dtype
            np.testing.assert_array_equal(np.asarray(x, dtype=whole.dtype), whole)
            np.testing.assert_array_equal(np.asarray((x == x).all()), True)
            assert (x == x).sharding == line(None, "x")
            np.testing.assert_array_equal(np.asarray(pickle.loads(pickle.dumps(x)), dtype=whole.dtype), whole)
    for shape, spec in (((), ()), ((0, 4), (None, "x")), ((4, 0), ("x",)), ((2,), ("x",)), ((2, 2, 2, 2), ("x",))):
        whole = np.ones(shape, np.float32)
        x = weft.device_put(whole, line(*spec))
        lies(x + 1, line(*spec), whole + 1)
        lies(weft.jit(lambda x: x * 3)(x), line(*spec), whole * 3)


def test_what_is_made_like_an_array_lies_as_it_does():
    x = weft.device_put(np.arange(8.0), weft.NamedSharding(GRID, P("x")))
    one = weft.device_put(np.ones((2, 2)), DEVICES[3])
    kind = weft.ShapeDtype((8,), sharding=x.sharding)
    for like in (wnp.zeros_like, wnp.ones_like, lambda a: wnp.full_like(a, 7), lambda a: lax.full_like(a, 7)):
        assert like(x).sharding == x.sharding and like(one).sharding == one.sharding
    assert wnp.zeros_like(kind).sharding == x.sharding
    assert wnp.zeros_like(x, shape=(3,)).sharding == wnp.zeros(3).sharding
    assert lax.full_like(one, 1, shape=()).sharding == one.sharding
    assert wnp.zeros_like(x, device=DEVICES[1]).sharding == weft.SingleDeviceSharding(DEVICES[1])
    inside = weft.shard_map(lambda a: a + wnp.ones_like(x)[:2].sum(), GRID, P("x"), P("x"))(x)
    np.testing.assert_array_equal(inside, np.arange(8.0) + 2)
    np.testing.assert_array_equal(weft.jit(lambda a: a + wnp.ones_like(x))(x), np.arange(8.0) + 1)
    np.testing.assert_array_equal(weft.grad(lambda a: (a * wnp.ones_like(a)).sum())(x), np.ones(8))


def test_threads_share_arrays():
    """Reading, computing, donating copies and collecting in several threads at once."""
    a, b, _ = values(3, (64, 64))
    step = weft.jit(lambda x, y: x * y + 1)
    donating = weft.jit(lambda x: x + 1, donate_argnums=0)
    errors = []

    def work(x, y, k):
        try:
            for i in range(20):
                np.testing.assert_allclose(step(x, y), a * b + 1, rtol=1e-6)
                np.testing.assert_allclose(x + y, a + b, rtol=1e-6)
                np.testing.assert_array_equal(np.asarray(x), a)
                np.testing.assert_allclose(donating(x.copy()), a + 1, rtol=1e-6)
                shard = x.addressable_shards[(i + k) % 8]
                np.testing.assert_array_equal(shard.data, a[shard.index])
                if i % 5 == k % 5:
                    gc.collect()
        except BaseException as error:
            errors.append(error)

    for place in (PLACES["both"], PLACES["columns"], PLACES["rows of some"]):
        x = from_parts(a, place)  # its buffers are moved together while others read them
        y = weft.device_put(b, place)
        threads = [threading.Thread(target=work, args=(x, y, k)) for k in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not errors, errors


def test_memory_is_freed():
    place = PLACES["columns"]
    a = np.ones((256, 256), np.float32)

    def use():
        x = weft.device_put(a, place)
        shards = [s.data for s in x.addressable_shards]
        y = x + 1
        np.asarray(y), np.asarray(x)
        return weft.make_array_from_single_device_arrays(a.shape, place, shards)

    def resident():
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * 4096

    for _ in range(50):
        use()
    gc.collect()
    before = resident()
    for _ in range(500):
        use()
    gc.collect()
    assert resident() - before < 50 * a.nbytes  # of 2,000 arrays
