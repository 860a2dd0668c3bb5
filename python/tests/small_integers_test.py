"""Integers of 2 and 4 bits as users meet them: what JAX gives for int4 and uint4 (of 2 bits, where JAX's own results
are right), promotion, text, files, what is refused. Arithmetic of every pair is that of whole numbers that wrap."""

import io
import pickle
import subprocess
import sys

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import lax

DTYPES = ["int4", "uint4", "int2", "uint2"]
FOUR = ["int4", "uint4"]


def kind(dtype: str):
    return getattr(ml_dtypes, dtype)


def every(dtype: str) -> np.ndarray:
    info = ml_dtypes.iinfo(kind(dtype))
    return np.arange(info.min, info.max + 1).astype(kind(dtype))


def pairs(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    x = every(dtype)
    return np.repeat(x, len(x)), np.tile(x, len(x))


def wrapped(x, dtype: str) -> np.ndarray:
    return np.asarray(x).astype(np.int64).astype(np.int8).astype(kind(dtype))


def same(got, want) -> None:
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got.astype(np.float64), want.astype(np.float64))


def ways(f):
    return [f, weft.jit(f), weft.jit(weft.vmap(f)), weft.jit(f, backend="interpreter")]


BINARY = {
    "add": (lambda x, y: x + y, np.add), "sub": (lambda x, y: x - y, np.subtract),
    "mul": (lambda x, y: x * y, np.multiply),
    "maximum": (wnp.maximum, np.maximum), "minimum": (wnp.minimum, np.minimum),
    "and": (lambda x, y: x & y, np.bitwise_and), "or": (lambda x, y: x | y, np.bitwise_or),
    "xor": (lambda x, y: x ^ y, np.bitwise_xor),
}  # fmt: skip
COMPARED = {
    "eq": (lambda x, y: x == y, np.equal), "lt": (lambda x, y: x < y, np.less),
    "ge": (lambda x, y: x >= y, np.greater_equal), "ne": (lambda x, y: x != y, np.not_equal),
}  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_pair_wraps(dtype: str) -> None:
    x, y = pairs(dtype)
    wide = x.astype(np.int64), y.astype(np.int64)
    for f, exact in BINARY.values():
        for way in ways(f):
            same(way(wnp.asarray(x), wnp.asarray(y)), wrapped(exact(*wide), dtype))
    for f, exact in COMPARED.values():
        for way in ways(f):
            same(way(wnp.asarray(x), wnp.asarray(y)), exact(*wide))
    some = y != 0
    for f, exact in (((lambda a, b: a // b), np.floor_divide), ((lambda a, b: a % b), np.remainder)):
        for way in ways(f):
            same(way(wnp.asarray(x[some]), wnp.asarray(y[some])), wrapped(exact(wide[0][some], wide[1][some]), dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_number(dtype: str) -> None:
    x = every(dtype)
    wide, width = x.astype(np.int64), ml_dtypes.iinfo(kind(dtype)).bits
    pattern = wide % 2**width
    cases = {
        "neg": (lambda v: -v, -wide), "abs": (wnp.abs, np.abs(wide)), "not": (lambda v: ~v, ~wide),
        "sign": (wnp.sign, np.sign(wide)), "cube": (lambda v: v**3, wide**3), "square": (lambda v: v**2, wide**2),
        "clip": (lambda v: wnp.clip(v, 0, 1), np.clip(wide, 0, 1)),
        "left": (lambda v: v << 1, wide << 1), "right": (lambda v: v >> 1, wide >> 1),
        "logical": (lambda v: lax.shift_right_logical(v, 1), pattern >> 1),
        "population": (lax.population_count, np.array([int(p).bit_count() for p in pattern])),
        "zeros": (lax.clz, np.array([width - int(p).bit_length() for p in pattern])),
    }  # fmt: skip
    for f, want in cases.values():
        for way in ways(f):
            same(way(wnp.asarray(x)), wrapped(want, dtype))
    if dtype == "uint4":  # copies of the highest bit, of unsigned integers too
        same(lax.shift_right_arithmetic(wnp.asarray(x), 1), lax_of_jax(x))


def lax_of_jax(x: np.ndarray) -> np.ndarray:
    return np.asarray(jax.lax.shift_right_arithmetic(jnp.asarray(x), jnp.ones_like(jnp.asarray(x))))


@pytest.mark.parametrize("dtype", DTYPES)
def test_conversions_are_jax_s(dtype: str) -> None:
    whole = np.arange(-300, 300, dtype=np.int32)
    floats = np.array(
        [-300, -9, -8.5, -8, -2.7, -2, -1.5, -0.5, -0.0, 0.5, 1, 1.9, 2, 3.5, 7, 7.9, 8, 15, 15.9, 16, 3e9, 1e30]
        + [np.inf, -np.inf, np.nan],
        np.float32,
    )
    for x in (whole, whole.astype(np.int8), whole.astype(np.uint16), floats, floats.astype(np.float16), whole > 3):
        with np.errstate(all="ignore"):
            want = np.asarray(jnp.asarray(x).astype(dtype))
        for way in ways(lambda v: v.astype(dtype)):
            same(way(wnp.asarray(x)), want)
    for to in ("int8", "uint8", "int32", "float32", "bfloat16", "bool", "uint4", "int2", "float8_e5m2"):
        want = np.asarray(jnp.asarray(every(dtype)).astype(to))
        for way in ways(lambda v, to=to: v.astype(to)):
            same(way(wnp.asarray(every(dtype))), want)


PROGRAMS = {
    "sum into int32": (lambda np_, x: np_.sum(x, dtype="int32")),
    "sum in its own dtype": (lambda np_, x: np_.sum(x, dtype=x.dtype)),
    "mean": lambda np_, x: np_.mean(x),
    "max": lambda np_, x: np_.max(x),
    "argmax": lambda np_, x: np_.argmax(x),
    "argmin": lambda np_, x: np_.argmin(x),
    "sort": lambda np_, x: np_.sort(x[::-1]),
    "argsort": lambda np_, x: np_.argsort(x[::-1]),
    "cumsum": lambda np_, x: np_.cumsum(x, dtype=x.dtype),
    "matmul": lambda np_, x: x.reshape(4, 4) @ x.reshape(4, 4).T,
    "dot": lambda np_, x: np_.dot(x, x[::-1]),
    "where": lambda np_, x: np_.where(x > 0, x, -x),
    "concatenate": lambda np_, x: np_.concatenate([x, x[:3]]),
    "take": lambda np_, x: x[np_.array([5, 1, 1])],
    "its numbers as indices": lambda np_, x: np_.arange(20)[x[8:12] & 3],
    "set": lambda np_, x: x.at[2].set(1),
    "add at": lambda np_, x: x.at[np_.array([1, 1, 4])].add(3),
    "true division": lambda np_, x: x / 2,
    "exp": lambda np_, x: np_.exp(x),
    "number beside it": lambda np_, x: x * 2 + 1,
    "boolean beside it": lambda np_, x: x + (x > 2),
    "unique": lambda np_, x: np_.sort(x).reshape(4, 4).T,
    "full": lambda np_, x: np_.full_like(x, 1) + np_.ones_like(x) + np_.arange(16).astype(x.dtype),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", FOUR)
def test_programs_beside_jax(name: str, dtype: str) -> None:
    x = np.arange(-8, 8).astype(kind(dtype))
    want = np.asarray(PROGRAMS[name](jnp, jnp.asarray(x)))
    run = lambda v: PROGRAMS[name](wnp, v)
    for way in (run, weft.jit(run), weft.jit(run, backend="interpreter")):
        got = np.asarray(way(wnp.asarray(x)))
        assert got.dtype == want.dtype, got.dtype
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=1e-6)
    got = np.asarray(weft.vmap(run)(wnp.asarray(np.stack([x, x]))))[1]
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_jax_does_not_compute(dtype: str) -> None:
    """Sums are those of the default integers, as of all narrow ones; products as of all dtypes."""
    x = np.tile(every(dtype), 7)
    wide, a = x.astype(np.int64), wnp.asarray(x)
    for way in ways(lambda v: v)[:2]:
        assert str(way(a).sum().dtype) == ("int32" if dtype[0] == "i" else "uint32")
        assert int(way(a).sum()) == wide.sum() and int(way(a).prod()) == (wide.prod() if wide.all() else 0)
    square = x[:16].reshape(4, 4) if len(x) >= 16 else None
    with weft.enable_x64(False):
        product = lambda v: lax.dot(v, v, preferred_element_type="int32")
        for way in (product, weft.jit(product), weft.jit(product, backend="interpreter")):
            got = way(wnp.asarray(square))
            assert str(got.dtype) == "int32"
            np.testing.assert_array_equal(np.asarray(got), square.astype(np.int32) @ square.astype(np.int32))
    np.testing.assert_array_equal(np.asarray(wnp.argsort(a, stable=True)), np.argsort(wide, kind="stable"))
    same(wnp.sort(a), np.sort(wide).astype(kind(dtype)))
    same(wnp.unique(a), every(dtype))
    windows = np.lib.stride_tricks.sliding_window_view(square.astype(int), (2, 2))
    sums = (windows * square[:2, :2].astype(int)).sum((2, 3))
    image, kernel = wnp.asarray(square[None, None]), wnp.asarray(square[None, None, :2, :2])
    same(lax.conv(image, kernel, (1, 1), "VALID"), wrapped(sums[None, None], dtype))
    least, most = every(dtype)[0], every(dtype)[-1]
    empty = wnp.zeros((0, 3), dtype)
    same(lax.reduce_max(empty, (0,)), np.full(3, least))
    same(lax.reduce_min(empty, (0,)), np.full(3, most))


OTHERS = ["bool", "int8", "uint8", "int32", "uint32", "int64", "float16", "bfloat16", "float32", "complex64", *DTYPES]
OTHERS += ["float8_e4m3fn", "float8_e5m2"]


@pytest.mark.parametrize("dtype", [*DTYPES, "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("other", OTHERS)
def test_promotion_is_jax_s(dtype: str, other: str) -> None:
    with jax.enable_x64(True), weft.enable_x64():
        try:
            want = str(jnp.promote_types(dtype, other))
        except (TypeError, ValueError):
            with pytest.raises(TypeError, match="no common dtype"):
                wnp.promote_types(dtype, other)
            with pytest.raises(TypeError, match="no common dtype"):
                wnp.ones(2, dtype) + wnp.ones(2, other)
            return
        assert str(wnp.promote_types(dtype, other)) == want
        assert str(wnp.promote_types(other, dtype)) == want
        assert str((wnp.ones(2, dtype) + wnp.ones(2, other)).dtype) == want


@pytest.mark.parametrize("dtype", DTYPES)
def test_python_s_numbers_beside_them(dtype: str) -> None:
    x = wnp.ones(2, dtype)
    for number in (True, 1):
        assert str((x + number).dtype) == dtype
    for number in (1.5, 1j):
        with pytest.raises(TypeError, match="no common dtype"):
            x + number
    for number in (100, -100):
        with pytest.raises(OverflowError, match="does not fit"):
            x + number
    assert not np.asarray(x > 100).any() and np.asarray(x > -100).all()
    info = wnp.iinfo(dtype)
    for number in (info.min - 1, info.max + 1):
        for make in (wnp.asarray, wnp.array, lambda v, d: wnp.full((), v, d), lambda v, d: wnp.array([0, v], d)):
            with pytest.raises(OverflowError, match="does not fit"):
                make(number, dtype)
    assert wnp.array([info.min, info.max], dtype).tolist() == [info.min, info.max]


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_asked_of_the_dtype(dtype: str) -> None:
    info, theirs = wnp.iinfo(dtype), jnp.iinfo(dtype)
    assert (info.bits, info.min, info.max) == (theirs.bits, theirs.min, theirs.max)
    signed = dtype[0] == "i"
    assert wnp.issubdtype(dtype, wnp.integer) and wnp.issubdtype(getattr(wnp, dtype), wnp.integer)
    assert wnp.issubdtype(dtype, wnp.signedinteger) == signed and not wnp.issubdtype(dtype, wnp.floating)
    assert wnp.isdtype(dtype, "signed integer" if signed else "unsigned integer") and wnp.isdtype(dtype, "integral")
    x = getattr(wnp, dtype)([1, 0])
    assert str(x.dtype) == dtype and x.itemsize == 1 and x.nbytes == 2 and x.tolist() == [1, 0] and int(x[0]) == 1
    assert repr(x) == f"Array([1, 0], dtype={dtype})"
    assert f"{x[0]:d}" == "1"


@pytest.mark.parametrize("dtype", DTYPES)
def test_text_files_and_pickles(dtype: str, tmp_path) -> None:
    x = every(dtype)
    a = wnp.asarray(x)
    program = weft.make_ir(lambda v: (v * v + 1, v < 1, wnp.concatenate([v, wnp.asarray(x)])))(a)
    short = {"int4": "i4", "uint4": "u4", "int2": "i2", "uint2": "u2"}[dtype]
    assert f"{short}[{len(x)}]" in str(program)
    again = weft.parse_ir(str(program))
    assert str(again) == str(program)
    for got, want in zip(again(a), program(a), strict=True):
        same(got, np.asarray(want))
    same(pickle.loads(pickle.dumps(a)), x)
    same(pickle.loads(pickle.dumps(program))(a)[2], np.concatenate([x, x]))
    # NumPy's files have no name for them: they hold the numbers, in 8 bits.
    wnp.save(tmp_path / "x.npy", a)
    wnp.savez(tmp_path / "x.npz", a)
    for read in (wnp.load(tmp_path / "x.npy"), np.load(tmp_path / "x.npz")["arr_0"]):
        assert str(read.dtype) == ("int8" if dtype[0] == "i" else "uint8")
        same(wnp.asarray(read).astype(dtype), x)
    read = weft.deserialize_ir(program.serialize())
    assert str(read) == str(program)
    same(read(a)[2], np.concatenate([x, x]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_bytes_from_elsewhere(dtype: str) -> None:
    """Of a byte that is no number of the dtype, the low bits count, as in ml_dtypes."""
    raw = np.arange(256, dtype=np.uint8)
    seen = raw.view(kind(dtype))
    want = wrapped(raw, dtype)
    for f in (lambda v: v.astype("int32"), lambda v: v + 0, lambda v: v > 0):
        for way in (f, weft.jit(f)):
            same(np.asarray(way(seen)).astype(np.int64), np.asarray(f(wnp.asarray(want))).astype(np.int64))


@pytest.mark.parametrize("dtype", DTYPES)
def test_refusals_name_what_and_why(dtype: str) -> None:
    x = wnp.ones(3, dtype)
    with pytest.raises(TypeError, match=r"real|float|inexact|dtype"):
        weft.grad(lambda v: v.sum())(x)
    with pytest.raises(NotImplementedError, match=f"DLPack has no elements as {dtype}"):
        x.__dlpack__()
    with pytest.raises(TypeError, match=f"random.bits: an unsigned 8- to 64-bit dtype is needed, got {dtype}"):
        weft.random.bits(weft.random.key(0), (3,), dtype)
    with pytest.raises(TypeError, match=r"no common dtype|float"):
        weft.random.uniform(weft.random.key(0), (3,), dtype)
    with pytest.raises(ValueError, match=f"view: the last axis has 3 elements of {dtype}; . make one of float8_e5m2"):
        x.view("float8_e5m2")
    other = {"int4": "uint4", "uint4": "int4", "int2": "uint2", "uint2": "int2"}[dtype]
    same(wnp.asarray(every(dtype)).view(other), every(dtype).astype(int).astype(kind(other)))
    short = dtype[0] + dtype[-1]
    for number in ("16", "-9", "0x1f"):
        with pytest.raises(weft.ParseError, match="does not fit"):
            weft.parse_ir(f"fn f() -> ({short}[]) {{\n  return {number}:{short}\n}}\n")


@pytest.mark.parametrize("dtype", DTYPES)
def test_random_integers(dtype: str) -> None:
    info = wnp.iinfo(dtype)
    x = np.asarray(weft.random.randint(weft.random.key(0), (400,), info.min, info.max + 1, dtype))
    assert x.dtype == kind(dtype)
    np.testing.assert_array_equal(np.unique(x.astype(int)), every(dtype).astype(int))


def test_weights_of_four_bits() -> None:
    """Weights that are stored in 4 bits and scaled, as programs have them: values, gradients, a loop and a batch."""
    rng = np.random.default_rng(0)
    weights, x = rng.integers(-8, 8, (6, 4)).astype(np.int8), rng.normal(size=(5, 6)).astype(np.float32)
    scale = np.linspace(0.5, 2, 4).astype(np.float32)
    stored = wnp.asarray(weights).astype("int4")

    def layer(scale, x):
        return wnp.tanh(x @ (stored.astype("float32") * scale))

    want = np.tanh(x @ (weights * scale))
    for run in (layer, weft.jit(layer), weft.jit(layer, backend="interpreter")):
        np.testing.assert_allclose(run(scale, x), want, rtol=1e-5, atol=1e-6)
    slope = weft.jit(weft.grad(lambda s: layer(s, x).sum()))(scale)
    np.testing.assert_allclose(slope, ((1 - want**2) * (x @ weights)).sum(0), rtol=1e-3, atol=1e-4)
    each = weft.vmap(weft.grad(lambda s, v: layer(s, v).sum()), in_axes=(None, 0))(scale, x)
    np.testing.assert_allclose(each.sum(0), slope, rtol=1e-3, atol=1e-4)

    def count(n):  # a carry that wraps
        return weft.lax.fori_loop(0, n, lambda _, c: c + wnp.int4(3), wnp.int4(0))

    for n in (2, 3, 100):
        assert int(weft.jit(count)(n)) == int(wrapped(3 * n, "int4")) == int(count(n))
    rows = weft.lax.scan(lambda c, w: (c + w.sum(dtype="int32"), w * 2), wnp.int32(0), stored)
    assert int(rows[0]) == weights.sum()
    same(rows[1], wrapped(weights.astype(int) * 2, "int4"))
    picked = weft.jit(lambda p: weft.lax.cond(p, lambda w: w + 1, lambda w: w - 1, stored))(True)
    same(picked, wrapped(weights.astype(int) + 1, "int4"))


WITHOUT_ML_DTYPES = """
import sys
sys.modules["ml_dtypes"] = None
import numpy as np
import weft, weft.numpy as wnp
x = wnp.array([1, -2, 1], "int4")
assert str(x.dtype) == "int4", x.dtype
y = np.asarray(x * 7)
assert y.dtype == np.int8 and y.tolist() == [7, 2, 7], y
assert np.asarray(wnp.ones(2, "uint2")).dtype == np.uint8
print("right")
"""


def test_without_ml_dtypes_numpy_has_them_in_8_bits() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_ML_DTYPES], capture_output=True, text=True, check=False)
    assert done.stdout == "right\n", done.stderr


def test_packed_files_are_not_written_for_them() -> None:
    file = io.BytesIO()
    wnp.save(file, wnp.array([1, -1], "int2"))
    file.seek(0)
    assert np.load(file).tolist() == [1, -1]
