"""Functions inside a program over a mesh, called, differentiated and batched: their results lie as if they were written
out."""

import os

os.environ.setdefault("WEFT_NUM_CPU_DEVICES", "8")

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import P, lax

LINE = weft.make_mesh((8,), ("x",))
GRID = weft.make_mesh((4, 2), ("x", "y"))
ROWS, COLUMNS = weft.NamedSharding(LINE, P("x")), weft.NamedSharding(LINE, P(None, "x"))
BOTH = weft.NamedSharding(GRID, P("x", "y"))
PLACES = {"rows": ROWS, "columns": COLUMNS, "both": BOTH}


def body(x):
    return wnp.tanh(wnp.sin(x) * x) + wnp.cos(x)


def large(x):
    """More equations than are inlined where a function is called more than once."""
    for k in range(130):
        x = wnp.sin(x) * (1 + k / 1000)
    return x


@weft.custom_jvp
def with_jvp(x):
    return body(x)


with_jvp.defjvp(lambda p, t: weft.jvp(body, p, t))


@weft.custom_vjp
def with_vjp(x):
    return body(x)


with_vjp.defvjp(lambda x: (body(x), x), lambda x, ct: weft.vjp(body, x)[1](ct))


@weft.custom_batching.custom_vmap
def with_vmap(x):
    return body(x)


@with_vmap.def_vmap
def _(size, batched, x):
    return body(x), batched[0]


def twice(f):
    jitted = weft.jit(f)
    return lambda x: jitted(jitted(x) * 2)


def in_scan(f):
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0]


def in_while(f):
    return lambda x: lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, f(s[1])), (0, x))[1]


def in_cond(f):
    return lambda x: lax.cond(x.sum() > -1e9, f, lambda x: x, x)


FUNCTIONS = {
    "plain": body,
    "checkpoint": weft.checkpoint(body),
    "checkpoint of large": weft.checkpoint(large),
    "two layers": lambda x: weft.checkpoint(body)(weft.checkpoint(body)(x)),
    "nested checkpoint": weft.checkpoint(lambda x: weft.checkpoint(body)(x * 2)),
    "saved": weft.checkpoint(body, policy=weft.checkpoint_policies.dots_saveable),
    "custom_jvp": with_jvp,
    "custom_vjp": with_vjp,
    "custom_vmap": with_vmap,
    "jit": weft.jit(body),
    "large jit, twice": twice(large),
    "scan": in_scan(body),
    "scan of checkpoint": in_scan(weft.checkpoint(body)),
    "while": in_while(body),
    "cond": in_cond(body),
    "cond of checkpoint": in_cond(weft.checkpoint(body)),
    "scan of large jit, twice": in_scan(twice(large)),
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_keep_their_sharding(name, place):
    f = FUNCTIONS[name]
    a = np.random.default_rng(0).uniform(-1, 1, (8, 16)).astype(np.float32)
    x = weft.device_put(a, place)
    ways = {
        "value": f,
        "grad": weft.grad(lambda x: f(x).sum()) if name != "while" else None,
        "vmap": weft.vmap(f) if name != "cond" and name != "cond of checkpoint" else None,
        "jvp": lambda x: weft.jvp(f, (x,), (x,))[1],
        "grad of vmap": weft.grad(lambda x: weft.vmap(f)(x).sum())
        if "while" not in name and "cond" not in name
        else None,
        "second": lambda x: weft.jvp(weft.grad(lambda x: f(x).sum()), (x,), (x,))[1] if name != "while" else x,
    }
    if "large" in name:  # these take long
        ways = {way: ways[way] for way in (("value", "grad") if name == "checkpoint of large" else ("value", "vmap"))}
    for way, g in ways.items():
        if g is None:
            continue
        want = np.asarray(weft.jit(g)(a))
        jitted = weft.jit(g)
        for _ in range(2):
            y = jitted(x)
            assert y.sharding == place, (way, y.sharding)
            np.testing.assert_allclose(y, want, rtol=2e-5, atol=2e-5, err_msg=way)
        # Nothing moves but sums that decide which way is taken.
        for c in jitted.lower(x).comms():
            assert c.bytes * c.times <= 64, (way, str(c))
        if way not in ("value", "grad"):
            continue
        eager = g(x)
        assert eager.sharding == place, way
        np.testing.assert_allclose(eager, want, rtol=2e-4, atol=2e-5, err_msg=way)


def layer(w, x):
    return wnp.tanh(x @ w)


@pytest.mark.parametrize("remat", [False, True])
def test_gradients_of_layers(remat):
    """Data parallel, with weights that are whole and with weights that are cut: the same collectives with and without
    checkpoints, but for what is computed again."""
    rng = np.random.default_rng(1)
    ws = [rng.uniform(-0.3, 0.3, (16, 16)).astype(np.float32) for _ in range(3)]
    x = rng.uniform(-1, 1, (8, 16)).astype(np.float32)
    f = weft.checkpoint(layer) if remat else layer

    def loss(ws, x):
        for w in ws:
            x = f(w, x)
        return (x**2).sum()

    step = weft.jit(weft.grad(loss))
    want = [np.asarray(g) for g in step(ws, x)]
    for spec_w, spec_x in (((), ("x",)), ((None, "x"), ()), (("x",), ("x",))):
        on = lambda spec: weft.NamedSharding(LINE, P(*spec))
        placed = [weft.device_put(w, on(spec_w)) for w in ws], weft.device_put(x, on(spec_x))
        for g, w in zip(step(*placed), want):
            np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5)
            if spec_w != ("x",):  # whose gradients are sums that nobody cuts, with and without checkpoints
                assert g.sharding.is_fully_replicated == (spec_w == ()), (g.sharding, spec_w)
    # Data parallel: one sum for each weight, whatever is computed again.
    placed = [weft.device_put(w, weft.NamedSharding(LINE, P())) for w in ws], weft.device_put(x, ROWS)
    comms = step.lower(*placed).comms()
    assert all(c.operation == "psum" for c in comms), [str(c) for c in comms]
    assert sum(c.times for c in comms) <= 3


def test_functions_that_call_functions_twice():
    """Written out they would be 2^30 equations."""

    def level(k):
        inner = level(k - 1) if k else wnp.sin

        @weft.jit
        def f(x):
            y = inner(x)
            for i in range(8):
                y = wnp.cos(y) + i / 100
            return inner(y) * 0.5

        return f

    def lines(k):
        lowered = weft.jit(level(k)).lower(weft.device_put(a, ROWS))
        return lowered.as_text("partitioned").count("\n"), lowered.as_text("optimized").count("\n")

    a = np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4)
    assert lines(30)[0] < 4 * lines(15)[0]
    assert lines(30)[0] < 4 * lines(30)[1]
    f = weft.jit(level(11))
    y = f(weft.device_put(a, ROWS))
    assert y.sharding == ROWS
    np.testing.assert_allclose(y, f(a), rtol=1e-4, atol=1e-5)
