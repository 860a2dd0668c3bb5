"""The array API standard, version 2024.12: every function, called as the standard spells it, beside NumPy, which
conforms to it, and beside cmath for complex functions."""

import cmath
import functools
import inspect
import itertools
import re

import numpy as np
import pytest

import weft
import weft.numpy as wnp

VERSION = "2024.12"

# Functions and their parameters, as the standard has them (data-apis.org/array-api/2024.12/API_specification).
FUNCTIONS = [
    "",
    "arange(start, /, stop=None, step=1, *, dtype=None, device=None)",
    "asarray(obj, /, *, dtype=None, device=None, copy=None)",
    "empty(shape, *, dtype=None, device=None)",
    "empty_like(x, /, *, dtype=None, device=None)",
    "eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)",
    "from_dlpack(x, /, *, device=None, copy=None)",
    "full(shape, fill_value, *, dtype=None, device=None)",
    "full_like(x, /, fill_value, *, dtype=None, device=None)",
    "linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True)",
    "meshgrid(*arrays, indexing='xy')",
    "ones(shape, *, dtype=None, device=None)",
    "ones_like(x, /, *, dtype=None, device=None)",
    "tril(x, /, *, k=0)",
    "triu(x, /, *, k=0)",
    "zeros(shape, *, dtype=None, device=None)",
    "zeros_like(x, /, *, dtype=None, device=None)",
    "astype(x, dtype, /, *, copy=True, device=None)",
    "can_cast(from_, to, /)",
    "finfo(type, /)",
    "iinfo(type, /)",
    "isdtype(dtype, kind)",
    "result_type(*arrays_and_dtypes)",
    "abs(x, /)",
    "acos(x, /)",
    "acosh(x, /)",
    "add(x1, x2, /)",
    "asin(x, /)",
    "asinh(x, /)",
    "atan(x, /)",
    "atan2(x1, x2, /)",
    "atanh(x, /)",
    "bitwise_and(x1, x2, /)",
    "bitwise_left_shift(x1, x2, /)",
    "bitwise_invert(x, /)",
    "bitwise_or(x1, x2, /)",
    "bitwise_right_shift(x1, x2, /)",
    "bitwise_xor(x1, x2, /)",
    "ceil(x, /)",
    "clip(x, /, min=None, max=None)",
    "conj(x, /)",
    "copysign(x1, x2, /)",
    "cos(x, /)",
    "cosh(x, /)",
    "divide(x1, x2, /)",
    "equal(x1, x2, /)",
    "exp(x, /)",
    "expm1(x, /)",
    "floor(x, /)",
    "floor_divide(x1, x2, /)",
    "greater(x1, x2, /)",
    "greater_equal(x1, x2, /)",
    "hypot(x1, x2, /)",
    "imag(x, /)",
    "isfinite(x, /)",
    "isinf(x, /)",
    "isnan(x, /)",
    "less(x1, x2, /)",
    "less_equal(x1, x2, /)",
    "log(x, /)",
    "log1p(x, /)",
    "log2(x, /)",
    "log10(x, /)",
    "logaddexp(x1, x2, /)",
    "logical_and(x1, x2, /)",
    "logical_not(x, /)",
    "logical_or(x1, x2, /)",
    "logical_xor(x1, x2, /)",
    "maximum(x1, x2, /)",
    "minimum(x1, x2, /)",
    "multiply(x1, x2, /)",
    "negative(x, /)",
    "nextafter(x1, x2, /)",
    "not_equal(x1, x2, /)",
    "positive(x, /)",
    "pow(x1, x2, /)",
    "real(x, /)",
    "reciprocal(x, /)",
    "remainder(x1, x2, /)",
    "round(x, /)",
    "sign(x, /)",
    "signbit(x, /)",
    "sin(x, /)",
    "sinh(x, /)",
    "square(x, /)",
    "sqrt(x, /)",
    "subtract(x1, x2, /)",
    "tan(x, /)",
    "tanh(x, /)",
    "trunc(x, /)",
    "fft.fft(x, /, *, n=None, axis=-1, norm='backward')",
    "fft.ifft(x, /, *, n=None, axis=-1, norm='backward')",
    "fft.fftn(x, /, *, s=None, axes=None, norm='backward')",
    "fft.ifftn(x, /, *, s=None, axes=None, norm='backward')",
    "fft.rfft(x, /, *, n=None, axis=-1, norm='backward')",
    "fft.irfft(x, /, *, n=None, axis=-1, norm='backward')",
    "fft.rfftn(x, /, *, s=None, axes=None, norm='backward')",
    "fft.irfftn(x, /, *, s=None, axes=None, norm='backward')",
    "fft.hfft(x, /, *, n=None, axis=-1, norm='backward')",
    "fft.ihfft(x, /, *, n=None, axis=-1, norm='backward')",
    "fft.fftfreq(n, /, *, d=1.0, dtype=None, device=None)",
    "fft.rfftfreq(n, /, *, d=1.0, dtype=None, device=None)",
    "fft.fftshift(x, /, *, axes=None)",
    "fft.ifftshift(x, /, *, axes=None)",
    "take(x, indices, /, *, axis=None)",
    "take_along_axis(x, indices, /, *, axis=-1)",
    "__array_namespace_info__()",
    "linalg.cholesky(x, /, *, upper=False)",
    "linalg.cross(x1, x2, /, *, axis=-1)",
    "linalg.det(x, /)",
    "linalg.diagonal(x, /, *, offset=0)",
    "linalg.eigh(x, /)",
    "linalg.eigvalsh(x, /)",
    "linalg.inv(x, /)",
    "linalg.matmul(x1, x2, /)",
    "linalg.matrix_norm(x, /, *, keepdims=False, ord='fro')",
    "linalg.matrix_power(x, n, /)",
    "linalg.matrix_rank(x, /, *, rtol=None)",
    "linalg.matrix_transpose(x, /)",
    "linalg.outer(x1, x2, /)",
    "linalg.pinv(x, /, *, rtol=None)",
    "linalg.qr(x, /, *, mode='reduced')",
    "linalg.slogdet(x, /)",
    "linalg.solve(x1, x2, /)",
    "linalg.svd(x, /, *, full_matrices=True)",
    "linalg.svdvals(x, /)",
    "linalg.tensordot(x1, x2, /, *, axes=2)",
    "linalg.trace(x, /, *, offset=0, dtype=None)",
    "linalg.vecdot(x1, x2, /, *, axis=-1)",
    "linalg.vector_norm(x, /, *, axis=None, keepdims=False, ord=2)",
    "matmul(x1, x2, /)",
    "matrix_transpose(x, /)",
    "tensordot(x1, x2, /, *, axes=2)",
    "vecdot(x1, x2, /, *, axis=-1)",
    "broadcast_arrays(*arrays)",
    "broadcast_to(x, /, shape)",
    "concat(arrays, /, *, axis=0)",
    "expand_dims(x, /, axis)",
    "flip(x, /, *, axis=None)",
    "moveaxis(x, source, destination, /)",
    "permute_dims(x, /, axes)",
    "repeat(x, repeats, /, *, axis=None)",
    "reshape(x, /, shape, *, copy=None)",
    "roll(x, /, shift, *, axis=None)",
    "squeeze(x, /, axis)",
    "stack(arrays, /, *, axis=0)",
    "tile(x, repetitions, /)",
    "unstack(x, /, *, axis=0)",
    "argmax(x, /, *, axis=None, keepdims=False)",
    "argmin(x, /, *, axis=None, keepdims=False)",
    "count_nonzero(x, /, *, axis=None, keepdims=False)",
    "nonzero(x, /)",
    "searchsorted(x1, x2, /, *, side='left', sorter=None)",
    "where(condition, x1, x2, /)",
    "unique_all(x, /)",
    "unique_counts(x, /)",
    "unique_inverse(x, /)",
    "unique_values(x, /)",
    "argsort(x, /, *, axis=-1, descending=False, stable=True)",
    "sort(x, /, *, axis=-1, descending=False, stable=True)",
    "cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False)",
    "cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False)",
    "max(x, /, *, axis=None, keepdims=False)",
    "mean(x, /, *, axis=None, keepdims=False)",
    "min(x, /, *, axis=None, keepdims=False)",
    "prod(x, /, *, axis=None, dtype=None, keepdims=False)",
    "std(x, /, *, axis=None, correction=0.0, keepdims=False)",
    "sum(x, /, *, axis=None, dtype=None, keepdims=False)",
    "var(x, /, *, axis=None, correction=0.0, keepdims=False)",
    "all(x, /, *, axis=None, keepdims=False)",
    "any(x, /, *, axis=None, keepdims=False)",
    "diff(x, /, *, axis=-1, n=1, prepend=None, append=None)",
    "",
][1:-1]
NAMES = [line.partition("(")[0] for line in FUNCTIONS]
OPERATORS = re.findall(
    r"\w+",
    """abs add and eq floordiv ge gt invert le lshift lt matmul mod mul ne neg
    or pos pow rshift sub truediv xor""",
)
OTHER_METHODS = re.findall(
    r"\w+",
    """__array_namespace__ __bool__ __complex__ __dlpack__ __dlpack_device__ __float__ __getitem__
    __index__ __int__ to_device dtype device mT ndim shape size T""",
)

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
REAL_FLOATS = ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]
FLOATS = REAL_FLOATS + COMPLEX
REAL = INTEGERS + REAL_FLOATS
NUMERIC = INTEGERS + FLOATS
EVERY = ["bool", *NUMERIC]
WHOLE = ["bool", *INTEGERS]

# Which dtypes the standard defines the elementwise functions for.
ONE_OF = [
    ("abs negative positive square sign", NUMERIC),
    ("reciprocal acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10", FLOATS),
    ("sin sinh sqrt tan tanh", FLOATS),
    ("ceil floor trunc", REAL),
    ("conj isfinite isinf isnan round real", NUMERIC),
    ("imag", COMPLEX),
    ("signbit", REAL_FLOATS),
    ("bitwise_invert", WHOLE),
    ("logical_not", ["bool"]),
]
TWO_OF = [
    ("add subtract multiply", NUMERIC),
    ("pow divide", FLOATS),
    ("equal not_equal", EVERY),
    ("less less_equal greater greater_equal maximum minimum floor_divide remainder", REAL),
    ("atan2 copysign hypot logaddexp nextafter", REAL_FLOATS),
    ("bitwise_and bitwise_or bitwise_xor", WHOLE),
    ("bitwise_left_shift bitwise_right_shift", INTEGERS),
    ("logical_and logical_or logical_xor", ["bool"]),
]
ONE, TWO = ({name: dtypes for names, dtypes in table for name in names.split()} for table in (ONE_OF, TWO_OF))


@pytest.fixture(autouse=True)
def _as_numpy():
    """NumPy's default dtypes, and none of its warnings."""
    with weft.enable_x64(), np.errstate(all="ignore"):
        yield


def of(module, name):
    return functools.reduce(getattr, name.split("."), module)


def close(mine, theirs, digits=1.0):
    """The same dtype, shape and numbers, up to a few units in the last place."""
    assert isinstance(mine, weft.Array)
    theirs = np.asarray(theirs)
    assert (str(mine.dtype), mine.shape) == (str(theirs.dtype), theirs.shape)
    eps = np.finfo(theirs.dtype).eps if theirs.dtype.kind in "fc" else 0
    np.testing.assert_allclose(np.asarray(mine), theirs, rtol=16 * eps * digits, atol=4 * eps * digits)


def numbers(dtype, shape=(2, 3), seed=0):
    """Numbers for which most functions have a value."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in INTEGERS:
        return rng.integers(1, 7, shape).astype(dtype)
    x = rng.uniform(0.1, 0.9, shape)
    return (x + 1j * rng.uniform(-0.9, 0.9, shape) if dtype in COMPLEX else x).astype(dtype)


# --- What there is ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", FUNCTIONS)
def test_signatures(line):
    """What the standard allows to be given by keyword may be, and has that default; the rest by position."""
    name, _, parameters = line.partition("(")
    function = of(wnp, name)
    mine = inspect.signature(function).parameters
    theirs = inspect.signature(eval(f"lambda {parameters[:-1]}: 0")).parameters
    positional = [p for p in mine.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    for i, (wanted, p) in enumerate(theirs.items()):
        if p.kind is p.VAR_POSITIONAL:
            assert any(q.kind is p.VAR_POSITIONAL for q in mine.values())
        elif p.kind is p.POSITIONAL_ONLY:
            assert i < len(positional) or any(q.kind is q.VAR_POSITIONAL for q in mine.values())
        else:
            assert wanted in mine and mine[wanted].kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD), wanted
            if p.kind is p.POSITIONAL_OR_KEYWORD:
                assert list(mine).index(wanted) == i
    needed = [p for p in mine.values() if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    assert len(needed) <= sum(p.default is p.empty for p in theirs.values())


def test_constants():
    assert (wnp.e, wnp.pi, wnp.inf) == (np.e, np.pi, np.inf) and np.isnan(wnp.nan)
    assert wnp.newaxis is None
    assert wnp.__array_api_version__ == VERSION


def test_methods():
    x = wnp.ones((2, 3))
    for name in [f"__{name}__" for name in OPERATORS] + OTHER_METHODS:
        assert hasattr(x, name), name
    for name in [
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "pow",
        "matmul",
        "and",
        "or",
        "xor",
        "lshift",
        "rshift",
    ]:
        assert hasattr(x, f"__r{name}__"), name


def test_namespace():
    x = wnp.ones(2)
    for version in (None, "2021.12", "2022.12", "2023.12", VERSION):
        assert x.__array_namespace__(api_version=version) is wnp
    with pytest.raises(ValueError, match=r"api_version is '2019.1'; expected one of .*'2024.12'"):
        x.__array_namespace__(api_version="2019.1")
    assert weft.jit(lambda x: x.__array_namespace__().sum(x))(x) == 2


def test_inspection():
    info = wnp.__array_namespace_info__()
    # As inspection functions: they may be called on the class of a module, with no state of their own.
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}
    assert info.default_device() in info.devices() == weft.devices()
    for device in [None, *info.devices()]:
        assert info.default_dtypes(device=device) == {
            "real floating": np.dtype("float64"),
            "complex floating": np.dtype("complex128"),
            "integral": np.dtype("int64"),
            "indexing": np.dtype("int64"),
        }
        assert list(info.dtypes(device=device)) == EVERY
    with weft.enable_x64(False):
        assert {str(d) for d in info.default_dtypes().values()} == {"float32", "complex64", "int32"}
    kinds = {
        "bool": ["bool"],
        "signed integer": INTEGERS[:4],
        "unsigned integer": INTEGERS[4:],
        "integral": INTEGERS,
        "real floating": REAL_FLOATS,
        "complex floating": COMPLEX,
        "numeric": NUMERIC,
        ("bool", "complex floating"): ["bool", *COMPLEX],
        (): [],
    }
    for kind, names in kinds.items():
        found = info.dtypes(kind=kind)
        assert list(found) == names and all(str(d) == name for name, d in found.items())
        assert all(wnp.isdtype(d, kind) for d in found.values())
    with pytest.raises(ValueError, match="no kind 'text'; the kinds are 'bool'"):
        info.dtypes(kind="text")
    with pytest.raises(TypeError, match="device is 'cpu'"):
        info.default_dtypes(device="cpu")


def test_what_is_promised_of_sizes():
    x = wnp.arange(5)
    assert x[x > 2].tolist() == [3, 4]
    assert wnp.unique_values(wnp.asarray([1, 1, 2])).tolist() == [1, 2]
    assert wnp.ones((1,) * 64).sum() == 1


# --- Devices and copies -----------------------------------------------------------------------------------------------

MAKERS = {
    "arange": (5,),
    "asarray": ([1, 2],),
    "empty": (3,),
    "empty_like": (np.ones(2),),
    "eye": (3,),
    "from_dlpack": (np.ones(2),),
    "full": (2, 7),
    "full_like": (np.ones(2), 7),
    "linspace": (0, 1, 5),
    "ones": (3,),
    "ones_like": (np.ones(2),),
    "zeros": (3,),
    "zeros_like": (np.ones(2),),
    "astype": (np.ones(2), "float32"),
    "fft.fftfreq": (4,),
    "fft.rfftfreq": (4,),
    "array": ([1, 2],),
}


def test_makers_are_all_that_take_a_device():
    assert {n for n, line in zip(NAMES, FUNCTIONS) if "device=" in line} == set(MAKERS) - {"array"}


@pytest.mark.parametrize("name", MAKERS)
def test_devices(name):
    device = weft.devices()[-1]
    out = of(wnp, name)(*MAKERS[name], device=device)
    assert out.device == device and out.devices() == {device}
    assert out.sharding == weft.SingleDeviceSharding(device)
    assert out.tolist() == of(wnp, name)(*MAKERS[name]).tolist()
    assert out.to_device(device).device == device
    mesh = weft.make_mesh((1,), ("x",))
    sharding = weft.NamedSharding(mesh, weft.P())
    assert of(wnp, name)(*MAKERS[name], device=sharding).sharding == sharding
    with pytest.raises(TypeError, match=r"device is 'cpu' of type 'str'; expected a weft\.Device"):
        of(wnp, name)(*MAKERS[name], device="cpu")


def test_devices_inside_jit():
    device = weft.devices()[0]
    assert weft.jit(lambda x: wnp.zeros_like(x, device=device) + wnp.ones(3, device=device))(wnp.ones(3)).sum() == 3


def test_copies():
    x, n = wnp.arange(4.0), np.arange(4.0)
    address = lambda a: a.unsafe_buffer_pointer()
    for copy, same in ((None, True), (False, True), (True, False)):
        assert (address(wnp.asarray(x, copy=copy)) == address(x)) == same
        assert (address(wnp.array(x, copy=bool(copy))) == address(x)) == same
        assert (address(wnp.astype(x, x.dtype, copy=bool(copy))) == address(x)) == same
        assert (address(wnp.reshape(x, (2, 2), copy=copy)) == address(x)) == same
    assert wnp.asarray([1, 2], copy=False).tolist() == [1, 2]  # a list has no memory that could be shared
    with pytest.raises(ValueError, match=r"asarray: copy=False, but ndarray of dtype float64 has to be copied"):
        wnp.asarray(n, copy=False)
    with pytest.raises(ValueError, match=r"copy=False, but Array of dtype float64 has to be copied for .* float32"):
        wnp.asarray(x, dtype="float32", copy=False)
    with weft.jax_semantics():
        assert wnp.asarray(x, dtype="float32", copy=False).dtype == "float32"
    y = wnp.from_dlpack(n, copy=True)
    n[0] = 7
    assert y[0] == 0


def test_where_and_order():
    with pytest.raises(NotImplementedError, match="asarray: order='F'"):
        wnp.asarray([1], order="F")
    with pytest.raises(ValueError, match="array: order must be"):
        wnp.array([1], order="x")
    with pytest.raises(ValueError, match="zeros: both device and out_sharding"):
        wnp.zeros(2, device=weft.devices()[0], out_sharding=weft.P())


# --- Elementwise functions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ONE)
def test_one(name):
    for dtype in ONE[name]:
        x = numbers(dtype)
        if name == "acosh" and dtype in REAL_FLOATS:
            x = x + 1
        close(getattr(wnp, name)(wnp.asarray(x)), getattr(np, name)(x), 4 if dtype in COMPLEX else 1)
        close(weft.jit(getattr(wnp, name))(wnp.asarray(x)), getattr(np, name)(x), 4 if dtype in COMPLEX else 1)


# The standard's promotion table: of one kind, and of a complex with a real floating dtype.
def pairs(dtypes):
    for a, b in itertools.product(dtypes, repeat=2):
        kinds = {("f" if d in FLOATS else "i" if d[0] == "i" else d[0]) for d in (a, b)}
        if len(kinds) == 1 or (kinds == {"i", "u"} and "uint64" not in (a, b)):
            yield a, b


@pytest.mark.parametrize("name", TWO)
def test_two(name):
    for a, b in pairs(TWO[name]):
        x, y = numbers(a), numbers(b, (3,), 1)
        close(getattr(wnp, name)(wnp.asarray(x), wnp.asarray(y)), getattr(np, name)(x, y), 4)
    # Python's numbers take the array's dtype.
    for dtype in TWO[name]:
        number = True if dtype == "bool" else 2 if dtype in INTEGERS else 2.5
        x = numbers(dtype)
        close(getattr(wnp, name)(wnp.asarray(x), number), getattr(np, name)(x, number), 4)
        close(getattr(wnp, name)(number, wnp.asarray(x)), getattr(np, name)(number, x), 4)


def test_tables_have_all_elementwise_functions():
    names = set(NAMES[NAMES.index("abs") : NAMES.index("fft.fft")])
    assert names == {*ONE, *TWO, "clip"}


@pytest.mark.parametrize("dtype", REAL)
def test_clip(dtype):
    x = numbers(dtype, (3, 4))
    for low, high in [(None, None), (2, None), (None, 3), (2, 3), (numbers(dtype, (4,), 2), numbers(dtype, (3, 1), 3))]:
        mine = [b if b is None or isinstance(b, int) else wnp.asarray(b) for b in (low, high)]
        close(wnp.clip(wnp.asarray(x), min=mine[0], max=mine[1]), np.clip(x, low, high) if low is not high else x)


# --- Special cases ----------------------------------------------------------------------------------------------------

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 1e30, -1e30, np.inf, -np.inf, np.nan]
# The standard leaves these open, and says so, or asks for what neither NumPy, JAX nor C do: see docs/array_api.md.
SIGN_OF_ZERO_OPEN = {"sign"}


def same(mine, theirs, where, signs=True):
    """Equal numbers, signs of zeros too."""
    mine, theirs = np.asarray(mine), np.asarray(theirs)
    assert mine.dtype == theirs.dtype
    for m, t, w in zip(mine.ravel(), theirs.ravel(), where):
        if t.dtype.kind not in "fc":
            assert m == t, w
            continue
        parts = [(m.real, t.real), (m.imag, t.imag)] if t.dtype.kind == "c" else [(m, t)]
        for a, b in parts:
            if np.isnan(b):
                assert np.isnan(a), (w, m, t)
            else:
                np.testing.assert_allclose(
                    a, b, rtol=2e-6 if t.dtype.itemsize <= 8 else 1e-14, err_msg=f"{w}: {m}, {t}"
                )
                if signs and b == 0:
                    assert np.signbit(a) == np.signbit(b), (w, m, t)


@pytest.mark.parametrize("dtype", REAL_FLOATS)
@pytest.mark.parametrize("name", [n for n in ONE if "float64" in ONE[n]])
def test_special_cases(name, dtype):
    x = np.array(SPECIAL, dtype)
    for run in (lambda f: f, weft.jit):
        same(run(getattr(wnp, name))(wnp.asarray(x)), getattr(np, name)(x), x, name not in SIGN_OF_ZERO_OPEN)


@pytest.mark.parametrize("dtype", REAL_FLOATS)
@pytest.mark.parametrize("name", [n for n in TWO if "float64" in TWO[n]])
def test_special_cases_of_two(name, dtype):
    x, y = (v.ravel() for v in np.meshgrid(np.array(SPECIAL, dtype), np.array(SPECIAL, dtype)))
    if name in ("floor_divide", "remainder"):  # of a large number by a small one: the last digits are another matter
        keep = (np.abs(x) < 1e20) | np.isinf(x) | np.isnan(x)
        x, y = x[keep], y[keep]
    # Of +0 and -0 the standard lets maximum and minimum give either.
    signs = name not in ("maximum", "minimum")
    for run in (lambda f: f, weft.jit):
        mine = run(getattr(wnp, name))(wnp.asarray(x), wnp.asarray(y))
        same(mine, getattr(np, name)(x, y), list(zip(x, y)), signs)


_NUMBERS = [0.0, -0.0, 1.0, -1.0, 0.3, -0.3, 2.5, -2.5]
FINITE = [complex(a, b) for a, b in itertools.product(_NUMBERS, repeat=2)]
IN_CMATH = [name for name in ONE if ONE[name] == FLOATS and hasattr(cmath, name)]


def by_cmath(name, z):
    try:
        return getattr(cmath, name)(z)
    except (ValueError, OverflowError):
        return None  # a pole


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", IN_CMATH)
def test_complex_values_and_branch_cuts(name, dtype):
    wide = [z for z in FINITE if by_cmath(name, z) is not None]
    where, values = np.array(wide, dtype), np.array([by_cmath(name, complex(z)) for z in np.array(wide, dtype)], dtype)
    for run in (lambda f: f, weft.jit):
        mine = np.asarray(run(getattr(wnp, name))(wnp.asarray(where)))
        assert mine.dtype == dtype
        np.testing.assert_allclose(mine, values, rtol=8 * np.finfo(dtype).eps)
        for part in ("real", "imag"):
            a, b = getattr(mine, part), getattr(values, part)
            exact = b == 0
            np.testing.assert_array_equal(np.signbit(a[exact & (a == 0)]), np.signbit(b[exact & (a == 0)]), name)
            # Which side of a cut: no part has the other sign.
            assert not np.any((np.sign(a) * np.sign(b) < 0) & (np.abs(b) > 1e-6)), name


_PARTS = [0.0, 1.0, 2.0, np.inf, np.nan]
ODD = {"asin", "asinh", "atan", "atanh", "sin", "sinh", "tan", "tanh"}


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", IN_CMATH)
def test_complex_special_cases(name, dtype):
    """C99, Annex G, which the standard's tables are from: cmath is C's."""
    points = [complex(a, b) for a, b in itertools.product([*_PARTS, -np.inf, -2.0, -0.0], _PARTS)]
    points += [z.conjugate() for z in points]
    with np.errstate(all="ignore"):
        theirs = getattr(np, {"acos": "arccos"}.get(name, name))(np.array(points, dtype))
    mine = np.asarray(getattr(wnp, name)(wnp.asarray(np.array(points, dtype))))
    for z, m, t in zip(points, mine, theirs):
        for a, b in ((m.real, t.real), (m.imag, t.imag)):
            if np.isnan(b) or np.isinf(b):
                # The sign of an infinity beside a NaN is open.
                assert np.isnan(a) if np.isnan(b) else np.isinf(a), (name, z, m, t)
            else:
                assert abs(a - b) <= 4e-7 * max(1, abs(b)), (name, z, m, t)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", ["expm1", "log1p"])
def test_complex_functions_without_cancellation(name, dtype):
    """Beside mpmath with 60 digits, also where the plain formula loses all of them."""
    mpmath = pytest.importorskip("mpmath")
    eps = np.finfo(dtype).eps
    small = [1e-3, -1e-3, 1e-9, -1e-9, 1e-17, 0.7, -0.7, -1.5, 3.0]
    where = np.array([complex(a, b) for a, b in itertools.product(small, repeat=2)], dtype)
    mine = np.asarray(getattr(wnp, name)(wnp.asarray(where)))
    with mpmath.workdps(60):
        for z, m in zip(where, mine):
            w = mpmath.mpc(float(z.real), float(z.imag))
            t = mpmath.expm1(w) if name == "expm1" else mpmath.log(1 + w)
            assert abs(complex(m) - complex(t)) <= 4 * eps * abs(complex(t)), (z, m, complex(t))
            if name == "log1p":
                assert abs(m.real - float(t.real)) <= 4 * eps * abs(float(t.real)), (z, m, complex(t))


@pytest.mark.parametrize("name", [n for n in ONE if "complex128" in ONE[n] and n in (*IN_CMATH, "expm1", "log1p")])
def test_complex_derivatives(name):
    """Holomorphic ones, beside differences of mpmath's function; on branch cuts the side that the sign of zero says."""
    mpmath = pytest.importorskip("mpmath")
    f = {"expm1": mpmath.expm1, "log1p": lambda z: mpmath.log(1 + z)}.get(name) or getattr(mpmath, name)
    points = [0.3 + 0.4j, -0.3 + 0.4j, 2.5 - 0.7j, -2.5 - 0.7j, 0.2 - 3j, -0.2 + 3j, 40 + 1j]
    slope = weft.vmap(weft.grad(getattr(wnp, name), holomorphic=True))(wnp.asarray(points))
    forward = weft.jvp(getattr(wnp, name), (wnp.asarray(points),), (wnp.ones(len(points), "complex128"),))[1]
    with mpmath.workdps(50):
        for z, s, t in zip(points, slope.tolist(), forward.tolist()):
            true = complex(mpmath.diff(f, z))
            assert abs(s - true) <= 1e-13 * abs(true) and abs(t - true) <= 1e-13 * abs(true), (z, s, t, true)


def test_complex_derivatives_far_out():
    """Where the square of the operand overflows."""
    z = wnp.asarray([3e25 + 4e25j, -3e25 + 4e25j], "complex64")
    for name, true in {
        "asin": lambda z: 1j / z * np.where(z.imag > 0, 1, -1),
        "asinh": lambda z: np.where(z.real > 0, 1, -1) / z,
        "acosh": lambda z: 1 / z,
        "atan": lambda z: 1 / z**2,
        "atanh": lambda z: -1 / z**2,
    }.items():
        mine = np.asarray(weft.vmap(weft.grad(getattr(wnp, name), holomorphic=True))(z))
        np.testing.assert_allclose(mine, true(np.asarray(z, "complex128")), rtol=1e-5, atol=1e-45, err_msg=name)


# --- All other functions ----------------------------------------------------------------------------------------------

INDICES = wnp.asarray([0, 2, 1])
# Functions of one array: arguments, dtypes, and whether the result holds indices.
CALLS = [
    ("tril", {"k": 1}, EVERY),
    ("triu", {"k": -1}, EVERY),
    ("flip", {}, EVERY),
    ("flip", {"axis": 1}, EVERY),
    ("roll", {"shift": 1}, EVERY),
    ("roll", {"shift": (1, -1), "axis": (0, 1)}, EVERY),
    ("expand_dims", {"axis": 1}, EVERY),
    ("permute_dims", {"axes": (1, 0)}, EVERY),
    ("matrix_transpose", {}, EVERY),
    ("reshape", {"shape": (3, -1)}, EVERY),
    ("reshape", {"shape": (6,), "copy": True}, EVERY),
    ("sort", {}, REAL),
    ("sort", {"axis": 0, "descending": True, "stable": False}, REAL),
    ("cumulative_sum", {"axis": 1}, NUMERIC),
    ("cumulative_sum", {"axis": 0, "include_initial": True}, NUMERIC),
    ("cumulative_prod", {"axis": 1}, NUMERIC),
    ("cumulative_prod", {"axis": 0, "include_initial": True}, NUMERIC),
    ("max", {"axis": 1, "keepdims": True}, REAL),
    ("min", {}, REAL),
    ("sum", {}, NUMERIC),
    ("sum", {"axis": (0, 1), "keepdims": True}, NUMERIC),
    ("sum", {"axis": 0, "dtype": "int16"}, INTEGERS),
    ("prod", {"axis": 0}, NUMERIC),
    ("mean", {"axis": 1}, FLOATS),
    ("std", {"axis": 0, "correction": 1.0}, REAL_FLOATS),
    ("var", {"correction": 0.5, "keepdims": True}, REAL_FLOATS),
    ("all", {"axis": 1}, EVERY),
    ("any", {"keepdims": True}, EVERY),
    ("diff", {}, NUMERIC),
    ("diff", {"axis": 0, "n": 1}, NUMERIC),
    ("linalg.vector_norm", {}, FLOATS),
    ("linalg.vector_norm", {"axis": 1, "ord": 1, "keepdims": True}, FLOATS),
    ("linalg.vector_norm", {"ord": float("inf")}, FLOATS),
    ("linalg.matrix_norm", {}, FLOATS),
    ("linalg.matrix_norm", {"ord": "nuc", "keepdims": True}, FLOATS),
    ("linalg.svdvals", {}, FLOATS),
    ("linalg.pinv", {}, FLOATS),
    ("linalg.diagonal", {"offset": 1}, EVERY),
    ("linalg.matrix_transpose", {}, EVERY),
    ("linalg.trace", {"offset": 1}, NUMERIC),
    ("fft.fft", {"n": 5}, COMPLEX),
    ("fft.ifft", {"norm": "ortho"}, COMPLEX),
    ("fft.fftn", {"norm": "forward"}, COMPLEX),
    ("fft.ifftn", {}, COMPLEX),
    ("fft.rfft", {"axis": 0}, REAL_FLOATS),
    ("fft.irfft", {"n": 4}, COMPLEX),
    ("fft.rfftn", {}, REAL_FLOATS),
    ("fft.irfftn", {}, COMPLEX),
    ("fft.hfft", {}, COMPLEX),
    ("fft.ihfft", {}, REAL_FLOATS),
    ("fft.fftshift", {"axes": 1}, FLOATS),
    ("fft.ifftshift", {}, FLOATS),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda c: f"{c[0]} {c[1]}")
def test_functions_of_one_array(call):
    name, given, dtypes = call
    for dtype in dtypes:
        x = numbers(dtype)
        theirs = given
        if name == "sort":  # NumPy's has no descending
            theirs = {"axis": given.get("axis", -1)}
        wanted = of(np, name)(x, **theirs)
        if given.get("descending"):
            wanted = np.flip(wanted, axis=theirs["axis"])
        close(of(wnp, name)(wnp.asarray(x), **given), wanted, 8)


@pytest.mark.parametrize("dtype", REAL)
def test_indices(dtype):
    x = numbers(dtype, (3, 4))
    mine, kind = wnp.asarray(x), wnp.__array_namespace_info__().default_dtypes()["indexing"]
    for name in ("argmax", "argmin", "count_nonzero"):
        for given in ({}, {"axis": 1}, {"axis": 0, "keepdims": True}):
            found = getattr(wnp, name)(mine, **given)
            assert found.dtype == kind and np.array_equal(found, getattr(np, name)(x, **given))
    assert all(np.array_equal(a, b) and a.dtype == kind for a, b in zip(wnp.nonzero(mine), np.nonzero(x)))
    order = wnp.argsort(mine, axis=1, stable=True)
    assert order.dtype == kind and np.array_equal(order, np.argsort(x, axis=1, stable=True))
    falling = np.asarray(wnp.argsort(mine, axis=0, descending=True, stable=True))
    # Equal elements keep their order.
    assert np.array_equal(falling, len(x) - 1 - np.flip(np.argsort(np.flip(x, 0), axis=0, stable=True), 0))
    row = np.sort(x[0])
    for side in ("left", "right"):
        found = wnp.searchsorted(wnp.asarray(row), mine, side=side)
        assert found.dtype == kind and np.array_equal(found, np.searchsorted(row, x, side=side))
    order = np.argsort(x[0])
    assert np.array_equal(wnp.searchsorted(wnp.asarray(x[0]), mine, sorter=wnp.asarray(order)), np.searchsorted(row, x))


@pytest.mark.parametrize("dtype", EVERY)
def test_sets_and_selections(dtype):
    x = numbers(dtype, (2, 5))
    mine, kind = wnp.asarray(x), wnp.__array_namespace_info__().default_dtypes()["indexing"]
    for name in ("unique_all", "unique_counts", "unique_inverse"):
        found, wanted = getattr(wnp, name)(mine), getattr(np, name)(x)
        assert type(found)._fields == type(wanted)._fields
        for field in found._fields:
            a, b = getattr(found, field), getattr(wanted, field)
            assert a.dtype == (dtype if field == "values" else kind) and np.array_equal(a, b), field
    close(wnp.unique_values(mine), np.sort(np.unique_values(x)))
    close(wnp.take(mine, INDICES, axis=1), np.take(x, [0, 2, 1], axis=1))
    at = np.array([[0, 1], [2, 0]])
    close(wnp.take_along_axis(mine, wnp.asarray(at), axis=-1), np.take_along_axis(x, at, axis=-1))
    close(
        wnp.where(wnp.asarray(x > x.dtype.type(1)), mine, wnp.flip(mine)), np.where(x > x.dtype.type(1), x, np.flip(x))
    )
    close(wnp.concat([mine, mine], axis=None), np.concat([x, x], axis=None))
    close(wnp.concat([mine, mine[:, :1]], axis=1), np.concat([x, x[:, :1]], axis=1))
    close(wnp.stack([mine, mine], axis=-1), np.stack([x, x], axis=-1))
    close(wnp.tile(mine, (2, 1, 2)), np.tile(x, (2, 1, 2)))
    close(wnp.repeat(mine, 2, axis=0), np.repeat(x, 2, axis=0))
    close(wnp.repeat(mine, wnp.asarray([1, 3]), axis=0), np.repeat(x, [1, 3], axis=0))
    close(wnp.moveaxis(mine, 0, 1), np.moveaxis(x, 0, 1))
    close(wnp.squeeze(mine[:, None], axis=1), x)
    close(wnp.broadcast_to(mine, (3, 2, 5)), np.broadcast_to(x, (3, 2, 5)))
    for a, b in zip(wnp.broadcast_arrays(mine, mine[:1]), np.broadcast_arrays(x, x[:1])):
        close(a, b)
    for a, b in zip(wnp.unstack(mine, axis=1), np.unstack(x, axis=1), strict=True):
        close(a, b)
    for indexing in ("xy", "ij"):
        for a, b in zip(
            wnp.meshgrid(mine[0], mine[1], indexing=indexing), np.meshgrid(x[0], x[1], indexing=indexing), strict=True
        ):
            close(a, b)


@pytest.mark.parametrize("dtype", FLOATS)
def test_linear_algebra(dtype):
    a = numbers(dtype, (2, 3, 3)) + 2 * np.eye(3, dtype=dtype)
    b, v, w = numbers(dtype, (2, 3, 2), 1), numbers(dtype, (2, 3), 2), numbers(dtype, (2, 3), 3)
    spd = a @ np.conj(np.matrix_transpose(a))
    mine = [wnp.asarray(x) for x in (a, b, v, w, spd)]
    for upper in (False, True):
        close(wnp.linalg.cholesky(mine[4], upper=upper), np.linalg.cholesky(spd, upper=upper), 8)
    close(wnp.linalg.cross(mine[2], mine[3]), np.linalg.cross(v, w), 4)
    close(wnp.linalg.det(mine[0]), np.linalg.det(a), 8)
    close(wnp.linalg.eigvalsh(mine[4]), np.linalg.eigvalsh(spd), 16)
    found = wnp.linalg.eigh(mine[4])
    assert found._fields == ("eigenvalues", "eigenvectors") and found.eigenvalues.dtype == found.eigenvalues.real.dtype
    close(found.eigenvectors * found.eigenvalues[:, None] @ wnp.conj(found.eigenvectors.mT), spd, 64)
    close(wnp.linalg.inv(mine[0]), np.linalg.inv(a), 16)
    close(wnp.linalg.matmul(mine[0], mine[1]), a @ b, 8)
    for n in (-2, 0, 3):
        close(wnp.linalg.matrix_power(mine[0], n), np.linalg.matrix_power(a, n), 64)
    ranks = wnp.linalg.matrix_rank(mine[0])
    assert ranks.tolist() == [3, 3] and wnp.isdtype(ranks.dtype, "integral")
    close(wnp.linalg.outer(mine[2][0], mine[3][0]), np.linalg.outer(v[0], w[0]))
    q, r = wnp.linalg.qr(mine[0], mode="complete")
    assert wnp.linalg.qr(mine[0])._fields == ("Q", "R")
    close(q @ r, a, 16)
    sign, log = wnp.linalg.slogdet(mine[0])
    assert wnp.linalg.slogdet(mine[0])._fields == ("sign", "logabsdet") and log.dtype == mine[0].real.dtype
    close(sign * wnp.exp(log), np.linalg.det(a), 16)
    close(wnp.linalg.solve(mine[0], mine[1]), np.linalg.solve(a, b), 16)
    u, s, vh = wnp.linalg.svd(mine[1], full_matrices=False)
    assert wnp.linalg.svd(mine[1])._fields == ("U", "S", "Vh") and s.dtype == mine[1].real.dtype
    close(u * s[:, None] @ vh, b, 16)
    close(wnp.linalg.tensordot(mine[0], mine[1], axes=((2,), (1,))), np.tensordot(a, b, axes=((2,), (1,))), 8)
    close(wnp.vecdot(mine[2], mine[3], axis=0), np.vecdot(v, w, axis=0), 4)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_products_of_integers(dtype):
    x, y = numbers(dtype, (2, 3)), numbers(dtype, (3, 2), 1)
    close(wnp.matmul(wnp.asarray(x), wnp.asarray(y)), x @ y)
    close(wnp.vecdot(wnp.asarray(x), wnp.asarray(x)), np.vecdot(x, x))
    close(wnp.tensordot(wnp.asarray(x), wnp.asarray(y), axes=1), np.tensordot(x, y, axes=1))
    close(wnp.linalg.matrix_power(wnp.asarray(x @ y), 2), np.linalg.matrix_power(x @ y, 2))


@pytest.mark.parametrize("dtype", [None, *NUMERIC])
def test_creation(dtype):
    given = {} if dtype is None else {"dtype": dtype}
    like = np.ones((2, 2), "float32")
    for name, args in {
        "zeros": ((2, 3),),
        "ones": (4,),
        "eye": (2, 3),
        "zeros_like": (like,),
        "ones_like": (like,),
        "arange": (1, 8, 2),
        "linspace": (1, 9, 5),
    }.items():
        theirs = np.linspace(*args, **given) if name == "linspace" else of(np, name)(*args, **given)
        if name == "linspace" and dtype in INTEGERS:
            continue  # the standard has it for floats
        close(of(wnp, name)(*args, **given), theirs)
    close(wnp.full((2,), 3, **given), np.full((2,), 3, **given))
    close(wnp.full_like(like, 3, **given), np.full_like(like, 3, **given))
    assert wnp.empty((2, 3), **given).shape == (2, 3)
    close(wnp.eye(3, k=-1, **given), np.eye(3, k=-1, **given))
    if dtype in (None, *REAL_FLOATS):
        close(wnp.linspace(0, 1, 4, endpoint=False, **given), np.linspace(0, 1, 4, endpoint=False, **given))
        for name in ("fftfreq", "rfftfreq"):
            close(of(wnp.fft, name)(5, d=0.5, **given), of(np.fft, name)(5, d=0.5).astype(dtype or "float64"))


@pytest.mark.parametrize("k", [-(2**70), -(2**31), -3, -2, 0, 1, 4, 5, 2**31, 2**70])
@pytest.mark.parametrize("shape", [(2, 4), (0, 3), (3, 0), (0, 0)])
def test_diagonals_far_out(shape, k):
    near = max(-9, min(k, 9))
    close(wnp.eye(*shape, k=k), np.eye(*shape, k=near))
    close(wnp.tri(*shape, k=k, dtype="float64"), np.tri(*shape, k=near))
    for name in ("tril", "triu"):
        close(getattr(wnp, name)(wnp.ones(shape), k=k), getattr(np, name)(np.ones(shape), k=near))
    close(wnp.linalg.diagonal(wnp.ones(shape), offset=k), np.linalg.diagonal(np.ones(shape), offset=near))
    close(wnp.linalg.trace(wnp.ones(shape), offset=k), np.linalg.trace(np.ones(shape), offset=near))


def test_dtype_functions():
    for a, b in itertools.product(EVERY, repeat=2):
        both = {("f" if d in FLOATS else "i" if d[0] == "i" else d[0]) for d in (a, b)}
        if len(both) == 1 or (both == {"i", "u"} and "uint64" not in (a, b)):
            assert wnp.result_type(getattr(wnp, a), getattr(wnp, b)) == np.result_type(a, b), (a, b)
        assert wnp.can_cast(a, b) == np.can_cast(a, b)
        x = numbers(a)
        if not (a in COMPLEX and b not in (*COMPLEX, "bool")):
            close(wnp.astype(wnp.asarray(x), b), x.astype(b))
            close(wnp.astype(wnp.asarray(x), b, copy=False), x.astype(b))
    for d in FLOATS:
        mine, theirs = wnp.finfo(d), np.finfo(d)
        for field in ("bits", "eps", "max", "min", "smallest_normal", "dtype"):
            assert getattr(mine, field) == getattr(theirs, field)
    for d in INTEGERS:
        assert all(getattr(wnp.iinfo(d), f) == getattr(np.iinfo(d), f) for f in ("bits", "max", "min", "dtype"))


def test_operators_with_numbers():
    x = wnp.asarray([1, 2, 3], dtype="int8")
    for y in (x + 1, 1 - x, x * 2, x // 2, x % 2, x**2, -x, +x, abs(x), x & 1, x | 1, x ^ 1, ~x, x << 1, x >> 1):
        assert y.dtype == "int8"
    assert (x == 1).dtype == "bool" and int(x[0]) == 1 and float(x[0]) == 1.0 and complex(x[0]) == 1
    assert bool(x[0]) is True and [4, 5, 6][wnp.asarray(1)] == 5
    y = x
    y += 1  # a new array
    assert x.tolist() == [1, 2, 3] and y.tolist() == [2, 3, 4]
    assert x.__dlpack_device__() == (1, 0)
    z = np.from_dlpack(x, copy=True)
    z[0] = 9
    assert x[0] == 1
