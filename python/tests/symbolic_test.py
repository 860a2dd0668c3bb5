"""Programs traced with sizes that are not known yet: one executable serves every size."""

import numpy as np
import pytest

import weft
import weft.lax
import weft.numpy as wnp
from weft import nn

SIZES = (3, 1, 0, 64, 1000)
rng = np.random.default_rng(0)
PARAMS = {
    "w1": rng.standard_normal((5, 8)).astype(np.float32),
    "b1": rng.standard_normal(8).astype(np.float32),
    "w2": rng.standard_normal((8, 10)).astype(np.float32),
    "b2": rng.standard_normal(10).astype(np.float32),
}
BATCH = weft.ShapeDtype(("n", 5), np.float32)
LABELS = weft.ShapeDtype(("n",), np.int32)


def mlp(params, x):
    hidden = nn.relu(x @ params["w1"] + params["b1"])
    return hidden @ params["w2"] + params["b2"]


def loss(params, x, labels):
    return -wnp.mean(wnp.take_along_axis(nn.log_softmax(mlp(params, x)), labels[:, None], 1))


def loss_of_one(params, x, label):
    return -nn.log_softmax(mlp(params, x))[label]


def mean_loss(params, x, labels):
    return weft.vmap(loss_of_one, in_axes=(None, 0, 0))(params, x, labels).mean()


# The same in NumPy, in double precision.


def np_mlp(p, x):
    p = {k: v.astype(np.float64) for k, v in p.items()}
    return np.maximum(x @ p["w1"] + p["b1"], 0) @ p["w2"] + p["b2"]


def np_log_softmax(p, x):
    z = np_mlp(p, x)
    z = z - z.max(1, keepdims=True)
    return z - np.log(np.exp(z).sum(1, keepdims=True))


def np_loss(p, x, y):
    return -np_log_softmax(p, x)[np.arange(len(x)), y].sum() / np.float64(len(x)) if len(x) else np.nan


def np_grad(p, x, y):
    n = len(x)
    h = np.maximum(x @ p["w1"].astype(np.float64) + p["b1"], 0)
    d = np.exp(np_log_softmax(p, x))
    d[np.arange(n), y] -= 1
    d /= n
    back = (d @ p["w2"].T.astype(np.float64)) * (h > 0)
    return {"w1": x.T @ back, "b1": back.sum(0), "w2": h.T @ d, "b2": d.sum(0)}


def check(function, want, *specs, sizes=SIZES):
    """Traces once, runs with every size, compares with `want`; returns the IR."""
    ir = weft.make_ir(function)(*specs)
    run = np.random.default_rng(1)
    for n in sizes:
        args = []
        for s in specs:
            if not isinstance(s, weft.ShapeDtype):
                args.append(s)
            elif s.dtype == np.int32:
                args.append(run.integers(0, 10, n).astype(np.int32))
            else:
                args.append(run.standard_normal((n, *s.shape[1:])).astype(np.float32))
        with np.errstate(all="ignore"):
            expected = want(*args)
        got = ir(*args)
        for g, w in zip(weft.tree.leaves(got), weft.tree.leaves(expected)):
            np.testing.assert_allclose(np.asarray(g), w, rtol=2e-4, atol=2e-5, err_msg=f"n = {n}")
    return ir


def test_a_batch_of_unknown_size_prints_and_runs():
    ir = check(mlp, np_mlp, PARAMS, BATCH)
    header = ir.text.splitlines()[0]
    assert "x: f32[n,5]" in header and header.endswith("-> (f32[n,10]) {")
    assert weft.parse_ir(ir.text)(*weft.tree.leaves(PARAMS), np.zeros((2, 5), np.float32)).shape == (2, 10)


CASES = {
    "relu": (lambda p, x: nn.relu(mlp(p, x)), lambda p, x: np.maximum(np_mlp(p, x), 0)),
    "softmax": (lambda p, x: nn.softmax(mlp(p, x)), lambda p, x: np.exp(np_log_softmax(p, x))),
    "log_softmax": (lambda p, x: nn.log_softmax(mlp(p, x)), np_log_softmax),
    "argmax": (lambda p, x: wnp.argmax(mlp(p, x), axis=1), lambda p, x: np_mlp(p, x).argmax(1)),
    "mean over the batch": (
        lambda p, x: wnp.mean(mlp(p, x), axis=0),
        lambda p, x: np_mlp(p, x).sum(0) / np.float64(len(x)),
    ),
    "vmap": (lambda p, x: weft.vmap(lambda row: mlp(p, row))(x), np_mlp),
}


@pytest.mark.parametrize("name", CASES)
def test_network(name):
    ours, theirs = CASES[name]
    check(ours, theirs, PARAMS, BATCH)


@pytest.mark.parametrize("function", [loss, mean_loss])
def test_loss(function):
    check(function, np_loss, PARAMS, BATCH, LABELS)


@pytest.mark.parametrize("function", [loss, mean_loss])
def test_gradient_with_respect_to_the_weights(function):
    ir = check(weft.grad(function), np_grad, PARAMS, BATCH, LABELS, sizes=(3, 1, 64, 1000))
    assert ir.text.splitlines()[0].endswith("-> (f32[8], f32[10], f32[5,8], f32[8,10]) {")
    value, gradient = weft.make_ir(weft.value_and_grad(function))(PARAMS, BATCH, LABELS)(
        PARAMS, np.ones((2, 5), np.float32), np.array([1, 2], np.int32)
    )
    np.testing.assert_allclose(float(value), np_loss(PARAMS, np.ones((2, 5)), np.array([1, 2])), rtol=1e-5)
    assert gradient["w1"].shape == (5, 8)


def layernorm(np, x):
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)


ARRAYS = {
    "layernorm": lambda np, x: layernorm(np, x),
    "std": lambda np, x: np.std(x, axis=1),
    "std of a sample": lambda np, x: np.std(x, axis=0, ddof=1),
    "weights of an average": lambda np, x: np.average(x, axis=0, returned=True)[1],
    "logmeanexp": lambda np, x: weft.nn.logmeanexp(x, 0) if np is wnp else np.log(np.exp(x).mean(0)),
    "concatenate": lambda np, x: np.concatenate([x, x * 2], 0),
    "concatenate columns": lambda np, x: np.concatenate([x, x * 2], 1),
    "stack": lambda np, x: np.stack([x, -x]),
    "reshape": lambda np, x: x.reshape(-1),
    "transpose": lambda np, x: x.T * 2,
    "gram": lambda np, x: x.T @ x,
    "outer": lambda np, x: x @ x.T,
    "vector from the left": lambda np, x: x.T @ x[:, 0],
    "vector from the right": lambda np, x: np.tanh(x @ x.sum(0)),
    "one row": lambda np, x: x.sum(0, keepdims=True) @ x.T,
    "one column": lambda np, x: x.T @ x[:, :1],
    "scalar product": lambda np, x: x[:, 0] @ x[:, 1],
    "outer product": lambda np, x: np.einsum("a,b->ba", x[:, 0], x.sum(0)),
    "vectors of a batch": lambda np, x: np.einsum("nd,nd->n", x, x * 2),
    "cumsum": lambda np, x: np.cumsum(x, 0),
    "sort": lambda np, x: np.sort(x, 0),
    "pad": lambda np, x: np.pad(x, ((1, 2), (0, 0))),
    "column": lambda np, x: x[:, 1],
    "columns": lambda np, x: x[:, 1:4:2],
    "split": lambda np, x: np.split(x, 5, axis=1)[3],
    "rows": lambda np, x: x[np.zeros((4,), int) - 1] if np is not wnp else x[wnp.zeros((4,), int) - 1],
    "where": lambda np, x: np.where(x > 0, x, x * 0.1),
    "arange": lambda np, x: x + np.arange(x.shape[0])[:, None],
    "zeros": lambda np, x: x + np.ones(x.shape, np.float32),
    "max": lambda np, x: x.max(1),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays(name):
    f = ARRAYS[name]
    check(lambda x: f(wnp, x), lambda x: f(np, x), BATCH, sizes=(3, 1, 64, 1000) if name == "rows" else SIZES)


def test_scan_over_the_batch():
    check(
        lambda x: weft.lax.scan(lambda c, row: (c + row, (c * row).sum()), wnp.zeros(5), x),
        lambda x: (x.sum(0), ((np.cumsum(x, 0) - x) * x).sum(1)),
        BATCH,
    )


def test_two_symbols():
    n = weft.ShapeDtype(("n", "m"), np.float32)
    ir = weft.make_ir(lambda x: nn.softmax(x, axis=1).sum(0))(n)
    assert ir.text.splitlines()[0].endswith("-> (f32[m]) {")
    for shape in ((2, 3), (1, 7), (40, 1), (0, 3), (17, 100)):
        x = rng.standard_normal(shape).astype(np.float32)
        e = np.exp(x - x.max(1, keepdims=True, initial=-np.inf))
        np.testing.assert_allclose(np.asarray(ir(x)), (e / e.sum(1, keepdims=True)).sum(0), rtol=1e-4, atol=1e-6)


def test_the_code_is_compiled_once():
    ir = weft.make_ir(mlp)(PARAMS, BATCH)
    schedule = ir.stage("schedule")
    assert "planned per call" in ir.stage("buffers")
    for n in SIZES:
        ir(PARAMS, np.zeros((n, 5), np.float32))
    assert ir.stage("schedule") == schedule


def test_what_cannot_be_symbolic_says_so_and_where():
    for f in (lambda x: x[1:], lambda x: x[::-1], lambda x: x[-1]):
        with pytest.raises(NotImplementedError, match=r"symbolic size.*n(.|\n)*symbolic_test.py"):
            weft.make_ir(f)(BATCH)
    quantiles = {
        "quantile": lambda x: wnp.quantile(x, 0.3, axis=0),
        "percentile": lambda x: wnp.percentile(x, 30, axis=0),
        "median": lambda x: wnp.median(x),
        "nanquantile": lambda x: wnp.nanquantile(x, 0.3, axis=0),
        "nanpercentile": lambda x: wnp.nanpercentile(x, 30, axis=0),
        "nanmedian": lambda x: wnp.nanmedian(x),
    }
    for name, f in quantiles.items():
        with pytest.raises(NotImplementedError, match=rf"^{name}: axis 0 .*symbolic size n(.|\n)*symbolic_test.py"):
            weft.make_ir(f)(BATCH)
    # Along the other axis the number of elements is known.
    check(lambda x: wnp.quantile(x, 0.3, axis=1), lambda x: np.quantile(x, 0.3, axis=1).astype(np.float32), BATCH)
    with pytest.raises(TypeError, match="shape"):
        weft.make_ir(mlp)(PARAMS, BATCH)(PARAMS, np.zeros((3, 6), np.float32))


# A function of x: f32[n], the least n it runs for, and what a call with less is told.
SIZES_NEEDED = {
    "top_k": (lambda x: weft.lax.top_k(x, 3)[0], 3, r"top_k: dimension 0 of f32\[n\] has size 2, where n = 2; "),
    "top_k of each row": (lambda x: weft.lax.top_k(wnp.stack([x, x]), 2)[1], 2, "top_k: dimension 1"),
    "argmax": (wnp.argmax, 1, r"argmax: dimension 0 of f32\[n\] has size 0, where n = 0; expected at least 1"),
    "argmin": (wnp.argmin, 1, "argmin: dimension 0"),
    "indices": (lambda x: x[np.array([0, 3])], 1, "gather: dimension 0"),
    "take": (lambda x: wnp.take(x, np.array([0, 3]), mode="clip"), 1, "gather: dimension 0"),
    "filled": (lambda x: x.at[np.array([0, 9])].get(mode="fill", fill_value=3.0), 1, "gather: dimension 0"),
    "get": (lambda x: x.at[np.array([0])].get(mode="promise_in_bounds"), 1, "gather: dimension 0"),
    "pad": (lambda x: weft.lax.pad(x, 0.0, [(-2, 1, 0)]), 1, r"pad: a dimension of the result f32\[n-1\]"),
    "pad inside": (lambda x: weft.lax.pad(x, 0.0, [(-3, 1, 0)]).sum(), 2, r"pad: a dimension of the result f32\[n-2\]"),
    "vmap": (weft.vmap(lambda i: weft.lax.top_k(i * wnp.ones(3), 2)[0]), 0, None),
}


@pytest.mark.parametrize("name", SIZES_NEEDED)
def test_a_size_that_is_too_small_is_an_error_of_the_call(name):
    f, least, message = SIZES_NEEDED[name]
    ir = weft.make_ir(f)(weft.ShapeDtype(("n",), np.float32))
    x = wnp.arange(7.0)
    np.testing.assert_array_equal(np.asarray(ir(x)), np.asarray(f(x)))
    ir(np.ones(least, np.float32))
    if least:
        with pytest.raises(TypeError, match=message):
            ir(np.zeros(least - 1, np.float32))


def test_a_size_is_checked_in_a_loop_or_branch_when_that_runs():
    vector = weft.ShapeDtype(("n",), np.float32)
    steps = weft.ShapeDtype((), np.int32)
    for loop in (
        lambda x, k: weft.lax.fori_loop(0, k, lambda i, c: c + x[i] * x[wnp.stack([i, i])].sum(), 0.0),
        lambda x, k: weft.lax.while_loop(
            lambda c: c[0] < k, lambda c: (c[0] + 1, c[1] + x.at[c[0]].get(mode="clip")), (0, 0.0)
        )[1],
        lambda x, k: weft.lax.cond(k > 0, lambda x: weft.lax.top_k(x, 1)[0][0], lambda x: 0.0, x),
        lambda x, k: weft.lax.scan(lambda c, _: (c + x[wnp.int32(c)], c), 0.0 * k, None, length=3)[0] * (k > 0),
    ):
        ir = weft.make_ir(loop)(vector, steps)
        x = np.arange(1, 5, dtype=np.float32)
        np.testing.assert_allclose(np.asarray(ir(x, 3)), np.asarray(loop(wnp.asarray(x), 3)))
        empty = np.zeros(0, np.float32)
        if "length=3" not in ir.text and "length=<3>" not in ir.text:
            assert float(ir(empty, 0)) == 0
        with pytest.raises(RuntimeError, match=r"dimension 0 of f32\[n\] has size 0; expected at least 1"):
            ir(empty, 3)
        assert np.isfinite(float(ir(x, 2)))  # the program can be called again
    # What a loop computes from its constants alone is not computed before it where it may not be.
    constant = lambda x, k: weft.lax.fori_loop(0, k, lambda i, c: c + weft.lax.top_k(x, 2)[0][1], 0.0)
    ir = weft.make_ir(constant)(vector, steps)
    assert float(ir(np.zeros(1, np.float32), 0)) == 0 and float(ir(np.arange(3, dtype=np.float32), 4)) == 4
    with pytest.raises(RuntimeError, match="top_k: dimension 0"):
        ir(np.zeros(1, np.float32), 2)
    # As many steps as elements.
    size = weft.primitives.dim_size
    total = weft.make_ir(lambda x: weft.lax.fori_loop(0, size(x, dim=0), lambda i, c: c + x[i], 0.0))(vector)
    assert float(total(np.zeros(0, np.float32))) == 0 and float(total(np.ones(5, np.float32))) == 5


# Programs that do not read what n = 0 does not have.
STEPS = weft.primitives.dim_size
PROGRAMS_FOR_NOTHING = {
    "fori_loop": lambda x: weft.fori_loop(0, STEPS(x, dim=0), lambda i, c: c + x[i, 0] ** 2, 0.0),
    "while_loop": lambda x: weft.lax.while_loop(
        lambda c: c[0] < STEPS(x, dim=0), lambda c: (c[0] + 1, c[1] * x[c[0], 1]), (0, 1.0)
    )[1],
    "cond": lambda x: weft.lax.cond(STEPS(x, dim=0) > 0, lambda x: weft.lax.top_k(x[:, 0], 1)[0][0], lambda x: 7.0, x),
    "lanes of a loop": lambda x: weft.vmap(
        lambda r: weft.lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 2 + 1, r)
    )(x).sum(),
    "lanes of a branch": lambda x: weft.vmap(
        lambda r: weft.lax.cond(r.sum() > 0, lambda r: wnp.linalg.inv(r[:, None] * r + wnp.eye(4)) @ r, lambda r: r, r)
    )(x).sum(),
}


@pytest.mark.parametrize("name", PROGRAMS_FOR_NOTHING)
def test_a_program_that_runs_for_nothing_is_transformed_for_nothing(name):
    ir = weft.make_ir(PROGRAMS_FOR_NOTHING[name])(weft.ShapeDtype(("n", 4), np.float32))
    x = np.zeros((0, 4), np.float32)
    wanted = float(ir(x))
    assert float(weft.jit(ir)(x)) == wanted
    assert [float(v) for v in weft.jvp(ir, (x,), (x,))] == [wanted, 0]
    assert np.asarray(weft.vmap(ir)(np.zeros((3, 0, 4), np.float32))).tolist() == [wanted] * 3
    gradient = weft.grad(ir)
    for f in (gradient, weft.jit(gradient), weft.grad(lambda x: gradient(x).sum()), weft.grad(weft.checkpoint(ir))):
        assert f(x).shape == (0, 4)
    # Numbers are what they are.
    x = rng.uniform(0.1, 0.2, (3, 4)).astype(np.float32)
    np.testing.assert_allclose(float(weft.jit(ir)(x)), float(ir(x)), rtol=1e-6)


def test_what_a_program_for_a_known_size_needs_is_checked_when_that_runs():
    vector, flag = weft.ShapeDtype(("n",), np.float32), weft.ShapeDtype((), np.bool_)
    ir = weft.make_ir(lambda x, p: weft.lax.cond(p, lambda x: weft.lax.top_k(x, 2)[0][1], lambda x: 1.0, x))(
        vector, flag
    )
    x = np.zeros(1, np.float32)
    message = r"top_k: dimension 0 of f32\[n\] has size 1; expected at least 2"
    assert float(weft.jit(ir)(x, False)) == 1
    with pytest.raises(RuntimeError, match=message):
        weft.jit(ir)(x, True)
    lanes = weft.vmap(ir, in_axes=(None, 0))
    assert np.asarray(lanes(x, np.array([False, False]))).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match=message):
        lanes(x, np.array([True, False]))
    # What runs in any case is refused before anything does.
    with pytest.raises(ValueError, match=r"top_k: (.|\n)*symbolic_test.py"):
        weft.jit(weft.make_ir(lambda x: weft.lax.top_k(x, 2)[0])(vector))(x)


def test_sizes_that_are_always_enough_need_no_check():
    f = lambda x: weft.lax.top_k(wnp.pad(x, (0, 3)), 3)[0]
    ir = weft.make_ir(f)(weft.ShapeDtype(("n",), np.float32))
    for n in (0, 1, 4):
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(np.asarray(ir(x)), np.sort(np.append(x, [0, 0, 0]))[::-1][:3])
    # Nothing is read where there are no indices.
    empty = weft.make_ir(lambda x, i: x[i])(weft.ShapeDtype(("n",), np.float32), weft.ShapeDtype(("m",), np.int32))
    assert empty(np.zeros(0, np.float32), np.zeros(0, np.int32)).shape == (0,)
    with pytest.raises(TypeError, match="gather: dimension 0"):
        empty(np.zeros(0, np.float32), np.zeros(1, np.int32))
    window = weft.make_ir(lambda x, i: weft.lax.dynamic_slice(x, (i,), (2,)))
    window = window(weft.ShapeDtype(("n",), np.float32), weft.ShapeDtype((), np.int32))
    for place, wanted in ((0, [0, 1]), (-3, [1, 2]), (9, [2, 3])):
        np.testing.assert_array_equal(np.asarray(window(np.arange(4, dtype=np.float32), place)), wanted)
    with pytest.raises(TypeError, match=r"dynamic_slice: dimension 0 of f32\[n\] has size 1"):
        window(np.zeros(1, np.float32), 0)
    ir = weft.parse_ir("fn f(a: f32[n,7]) {\n b = dynamic_slice[sizes=[2,3]] a 1:i32 2:i32\n return b }")
    np.testing.assert_array_equal(np.asarray(ir(np.ones((2, 7), np.float32))), np.ones((2, 3)))
    with pytest.raises(TypeError, match=r"dynamic_slice: dimension 0 of f32\[n,7\] has size 1"):
        ir(np.ones((1, 7), np.float32))


def test_a_program_of_symbolic_sizes_inside_others():
    captured = np.arange(15, dtype=np.float32).reshape(3, 5)

    def f(x):
        steps = weft.lax.scan(lambda c, row: (c + row, c), wnp.zeros(5), x)[1]
        return steps + wnp.arange(x.shape[0])[:, None] + captured.sum(0)

    ir = weft.make_ir(f)(BATCH)
    x = rng.standard_normal((4, 5)).astype(np.float32)
    wanted = np.asarray(f(x))
    np.testing.assert_allclose(weft.jit(lambda x: ir(x))(x), wanted, rtol=1e-6)
    np.testing.assert_allclose(weft.vmap(ir)(np.stack([x, x])), [wanted, wanted], rtol=1e-6)
    np.testing.assert_allclose(weft.grad(lambda x: ir(x).sum())(x), np.arange(3.0, -1, -1)[:, None] * np.ones(5))
    # Under another name, which may be a multiple.
    other = weft.make_ir(lambda x: ir(x))(weft.ShapeDtype(("2*m", 5), np.float32))
    assert other.out_types == ["f32[2*m,5]"]
    np.testing.assert_allclose(other(x), wanted, rtol=1e-6)
    for bad, message in [
        (np.zeros((4, 6), np.float32), r"argument 0 \(x\) is f32\[4,6\], expected f32\[n,5\], where n = 4"),
        (np.zeros((4, 5), np.int32), r"argument 0 \(x\) is i32\[4,5\], expected f32\[n,5\]"),
    ]:
        with pytest.raises(TypeError, match=message + r"(.|\n)*symbolic_test.py"):
            weft.jit(lambda x: ir(x))(bad)


UNSUPPORTED = {
    "/: Tracer and n": lambda x: x.sum() / x.shape[0],
    r"\*: Tracer and n": lambda x: x.sum() * x.shape[0],
    r"\*: n and Tracer": lambda x: x.shape[0] * x.sum(),
    r"\*: float and n": lambda x: 2.0 * x.shape[0],
    r"\+: n and float": lambda x: x.shape[0] + 0.5,
    "-: str and n": lambda x: "one" - x.shape[0],
    "//: n and int": lambda x: x.shape[0] // 2,
    "%: int and n": lambda x: 7 % x.shape[0],
    r"\*\*: n and int": lambda x: x.shape[0] ** 2,
    "divmod: n and int": lambda x: divmod(x.shape[0], 2),
    "roll: %: int and n": lambda x: wnp.roll(x, 1, axis=0),
    "split: %: n and int": lambda x: wnp.split(x, 2),
    "cov: /: Tracer and n-1": lambda x: wnp.cov(x.T),
}


@pytest.mark.parametrize("message", UNSUPPORTED)
def test_arithmetic_that_a_symbolic_size_does_not_have_says_what_does(message):
    with pytest.raises(
        TypeError, match=rf"^{message}: .*weft.primitives.dim_size\(x, dim=d\)\n  at .*symbolic_test.py"
    ):
        weft.make_ir(UNSUPPORTED[message])(BATCH)


def test_sizes_as_python_objects():
    n = weft.Dim("n")
    assert -n + n == 0 and -(n - 1) == 1 - n
    assert n != "n" and n != 1.5 and n == weft.Dim("n")


def test_whether_a_symbolic_size_is_zero_is_not_known():
    with pytest.raises(weft.TracerError, match=r"whether n is 0 is not known(.|\n)*symbolic_test.py"):
        weft.make_ir(lambda x: x if x.shape[0] else x + 1)(BATCH)


def test_symbols_are_told_by_linear_systems():
    # In any order of dimensions and arguments; run, in jit, and inside of programs of other open sizes.
    systems = {
        ("a+2*b", "a"): [(8, 2), (5, 5), (0, 0)],
        ("a+b+c", "a+b", "a"): [(9, 5, 2), (3, 2, 1)],
        ("3*a+b", "b+1", "a*b"): [(11, 3, 6), (7, 2, 2)],
        ("a*b", "b"): [(6, 3), (5, 5)],
    }
    wrong = {
        ("a+2*b", "a"): (3, 2),
        ("a+b+c", "a+b", "a"): (1, 2, 1),
        ("3*a+b", "b+1", "a*b"): (11, 3, 5),
        ("a*b", "b"): (7, 3),
    }
    for dims, fitting in systems.items():
        ir = weft.make_ir(lambda *xs: [x * 2 for x in xs])(*(weft.ShapeDtype((d,), np.float32) for d in dims))
        for sizes in fitting:
            args = [wnp.arange(float(n)) for n in sizes]
            for run in (ir, weft.jit(lambda *xs, ir=ir: ir(*xs))):
                assert [y.tolist() for y in run(*args)] == [(2 * x).tolist() for x in args], (dims, sizes)
        for run in (ir, weft.jit(lambda *xs, ir=ir: ir(*xs))):
            with pytest.raises((TypeError, ValueError)):
                run(*(wnp.zeros(n) for n in wrong[dims]))
    inner = weft.make_ir(lambda x, y: (x + 1, y))(
        weft.ShapeDtype(("a+b+1",), "float32"), weft.ShapeDtype(("a",), "float32")
    )
    outer = weft.make_ir(lambda x, y: inner(x, y)[1] + 1)(
        weft.ShapeDtype(("3*n+1",), np.float32), weft.ShapeDtype(("n",), np.float32)
    )
    assert outer(wnp.zeros(7), wnp.zeros(2)).tolist() == [1.0, 1.0]
