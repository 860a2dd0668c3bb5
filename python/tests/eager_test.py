"""Operations outside jit: the bits of an element depend neither on how many there are nor on jit."""

import itertools

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import _weft

ml_dtypes = pytest.importorskip("ml_dtypes")

N = 20000  # more than what runs by the kernels of small arrays
FEW = [1, 7, 16, 1000]

NEED_ATTRIBUTES = ("convert", "bitcast", "integer_pow", "round", "reduce_precision", "axis_varies")

# Every element-wise operation of one or two operands without attributes, by the registry.
OPERATIONS = {
    p["name"]: p["num_operands"]
    for p in _weft.primitives()
    if p["elementwise"] and p["num_operands"] in (1, 2) and p["name"] not in NEED_ATTRIBUTES
}
DTYPES = ["float32", "float64", "float16", ml_dtypes.bfloat16, "int32", "uint8", "bool", "complex64"]
SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.0,
    3.0,
    1e-3,
    100.0,
    np.inf,
    -np.inf,
    np.nan,
    1e-30,
    65504.0,
    88.7,
    -104.0,
    1e-40,
]


def numbers(dtype, seed):
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, N).astype(bool)
    if dtype.kind in "iu":
        x = rng.integers(0, 2**62, N).astype(dtype) if seed else rng.integers(-9, 9, N).astype(dtype)
        x[x == 0] = 3
        return x
    x = rng.normal(size=N) * 10.0 ** rng.integers(-3, 3, N)
    pairs = list(itertools.product(SPECIAL, SPECIAL))
    x[: len(pairs)] = [p[seed] for p in pairs]
    with np.errstate(over="ignore", invalid="ignore"):
        return (x + 1j * x[::-1] if dtype.kind == "c" else x).astype(dtype)


def outcome(function, args):
    try:
        return np.array(function(*args))
    except (TypeError, NotImplementedError) as error:
        return type(error)


def same(a, b):
    if isinstance(a, type) or isinstance(b, type):
        return a is b
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind == "c":
        return same(a.real, b.real) and same(a.imag, b.imag)
    if a.dtype.kind in "iub":
        return bool((a == b).all())
    nan = np.isnan(a.astype("float64"))
    width = f"u{a.dtype.itemsize}"
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    return bool(((a.view(width) == b.view(width)) | (nan & np.isnan(b.astype("float64")))).all())


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_bits_depend_on_neither_size_nor_jit(name):
    """Of operations that begin in the interpreter this compares it with compiled code, too."""

    def f(*xs):
        return _weft.bind_elementwise(name, list(xs), {})

    ran = 0
    for dtype in DTYPES:
        given = [numbers(dtype, seed) for seed in range(OPERATIONS[name])]
        if name.startswith("shift"):
            if np.dtype(dtype).kind not in "iu":
                continue
            given[1] = (np.abs(given[1].astype("int64")) % 8).astype(given[1].dtype)
        if name in ("div", "rem") and np.dtype(dtype).kind == "i":
            given[0][given[0] == np.iinfo(dtype).min] = 1
        large = outcome(f, map(wnp.asarray, given))
        ran += not isinstance(large, type)
        for n in FEW:
            few = [wnp.asarray(x[:n]) for x in given]
            small = outcome(f, few)
            wanted = large if isinstance(large, type) else large[:n]
            assert same(small, wanted), (dtype, n)
            if n == 1000:
                assert same(outcome(weft.jit(f), few), wanted), dtype
                matrix = outcome(f, [x.reshape(10, 100) for x in few])
                assert isinstance(wanted, type) or same(matrix, wanted.reshape(10, 100)), dtype
        if not isinstance(large, type):
            for i in (0, 5, 77, 200):
                one = outcome(f, [wnp.asarray(x[i]) for x in given])
                assert same(one, large[i]), (dtype, i)
    assert ran, "no dtype"


@pytest.mark.parametrize("name", ["arctan2", "power", "hypot", "add", "divide", "exp2", "logaddexp", "sinc", "cbrt"])
def test_operands_of_several_shapes_and_dtypes(name):
    f = getattr(wnp, name)
    two = name not in ("exp2", "sinc", "cbrt")
    x, y = abs(numbers("float32", 0)[300:330]) + 0.5, abs(numbers("float32", 1)[300:304]) + 0.5
    pairs = [
        *((x[:, None], y), (x, np.float32(1.25)), (1.25, x), (x, 2)),
        *((x.astype("float64"), x), (x, x.astype("int32"))),
    ]
    for given in pairs if two else [(x,), (x[:, None],)]:
        few = [wnp.asarray(v) if isinstance(v, np.ndarray) else v for v in given]
        many = [wnp.tile(v, (600,) + (1,) * (v.ndim - 1)) if np.shape(v)[:1] == (30,) else v for v in few]
        got = np.asarray(f(*few))
        assert got.shape[0] == 30 and same(np.asarray(f(*many))[:30], got)


def test_powers():
    x = wnp.asarray(numbers("float32", 0)[300:])
    for n in (2, 3, 7, -2, 0.5, 2.5):
        large = np.asarray(x**n)
        assert same(np.asarray(x[:100] ** n), large[:100])
        assert same(np.asarray(weft.jit(lambda v, n=n: v**n)(x[:100])), large[:100])


def test_numbers_weak_types_and_shapes():
    assert (wnp.exp(1.0).weak_type, wnp.exp(1.0).shape, wnp.exp(1.0).dtype) == (True, (), np.float32)
    assert not wnp.exp(wnp.ones(())).weak_type
    assert (wnp.asarray(2.0) + 1).weak_type and not (wnp.ones(3) + 1).weak_type
    assert (wnp.ones((2, 0)) + 1).shape == (2, 0)
    assert wnp.exp(wnp.ones((2, 1, 3), "float64")).shape == (2, 1, 3)
    assert (wnp.asarray([1, 2]) / 2).dtype == np.float32
    assert same(np.asarray(wnp.exp(0.3)), np.asarray(wnp.exp(wnp.full(N, 0.3)))[0])


def test_errors_name_the_shapes_and_the_line():
    with pytest.raises(TypeError, match=r"shapes \(3,\) and \(2,\) do not broadcast.*\n  at .*eager_test\.py"):
        wnp.arctan2(wnp.ones(3), wnp.ones(2))
    with pytest.raises(TypeError, match=r"\n  at .*eager_test\.py"):
        ~wnp.ones(3)
    with pytest.raises(OverflowError, match="300 does not fit i8"):
        wnp.ones(3, "int8") + 300


def test_an_exact_operation_keeps_its_bits_when_it_is_compiled():
    x, y = wnp.asarray(numbers("float32", 0)[:8000]), wnp.asarray(numbers("float32", 1)[:8000])
    first = np.asarray(x / y)
    for _ in range(200):  # more than the interpreter does
        last = x / y
    assert same(first, np.asarray(last))


def test_nans_are_looked_for():
    weft.config.update("jax_debug_nans", True)
    try:
        with pytest.raises(FloatingPointError):
            wnp.log(wnp.asarray([-1.0]))
    finally:
        weft.config.update("jax_debug_nans", False)
    assert np.isnan(wnp.log(wnp.asarray([-1.0]))[0])


REDUCTIONS = ["sum", "prod", "max", "min", "any", "all", "argmax", "argmin"]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_are_those_of_the_program(name):
    """They run without a program of their own; NumPy and the reference interpreter say what they are."""
    reduce, numpys = getattr(wnp, name), getattr(np, name)
    shapes = [((12,), (None, 0)), ((3, 4), (None, 0, 1, -1)), ((2, 3, 2), (None, 0, 1, 2)), ((1, 5), (0, 1))]
    if not name.startswith("arg"):
        shapes += [((2, 3, 2), ((0, 2), (1, 2), (0, 1, 2), ())), ((3, 0), (1,) if name in ("max", "min") else ())]
    ran = 0
    for dtype, (shape, axes), keepdims in itertools.product(DTYPES, shapes, (False, True)):
        x = numbers(dtype, 0)[400 : 400 + int(np.prod(shape))].reshape(shape)
        if np.dtype(dtype).kind in "fc" or dtype is ml_dtypes.bfloat16:
            x = (x / 64).astype(dtype)  # sums and products stay finite in 16 bits
        for axis in axes:
            if np.dtype(dtype).kind == "c" and name not in ("sum", "prod", "any", "all"):
                continue
            if 0 in shape and name in ("max", "min"):
                with pytest.raises(ValueError, match="no elements"):
                    reduce(wnp.asarray(x), axis=axis)
                continue
            got = reduce(wnp.asarray(x), axis=axis, keepdims=keepdims)
            f = lambda v, axis=axis, keepdims=keepdims: reduce(v, axis=axis, keepdims=keepdims)
            wanted = weft.jit(f, backend="interpreter")(x)
            assert same(np.asarray(got), np.asarray(wanted)), (dtype, shape, axis, keepdims)
            beside = numpys(x.astype("float64") if dtype is ml_dtypes.bfloat16 else x, axis=axis, keepdims=keepdims)
            assert got.shape == np.shape(beside)
            tolerance = 2e-2 if dtype in ("float16", ml_dtypes.bfloat16) else 1e-5
            kinds = np.complex128 if np.dtype(dtype).kind == "c" else np.float64
            if np.dtype(dtype).kind not in "iu" or name != "prod":  # which wrap at other widths
                np.testing.assert_allclose(np.asarray(got).astype(kinds), beside.astype(kinds), tolerance, 1e-3)
            ran += 1
    assert ran > 100


def test_reductions_of_several_calls_and_threads_and_errors():
    import threading

    x = wnp.arange(12.0).reshape(3, 4)
    found = []

    def work():
        found.extend(float(wnp.sum(x)) + float(wnp.max(x)) for _ in range(200))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [77.0] * 600
    with pytest.raises((ValueError, IndexError), match=r"axis 2 .*\n  at .*eager_test\.py"):
        wnp.sum(x, axis=2)
    with pytest.raises(TypeError, match=r"\n  at .*eager_test\.py"):
        wnp.sum(weft.random.split(weft.random.key(0)))


def chain_of_ten(x, y):
    return wnp.sum(wnp.tanh(x * 2.0 + y) * y - x / 3.0 + wnp.exp(-x))


def of_four(x):
    return wnp.sum(wnp.sin(x) * x + 1.0)


ONE_ARGUMENT = [
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1p",
    "sin",
    "cos",
    "tan",
    "arcsin",
    "arccos",
    "arctan",
    "sinh",
    "cosh",
    "tanh",
    "arctanh",
    "cbrt",
    "reciprocal",
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [5, 16, 100, 3000])
def test_chains_sums_and_gradients_have_the_bits_of_compiled_code(dtype, size):
    rng = np.random.default_rng(size)
    functions = {name: getattr(wnp, name) for name in ONE_ARGUMENT}
    programs = [
        (chain_of_ten, 2),
        (weft.grad(of_four), 1),
        (weft.value_and_grad(of_four), 1),
        (wnp.sum, 1),
        (wnp.prod, 1),
        (wnp.mean, 1),
        (lambda x, y: wnp.sum(x * y), 2),
        (lambda x: wnp.sum(wnp.exp(x).reshape(-1, 1), 0), 1),
    ]
    for f in functions.values():
        total = lambda x, f=f: wnp.sum(f(x) * x)
        programs += [(f, 1), (total, 1), (weft.grad(total), 1), (lambda x, f=f: weft.jvp(f, (x,), (x,))[1], 1)]
    for program, arguments in programs:
        args = [wnp.asarray(rng.uniform(0.05, 0.95, size).astype(dtype)) for _ in range(arguments)]
        for eager, compiled in zip(
            weft.tree.leaves(program(*args)), weft.tree.leaves(weft.jit(program)(*args)), strict=True
        ):
            assert np.array_equal(np.asarray(eager), np.asarray(compiled)), program


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_running_sums_have_the_bits_of_compiled_code(name, dtype):
    """Each step is rounded as NumPy's are, by whichever of the two."""
    if name in ("cummax", "cummin") and "complex" in dtype:
        return
    rng = np.random.default_rng(3)
    f = getattr(weft.lax, name)
    for shape, axis in (((1000,), 0), ((7, 40), 1), ((7, 40), 0), ((3, 5, 30), 1)):
        x = wnp.asarray(rng.normal(1, 0.3, shape)).astype(dtype)
        if "complex" in dtype:
            x = x + 0.4j * wnp.asarray(rng.normal(size=shape)).astype(dtype)
        for reverse in (False, True):
            run = lambda x, axis=axis, reverse=reverse: f(x, axis, reverse)
            eager, compiled = np.asarray(run(x)), np.asarray(weft.jit(run)(x))
            assert eager.tobytes() == compiled.tobytes(), (shape, axis, reverse)
            if name in ("cumsum", "cumprod") and dtype in ("float32", "float64") and not reverse:
                assert np.array_equal(eager, getattr(np, name)(np.asarray(x), axis))
