"""Reductions along dimensions and in windows, and partial sums."""

from __future__ import annotations

import builtins
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import _weft
from .._core import docs as _docs
from .._core import tree as _tree
from .._core.errors import type_error, value_error
from .._weft import Array
from ..arguments import axes_of
from ..control import scan
from ..numpy._dtypes import iinfo
from ..numpy._reductions import complex_extreme
from ..program import ShapeDtype, make_ir
from ..typing import DTypeLike, NDArrayLike, NestedLike
from . import _primitives
from ._convolution import named_padding
from ._scans import associative_scan
from ._shapes import pad
from ._slicing import slice

__all__ = [
    "argmax",
    "argmin",
    "cumlogsumexp",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "reduce",
    "reduce_and",
    "reduce_max",
    "reduce_min",
    "reduce_or",
    "reduce_prod",
    "reduce_sum",
    "reduce_window",
    "reduce_xor",
]


# Of complex numbers by order of the real and then of the imaginary part.
_EXTREMES = {
    "reduce_max": _primitives.max,
    "reduce_min": _primitives.min,
    "cummax": _primitives.max,
    "cummin": _primitives.min,
}


def _described(function, name: str, what: str, arguments: str, returns: str, example: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{what}

    Args:
        operand: array of any shape.
        {arguments}

    Returns: {returns}

    Raises:
        IndexError: an axis is out of range.
        ValueError: an axis is given twice.

    Example:
        >>> weft.lax.{name}({example}
    """
    return function


def _reduction(name: str, what: str, example: str) -> Callable[..., Array]:
    def reduction(operand: NDArrayLike, axes: Sequence[int]) -> Array:
        operand = _weft.array(operand, None, False)
        dims = sorted(axes_of(tuple(axes), operand.ndim, name))
        if name in _EXTREMES and _weft.dtype_kind(operand.dtype) == "complex":
            return complex_extreme(name, operand, dims, False)
        return _weft.bind(name, [operand], {"dims": dims})[0]

    axes = "axes: the axes that are gone over, negative from the end."
    return _described(reduction, name, what, axes, "array without the axes, of the dtype of the operand.", example)


def _cumulative(name: str, what: str, example: str) -> Callable[..., Array]:
    def cumulative(operand: NestedLike, axis: int = 0, reverse: bool = False) -> Array:
        operand = _weft.array(operand, None, False)
        if name in _EXTREMES and _weft.dtype_kind(operand.dtype) == "complex":
            axis = _weft.check_axis(axis, operand.ndim, name)
            return associative_scan(_EXTREMES[name], operand, reverse, axis)
        return _weft.cumulative(name, operand, _weft.check_axis(axis, operand.ndim, name), reverse)

    axis = """axis: the axis, negative from the end.
        reverse: whether to go from its end to its beginning."""
    return _described(cumulative, name, what, axis, "array of the shape of the operand.", example)


def reduce_xor(operand: NDArrayLike, axes: Sequence[int]) -> Array:
    """Whether an odd number of booleans over axes hold; of integers the bits that an odd number of them have.

    Args:
        operand: array of booleans or integers.
        axes: the axes that are gone over, negative from the end.

    Returns: array without the axes, of the dtype of the operand.

    Example:
        >>> weft.lax.reduce_xor(wnp.array([[1, 2], [3, 4]]), (0,))
        Array([2, 6], dtype=int32)
    """
    operand = _weft.array(operand, None, False)
    dims = axes_of(tuple(axes), operand.ndim, "reduce_xor")
    kept = [d for d in range(operand.ndim) if d not in dims]
    moved = _weft.transpose(operand, [*dims, *kept])
    shape = moved.shape[len(dims) :]
    x = _weft.reshape(moved, (math.prod(moved.shape[: len(dims)]), *shape))
    # With a zero in front there is something to combine, and floats are refused whatever their number.
    x = _weft.concatenate([_weft.full((2, *shape), 0, x.dtype), x], 0)
    while (n := x.shape[0]) > 1:
        half = n // 2
        x = _weft.concatenate([_primitives.xor(x[:half], x[half : 2 * half]), x[2 * half :]], 0)
    return x[0]


def argmax(operand: NestedLike, axis: int, index_dtype: DTypeLike = "int32") -> Array:
    """The index of the first largest element along an axis.

    Returns: array without the axis.

    Raises:
        TypeError: index_dtype is no integer dtype.
        ValueError: the axis has no elements, or more positions than index_dtype has numbers.

    Example:
        >>> weft.lax.argmax(wnp.array([1, 7, 3]), 0)
        Array(1, dtype=int32)
    """
    return _index("argmax", operand, axis, index_dtype)


def _index(name: str, operand: NestedLike, axis: int, index_dtype: DTypeLike) -> Array:
    x, to = _weft.array(operand, None, False), _weft.dtype(index_dtype)
    kind = _weft.dtype_kind(to)
    if kind not in ("signed", "unsigned"):
        raise type_error(f"lax.{name}: index_dtype must be an integer dtype, got {to}")
    out = _weft.argreduce(name, x, axis, False)
    size = x.shape[axis]
    if isinstance(size, int) and size > iinfo(to).max + 1:
        raise value_error(f"lax.{name}: index_dtype {to} does not hold the positions of an axis of size {size}")
    return out.astype(to)


def argmin(operand: NestedLike, axis: int, index_dtype: DTypeLike = "int32") -> Array:
    """The index of the first smallest element along an axis.

    Returns: array without the axis.

    Raises:
        TypeError: index_dtype is no integer dtype.
        ValueError: the axis has no elements, or more positions than index_dtype has numbers.

    Example:
        >>> weft.lax.argmin(wnp.array([4, 1, 3]), 0)
        Array(1, dtype=int32)
    """
    return _index("argmin", operand, axis, index_dtype)


_REDUCTIONS: dict[str, tuple[str, Callable[..., Array]]] = {
    "add": ("reduce_sum", _primitives.add),
    "mul": ("reduce_prod", _primitives.mul),
    "max": ("reduce_max", _primitives.max),
    "min": ("reduce_min", _primitives.min),
    "and": ("reduce_and", _primitives.and_),
    "or": ("reduce_or", _primitives.or_),
}


def _primitive_of(computation: Callable, dtype: Any) -> str | None:
    """The primitive that reduces by a function of two numbers, if there is one: what it is traced to says so."""
    number = ShapeDtype((), dtype)
    try:
        ir = make_ir(lambda x, y: computation(x, y))(number, number)
    except TypeError:  # a function of trees, or of whole arrays
        return None
    if len(ir.eqns) != 1 or ir.constants or ir.eqns[0]["name"] not in _REDUCTIONS:
        return None
    prim, operation = _REDUCTIONS[ir.eqns[0]["name"]]
    same = make_ir(lambda x, y: operation(x, y))(number, number), make_ir(lambda x, y: operation(y, x))(number, number)
    return prim if ir in same else None


def reduce(operands: Any, init_values: NestedLike, computation: Callable, dimensions: Sequence[int]) -> Any:
    """The elements along dimensions combined by an associative function.

    A sum, product, maximum, minimum, and, or (lax.add, lax.mul, lax.max, lax.min, lax.bitwise_and, lax.bitwise_or,
    their NumPy names, or a function that is traced to one of them) is one reduction; any other function is a loop over
    the elements.

    Args:
        operands: array, or a tree of arrays of one shape, which are combined together.
        init_values: what it starts with: a number, or a tree of them.
        computation: (x, y) -> z on arrays, or on trees of them.
        dimensions: along which.

    Returns: array, or a tree of them, without the dimensions.

    Raises:
        ValueError: operands and init_values have different structures, or an initial value is no number; a dimension is
            given twice.
        IndexError: a dimension is out of range.

    Example:
        >>> weft.lax.reduce(wnp.array([[1, 2], [3, 4]]), 0, weft.lax.add, (0,))
        Array([4, 6], dtype=int32)
    """
    leaves, treedef = _tree.flatten(operands)
    inits, inits_treedef = _tree.flatten(init_values)
    if inits_treedef != treedef:
        raise value_error(f"reduce: operands are {treedef}, init_values {inits_treedef}; expected one structure")
    for value in inits:
        if _weft.abstract(value)[0]:
            raise value_error(f"reduce: init_values must be numbers, got shape {tuple(_weft.abstract(value)[0])}")
    rank = len(_weft.abstract(leaves[0])[0])
    dims = sorted(axes_of(tuple(dimensions), rank, "reduce"))
    name = _primitive_of(computation, _weft.abstract(leaves[0])[1]) if len(leaves) == 1 else None
    if name is not None:
        total = _weft.bind(name, [leaves[0]], {"dims": dims})[0]
        init = _weft.astype(inits[0], total.dtype)
        out = computation(total, _weft.weak(init) if _weft.abstract(inits[0])[2] else init)
        return treedef.unflatten([out])
    kept = [d for d in range(rank) if d not in dims]
    flat = []
    for leaf in leaves:
        moved = _weft.transpose(leaf, dims + kept)
        flat.append(_weft.reshape(moved, (-1, *moved.shape[len(dims) :])))
    start = treedef.unflatten([_weft.full(x.shape[1:], i, x.dtype) for x, i in zip(flat, inits)])
    return scan(lambda c, x: (computation(c, x), None), start, treedef.unflatten(flat))[0]


def _window_padding(padding, shape, window, strides, dilation) -> list[tuple[int, int]]:
    if not isinstance(padding, str):
        return [(int(lo), int(hi)) for lo, hi in padding]
    # As in JAX, what pads the array as it is pads the spread one.
    return named_padding(padding, shape, [(w - 1) * d + 1 for w, d in zip(window, dilation)], strides, "reduce_window")


def _first_max(x: Array, y: Array) -> Array:
    return _weft.where(x >= y, x, _primitives.max(x, y))


def _first_min(x: Array, y: Array) -> Array:
    return _weft.where(x <= y, x, _primitives.min(x, y))


# max and min whose derivative, where both are equal, is that of the first; NaN where one is.
_FIRST: dict[str | None, Callable] = {"reduce_max": _first_max, "reduce_min": _first_min}


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """The elements of every window combined by an associative function. Of the largest (lax.max) or the smallest the
    derivative is that of the first one in the window.

    Args:
        operand: array, or a tree of arrays of one shape, which are combined together.
        init_value: what it starts with, and what padding counts as: a number, or a tree of them.
        computation: (x, y) -> z on arrays, such as lax.add or lax.max, or on trees of them.
        window_dimensions: the shape of the window, one size per dimension.
        window_strides: the step of the window; None: 1.
        padding: "VALID", "SAME", "SAME_LOWER" or a pair (low, high) per dimension.
        base_dilation: by what factor the array is spread; None: 1.
        window_dilation: by what factor the window is spread; None: 1.

    Returns: array of the dtype of the operand, or a tree of them: one element per window.

    Raises:
        ValueError: there is no such padding, there is not one size per dimension, or structures differ.
        TypeError: a size is not positive, or an initial value no number.

    Example:
        >>> weft.lax.reduce_window(wnp.array([1, 5, 2, 8]), 0, weft.lax.max, (2,), (2,))
        Array([5, 8], dtype=int32)
    """
    leaves, treedef = _tree.flatten(operand)
    operands = [_weft.array(leaf, None, False) for leaf in leaves]
    given, inits_treedef = _tree.flatten(init_value)
    if inits_treedef != treedef:
        raise value_error(f"reduce_window: operand is {treedef}, init_value {inits_treedef}; expected one structure")
    for value in given:
        if _weft.abstract(value)[0]:
            raise type_error(f"reduce_window: init_value must be a number, got shape {tuple(_weft.abstract(value)[0])}")
    shape, rank = operands[0].shape, operands[0].ndim
    if any(x.shape != shape for x in operands):
        raise value_error(f"reduce_window: operands have shapes {[x.shape for x in operands]}; expected one")
    window = list(window_dimensions)
    if len(window) != rank:
        raise value_error(f"reduce_window: {len(window)} window dimensions for an array of shape {shape}")
    strides = list(window_strides or [1] * rank)
    base, dilation = list(base_dilation or [1] * rank), list(window_dilation or [1] * rank)
    sizes = ("window_dimensions", window), ("window_strides", strides), ("base_dilation", base)
    for name, numbers in (*sizes, ("window_dilation", dilation)):
        if any(n < 1 for n in numbers):
            raise type_error(f"reduce_window: {name} must be positive, got {tuple(numbers)}")
    pairs = _window_padding(padding, shape, window, strides, dilation)
    inits = [_weft.astype(value, x.dtype) for value, x in zip(given, operands)]
    wide = [pad(x, i, [(lo, hi, b - 1) for (lo, hi), b in zip(pairs, base)]) for x, i in zip(operands, inits)]
    counts = [(n - (w - 1) * d - 1) // s + 1 for n, w, s, d in zip(wide[0].shape, window, strides, dilation)]
    if any(c <= 0 for c in counts):
        none = [builtins.max(c, 0) for c in counts]
        return treedef.unflatten([_weft.full(none, i, x.dtype) for i, x in zip(inits, operands)])
    prim = None
    if len(operands) == 1 and _weft.dtype_kind(operands[0].dtype) == "float":
        prim = _primitive_of(computation, operands[0].dtype)
    join = _FIRST.get(prim, computation)

    def joined(x: Any, y: Any) -> Any:
        z = join(x, y)
        if _tree.structure(z) != treedef:
            raise value_error(f"reduce_window: the function returns {_tree.structure(z)}, operand is {treedef}")
        return z

    out: Any = None
    for place in itertools.product(*(range(w) for w in window)):
        start = [p * d for p, d in zip(place, dilation)]
        limit = [a + (c - 1) * s + 1 for a, c, s in zip(start, counts, strides)]
        part = treedef.unflatten([slice(x, start, limit, strides) for x in wide])
        out = part if out is None else joined(out, part)
    stretched = [_weft.broadcast_to(i, counts) for i in inits] if len(inits) > 1 else inits
    return joined(out, treedef.unflatten(stretched))


_MATRIX = "wnp.array([[1, 2], [3, 4]]), (0,))\n        "
_BOOLEANS = "wnp.array([[True, False], [True, True]]), (0,))\n        "
_VECTOR = "wnp.array([3, 1, 2]))\n        "

reduce_sum = _reduction("reduce_sum", "The sum over axes.", _MATRIX + "Array([4, 6], dtype=int32)")
reduce_prod = _reduction("reduce_prod", "The product over axes.", _MATRIX + "Array([3, 8], dtype=int32)")
reduce_max = _reduction(
    "reduce_max", "The largest element over axes; NaN where there is one.", _MATRIX + "Array([3, 4], dtype=int32)"
)
reduce_min = _reduction(
    "reduce_min", "The smallest element over axes; NaN where there is one.", _MATRIX + "Array([1, 2], dtype=int32)"
)
reduce_and = _reduction(
    "reduce_and",
    "Whether all booleans over axes hold; of integers the bits that all have.",
    _BOOLEANS + "Array([ True, False], dtype=bool)",
)
reduce_or = _reduction(
    "reduce_or",
    "Whether a boolean over axes holds; of integers the bits that one has.",
    _BOOLEANS + "Array([ True,  True], dtype=bool)",
)
cumsum = _cumulative("cumsum", "Partial sums along an axis.", _VECTOR + "Array([3, 4, 6], dtype=int32)")
cumprod = _cumulative("cumprod", "Partial products along an axis.", _VECTOR + "Array([3, 3, 6], dtype=int32)")
cummax = _cumulative("cummax", "The largest element so far along an axis.", _VECTOR + "Array([3, 3, 3], dtype=int32)")
cummin = _cumulative("cummin", "The smallest element so far along an axis.", _VECTOR + "Array([3, 1, 1], dtype=int32)")
cumlogsumexp = _cumulative(
    "cumlogsumexp",
    "log of the partial sums of exponentials along an axis, without overflow.",
    "wnp.array([0.0, 0.0]))\n        Array([0.       , 0.6931472], dtype=float32)",
)

# What parameters mean in several functions of this module.
_PARAMETERS = {
    "index_dtype": "the dtype of the result.",
}

_docs.complete(globals(), _PARAMETERS)
