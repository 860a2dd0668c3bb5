"""Every dtype of the registry × every primitive that computes, compares or moves numbers: outside jit, compiled,
interpreted and under vmap; against NumPy on exact numbers, which are then rounded (ml_dtypes) or wrapped.

The primitives and their dtypes are those of the registry, so that a new one, or a new dtype, is tested or refused here.
"""

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import mpmath
import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import _weft

PRIMITIVES = {p["name"]: p for p in _weft.primitives()}
TAKEN = {name: p["dtypes"].split("|") for name, p in PRIMITIVES.items()}
DTYPES = TAKEN["eq"]  # those with numbers: all but keys and tapes
FAMILIES = {"element-wise", "reduction", "cumulative", "contraction", "shape", "indexing", "sorting", "window"}


@pytest.fixture(autouse=True)
def all_widths():
    with weft.enable_x64():
        yield


@functools.cache
def numpy_dtype(dtype: str) -> np.dtype:
    return np.dtype(_weft.dtype(dtype))


def kind(dtype: str) -> str:
    return _weft.dtype_kind(dtype)


def is_whole(dtype: str) -> bool:
    return kind(dtype) in ("signed", "unsigned")


def limits(dtype: str) -> tuple[int, int]:
    info = ml_dtypes.iinfo(numpy_dtype(dtype))
    return int(info.min), int(info.max)


def bits(dtype: str) -> int:
    return ml_dtypes.iinfo(numpy_dtype(dtype)).bits


def exact(x: Any) -> np.ndarray:
    """Integers as Python's, which have no end; floats in float64."""
    x = np.asarray(x)
    if x.dtype == bool or x.dtype.kind == "O":
        return x
    if kind(str(x.dtype)) in ("signed", "unsigned"):
        return np.array([int(v) for v in x.reshape(-1)], object).reshape(x.shape)
    return x.astype(np.complex128 if kind(str(x.dtype)) == "complex" else np.float64)


def rounded(x: Any, dtype: str) -> np.ndarray:
    """Exact numbers as a dtype has them."""
    x, to = np.asarray(x), numpy_dtype(dtype)
    if kind(dtype) == "bool":
        return (x != 0).astype(bool)
    if is_whole(dtype):
        least, most = limits(dtype)
        wrapped = [(int(v) - least) % (most - least + 1) + least for v in x.reshape(-1)]
        return np.array(wrapped, np.int64 if most < 2**63 else np.uint64).astype(to).reshape(x.shape)
    with np.errstate(all="ignore"):
        if kind(dtype) == "complex":
            return x.astype(np.complex128).astype(to)
        x = x.astype(np.float64)
        return x if to == np.float64 else x.astype(np.float32).astype(to)


def numbers(dtype: str, *shape: int, seed: int = 0, low: int = -3) -> np.ndarray:
    """Whole numbers of few digits, of both signs, and the ends of an integer dtype."""
    rng = np.random.default_rng(seed)
    size = math.prod(shape)
    if kind(dtype) == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if is_whole(dtype):
        least, most = limits(dtype)
        x = [int(v) for v in rng.integers(max(least, low), min(most, 3) + 1, size)]
        if size > 4 and low < 0:
            x[1], x[3] = least, most
        return rounded(np.array(x, object).reshape(shape), dtype)
    x = rng.integers(low, 4, shape).astype(np.float64)
    if dtype == "f8e8m0fnu":  # which has powers of 2 alone
        x = 2.0**x
    return rounded(x + 1j * rng.integers(-3, 4, shape) if kind(dtype) == "complex" else x, dtype)


class Case:
    """How a primitive is called on a dtype, and what it gives: exactly, or within a few units of the last place."""

    def __init__(
        self,
        operands: Callable[[str], list[np.ndarray]],
        oracle: Callable[..., Any],
        result: Callable[[str], str] | None = None,
        is_exact: bool = True,
        unmapped: tuple[int, ...] = (),
        places: float = 4,
        **attrs: Any,
    ):
        self.operands, self.oracle, self.attrs, self.is_exact = operands, oracle, attrs, is_exact
        self.result = result or (lambda dtype: dtype)
        self.unmapped, self.places = unmapped, places


# --- Element by element ----------------------------------------------------------------------------------------------


def one(low: int = -3) -> Callable:
    return lambda d: [numbers(d, 41, low=low)]


def two(low: int = -3) -> Callable:
    return lambda d: [numbers(d, 41, seed=1, low=low), numbers(d, 41, seed=2, low=low)]


def by_elements(f: Callable) -> Callable:
    """A function of Python's integers (and floats), and the dtype."""

    def apply(dtype: str, *xs: np.ndarray) -> np.ndarray:
        y = [f(dtype, *v) for v in zip(*(np.broadcast_to(x, xs[0].shape).reshape(-1) for x in xs), strict=True)]
        return np.array(y, object if is_whole(dtype) else None).reshape(xs[0].shape)

    return apply


def without_dtype(f: Callable) -> Callable:
    return lambda dtype, *xs: f(*xs)


def divide(dtype: str, x, w):
    if not is_whole(dtype):
        with np.errstate(all="ignore"):
            return np.divide(x, w)
    if w == 0:
        return -1
    return abs(x) // abs(w) * (1 if (x < 0) == (w < 0) else -1)


def remainder(dtype: str, x, w):
    if not is_whole(dtype):
        with np.errstate(all="ignore"):
            return np.fmod(x, w)
    return x if w == 0 else int(math.copysign(1, x)) * (abs(x) % abs(w))


def pattern(dtype: str, x: int) -> int:
    return x % 2 ** bits(dtype)


def shift(dtype: str, x: int, by: int, how: str) -> int:
    width, by = bits(dtype), pattern(dtype, by)
    if how == "left":
        return 0 if by >= width else x << by
    if how == "logical":
        return 0 if by >= width else pattern(dtype, x) >> by
    return x >> min(by, width)


def shifts(d: str) -> list[np.ndarray]:
    x, by = itertools.product(range(-3, 4), range(bits(d) + 2)), []
    pairs = list(x) + [(limits(d)[0], 1), (limits(d)[1], 1), (limits(d)[0], -1)]
    by = [w for _, w in pairs]
    return [rounded(np.array([v for v, _ in pairs], object), d), rounded(np.array(by, object), d)]


def as_bool(_: str) -> str:
    return "bool"


def compared(f: Callable) -> Case:
    return Case(two(), without_dtype(lambda x, w: f(x, w).astype(bool)), as_bool)


def real_of(dtype: str) -> str:
    return {"c64": "f32", "c128": "f64"}.get(dtype, dtype)


def bitwise(f: Callable, of_bools: Callable) -> Case:
    return Case(two(), lambda d, x, w: of_bools(x, w) if kind(d) == "bool" else by_elements(f)(d, x, w))


def sign(x):
    return np.sign(x) if x.dtype.kind != "c" else x / np.where(x == 0, 1, np.abs(x))


def nearest_even(x):
    return np.round(x)


EXACT = {
    "abs": Case(one(), without_dtype(np.abs), real_of, is_exact=False),
    "add": Case(two(), without_dtype(np.add)),
    "and": bitwise(lambda _, x, w: x & w, np.logical_and),
    "bitcast": Case(one(), without_dtype(lambda x: x), lambda d: d),
    "ceil": Case(one(), without_dtype(np.ceil)),
    "clamp": Case(
        lambda d: [numbers(d, 41, seed=3), numbers(d, 41, seed=4), numbers(d, 41, seed=5)],
        without_dtype(lambda lo, x, hi: np.minimum(np.maximum(x, lo), hi)),
    ),
    "clz": Case(one(), by_elements(lambda d, x: bits(d) - pattern(d, x).bit_length())),
    "complex": Case(two(), without_dtype(lambda x, w: x + 1j * w), lambda d: {"f32": "c64", "f64": "c128"}[d]),
    "conj": Case(one(), without_dtype(np.conj)),
    "div": Case(two(), by_elements(divide), is_exact=False),
    "eq": compared(np.equal),
    "floor": Case(one(), without_dtype(np.floor)),
    "ge": compared(np.greater_equal),
    "gt": compared(np.greater),
    "imag": Case(one(), without_dtype(np.imag), real_of),
    "integer_pow": Case(one(), without_dtype(lambda x: x * x * x), y=3),
    "is_finite": Case(one(), without_dtype(np.isfinite), as_bool),
    "le": compared(np.less_equal),
    "lt": compared(np.less),
    "max": Case(two(), without_dtype(np.maximum)),
    "min": Case(two(), without_dtype(np.minimum)),
    "mul": Case(two(), without_dtype(np.multiply)),
    "ne": compared(np.not_equal),
    "neg": Case(one(), without_dtype(np.negative)),
    "nextafter": Case(
        lambda d: [numbers(d, 41), numbers(d, 41, seed=1)],
        by_elements(lambda d, x, w: float(ml_dtypes_step(d, x, w))),
    ),
    "not": Case(one(), lambda d, x: ~x if kind(d) == "bool" else by_elements(lambda _, v: ~v)(d, x)),
    "or": bitwise(lambda _, x, w: x | w, np.logical_or),
    "population_count": Case(one(), by_elements(lambda d, x: pattern(d, x).bit_count())),
    "pow": Case(
        lambda d: [numbers(d, 41), numbers(d, 41, seed=1, low=0)],
        lambda d, x, w: by_elements(lambda _, a, b: a**b)(d, x, w) if is_whole(d) else np.power(x, w),
        is_exact=False,
    ),
    "real": Case(one(), without_dtype(np.real), real_of),
    "rem": Case(two(), by_elements(remainder)),
    "round": Case(lambda d: [rounded(exact(numbers(d, 41)) / 2, d)], without_dtype(nearest_even), mode="even"),
    "shift_left": Case(shifts, by_elements(lambda d, x, w: shift(d, x, w, "left"))),
    "shift_right_logical": Case(shifts, by_elements(lambda d, x, w: shift(d, x, w, "logical"))),
    "shift_right_arithmetic": Case(shifts, by_elements(lambda d, x, w: shift(d, x, w, "arithmetic"))),
    "sign": Case(one(), without_dtype(sign), is_exact=False),
    "square": Case(one(), without_dtype(lambda x: x * x)),
    "stop_gradient": Case(one(), without_dtype(lambda x: x)),
    "sub": Case(two(), without_dtype(np.subtract)),
    "trunc": Case(lambda d: [rounded(exact(numbers(d, 41)) / 2, d)], without_dtype(np.trunc)),
    "xor": bitwise(lambda _, x, w: x ^ w, np.logical_xor),
}


def ml_dtypes_step(dtype: str, x: float, towards: float) -> Any:
    if dtype != "bf16":
        return np.nextafter(numpy_dtype(dtype).type(x), numpy_dtype(dtype).type(towards))
    return np.nextafter(ml_dtypes.bfloat16(x), ml_dtypes.bfloat16(towards))


def by_mpmath(f: Callable) -> Callable:
    def value(v):
        try:
            with mpmath.workdps(40):
                y = f(mpmath.mpf(float(v)))
            return float(y) if isinstance(y, mpmath.mpf | int | float) else float("nan")
        except (ValueError, ZeroDivisionError):
            return float("inf")

    return lambda x: np.array([value(v) for v in x.reshape(-1)]).reshape(x.shape)


# Of floats, and of complex numbers where they have them; over numbers at which they are no poles.
FUNCTIONS = {
    "acos": (np.arccos, 0), "acosh": (np.arccosh, 1), "asin": (np.arcsin, 0), "asinh": (np.arcsinh, -3),
    "atan": (np.arctan, -3), "cbrt": (np.cbrt, -3), "cos": (np.cos, -3), "cosh": (np.cosh, -3),
    "erf": (by_mpmath(mpmath.erf), -3),
    "erfc": (by_mpmath(mpmath.erfc), -3), "exp": (np.exp, -3), "exp2": (np.exp2, -3), "expm1": (np.expm1, -3),
    "lgamma": (by_mpmath(lambda x: mpmath.log(abs(mpmath.gamma(x)))), 1), "log": (np.log, 1), "log10": (np.log10, 1),
    "log1p": (np.log1p, 0), "log2": (np.log2, 1), "logistic": (lambda x: 1 / (1 + np.exp(-x)), -3),
    "logistic_density": (lambda x: 1 / (2 + np.exp(x) + np.exp(-x)), -3),
    "normal_cdf": (by_mpmath(mpmath.ncdf), -3), "normal_density": (by_mpmath(mpmath.npdf), -3),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1),
    "sech_squared": (lambda x: 1 / np.cosh(x) ** 2, -3), "sin": (np.sin, -3), "sinh": (np.sinh, -3),
    "softplus": (lambda x: np.logaddexp(0, x), -3), "sqrt": (np.sqrt, 0), "tan": (np.tan, -3), "tanh": (np.tanh, -3),
    "trigamma": (by_mpmath(lambda x: mpmath.psi(1, x)), 1),
}  # fmt: skip
# Between -1 and 1 alone.
INSIDE = {"acos": np.arccos, "asin": np.arcsin, "atanh": np.arctanh, "erf_inv": by_mpmath(mpmath.erfinv)}


def halves(d: str) -> list[np.ndarray]:
    return [rounded(np.tile([-0.5, -0.25, 0.0, 0.25, 0.5], 9), d)]


ELEMENTWISE = {
    **{name: Case(one(low), without_dtype(f), is_exact=False) for name, (f, low) in FUNCTIONS.items()},
    **{name: Case(halves, without_dtype(f), is_exact=False) for name, f in INSIDE.items()},
    "atan2": Case(two(), without_dtype(np.arctan2), is_exact=False),
    "log_product": Case(two(1), without_dtype(lambda x, y: np.log(x * y)), is_exact=False),
    "log_quotient": Case(two(1), without_dtype(lambda x, y: np.log(x / y)), is_exact=False),
    # Near its root the bound is in units of 1 (docs/operations.md).
    "digamma": Case(one(1), without_dtype(by_mpmath(mpmath.digamma)), is_exact=False, places=20),
    **EXACT,
}

# --- Along dimensions ------------------------------------------------------------------------------------------------


def matrix(d: str) -> list[np.ndarray]:
    return [numbers(d, 4, 6, seed=6)]


def along(f: Callable, *axes: int) -> Callable:
    return without_dtype(lambda x: f(x, axis=axes if len(axes) > 1 else axes[0]))


def folded(of_bools: Callable, of_numbers: Callable, start: int) -> Callable:
    def apply(dtype: str, x: np.ndarray) -> np.ndarray:
        if kind(dtype) == "bool":
            return of_bools(x, axis=1)
        return np.array([functools.reduce(of_numbers, row, start) for row in x.tolist()], object)

    return apply


def log_sums(x: np.ndarray) -> np.ndarray:
    return np.logaddexp.accumulate(x, axis=1)


REDUCTIONS = {
    "argmax": Case(matrix, along(np.argmax, 1), lambda d: "i32", dim=1, dtype="i32"),
    "argmin": Case(matrix, along(np.argmin, 1), lambda d: "i64", dim=1, dtype="i64"),
    "reduce_sum": Case(matrix, along(np.sum, 1), dims=[1]),
    "reduce_prod": Case(lambda d: [numbers(d, 4, 3)], along(np.prod, 0), dims=[0]),
    "reduce_max": Case(matrix, along(np.max, 1), dims=[1]),
    "reduce_min": Case(matrix, along(np.min, 0), dims=[0]),
    "reduce_and": Case(matrix, folded(np.all, lambda a, b: a & b, -1), dims=[1]),
    "reduce_or": Case(matrix, folded(np.any, lambda a, b: a | b, 0), dims=[1]),
}
CUMULATIVE = {
    "cumsum": Case(matrix, along(np.cumsum, 1), dim=1, reverse=False),
    "cumprod": Case(lambda d: [numbers(d, 3, 4)], along(np.cumprod, 0), dim=0, reverse=False),
    "cummax": Case(matrix, along(np.maximum.accumulate, 1), dim=1, reverse=False),
    "cummin": Case(matrix, along(np.minimum.accumulate, 1), dim=1, reverse=False),
    "cumlogsumexp": Case(matrix, without_dtype(log_sums), is_exact=False, dim=1, reverse=False),
}


def windows(f: Callable) -> Callable:
    return without_dtype(lambda x: np.stack([f(x[:, i : i + 2], axis=1) for i in range(5)], axis=1))


def window_case(f: Callable) -> Case:
    return Case(
        matrix, windows(f), window=[1, 2], strides=[1, 1], lo=[0, 0], hi=[0, 0], base_dilation=[1, 1],
        window_dilation=[1, 1],
    )  # fmt: skip


WINDOWS = {
    "reduce_window_sum": window_case(np.sum),
    "reduce_window_max": window_case(np.max),
    "reduce_window_min": window_case(np.min),
}


def convolved(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    y = [[[(x[n, :, i : i + 3] * w[o]).sum() for i in range(4)] for o in range(2)] for n in range(2)]
    return np.array(y, x.dtype)


CONTRACTIONS = {
    "contract": Case(
        lambda d: [numbers(d, 3, 5, seed=1), numbers(d, 5, 4, seed=2)], without_dtype(np.dot), spec="mk,kn->mn"
    ),
    "conv": Case(
        lambda d: [numbers(d, 2, 3, 6, seed=1), numbers(d, 2, 3, 3, seed=2)],
        without_dtype(convolved),
        strides=[1], lo=[0], hi=[0], lhs_dilation=[1], rhs_dilation=[1], feature_groups=1, batch_groups=1,
    ),
}  # fmt: skip

# --- Moves -----------------------------------------------------------------------------------------------------------


def padded(x: np.ndarray, fill: np.ndarray) -> np.ndarray:
    y = np.full((8, 6), fill.reshape(-1)[0], x.dtype)
    y[1:8:2] = x
    return y


SHAPES = {
    "broadcast": Case(matrix, without_dtype(lambda x: np.stack([x, x, x])), shape=[3, 4, 6], dims=[1, 2]),
    "concatenate": Case(two(), without_dtype(lambda x, w: np.concatenate([x, w])), dim=0),
    "pad": Case(
        lambda d: [numbers(d, 4, 6, seed=6), numbers(d)], without_dtype(padded), lo=[1, 0], hi=[0, 0], interior=[1, 0]
    ),
    "reshape": Case(matrix, without_dtype(lambda x: x.reshape(3, 8)), shape=[3, 8]),
    "reverse": Case(matrix, without_dtype(lambda x: x[:, ::-1]), dims=[1]),
    "slice": Case(matrix, without_dtype(lambda x: x[1:4:2, 1:6]), start=[1, 1], limit=[4, 6], strides=[2, 1]),
    "transpose": Case(matrix, without_dtype(lambda x: x.T), perm=[1, 0]),
}
PLACES = np.array([2, 0, 9, 2], np.int32)  # one of them is out of bounds, one occurs twice


def scattered(f: Callable) -> Case:
    def oracle(dtype: str, x: np.ndarray, _: np.ndarray, updates: np.ndarray) -> np.ndarray:
        y = x.copy()
        for place, update in zip(PLACES, updates, strict=True):
            if place < 6:
                y[place] = (
                    rounded(f(y[place], update), dtype).astype(object) if is_whole(dtype) else f(y[place], update)
                )
        return y

    return Case(
        lambda d: [numbers(d, 6, seed=1), PLACES[:, None], numbers(d, 4, seed=2)], oracle, unmapped=(1,),
        update_window_dims=[], inserted_dims=[0], operand_batch_dims=[], indices_batch_dims=[], scatter_dims=[0],
        mode="drop", unique=False,
    )  # fmt: skip


def filled(dtype: str, x: np.ndarray, _: np.ndarray) -> np.ndarray:
    if kind(dtype) == "bool":
        fill: Any = True
    elif is_whole(dtype):
        fill = limits(dtype)[0 if kind(dtype) == "signed" else 1]
    else:
        fill = float("nan")
    return np.array([x[i] if i < len(x) else fill for i in PLACES], x.dtype)


def start(i: int) -> np.ndarray:
    return np.array(i, np.int32)


INDEXING = {
    "dynamic_slice": Case(
        lambda d: [numbers(d, 41), start(7)], without_dtype(lambda x, _: x[7:12]), unmapped=(1,), sizes=[5]
    ),
    "dynamic_update_slice": Case(
        lambda d: [numbers(d, 41), numbers(d, 3, seed=1), start(7)],
        without_dtype(lambda x, u, _: np.concatenate([x[:7], u, x[10:]])), unmapped=(2,),
    ),
    "gather": Case(
        lambda d: [numbers(d, 6, seed=1), PLACES[:, None]], filled, unmapped=(1,), offset_dims=[], collapsed_dims=[0],
        operand_batch_dims=[], indices_batch_dims=[], start_index_map=[0], slice_sizes=[1], mode="fill",
    ),
    "scatter": scattered(lambda old, new: new),
    "scatter_add": scattered(lambda old, new: old + new),
    "scatter_mul": scattered(lambda old, new: old * new),
    "scatter_max": scattered(lambda old, new: max(old, new)),
    "scatter_min": scattered(lambda old, new: min(old, new)),
}  # fmt: skip
SORTING = {
    "sort": Case(matrix, along(np.sort, 1), dim=1, num_keys=1),
    "top_k": Case(matrix, without_dtype(lambda x: np.sort(x, axis=1)[:, ::-1][:, :3]), k=3),
}

CASES = {**ELEMENTWISE, **REDUCTIONS, **CUMULATIVE, **WINDOWS, **CONTRACTIONS, **SHAPES, **INDEXING, **SORTING}
ELSEWHERE = {
    "convert": "test_every_conversion",
    "select": "test_selections",
    "iota": "test_iota",
    "dim_size": "its result is an i32 whatever the dtype",
    "threefry2x32": "takes u32 alone: random_test",
}


def test_every_primitive_of_these_families_is_here() -> None:
    registered = {name for name, p in PRIMITIVES.items() if p["family"] in FAMILIES}
    assert registered == set(CASES) | set(ELSEWHERE)
    assert {p["family"] for p in PRIMITIVES.values()} >= FAMILIES


def ways(function: Callable, operands: list[np.ndarray], unmapped: tuple[int, ...]):
    xs = [wnp.asarray(x) for x in operands]
    axes = tuple(None if i in unmapped else 0 for i in range(len(xs)))
    twice = [x if axis is None else wnp.stack([x, x]) for x, axis in zip(xs, axes, strict=True)]
    yield "eager", function(*xs)
    yield "compiled", weft.jit(function)(*xs)
    yield "interpreted", weft.jit(function, backend="interpreter")(*xs)
    yield "batched", weft.jit(weft.vmap(function, in_axes=axes))(*twice)[1]


def spaced(dtype: str) -> float:
    info = ml_dtypes.finfo(numpy_dtype(real_of(dtype)))
    return float(info.eps)


def check(what: str, got: Any, want: np.ndarray, dtype: str, is_exact: bool, places: float = 4) -> None:
    got = np.asarray(got)
    assert got.dtype == numpy_dtype(dtype), (what, got.dtype)
    assert got.shape == want.shape, (what, got.shape)
    if is_exact or kind(dtype) in ("bool", "signed", "unsigned"):
        left, right = exact(got), exact(want)
        same = (left == right) | ((left != left) & (right != right))
        assert np.all(same), f"{what}: {got[~same.astype(bool)][:5]} instead of {want[~same.astype(bool)][:5]}"
        return
    left, right = exact(got), exact(want)
    with np.errstate(all="ignore"):
        places = 32 if kind(dtype) == "complex" else places  # NumPy's functions of complex numbers are no better
        near = np.abs(left - right) <= places * spaced(dtype) * np.abs(right) + 1e-30
    near |= (left == right) | ((left != left) & (right != right))
    assert np.all(near), f"{what}: {got[~near][:5]} instead of {want[~near][:5]}"


@pytest.mark.parametrize("name", CASES)
def test_every_dtype(name: str) -> None:
    case = CASES[name]

    def function(*xs):
        return _weft.bind(name, list(xs), attributes)[0]

    for dtype in DTYPES:
        if dtype not in TAKEN[name]:
            continue
        attributes = {key: _weft.dtype(v) if key == "dtype" else v for key, v in case.attrs.items()}
        if name == "bitcast":
            attributes["dtype"] = numpy_dtype(dtype)
        operands = case.operands(dtype)
        result = case.result(dtype)
        want = rounded(case.oracle(dtype, *map(exact, operands)), result)
        got = {}
        for way, y in ways(function, operands, case.unmapped):
            check(f"{name} of {dtype}, {way}", y, want, result, case.is_exact, case.places)
            got[way] = exact(np.asarray(y))


@pytest.mark.parametrize("name", [n for n in CASES if n not in ("bitcast",)])
def test_other_dtypes_are_refused(name: str) -> None:
    case = CASES[name]
    for dtype in DTYPES:
        if dtype in TAKEN[name]:
            continue
        like = next(d for d in TAKEN[name] if d in DTYPES)
        operands = [
            rounded(np.abs(exact(x)) > 0, dtype) if x.dtype == numpy_dtype(like) else x for x in case.operands(like)
        ]
        attributes = {key: _weft.dtype(v) if key == "dtype" else v for key, v in case.attrs.items()}
        with pytest.raises((TypeError, ValueError), match=r"expected one of|dtype"):
            _weft.bind(name, [wnp.asarray(x) for x in operands], attributes)


def converted(x: np.ndarray, dtype: str) -> np.ndarray:
    """Floats to integers: towards 0, to the nearest end, NaN to 0; all else as `rounded`."""
    if np.iscomplexobj(x) and kind(dtype) not in ("complex", "bool"):
        x = x.real
    if not is_whole(dtype) or x.dtype.kind not in "fc":
        return rounded(x, dtype)
    least, most = limits(dtype)
    whole = [0 if v != v else least if v <= least else most if v >= most else int(v) for v in x.reshape(-1)]
    return rounded(np.array(whole, object).reshape(x.shape), dtype)


@pytest.mark.parametrize("source", DTYPES)
def test_every_conversion(source: str) -> None:
    x = numbers(source, 41)
    if kind(source) == "float":
        beyond = [-2.5, 2.5, 7.5, -8.5, 15.9, 300, -300, 3e9, -3e9, 2e19, -2e19, np.inf, -np.inf, np.nan]
        x = np.concatenate([x, rounded(np.array(beyond), source)])
    for to in DTYPES:
        function = lambda v, to=to: _weft.bind("convert", [v], {"dtype": _weft.dtype(to)})[0]
        for way, y in ways(function, [x], ()):
            check(f"{source} to {to}, {way}", y, converted(exact(x), to), to, is_exact=True)


def test_selections() -> None:
    pick = numbers("bool", 41, seed=7)
    for dtype in DTYPES:
        x, y = numbers(dtype, 41, seed=1), numbers(dtype, 41, seed=2)
        for way, z in ways(lambda p, a, b: _weft.bind("select", [p, a, b], {})[0], [pick, x, y], ()):
            check(f"{dtype}, {way}", z, np.where(pick, x, y), dtype, is_exact=True)


def test_iota() -> None:
    for dtype, size in itertools.product(TAKEN["iota"], (5, 300)):  # what has fewer numbers wraps
        function = lambda d=dtype, n=size: _weft.bind("iota", [], {"shape": [n], "dim": 0, "dtype": _weft.dtype(d)})[0]
        want = rounded(np.arange(size).astype(object if is_whole(dtype) else float), dtype)
        for run in (function, weft.jit(function), weft.jit(function, backend="interpreter")):
            check(dtype, run(), want, dtype, is_exact=True)
