"""jax.lax as strict as JAX's: operands of one dtype and one rank, of the kinds that a function takes. Weft's promotes
and broadcasts, as jax.numpy does; a program that JAX refuses is refused here, by the same kind of exception."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import weft.numpy as wnp

from .. import _weft, lax
from .._core.errors import type_error, value_error
from .._sharding.typing_rules import typing_rules
from ..mesh import get_mesh
from .agreement import asking
from .axes_from_front import from_the_front
from .dtypes import issubdtype as _is_kind
from .extended_dtypes import ExtendedArray, converted, is_extended
from .settings import config

_KINDS = {
    "integer": np.integer,
    "signedinteger": np.signedinteger,
    "floating": np.floating,
    "complexfloating": np.complexfloating,
    "number": np.number,
    "bool": np.bool_,
}
_FLOATS, _NUMBERS = "floating complexfloating", "integer floating complexfloating"
_BITS, _REAL = "bool integer", "integer floating"

# Functions of one operand -> the kinds that they take.
_ONE: dict[str, str] = {
    **dict.fromkeys(
        [
            "exp",
            "exp2",
            "expm1",
            "log",
            "log1p",
            "tanh",
            "logistic",
            "sin",
            "cos",
            "tan",
            "asin",
            "acos",
            "atan",
            "sinh",
            "cosh",
            "asinh",
            "acosh",
            "atanh",
            "sqrt",
            "rsqrt",
            "cbrt",
        ],
        _FLOATS,
    ),
    **dict.fromkeys(
        ["floor", "ceil", "is_finite", "erf", "erfc", "erf_inv", "lgamma", "digamma", "bessel_i0e", "bessel_i1e"],
        "floating",
    ),
    **dict.fromkeys(["neg", "sign", "square"], _NUMBERS),
    "abs": f"{_FLOATS} signedinteger",
    **dict.fromkeys(["real", "imag"], "complexfloating"),
    "bitwise_not": _BITS,
    **dict.fromkeys(["population_count", "clz"], "integer"),
}
# Functions of several operands of one dtype -> the kinds that they take, and jax.numpy's function that promotes.
_SEVERAL: dict[str, tuple[str, str]] = {
    "add": (_NUMBERS, "add"),
    "sub": (_NUMBERS, "subtract"),
    "mul": (_NUMBERS, "multiply"),
    "div": (_NUMBERS, "divide"),
    "rem": (_REAL, ""),
    "max": ("", "maximum"),
    "min": ("", "minimum"),
    "atan2": (_FLOATS, "arctan2"),
    "nextafter": ("floating", "nextafter"),
    "eq": ("", "equal"),
    "ne": ("", "not_equal"),
    "lt": ("", "less"),
    "le": ("", "less_equal"),
    "gt": ("", "greater"),
    "ge": ("", "greater_equal"),
    "bitwise_and": (_BITS, ""),
    "bitwise_or": (_BITS, ""),
    "bitwise_xor": (_BITS, ""),
    "shift_left": ("integer", "left_shift"),
    "shift_right_logical": ("integer", "right_shift"),
    "shift_right_arithmetic": ("integer", "right_shift"),
    "complex": ("floating", ""),
    "clamp": ("", ""),
    "igamma": ("floating", ""),
    "igammac": ("floating", ""),
    "polygamma": ("floating", ""),
    "betainc": ("floating", ""),
    "select": ("", "where"),
    "select_n": ("", "where"),
}
# Operands in front that say something else.
_BEFORE = {"select": 1, "select_n": 1}
# Functions whose operands may have none or all dimensions.
_OF_ANY_RANK = frozenset(["clamp", "select", "select_n"])


def _dtype_of(x: Any) -> Any:
    dtype = getattr(x, "dtype", None)
    if dtype is None or not isinstance(dtype, np.dtype):
        return wnp.result_type(x)
    return dtype if _weft.is_operand(x) and not isinstance(x, np.ndarray | np.generic) else _weft.dtype(dtype)


def _takes(kinds: str, dtype: Any) -> bool:
    return not kinds or any(_is_kind(dtype, _KINDS[kind]) for kind in kinds.split())


def _accepted(kinds: str) -> str:
    return f"subtypes of {', '.join(kinds.split())}"


def _check_one(name: str, kinds: str, x: Any) -> None:
    dtype = _dtype_of(x)
    if not _takes(kinds, dtype):
        raise type_error(f"{name} does not accept dtype {dtype}. Accepted dtypes are {_accepted(kinds)}.")


def _check_several(name: str, operands: tuple[Any, ...]) -> None:
    kinds, promoting = _SEVERAL[name]
    dtypes = [_dtype_of(x) for x in operands]
    for i, dtype in enumerate(dtypes):
        if not _takes(kinds, dtype):
            raise type_error(
                f"{name} does not accept dtype {dtype} at position {i}. Accepted dtypes at position {i} are "
                f"{_accepted(kinds)}."
            )
    if any(dtype != dtypes[0] for dtype in dtypes):
        tip = f" (Tip: jnp.{promoting} is a similar function that does automatic type promotion on inputs)."
        raise type_error(
            f"lax.{name} requires arguments to have the same dtypes, got {', '.join(map(str, dtypes))}."
            f"{tip if promoting else ''}"
        )
    if name in _OF_ANY_RANK:
        _check_shapes(name, [np.shape(x) for x in operands])
        return
    ranks = {np.ndim(x) if isinstance(x, bool | int | float | complex) else x.ndim for x in operands} - {0}
    if len(ranks) > 1:
        raise type_error(f"{name}: arrays must have the same number of dimensions, got {ranks}")


def _check_shapes(name: str, shapes: list[tuple[int, ...]]) -> None:
    """Cases have one shape; the ends of an interval that of the middle, or none."""
    one = shapes[0] if name != "clamp" else shapes[1]
    if any(shape != one and (name != "clamp" or shape) for shape in shapes):
        raise type_error(f"{name} requires operands of one shape, got {', '.join(map(str, shapes))}")


def _checked(
    name: str, function: Callable[..., Any], check: Callable[[tuple[Any, ...]], None], every: bool = False
) -> Callable[..., Any]:
    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if every or all(_weft.is_operand(x) for x in args):
            check(args)
        return function(*args, **kwargs)

    return called


def _several_kinds_of_indices(name: str, indices: Any) -> None:
    """Raises where the indices of a place are of different dtypes."""
    given = [_dtype_of(i) for i in indices if hasattr(i, "dtype")] if isinstance(indices, (tuple, list)) else []
    if any(dtype != given[0] for dtype in given):
        raise type_error(
            f"index arguments to {name} must be integers of the same type, got {', '.join(map(str, given))}"
        )


def _with_out_dtype(function: Callable[..., Any]) -> Callable[..., Any]:
    """... that computes in another dtype where it is asked to."""

    @functools.wraps(function)
    def called(*args: Any, out_dtype: Any = None, **kwargs: Any) -> Any:
        if out_dtype is not None:
            return function(*(wnp.asarray(x).astype(out_dtype) for x in args), **kwargs)
        return function(*args, **kwargs)

    return called


def _keeping_weak(function: Callable[..., Any]) -> Callable[..., Any]:
    """... whose result is weak where its operand is, though it has another dtype."""

    @functools.wraps(function)
    def called(x: Any, **kwargs: Any) -> Any:
        out = function(x, **kwargs)
        return _weft.weak(out) if _weft.is_operand(x) and _weft.abstract(x)[2] else out

    return called


def convert_element_type(operand: Any, new_dtype: Any) -> Any:
    """weft.lax.convert_element_type, in which Python's integers wrap, as NumPy's do; from and to dtypes of a library's
    own, too."""
    if is_extended(new_dtype) or isinstance(operand, ExtendedArray):
        return converted(operand, new_dtype)
    if isinstance(operand, int) and not isinstance(operand, bool):
        dtype = _weft.dtype(new_dtype)
        if isinstance(dtype, np.dtype) and dtype.kind in "iu":
            bits = 8 * dtype.itemsize
            low = operand % (1 << bits)
            operand = low - (1 << bits) if dtype.kind == "i" and low >> (bits - 1) else low
    return lax.convert_element_type(operand, new_dtype)


def _inside_shard_map(function: Callable[..., Any]) -> Callable[..., Any]:
    """pcast and pvary, which are of axes of a mesh that shard_map runs over."""

    @functools.wraps(function)
    def called(x: Any, axis_name: Any, **options: Any) -> Any:
        names = tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)
        sizes = get_mesh().shape
        if any(name in sizes and not _weft.axis_is_bound(name) for name in names):
            if not any(typing_rules.keeps_axis(sizes.get(name, 0)) for name in names):
                return x  # types do not name these axes
            raise value_error(f"pvary should be called under jax.shard_map: nothing runs over {axis_name!r} here")
        return function(x, axis_name, **options)

    return called


def _wide_enough(args: tuple[Any, ...]) -> None:
    """Raises for sums of numbers of 16 bits where the option says that there are none."""
    if config.read("jax_allow_f16_reductions") or len(args) < 2 or not hasattr(args[0], "shape"):
        return
    x, axes = args[0], args[1]
    if str(x.dtype) in ("float16", "bfloat16") and any(x.shape[axis] != 1 for axis in axes):
        kind = _weft.abstract(x)[3]
        raise value_error(f"reduce_sum on operand {kind} is not allowed when jax_allow_f16_reductions=False.")


def conj(x: Any, input_dtype: Any = None) -> Any:
    """The conjugate number, complex for real ones, too."""
    del input_dtype
    x = wnp.asarray(x)
    given = str(x.dtype)
    if given not in ("float32", "float64", "complex64", "complex128"):
        raise type_error(
            f"conj does not accept dtype {given}. Accepted dtypes are float32, float64, complex64 and complex128."
        )
    complex_ = x if given.startswith("complex") else x.astype("complex128" if given == "float64" else "complex64")
    out = wnp.conj(complex_)
    return _weft.weak(out) if x.weak_type else out


def strictly(module: str, name: str, function: Any) -> Any:
    """What a module serves under a name, as strict as JAX's."""
    if module not in ("jax.lax", "jax._src.lax.lax") or not callable(function):
        return function
    function = asking(name, function)
    if name in ("pcast", "pvary"):
        return _inside_shard_map(function)
    if name == "conj":
        return conj
    if name == "convert_element_type":
        return convert_element_type
    if name == "sign":
        function = wnp.sign  # of complex numbers, too
    function = from_the_front(name, function)
    if name in ("dynamic_slice", "dynamic_update_slice"):
        place = 1 if name == "dynamic_slice" else 2

        def check(args: tuple[Any, ...]) -> None:
            if len(args) > place:
                _several_kinds_of_indices(name, args[place])

        return _checked(name, function, check, every=True)
    if name == "mul":
        function = _with_out_dtype(function)
    if name in ("real", "imag", "is_finite"):
        function = _keeping_weak(function)
    if name == "reduce_sum":
        return _checked(name, function, _wide_enough, every=True)
    if name in _ONE:
        return _checked(name, function, lambda args: _check_one(name, _ONE[name], args[0]) if args else None)
    if name in _SEVERAL:
        start = _BEFORE.get(name, 0)
        return _checked(name, function, lambda args: _check_several(name, args[start:]))
    return function
