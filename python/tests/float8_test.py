"""Floats of 8 and 4 bits: conversions and arithmetic of all of their numbers, against ml_dtypes."""

import functools
import io
import pickle

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import lax

DTYPES = [
    *("float8_e4m3fn", "float8_e5m2", "float8_e3m4", "float8_e4m3"),
    *("float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz"),
]
# Of which the first has neither 0 nor signs, the second no NaN.
ODD = ["float8_e8m0fnu", "float4_e2m1fn"]


def every(dtype: str) -> np.ndarray:
    codes = np.arange(16 if "4_" in dtype else 256, dtype=np.uint8)
    return codes.view(getattr(ml_dtypes, dtype))


def pairs(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    x = every(dtype)
    return np.repeat(x, len(x)), np.tile(x, len(x))


def same(got, expected: np.ndarray, what: str = "") -> None:
    """Bit by bit, but for what a NaN carries."""
    got = np.asarray(got)
    assert got.dtype == expected.dtype, (what, got.dtype)
    assert got.shape == expected.shape, what
    if got.dtype == bool:
        np.testing.assert_array_equal(got, expected, err_msg=what)
        return
    nan = np.isnan(expected.astype(np.float64))
    np.testing.assert_array_equal(np.isnan(got.astype(np.float64)), nan, err_msg=what)
    np.testing.assert_array_equal(got.view(np.uint8)[~nan], expected.view(np.uint8)[~nan], err_msg=what)


def ways(function):
    """Outside jit, on many elements and on few (interpreted), and compiled."""
    yield "eager", function
    yield "jit", weft.jit(function)
    yield "vmap", weft.jit(weft.vmap(function))
    few = 60

    def in_pieces(*xs):
        return np.concatenate([np.asarray(function(*(x[i : i + few] for x in xs))) for i in range(0, 600, few)])

    yield "few", in_pieces


def stored(x: np.ndarray, dtype: str) -> np.ndarray:
    """What ml_dtypes makes of f32, but for one: below the second of the powers of 2 the nearer one, not the upper."""
    with np.errstate(all="ignore"):
        y = x.astype(getattr(ml_dtypes, dtype))
    if dtype == "float8_e8m0fnu":
        y[(x > 2.0**-127) & (x < 1.5 * 2.0**-127)] = 2.0**-127
    return y


def rounded(function, dtype: str, *xs: np.ndarray) -> np.ndarray:
    """In f32, and then rounded: what ml_dtypes does."""
    with np.errstate(all="ignore"):
        y = function(*(x.astype(np.float32) for x in xs))
        return y if y.dtype == bool else stored(y.astype(np.float32), dtype)


def check(function, expected: np.ndarray, *xs: np.ndarray) -> None:
    for what, way in ways(function):
        y = way(*map(wnp.asarray, xs))
        same(y, expected[:600] if what == "few" else expected, what)


@pytest.mark.parametrize("dtype", [*DTYPES, *ODD])
def test_every_number_as_others(dtype: str) -> None:
    x = every(dtype)
    for to in ["float16", "float32", "float64", "bfloat16"]:
        with np.errstate(all="ignore"), weft.enable_x64():
            expected = x.astype(ml_dtypes.bfloat16 if to == "bfloat16" else to)
            for way in (lambda v, to=to: v.astype(to), weft.jit(lambda v, to=to: v.astype(to))):
                got = np.asarray(way(wnp.asarray(x)))
                np.testing.assert_array_equal(got.astype(np.float64), expected.astype(np.float64))
    same(wnp.asarray(x), x)


@pytest.mark.parametrize("dtype", [*DTYPES, *ODD])
@pytest.mark.parametrize("source", ["float16", "bfloat16"])
def test_every_half_as_8_bits(dtype: str, source: str) -> None:
    x = np.arange(65536, dtype=np.uint16).view(ml_dtypes.bfloat16 if source == "bfloat16" else np.float16)
    expected = stored(x.astype(np.float32), dtype)
    check(lambda v: v.astype(dtype), expected, x)


@pytest.mark.parametrize("dtype", [*DTYPES, *ODD])
def test_numbers_halfway_between_neighbours(dtype: str) -> None:
    finite = np.unique(every(dtype).astype(np.float32))
    finite = finite[np.isfinite(finite)]
    middle = (finite[1:] + finite[:-1]) / 2
    x = np.concatenate([middle, np.nextafter(middle, np.float32(np.inf)), np.nextafter(middle, np.float32(-np.inf))])
    x = np.concatenate([x, x[:0], np.float32([1e30, -1e30, np.inf, -np.inf, np.nan, 1e-30])])
    expected = stored(x, dtype)
    for way in (lambda v: v.astype(dtype), weft.jit(lambda v: v.astype(dtype))):
        same(way(wnp.asarray(x)), expected)


OF_TWO = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum, "min": np.minimum,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "rem": np.fmod,
}  # fmt: skip


@pytest.mark.parametrize("dtype", [*DTYPES, "float4_e2m1fn"])
@pytest.mark.parametrize("name", OF_TWO)
def test_every_pair(dtype: str, name: str) -> None:
    x, y = pairs(dtype)
    expected = rounded(OF_TWO[name], dtype, x, y)
    if name in ("max", "min"):  # of zeros either may be taken
        equal = x.astype(np.float32) == y.astype(np.float32)
        x, y, expected = x[~equal], y[~equal], expected[~equal]
    check(getattr(lax, name), expected, x, y)


EXACT = {
    "neg": np.negative, "abs": np.abs, "sqrt": np.sqrt, "square": np.square, "floor": np.floor, "ceil": np.ceil,
    "trunc": np.trunc, "is_finite": np.isfinite,
}  # fmt: skip
WITHIN_ONE = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "sin": np.sin, "cos": np.cos,
    "tanh": np.tanh, "sinh": np.sinh, "cosh": np.cosh, "atan": np.arctan, "asinh": np.arcsinh, "cbrt": np.cbrt,
}  # fmt: skip


def many(dtype: str) -> np.ndarray:
    return np.tile(every(dtype), 3)


@pytest.mark.parametrize("dtype", [*DTYPES, "float4_e2m1fn"])
@pytest.mark.parametrize("name", EXACT)
def test_every_number_exactly(dtype: str, name: str) -> None:
    x = many(dtype)
    check(getattr(lax, name), rounded(EXACT[name], dtype, x), x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", WITHIN_ONE)
def test_every_number_nearly(dtype: str, name: str) -> None:
    x = many(dtype)
    expected = rounded(WITHIN_ONE[name], dtype, x)

    def place(y: np.ndarray) -> np.ndarray:
        bits = y.view(np.uint8).astype(np.int32)
        return np.where(bits < 128, bits, 128 - bits)

    for what, way in ways(getattr(lax, name)):
        got = np.asarray(way(wnp.asarray(x)))
        want = expected[:600] if what == "few" else expected
        nan = np.isnan(want.astype(np.float32))
        np.testing.assert_array_equal(np.isnan(got.astype(np.float32)), nan, err_msg=what)
        assert np.abs(place(got) - place(want))[~nan].max() <= 1, what
        # Rounding of what is rounded in f32 already: another neighbour only where that lies halfway.
        assert np.mean((place(got) != place(want))[~nan]) < 0.02, what


@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_numbers_and_promotion(dtype: str) -> None:
    x = many(dtype)
    for number in (2, 0.5, -3):
        check(lambda v, n=number: v * n + n, rounded(
            lambda v, n=number: (v * np.float32(n)).astype(getattr(ml_dtypes, dtype)).astype(np.float32) + n, dtype, x
        ), x)  # fmt: skip
    with pytest.raises(TypeError, match="no common dtype"):
        wnp.ones(2, dtype) + wnp.ones(2, "float32")
    with pytest.raises(TypeError, match="no common dtype"):
        wnp.ones(2, dtype) + wnp.ones(2, next(d for d in DTYPES if d != dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("jitted", [False, True])
def test_sums_are_rounded_once(dtype: str, jitted: bool) -> None:
    kind = getattr(ml_dtypes, dtype)
    x = (np.arange(300).reshape(3, 100) % 7 / 8).astype(kind)
    run = weft.jit if jitted else (lambda f: f)
    exact = x.astype(np.float32)
    same(run(functools.partial(wnp.sum, axis=1))(wnp.asarray(x)), exact.sum(1).astype(kind))
    same(run(functools.partial(wnp.cumsum, axis=1))(wnp.asarray(x)), exact.cumsum(1).astype(kind))
    same(run(functools.partial(wnp.max, axis=0))(wnp.asarray(x)), exact.max(0).astype(kind))
    same(run(wnp.mean)(wnp.asarray(x)), np.float32(exact.mean()).astype(kind).reshape(()))
    ones = np.ones(100, kind)
    np.testing.assert_equal(float(run(wnp.sum)(wnp.asarray(ones))), float(np.float32(100).astype(kind)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_derivatives(dtype: str) -> None:
    kind = getattr(ml_dtypes, dtype)
    x = np.array([-1.5, -0.25, 0.5, 1, 2], kind)
    double = np.asarray(weft.grad(lambda v: wnp.sum(v * v))(wnp.asarray(x)))
    same(double, (2 * x.astype(np.float32)).astype(kind))
    slope = np.asarray(weft.vmap(weft.grad(lambda v: wnp.exp(v) * v))(wnp.asarray(x))).astype(np.float32)
    expected = np.exp(x.astype(np.float32)) * (1 + x.astype(np.float32))
    expected = np.where(expected > float(ml_dtypes.finfo(kind).max), np.float32(kind(np.inf)), expected)
    np.testing.assert_allclose(slope, expected, rtol=0.3, atol=0.1)
    for function in (wnp.arctan, lambda v: wnp.arctan2(v, v * 2 + 1), wnp.tanh, wnp.sqrt):
        assert np.isfinite(np.asarray(weft.vmap(weft.grad(function))(wnp.asarray(x[2:]))).astype(np.float32)).all()


@pytest.mark.parametrize("dtype", [*DTYPES, "float4_e2m1fn"])
def test_indexing_branches_and_text(dtype: str) -> None:
    x = every(dtype)
    a = wnp.asarray(x)
    same(a[::-3], x[::-3])
    same(a.at[3].set(1.5)[2:5], np.array([x[2], 1.5, x[4]], x.dtype))
    same(wnp.where(a > 0, a, -a), np.where(x.astype(np.float32) > 0, x, (-x.astype(np.float32)).astype(x.dtype)))
    program = weft.make_ir(lambda v: (v * v + 0.5, v < 2))(a)
    assert str(weft.parse_ir(str(program))) == str(program)


def small(dtype: str, *shape: int, seed: int = 0) -> np.ndarray:
    """Numbers whose sums of products are exact in f32."""
    return (np.random.default_rng(seed).integers(-8, 9, shape) / 4).astype(getattr(ml_dtypes, dtype))


def runs(function):
    return [function, weft.jit(function), weft.jit(function, backend="interpreter")]


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_and_convolutions_are_rounded_once(dtype: str) -> None:
    kind = getattr(ml_dtypes, dtype)
    x, y = small(dtype, 5, 7), small(dtype, 7, 3, seed=1)
    exact = x.astype(np.float32) @ y.astype(np.float32)
    for run in runs(lambda a, b: a @ b):
        same(run(wnp.asarray(x), wnp.asarray(y)), exact.astype(kind))
        batched = weft.vmap(run, in_axes=(0, None))(wnp.asarray(np.stack([x, x])), wnp.asarray(y))
        same(batched[1], exact.astype(kind))
    same(wnp.matmul(wnp.asarray(x), wnp.asarray(y)), np.asarray(jnp.matmul(jnp.asarray(x), jnp.asarray(y))))
    same(wnp.einsum("ij,jk->ki", wnp.asarray(x), wnp.asarray(y)), exact.T.astype(kind))
    same(wnp.dot(wnp.asarray(x[0]), wnp.asarray(x[1])), (x[0].astype("f4") @ x[1].astype("f4")).astype(kind))
    images, kernel = small(dtype, 2, 3, 6, 6), small(dtype, 4, 3, 3, 3, seed=2)
    wide = jax.lax.conv(jnp.asarray(images, jnp.float32), jnp.asarray(kernel, jnp.float32), (1, 1), "SAME")
    for run in runs(lambda a, b: lax.conv(a, b, (1, 1), "SAME")):
        same(run(wnp.asarray(images), wnp.asarray(kernel)), np.asarray(wide).astype(kind))


@pytest.mark.parametrize("left", DTYPES)
@pytest.mark.parametrize("right", DTYPES)
@pytest.mark.parametrize("wanted", ["float32", "bfloat16"])
def test_products_into_another_dtype_are_jax_s(left: str, right: str, wanted: str) -> None:
    x, y, numbers = small(left, 5, 7), small(right, 7, 3, seed=1), (((1,), (0,)), ((), ()))
    a, b = jnp.asarray(x), jnp.asarray(y)
    if "fnuz" in left + right and left != right:  # which XLA does not multiply
        a, b = a.astype("float32"), b.astype("float32")
    theirs = jax.lax.dot_general(a, b, numbers, preferred_element_type=wanted)
    for run in runs(lambda a, b: lax.dot_general(a, b, numbers, preferred_element_type=wanted)):
        got = np.asarray(run(wnp.asarray(x), wnp.asarray(y)))
        assert str(got.dtype) == wanted
        np.testing.assert_array_equal(got.astype(np.float32), np.asarray(theirs).astype(np.float32))
    slope = weft.grad(lambda a: lax.dot_general(a, wnp.asarray(y), numbers, preferred_element_type=wanted).sum())
    want = np.broadcast_to(y.astype(np.float32).sum(1), (5, 7)).astype(getattr(ml_dtypes, left))
    same(slope(wnp.asarray(x)), want)


@pytest.mark.parametrize("dtype", [*DTYPES, *ODD])
def test_searches_and_orders(dtype: str) -> None:
    x = np.random.default_rng(3).permutation(every(dtype))
    wide = x.astype(np.float32)
    whole = ~np.isnan(wide)
    a, finite = wnp.asarray(x), wnp.asarray(x[whole])
    for run in runs(wnp.argmax):
        assert int(run(a)) == np.argmax(wide) and int(run(finite)) == np.argmax(wide[whole])
    for run in runs(wnp.argmin):
        assert int(run(a)) == np.argmin(wide) and int(run(finite)) == np.argmin(wide[whole])
    for run in runs(wnp.sort):
        got = np.asarray(run(a)).astype(np.float32)
        np.testing.assert_array_equal(got, np.sort(wide))
    for run in runs(wnp.argsort):
        np.testing.assert_array_equal(np.asarray(run(a)), np.argsort(wide, kind="stable"))
    largest = np.asarray(weft.jit(lambda v: lax.top_k(v, 4)[0])(finite)).astype(np.float32)
    np.testing.assert_array_equal(largest, np.sort(wide[whole])[::-1][:4])


@pytest.mark.parametrize("dtype", [*DTYPES, *ODD])
def test_files_pickles_and_dlpack(dtype: str) -> None:
    x = every(dtype)
    a = wnp.asarray(x)
    same(pickle.loads(pickle.dumps(a)), x)
    assert pickle.dumps(pickle.loads(pickle.dumps(a))) == pickle.dumps(a)
    program = weft.make_ir(lambda v: v * v + 0.5)(a)
    same(weft.deserialize_ir(program.serialize())(a), np.asarray(program(a)))
    file = io.BytesIO()
    wnp.save(file, a)
    file.seek(0)
    raw = np.load(file)  # bytes alone: NumPy's format has no name for them
    assert raw.dtype == "V1"
    np.testing.assert_array_equal(raw.view(np.uint8), x.view(np.uint8))
    same(wnp.asarray(raw.view(x.dtype)), x)
    file.seek(0)
    with pytest.raises(TypeError, match="no counterpart"):
        wnp.load(file)
    if dtype == "float4_e2m1fn":  # which DLPack packs
        with pytest.raises(NotImplementedError, match="DLPack has no elements as float4_e2m1fn arrays store them"):
            wnp.from_dlpack(a)
        return
    back = wnp.from_dlpack(a)
    assert back.dtype == a.dtype
    np.testing.assert_array_equal(np.asarray(back).view(np.uint8), x.view(np.uint8))
    theirs = jax.dlpack.from_dlpack(a)
    assert str(theirs.dtype) == dtype
    np.testing.assert_array_equal(np.asarray(theirs).view(np.uint8), x.view(np.uint8))
    ours = wnp.from_dlpack(jnp.asarray(x))
    np.testing.assert_array_equal(np.asarray(ours).view(np.uint8), x.view(np.uint8))
