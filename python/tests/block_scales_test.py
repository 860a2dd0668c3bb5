"""Products of arrays of which blocks have scales (lax.scaled_dot, nn.scaled_matmul, nn.scaled_dot_general): against JAX
where its CPU has them, and against the documented formulas in NumPy. JAX's own product of narrow floats is a call of a
GPU's library; with the documented formula in its place, JAX's rounding and its derivative run on the CPU, too."""

import os

# As XLA is by default: with less optimisation it divides by other numbers, and a few elements round otherwise.
os.environ["XLA_FLAGS"] = ""

import functools

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import lax, nn

E4M3, E5M2, E8M0, E2M1 = (
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e8m0fnu,
    ml_dtypes.float4_e2m1fn,
)
# By how much a result may differ for its own rounding.
ROUNDING = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2}


def wide(x):
    return np.asarray(x).astype("float64")


def close(got, expected, rounding):
    expected = wide(expected)
    np.testing.assert_allclose(wide(got), expected, rtol=rounding, atol=rounding * np.abs(expected).max())


def repeated(scale, shape, axes):
    for d in axes:
        scale = np.repeat(scale, shape[d] // scale.shape[d], d)
    return scale


# --- scaled_dot -------------------------------------------------------------------------------------------------------

# dimension_numbers, and the shapes of lhs, rhs and their scales.
DOTS = {
    "matrices": (None, (3, 8), (8, 5), (3, 2), (4, 5)),
    "batches": (None, (2, 3, 8), (2, 8, 5), (2, 3, 4), (2, 1, 5)),
    "two batches": (None, (2, 3, 2, 4), (2, 3, 4, 2), (2, 3, 2, 2), (2, 3, 1, 2)),
    "several": ((((0, 2), (2, 1)), ((1,), (0,))), (4, 2, 6), (2, 6, 4), (2, 2, 3), (2, 1, 2)),
    "first": ((((0,), (0,)), ((), ())), (8, 3), (8, 5), (2, 3), (4, 5)),
}


def operands(shapes, dtype, scale_dtype, seed=0):
    rng = np.random.default_rng(seed)
    x, y = (rng.normal(size=shape).astype("float32") * 3 for shape in shapes[:2])
    scales = [np.exp2(rng.integers(-3, 3, shape)).astype("float32") for shape in shapes[2:]]
    return [v.astype(dtype) for v in (x, y)] + [v.astype(scale_dtype) for v in scales]


@pytest.mark.parametrize("case", DOTS.values(), ids=DOTS)
@pytest.mark.parametrize("dtype", [E4M3, E5M2, E2M1, ml_dtypes.bfloat16, "float32", "float16", "int8"], ids=str)
def test_scaled_dot(case, dtype):
    jax = pytest.importorskip("jax")
    numbers, *shapes = case
    for scale_dtype, preferred, given in (
        (E8M0, None, (1, 1)),
        (E4M3, "float32", (1, 1)),
        ("float32", "float16", (0, 1)),
        (E8M0, "bfloat16", (1, 0)),
        (E8M0, "float32", (0, 0)),
    ):
        x, y, s, t = operands(shapes, dtype, scale_dtype)
        scales = {name: v for name, v, on in zip(("lhs_scale", "rhs_scale"), (s, t), given) if on}
        more = {"dimension_numbers": numbers, "preferred_element_type": preferred}
        on_jax = {name: jax.numpy.asarray(v) for name, v in scales.items()}
        theirs = jax.lax.scaled_dot(*map(jax.numpy.asarray, (x, y)), **on_jax, **more)
        mine = lax.scaled_dot(x, y, **scales, **more)
        assert (mine.shape, str(mine.dtype)) == (theirs.shape, str(theirs.dtype))
        close(mine, theirs, ROUNDING[str(mine.dtype)])
    f = lambda x, y, s, t: lax.scaled_dot(x, y, lhs_scale=s, rhs_scale=t, dimension_numbers=numbers)
    np.testing.assert_array_equal(weft.jit(f)(x, y, s, t), f(x, y, s, t))


def test_scaled_dot_under_vmap():
    jax = pytest.importorskip("jax")
    _, *shapes = DOTS["matrices"]
    x, y, s, t = operands(shapes, E4M3, E8M0)
    xs = np.stack([x, (2 * x.astype("float32")).astype(E4M3)])
    more = {"rhs_scale": t, "preferred_element_type": "float32"}
    for axes in ((0, None, None), (0, None, 0)):
        scales = s if axes[2] is None else np.stack([s, s[::-1]])
        mine = weft.vmap(lambda x, y, s: lax.scaled_dot(x, y, lhs_scale=s, **more), axes)(xs, y, scales)
        theirs = jax.vmap(lambda x, y, s: jax.lax.scaled_dot(x, y, lhs_scale=s, **more), axes)(xs, y, scales)
        close(mine, theirs, 1e-5)


def test_derivatives_of_scaled_dot():
    """JAX has none; that of the formula, rounded to bfloat16 where operands are."""
    numbers, *shapes = DOTS["several"]
    given = [v.astype("float32") for v in operands(shapes, ml_dtypes.bfloat16, "float32")]

    def f(x, y, s, t):
        more = {"lhs_scale": s, "rhs_scale": t, "dimension_numbers": numbers}
        return lax.scaled_dot(x, y, **more, preferred_element_type="float32")

    def plain(x, y, s, t):
        x, y = x * _spread(s, x.shape, numbers[0][0]), y * _spread(t, y.shape, numbers[0][1])
        return lax.dot_general(x, y, numbers)

    ct = np.random.default_rng(1).normal(size=f(*given).shape).astype("float32")
    for mine, theirs in zip(weft.vjp(f, *given)[1](ct), weft.vjp(plain, *given)[1](ct)):
        assert mine.dtype == "float32"
        close(mine, theirs, 3e-2)
    value, tangent = weft.jvp(f, given, given)
    close(tangent, 4 * value, 3e-2)


def _spread(scale, shape, axes):
    for d in axes:
        scale = wnp.repeat(scale, shape[d] // scale.shape[d], d)
    return scale


TWO = (np.ones((3, 8)), np.ones((8, 5)))
REFUSED_DOTS = {
    "one dimension": ((np.ones(4), np.ones(4)), {}, "two dimensions or more, got 1"),
    "a number": ((1.0, 1.0), {}, "two dimensions or more, got 0"),
    "ranks": ((TWO[0], TWO[1][None]), {}, "same number of dimensions, got 2 of lhs, 3 of rhs"),
    "rank of a scale": (TWO, {"lhs_scale": np.ones(2)}, "same number of dimensions.* 1 of lhs_scale"),
    "contracted sizes": ((TWO[0], TWO[1][:4]), {}, "contracting dimension 1 of lhs has size 8, dimension 0 of rhs 4"),
    "batches": ((np.ones((2, 3, 4)), np.ones((3, 4, 3))), {}, "batch dimension 0 of lhs has size 2, .* of rhs 3"),
    "pairs": (TWO, {"dimension_numbers": (((1,), (0, 1)), ((), ()))}, "1 contracting axes of lhs and 2 of rhs"),
    "pairs of batches": (TWO, {"dimension_numbers": (((1,), (0,)), ((0,), ()))}, "1 batch axes of lhs and 0 of rhs"),
    "no divisor": (TWO, {"lhs_scale": np.ones((3, 3))}, "dimension 1 of lhs must be a multiple.* got 8 and 3"),
    "no divisor of rhs": (TWO, {"rhs_scale": np.ones((5, 5))}, "dimension 0 of rhs must be a multiple.* got 8 and 5"),
    "each its own": (TWO, {"lhs_scale": np.ones((3, 8))}, "two elements or more.* 1 of lhs, got 8 scales for 8"),
    "rows": (TWO, {"lhs_scale": np.ones((2, 2))}, "dimension 0 of lhs has size 3, of lhs_scale 2"),
    "one element": ((np.ones((2, 1)), np.ones((1, 2))), {}, "two elements or more.* got 1 scales for 1"),
}


@pytest.mark.parametrize("arguments, more, message", REFUSED_DOTS.values(), ids=REFUSED_DOTS)
def test_what_scaled_dot_refuses(arguments, more, message):
    with pytest.raises((TypeError, ValueError), match=message):
        lax.scaled_dot(*arguments, **more)
    if "numbers" not in str(more):
        with pytest.raises(TypeError):
            lax.scaled_dot(*arguments, **more)
    jax = pytest.importorskip("jax")
    on_jax = lambda v: jax.numpy.asarray(v) if isinstance(v, (np.ndarray, float)) else v
    with pytest.raises(TypeError):
        jax.lax.scaled_dot(*map(on_jax, arguments), **{k: on_jax(v) for k, v in more.items()})


# --- scaled_matmul ----------------------------------------------------------------------------------------------------


def product(a, b, s, t, dtype="float32"):
    """What is documented: the einsum of elements times their scales."""
    x, y = (wide(v) * np.repeat(wide(c), v.shape[2] // c.shape[2], 2) for v, c in ((a, s), (b, t)))
    return np.einsum("bmk,bnk->bmn", x, y)


@pytest.mark.parametrize("preferred, blocks", [("float32", 1), ("bfloat16", 2), ("float16", 4), ("float64", 8)])
@pytest.mark.parametrize(
    "dtype, scale_dtype", [(E4M3, E8M0), (E5M2, E8M0), (E2M1, E4M3), ("float32", "float32"), ("int32", "float32")]
)
def test_scaled_matmul(dtype, scale_dtype, blocks, preferred):
    a, b, s, t = operands([(2, 3, 8), (2, 5, 8), (2, 3, blocks), (2, 5, blocks)], dtype, scale_dtype)
    mine = nn.scaled_matmul(a, b, s, t, preferred)
    assert mine.dtype == preferred
    close(mine, product(a, b, s, t), ROUNDING.get(preferred, 1e-12))
    f = lambda *v: nn.scaled_matmul(*v, preferred_element_type=preferred)
    close(weft.jit(f)(a, b, s, t), product(a, b, s, t), ROUNDING.get(preferred, 1e-12))
    stacks = [np.stack([v, v[::-1]]) for v in (a, b, s, t)]
    close(weft.vmap(f)(*stacks)[0], product(a, b, s, t), 1e-2)
    close(weft.vmap(f, (0, None, None, 0))(stacks[0], b, s, stacks[3])[1], product(a[::-1], b, s, t[::-1]), 1e-2)


def test_derivatives_of_scaled_matmul():
    given = operands([(2, 3, 8), (2, 5, 8), (2, 3, 4), (2, 5, 4)], "float32", "float32")
    ct = np.random.default_rng(1).normal(size=(2, 3, 5)).astype("float32")
    _, pull = weft.vjp(nn.scaled_matmul, *given)
    for k, gradient in enumerate(pull(ct)):
        d = np.random.default_rng(k).normal(size=gradient.shape)
        moved = [wide(v) + (0.5 * d if i == k else 0) for i, v in enumerate(given)]
        back = [wide(v) - (0.5 * d if i == k else 0) for i, v in enumerate(given)]
        # It is linear in each of them: the difference is the derivative.
        expected = np.vdot(wide(ct), product(*moved) - product(*back))
        np.testing.assert_allclose(np.vdot(d, wide(gradient)), expected, rtol=1e-4)


A, S = np.ones((1, 2, 4)), np.ones((1, 2, 2))
REFUSED_PRODUCTS = {
    "two dimensions": ((A[0], A, S, S), r"lhs must have three dimensions, got shape \(2, 4\)"),
    "two of a scale": ((A, A, S, S[0]), "rhs_scales must have three dimensions"),
    "contracted": ((A, A[..., :2], S, S), r"got \(1, 2, 4\) and \(1, 2, 2\)"),
    "batch": ((A, np.ones((2, 2, 4)), S, S), r"lhs and rhs must have shapes \(batch, m, k\) and \(batch, n, k\)"),
    "blocks": ((A, A, S, S[..., :1]), "as many blocks"),
    "rows": ((A, A, S[:, :1], S), "lhs_scales must have the shape of lhs"),
    "no divisor": ((A, A, np.ones((1, 2, 3)), np.ones((1, 2, 3))), r"which divides .* got \(1, 2, 3\) and \(1, 2, 4\)"),
}


@pytest.mark.parametrize("arguments, message", REFUSED_PRODUCTS.values(), ids=REFUSED_PRODUCTS)
def test_what_scaled_matmul_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        nn.scaled_matmul(*arguments)


# --- scaled_dot_general -----------------------------------------------------------------------------------------------


def quantised(x, mode, global_scale):
    """[batch, m, k] after it is rounded in blocks along k: what the narrow floats and their scales say."""
    block, dtype = {"mxfp8": (32, E4M3), "nvfp4": (16, E2M1)}[mode]
    most = np.array(ml_dtypes.finfo(dtype).max).astype(x.dtype)
    blocks = x.reshape(*x.shape[:2], -1, block)
    if mode == "nvfp4":
        blocks = blocks / global_scale
    least = np.abs(blocks).max(-1, keepdims=True) / most
    if mode == "mxfp8":
        exponent = np.where(least > 0, np.ceil(np.log2(np.where(least > 0, least, 1).astype("float64"))), -127)
        scale = np.exp2(np.clip(exponent, -127, 127))
        divisor = np.where(scale == 2.0**-127, 2.0**-15, scale) if x.dtype == "float16" else scale
        scaled = blocks / divisor.astype(x.dtype)
    else:
        scale = np.clip(least, np.zeros((), least.dtype), np.array(448, x.dtype)).astype(E4M3).astype("float32")
        with np.errstate(divide="ignore", invalid="ignore"):
            scaled = blocks / scale
    with np.errstate(invalid="ignore"):
        narrow = np.clip(scaled, -most, most).astype(dtype)
    return (wide(narrow) * wide(scale)).reshape(x.shape)


def ranges(shape, dtype, seed):
    """Numbers of many sizes, blocks of zeros and of small numbers among them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape) * np.exp(rng.normal(size=shape))
    x[0, 1], x[0, 2, :32], x[0, 3] = 0, 0, x[0, 3] / 1000
    return x.astype({"bfloat16": ml_dtypes.bfloat16}.get(dtype, dtype))


SCALES = [np.array([v], "float32") for v in (0.013, 0.5, 2.0)]


def configs(mode, module=nn, scales=SCALES):
    return [module.get_scaled_dot_general_config(mode, *([s] if mode == "nvfp4" else [])) for s in scales]


@pytest.mark.parametrize("mode", ["mxfp8", "nvfp4"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_rounding_bit_for_bit(dtype, mode):
    """The product with the identity, which is exact in the format, shows what the other operand was rounded to."""
    x = ranges((1, 64, 64), dtype, 0)
    identity = np.eye(64, dtype=x.dtype)[None]
    scales = [SCALES[0], np.array([1.0 / 6], "float32")]  # 1 is the largest, 6 by the scale of 1
    given = configs(mode, scales=[*scales, SCALES[2]])
    numbers = ((2,), (2,)), ((0,), (0,))
    f = lambda x: nn.scaled_dot_general(x, identity, numbers, "float32", given)
    whole = 1.0 if mode == "mxfp8" else float(np.float32(scales[0][0] * scales[1][0]))
    one = quantised(identity, mode, scales[1])[0, 0, 0]
    expected = (quantised(x, mode, scales[0]) * one).astype("float32") * np.float32(whole)
    for mine in (f(x), weft.jit(f)(x)):
        np.testing.assert_array_equal(mine, expected)


NUMBERS = {
    "matrices": ((64, 32), (64, 32), (((1,), (1,)), ((), ()))),
    "other way": ((32, 64), (32, 96), (((0,), (0,)), ((), ()))),
    "batches": ((2, 32, 64), (2, 32, 64), (((2,), (2,)), ((0,), (0,)))),
    "many": ((2, 32, 4, 32), (4, 32, 2, 32), (((2, 3), (0, 1)), ((0,), (2,)))),
    "lists": ((64, 32), (64, 32), ([[-1], [1]], [[], []])),
}


@functools.cache
def jax_on_the_cpu():
    """JAX, which multiplies narrow floats on the CPU, too."""
    jax = pytest.importorskip("jax")
    from jax._src.cudnn import scaled_matmul_stablehlo
    from jax._src.interpreters import mlir

    def documented(a, b, s, t, *, preferred_element_type):
        scaled = [
            x.astype("float32") * jax.numpy.repeat(c.astype("float32"), x.shape[2] // c.shape[2], 2)
            for x, c in ((a, s), (b, t))
        ]
        return [jax.numpy.einsum("BMK,BNK->BMN", *scaled, precision="highest").astype(preferred_element_type)]

    lowering = mlir.lower_fun(documented, multiple_results=True)
    mlir.register_lowering(scaled_matmul_stablehlo._scaled_matmul_p, lowering)
    return jax


@pytest.mark.parametrize("mode", ["mxfp8", "nvfp4"])
@pytest.mark.parametrize("case", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize("preferred", ["float32", "bfloat16", "float16"])
def test_scaled_dot_general(mode, case, preferred):
    jax = jax_on_the_cpu()
    *shapes, numbers = case
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=shape).astype("float32") for shape in shapes)
    x.flat[::7] = 0
    # Of the scale of x, beyond which elements are clipped, a few are.
    scales = [np.array([np.abs(x).max() / (6 * 448) * 0.9], "float32"), *SCALES[1:]]
    mine = lambda x, y: nn.scaled_dot_general(x, y, numbers, preferred, configs(mode, scales=scales))
    on_jax = NUMBERS["matrices"][2] if case is NUMBERS["lists"] else numbers
    given = configs(mode, jax.nn, [*map(jax.numpy.asarray, scales)])
    theirs = lambda x, y: jax.nn.scaled_dot_general(jax.numpy.asarray(x), y, on_jax, preferred, configs=given)
    expected = jax.jit(theirs)(x, y)
    ct = rng.normal(size=expected.shape).astype("float32")
    slopes = jax.jit(lambda ct: jax.vjp(theirs, x, y)[1](ct.astype(preferred)))(ct)
    rounding = ROUNDING[preferred]
    for f in (mine, weft.jit(mine)):
        value, pull = weft.vjp(f, x, y)
        assert (value.dtype, value.shape) == (preferred, expected.shape)
        close(value, expected, rounding)
        for gradient, slope, of in zip(pull(wnp.asarray(ct).astype(preferred)), slopes, (x, y)):
            # JAX's has the dtype of the result, whatever its operand has.
            assert gradient.dtype == "float32" and gradient.shape == of.shape
            close(gradient, slope, 2 * rounding)
    if mode == "nvfp4":
        assert 0 < np.sum(wide(weft.vjp(mine, x, y)[1](wnp.ones(expected.shape, preferred))[0]) == 0) < x.size / 4


@pytest.mark.parametrize("mode", ["mxfp8", "nvfp4"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_operands_of_16_bits(dtype, mode):
    """In NumPy: XLA divides by multiplying by reciprocals here, which rounds a few elements otherwise."""
    x, y = ranges((2, 32, 64), dtype, 1), ranges((2, 64, 64), dtype, 2)
    numbers = ((2,), (2,)), ((0,), (0,))
    value, pull = weft.vjp(lambda x, y: nn.scaled_dot_general(x, y, numbers, configs=configs(mode)), x, y)
    factor = 1.0 if mode == "mxfp8" else float(SCALES[0][0] * SCALES[1][0])
    qx, qy = quantised(x, mode, SCALES[0]), quantised(y, mode, SCALES[1])
    close(value, np.einsum("bmk,bnk->bmn", qx, qy) * factor, 1e-5)
    ct = np.random.default_rng(3).normal(size=value.shape).astype("float32")
    mine = pull(ct)
    assert [str(g.dtype) for g in mine] == [dtype] * 2
    if mode == "mxfp8":
        turned = lambda v: np.swapaxes(v, 1, 2)
        by_x = np.einsum("bmn,bkn->bmk", quantised(ct, mode, 1), quantised(turned(y), mode, 1))
        by_y = np.einsum("bnm,bkm->bnk", quantised(turned(ct), mode, 1), quantised(turned(x), mode, 1))
    else:
        by_x, by_y = np.einsum("bmn,bnk->bmk", ct, wide(y)), np.einsum("bmn,bmk->bnk", ct, wide(x))
        for gradient, v, scale in zip((by_x, by_y), (x, y), SCALES):
            gradient[np.abs(wide(v)) > scale * 6 * 448] = 0
    for gradient, expected in zip(mine, (by_x, by_y)):
        close(gradient, expected, ROUNDING[dtype])


def test_vmap_and_scales_that_are_traced():
    x, y = ranges((3, 4, 32), "float32", 1), ranges((3, 8, 32), "float32", 2)
    numbers = ((1,), (1,)), ((), ())

    def f(x, y, scale):
        given = [nn.get_scaled_dot_general_config("nvfp4", scale)] * 3
        return nn.scaled_dot_general(x, y, numbers, configs=given)

    scales = np.array([[0.5], [1.0], [0.25]], "float32")
    expected = np.stack([f(*v) for v in zip(x, y, scales)])
    np.testing.assert_allclose(weft.jit(weft.vmap(f))(x, y, scales), expected, rtol=1e-5, atol=1e-6)
    by_scale = weft.jit(weft.grad(lambda scale: f(x[0], y[0], scale).sum()))(scales[0])
    np.testing.assert_array_equal(by_scale, [0.0])  # a constant


def test_forward_mode():
    """Where reverse mode is linear in the cotangent, and not where it is rounded."""
    x, y = ranges((1, 32, 32), "float32", 1), ranges((1, 32, 32), "float32", 2)
    numbers = ((2,), (2,)), ((0,), (0,))
    f = lambda mode: (
        lambda x: nn.scaled_dot_general(x, y, numbers, configs=configs(mode, scales=[*SCALES[1:], SCALES[0]]))
    )
    value, tangent = weft.jvp(f("nvfp4"), (x,), (x,))
    ct = np.random.default_rng(0).normal(size=value.shape).astype("float32")
    np.testing.assert_allclose(np.vdot(ct, tangent), np.vdot(weft.vjp(f("nvfp4"), x)[1](ct)[0], x), rtol=1e-3)
    with pytest.raises(weft.DerivativeError, match="linear in the cotangent"):
        weft.jvp(f("mxfp8"), (x,), (x,))


def test_operands_in_different_formats():
    x, y = ranges((1, 8, 64), "float32", 1), ranges((1, 8, 64), "float32", 2)
    numbers = ((2,), (2,)), ((0,), (0,))
    for modes in (("mxfp8", "nvfp4"), ("nvfp4", "mxfp8")):
        given = [configs(mode)[k] for k, mode in enumerate((*modes, "nvfp4"))]
        factor = np.prod([s[0] for s, mode in zip(SCALES, modes) if mode == "nvfp4"])
        rounded = [quantised(v, mode, s) for v, mode, s in zip((x, y), modes, SCALES)]
        expected = np.einsum("bmk,bnk->bmn", *rounded) * factor
        close(nn.scaled_dot_general(x, y, numbers, configs=given), expected, 1e-5)


def test_pairs_in_any_order():
    """As dot_general has them: JAX, whose results have batches in the order of lhs, pairs those of rhs by theirs."""
    x, y = (np.random.default_rng(k).normal(size=(2, 3, 8, 32, 4)).astype("float32") for k in range(2))
    numbers = ((3, 4), (3, 4)), ((1, 0), (1, 0))
    plain = wide(lax.dot_general(x, y, numbers))
    mine = nn.scaled_dot_general(x, y, numbers, configs=configs("mxfp8"))
    assert mine.shape == plain.shape == (3, 2, 8, 8)
    np.testing.assert_allclose(wide(mine), plain, atol=0.05 * np.abs(plain).max())
    turned = np.transpose(y, (1, 0, 2, 4, 3))
    again = nn.scaled_dot_general(x, turned, (((3, 4), (4, 3)), ((1, 0), (0, 1))), configs=configs("mxfp8"))
    np.testing.assert_array_equal(again, mine)


def test_without_configurations():
    x = np.random.default_rng(0).normal(size=(3, 5))
    numbers = ((1,), (1,)), ((), ())
    np.testing.assert_array_equal(nn.scaled_dot_general(x, x, numbers, "float64"), lax.dot_general(x, x, numbers))
    with pytest.warns(DeprecationWarning, match="implementation"):
        nn.scaled_dot_general(x, x, numbers, implementation="cudnn")


def test_configurations():
    jax = pytest.importorskip("jax")
    for mode in ("mxfp8", "nvfp4"):
        mine, theirs = nn.get_scaled_dot_general_config(mode), jax.nn.get_scaled_dot_general_config(mode)
        for name in type(theirs).__slots__:
            a, b = getattr(mine, name), getattr(theirs, name)
            if name.endswith("type"):
                assert np.dtype(a) == np.dtype(b)
            elif name == "global_scale" and b is not None:
                np.testing.assert_array_equal(a, b)
                assert a.dtype == b.dtype and a.shape == b.shape
            else:
                assert a == b, name
    assert nn.get_scaled_dot_general_config("mxfp8", np.ones(1)).global_scale is None
    assert nn.get_scaled_dot_general_config("mxfp8") == nn.get_scaled_dot_general_config("mxfp8")
    scale = np.array([0.5], "float32")
    assert nn.get_scaled_dot_general_config("nvfp4", scale).global_scale is scale
    changed = nn.get_scaled_dot_general_config("mxfp8")
    changed.mode = "none"
    x = np.ones((2, 32), "float32")
    numbers = ((1,), (1,)), ((), ())
    with pytest.raises(ValueError, match="mode of a configuration must be one of 'nvfp4', 'mxfp8', got 'none'"):
        nn.scaled_dot_general(x, x, numbers, configs=[changed] * 3)


def test_what_scaled_dot_general_refuses():
    x, numbers = np.ones((2, 64), "float32"), (((1,), (1,)), ((), ()))
    call = functools.partial(nn.scaled_dot_general, x, x, numbers)
    mx, nv = configs("mxfp8"), configs("nvfp4")
    for f, kind, message in (
        (lambda: call("float64", mx), TypeError, "float32, bfloat16 or float16, got float64"),
        (lambda: call(None, mx), TypeError, "float32, bfloat16 or float16, got None"),
        (lambda: call("int32", mx), TypeError, "float32, bfloat16 or float16, got int32"),
        (lambda: call(configs=mx[:2]), ValueError, "configs must be three.* got 2"),
        (
            lambda: nn.scaled_dot_general(x[:, :48], x[:, :48], numbers, configs=mx),
            ValueError,
            "multiple of 32.*got 48",
        ),
        (lambda: nn.scaled_dot_general(x[:, :8], x[:, :8], numbers, configs=nv), ValueError, "multiple of 16.*got 8"),
        (lambda: nn.scaled_dot_general(x, x[:, :32], numbers, configs=mx), TypeError, "have one size, got 64 and 32"),
        (lambda: nn.scaled_dot_general(x, x, ((3, 1), (0, 0)), configs=mx), TypeError, "dimension_numbers must be"),
        (lambda: nn.get_scaled_dot_general_config("fp2"), ValueError, "must be one of 'nvfp4', 'mxfp8', got 'fp2'"),
        # The cotangent is rounded along the rows of the result.
        (
            lambda: weft.grad(
                lambda x: call(configs=mx).sum() + nn.scaled_dot_general(x, x, numbers, configs=mx).sum()
            )(x),
            ValueError,
            "dimensions of rhs alone.*multiple of 32.*got 2",
        ),
    ):
        with pytest.raises(kind, match=message):
            f()
