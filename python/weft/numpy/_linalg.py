"""Products of vectors and matrices."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from .. import _weft
from .._core import docs as _docs
from .._core.errors import is_one_of, type_error, value_error
from .._core.tree import jax_semantics
from .._weft import Array
from ..arguments import axes_of, is_integer
from ..typing import DTypeLike, NestedLike
from . import _reductions
from ._dtypes import summed_in
from ._elementwise import conjugate
from ._matrices import diagonal
from ._out_sharding import lying
from ._shape import _together

__all__ = [
    "cross",
    "dot",
    "einsum",
    "inner",
    "matmul",
    "matvec",
    "outer",
    "tensordot",
    "trace",
    "vdot",
    "vecdot",
    "vecmat",
    "convolve",
    "correlate",
]


def _array(x) -> Array:
    return _weft.array(x, None, False)


def _summed(product, name: str, a, b, preferred_element_type) -> Array:
    """A product of two arrays, whose sums are made in the dtype of the result."""
    if preferred_element_type is None:
        return product(a, b)
    dtype = summed_in(_weft.users_result_type(a, b), preferred_element_type, name)
    return product(a.astype(dtype), b.astype(dtype)).astype(preferred_element_type)


def matmul(
    a: NestedLike,
    b: NestedLike,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """The matrix product of the last two dimensions; the others broadcast. A vector counts as a row (left) or column
    (right).

    Args:
        a: array [..., m, k] or [k].
        b: array [..., k, n] or [k].

    Returns: array [..., m, n] of the common dtype, without the dimension of a vector.

    Raises:
        TypeError: inner sizes differ, or an argument has no dimensions.

    Example:
        >>> wnp.matmul(wnp.array([[1, 2], [3, 4]]), wnp.array([1, 10]))
        Array([21, 43], dtype=int32)
    """
    if out_sharding is not None:
        return lying(out_sharding, matmul, a, b, precision=precision, preferred_element_type=preferred_element_type)
    del precision
    return _summed(_weft.matmul, "matmul", _array(a), _array(b), preferred_element_type)


def _factors(a, b) -> tuple[Array, Array]:
    """Both as arrays. A Python number takes the dtype that the product has, as beside `*`."""
    numbers = int, float, complex
    x, y = _together(a, b) if isinstance(a, numbers) or isinstance(b, numbers) else (_array(a), _array(b))
    return x, y


def dot(
    a: NestedLike,
    b: NestedLike,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """The sum over the last axis of a and the second to last of b (the only one of a vector); numbers multiply.

    Returns: array of the common dtype.

    Raises:
        TypeError: the sizes differ.

    Example:
        >>> wnp.dot(wnp.array([1, 2]), wnp.array([3, 4]))
        Array(11, dtype=int32)
    """
    if out_sharding is not None:
        return lying(out_sharding, dot, a, b, precision=precision, preferred_element_type=preferred_element_type)
    del precision
    return _summed(_weft.dot, "dot", *_factors(a, b), preferred_element_type)


def vdot(
    a: NestedLike,
    b: NestedLike,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The sum of products of all elements, those of a conjugated.

    Args:
        b: array with as many elements.

    Returns: array of one number.

    Raises:
        TypeError: the numbers of elements differ.

    Example:
        >>> wnp.vdot(wnp.array([1j, 2]), wnp.array([1j, 3]))
        Array(7.+0.j, dtype=complex64)
    """
    del precision
    a, b = _together(a, b)
    a, b = conjugate(a).reshape(-1), b.reshape(-1)
    return _summed(_weft.dot, "vdot", a, b, preferred_element_type)


def inner(
    a: NestedLike,
    b: NestedLike,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The sum over the last axes of both.

    Returns: array of the other dimensions of a, followed by those of b.

    Raises:
        TypeError: the sizes differ.

    Example:
        >>> wnp.inner(wnp.array([[1, 2], [3, 4]]), wnp.array([1, 10]))
        Array([21, 43], dtype=int32)
    """
    del precision
    a, b = _together(a, b)
    if a.ndim == 0 or b.ndim == 0:
        return _summed(_weft.dot, "inner", a, b, preferred_element_type)
    last = lambda x, y: _weft.tensordot(x, y, [x.ndim - 1], [y.ndim - 1])
    return _summed(last, "inner", a, b, preferred_element_type)


def outer(a: NestedLike, b: NestedLike) -> Array:
    """The products of all pairs of elements.

    Returns: array [number of elements of a, of b].

    Example:
        >>> wnp.outer(wnp.array([1, 2]), wnp.array([3, 4]))
        Array([[3, 4],
               [6, 8]], dtype=int32)
    """
    a, b = _together(a, b)
    return a.reshape(-1)[:, None] * b.reshape(-1)[None, :]


def tensordot(
    a: NestedLike,
    b: NestedLike,
    axes: Any = 2,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """The sum over pairs of axes.

    Args:
        axes: an integer n: the last n axes of a with the first n of b; or two lists, of a's and of b's axes.

    Returns: array of the other dimensions of a, followed by those of b.

    Raises:
        TypeError: the sizes of a pair differ, or axes are neither.

    Example:
        >>> wnp.tensordot(wnp.ones((2, 3, 4)), wnp.ones((3, 4, 5))).shape
        (2, 5)
    """
    if out_sharding is not None:
        return lying(
            out_sharding, tensordot, a, b, axes=axes, precision=precision, preferred_element_type=preferred_element_type
        )
    del precision
    a, b = _factors(a, b)
    if is_integer(axes) and axes > min(a.ndim, b.ndim):
        raise type_error(f"tensordot: {axes} axes of arrays of shapes {a.shape} and {b.shape}")
    if isinstance(axes, (tuple, list)) and len(axes) == 2:
        kinds = [type(d) for d in axes]
        if not all(is_integer(d) or isinstance(d, (tuple, list)) for d in axes) or is_integer(axes[0]) != is_integer(
            axes[1]
        ):
            raise type_error(f"tensordot: axes must be two axes or two lists of axes, got {kinds[0]} and {kinds[1]}")
        if not is_integer(axes[0]) and len(axes[0]) != len(axes[1]):
            raise type_error(f"tensordot: {len(axes[0])} axes of a and {len(axes[1])} of b")
    if is_integer(axes):
        x, y = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    elif isinstance(axes, (tuple, list)) and len(axes) == 2:
        x, y = (axes_of(tuple(d) if isinstance(d, Iterable) else d, v.ndim, "tensordot") for d, v in zip(axes, (a, b)))
    else:
        raise type_error(f"tensordot: axes must be an integer or a pair of axes or lists of axes, got {axes!r}")
    return _summed(lambda v, w: _weft.tensordot(v, w, x, y), "tensordot", a, b, preferred_element_type)


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    optimize: Any = "optimal",
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """Einstein's summation: products of operands, summed over the indices that the result does not have.

    Args:
        subscripts: the operands' indices and the result's, such as "ij,jk->ik". Repeated indices take diagonals; "..."
            stands for the rest, which broadcasts. Without "->", the indices that occur once, in alphabetical order.
        *operands: arrays. Instead of a string, lists of indices may follow each operand: einsum(a, [0, 1], b, [1, 2]);
            these are numbers, texts or anything else that can be hashed.
        optimize: accepted, without effect: pairs are contracted in the order that takes the fewest operations.

    Returns: array of the common dtype.

    Raises:
        TypeError: the sizes of an index differ, or an operand has another number of dimensions.
        ValueError: the string is malformed.

    Example:
        >>> wnp.einsum("ij,j->i", wnp.array([[1, 2], [3, 4]]), wnp.array([1, 10]))
        Array([21, 43], dtype=int32)
        >>> wnp.einsum("ii", wnp.array([[1, 2], [3, 4]]))
        Array(5, dtype=int32)
    """
    if out_sharding is not None:
        if not isinstance(subscripts, str):
            raise value_error("einsum: out_sharding goes with subscripts in a string")
        contracted = functools.partial(
            einsum, subscripts, optimize=optimize, precision=precision, preferred_element_type=preferred_element_type
        )
        return lying(out_sharding, functools.update_wrapper(contracted, einsum), *operands)
    del optimize, precision
    if not isinstance(subscripts, str):
        subscripts, arrays = _spelled([subscripts, *operands])
    else:
        arrays = list(operands)
    arrays = list(_together(*arrays))
    if preferred_element_type is None:
        return _weft.einsum(subscripts, arrays)
    dtype = summed_in(_weft.users_result_type(*arrays), preferred_element_type, "einsum")
    return _weft.einsum(subscripts, [x.astype(dtype) for x in arrays]).astype(preferred_element_type)


def _spelled(parts: list) -> tuple[str, list]:
    """einsum's operands and lists of indices as a string and operands. An index is anything that can be hashed; where
    the result's are not listed, they come in their order."""
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    operands, lists = parts[0 : len(parts) // 2 * 2 : 2], parts[1::2] + parts[len(parts) // 2 * 2 :]
    seen: dict[Any, None] = {}
    for indices in lists:
        try:
            seen.update(dict.fromkeys(i for i in indices if i is not Ellipsis))
        except TypeError:
            raise value_error(f"einsum: an operand is followed by its indices, got {indices!r}") from None
    try:
        names = sorted(seen)
    except TypeError:  # of several types
        names = list(seen)
    if len(names) > len(letters):
        raise value_error(f"einsum: at most {len(letters)} different indices, got {len(names)}")
    letter: dict[Any, str] = {Ellipsis: "...", **dict(zip(names, letters))}
    words = ["".join(letter[i] for i in indices) for indices in lists]
    result = f"->{words.pop()}" if len(parts) % 2 else ""
    return ",".join(words) + result, operands


def vecdot(x1: NestedLike, x2: NestedLike, axis: int = -1) -> Array:
    """The dot products of vectors along an axis, those of x1 conjugated.

    Args:
        x1: array of one dimension or more.
        x2: array that broadcasts against x1.

    Returns: array without the axis.

    Raises:
        TypeError: sizes differ.

    Example:
        >>> wnp.vecdot(wnp.array([[1, 2], [3, 4]]), wnp.array([1, 10]))
        Array([21, 43], dtype=int32)
    """
    x1, x2 = _weft.moveaxis(conjugate(x1), axis, -1), _weft.moveaxis(_array(x2), axis, -1)
    return _weft.einsum("...i,...i->...", [x1, x2])


def matvec(x1: NestedLike, x2: NestedLike) -> Array:
    """Matrices times vectors.

    Args:
        x1: array [..., m, n].
        x2: array [..., n].

    Returns: array [..., m].

    Raises:
        TypeError: sizes differ.

    Example:
        >>> wnp.matvec(wnp.array([[1, 2], [3, 4]]), wnp.array([1, 10]))
        Array([21, 43], dtype=int32)
    """
    return _weft.einsum("...ij,...j->...i", [_array(x1), _array(x2)])


def vecmat(x1: NestedLike, x2: NestedLike) -> Array:
    """Vectors, conjugated, times matrices.

    Args:
        x1: array [..., m].
        x2: array [..., m, n].

    Returns: array [..., n].

    Raises:
        TypeError: sizes differ.

    Example:
        >>> wnp.vecmat(wnp.array([1, 10]), wnp.array([[1, 2], [3, 4]]))
        Array([31, 42], dtype=int32)
    """
    return _weft.einsum("...i,...ij->...j", [conjugate(x1), _array(x2)])


def trace(
    a: NestedLike,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """The sum of a diagonal of two dimensions.

    Args:
        a: array of two dimensions or more.
        offset: which diagonal: 0 the main one, positive above it, negative below.
        axis1: the axis that counts rows.
        axis2: the axis that counts columns.
        dtype: the dtype to sum in; None: as for sum.

    Returns: array of the other dimensions.

    Raises:
        IndexError: an axis is out of range.

    Example:
        >>> wnp.trace(wnp.array([[1, 2], [3, 4]]))
        Array(5, dtype=int32)
    """
    return _reductions.sum(diagonal(_array(a), offset, axis1, axis2), -1, dtype, out)


def cross(
    a: NestedLike, b: NestedLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Array:
    """The cross product of vectors of three elements; a third one that is missing counts as 0, and of two vectors of
    two elements the third component alone is given.

    Args:
        a: array of vectors of two or three elements.
        b: array of vectors of two or three elements.
        axisa: the axis of a along which vectors lie.
        axisb: the axis of b along which vectors lie.
        axisc: the axis of the result along which vectors lie.
        axis: all three axes at once.

    Returns: array of the common shape and dtype.

    Raises:
        ValueError: vectors have other numbers of elements.

    Example:
        >>> wnp.cross(wnp.array([1, 0, 0]), wnp.array([0, 1, 0]))
        Array([0, 0, 1], dtype=int32)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = _weft.moveaxis(_array(a), axisa, -1), _weft.moveaxis(_array(b), axisb, -1)
    if a.shape[-1] not in (2, 3) or b.shape[-1] not in (2, 3):
        raise value_error(f"cross: vectors of 2 or 3 elements are needed, got shapes {a.shape} and {b.shape}")
    parts_a, parts_b = ([v[..., i] for i in range(v.shape[-1])] for v in (a, b))
    if len(parts_a) == len(parts_b) == 2:
        return parts_a[0] * parts_b[1] - parts_a[1] * parts_b[0]
    (x1, y1, z1), (x2, y2, z2) = (p if len(p) == 3 else [*p, _weft.full((), 0, int)] for p in (parts_a, parts_b))
    return _weft.moveaxis(_weft.stack([y1 * z2 - z1 * y2, z1 * x2 - x1 * z2, x1 * y2 - y1 * x2], -1), -1, axisc)


def convolve(a: NestedLike, v: NestedLike, mode: str = "full") -> Array:
    """The discrete convolution of two vectors: out[n] = sum over m of a[m] v[n - m].

    Args:
        a: vector.

    Returns: vector of the common dtype.

    Raises:
        ValueError: there is no such mode, or an argument is no vector or is empty.

    Example:
        >>> wnp.convolve(wnp.array([1, 2, 3]), wnp.array([1, 1]))
        Array([1, 3, 5, 3], dtype=int32)
    """
    return _convolve(_array(a), _array(v), mode, "convolve")


def _convolve(a: Array, v: Array, mode: str, name: str) -> Array:
    if a.ndim != 1 or v.ndim != 1 or 0 in (*a.shape, *v.shape):
        raise value_error(f"{name}: two vectors that are not empty are needed, got shapes {a.shape} and {v.shape}")
    if a.shape[0] < v.shape[0]:
        a, v = v, a
    k = v.shape[0]
    beside = {"full": (k - 1, k - 1), "same": (k // 2, (k - 1) // 2), "valid": (0, 0)}
    if not is_one_of(mode, beside):
        raise value_error(f"{name}: there is no mode {mode!r}; the modes are 'full', 'same' and 'valid'")
    dtype = _weft.users_result_type(a, v)
    if jax_semantics():
        dtype = _weft.result_type(_weft.promote_inexact(_weft.full((), 0, dtype)))
    if str(dtype) == "bool":  # whether any product is true, as in NumPy
        return _convolve(a.astype("int32"), v.astype("int32"), mode, name) != 0
    if k >= _LONG and _weft.dtype_kind(dtype) == "float":
        return _by_blocks(a.astype(dtype), v.astype(dtype), beside[mode])
    one = lambda x: x.astype(dtype)[None, None]
    low, high = beside[mode]
    attributes = {"strides": [1], "lo": [low], "hi": [high], "lhs_dilation": [1], "rhs_dilation": [1]}
    return _weft.bind("conv", [one(a), one(_weft.flip(v, 0))], {**attributes, "feature_groups": 1, "batch_groups": 1})[
        0
    ][0, 0]


# From here on one product of matrices takes less time than a convolution of a single channel.
_LONG = 16


def _by_blocks(a: Array, v: Array, beside: tuple[int, int]) -> Array:
    """The convolution, a block of results after the other: what each block sees of a, times the matrix of shifted v."""
    k = v.shape[0]
    n = a.shape[0] + sum(beside) - k + 1
    block = min(k, 256)
    blocks = -(-n // block)
    seen = block + k - 1
    a = _weft.pad_constant(a, [beside[0]], [beside[1] + blocks * block - n], 0)
    parts = a[_weft.iota((blocks, seen), 0, "int32") * block + _weft.iota((blocks, seen), 1, "int32")]
    # Entry (s, t) is what result t of a block takes of element s: v backwards, from element t on.
    shift = _weft.iota((seen, block), 1, "int32") - _weft.iota((seen, block), 0, "int32") + (k - 1)
    shifted = _weft.take(_weft.pad_constant(v, [block - 1], [block - 1], 0), shift + (block - 1), 0, "clip")
    return _weft.matmul(parts, shifted).reshape(-1)[:n]


def correlate(a: NestedLike, v: NestedLike, mode: str = "valid") -> Array:
    """The cross-correlation of two vectors: out[n] = sum over m of a[m + n] conj(v[m]).

    Args:
        a: vector.

    Returns: vector of the common dtype.

    Raises:
        ValueError: there is no such mode, or an argument is no vector or is empty.

    Example:
        >>> wnp.correlate(wnp.array([1, 2, 3]), wnp.array([1, 1]))
        Array([3, 5], dtype=int32)
    """
    a, v = _array(a), conjugate(_array(v))
    if 1 == a.ndim == v.ndim and a.shape[0] < v.shape[0]:  # the middle is that of the longer one, from the other end
        return _weft.flip(_convolve(v, _weft.flip(a, 0), mode, "correlate"), 0)
    return _convolve(a, _weft.flip(v, 0) if v.ndim == 1 else v, mode, "correlate")


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "b": "array, number or nested list of numbers.",
    "mode": '"full": every overlap, n + k - 1 elements; "same": the middle max(n, k); "valid": complete overlaps only.',
    "v": "vector.",
}

_docs.complete(globals(), _PARAMETERS, arrays=True)
