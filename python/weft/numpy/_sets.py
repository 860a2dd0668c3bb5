"""Arrays as sets. How many elements a result has depends on values: inside jit give size=, as in JAX."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import _weft
from .._core import docs as _docs
from .._core.errors import value_error
from .._weft import Array
from ..arguments import one_of
from ..typing import NestedLike
from ._indexing import nonzero
from ._shape import _together
from ._sorting import argsort, searchsorted, sort

__all__ = [
    "intersect1d",
    "isin",
    "setdiff1d",
    "setxor1d",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]


def _array(x) -> Array:
    return _weft.array(x, None, False)


def _int_sum(x, axis=None) -> Array:
    return _weft.reduce("reduce_sum", x.astype("int32"), axis, False)


def _sorted_rows(rows, equal_nan: bool):
    """The order that sorts rows, and which rows of the sorted array differ from the one before."""
    n = rows.shape[0]
    index = _weft.iota((n,), 0, "int32")
    columns = [rows[:, i] for i in range(rows.shape[1])]
    if _weft.dtype_kind(rows.dtype) == "complex":
        parts = [[_weft.bind_elementwise(p, (c,), {}) for p in ("real", "imag")] for c in columns]
        # As in NumPy, what holds a NaN comes last: equal_nan then finds all of it in one place.
        columns = [k for re, im in parts for k in ((re != re) | (im != im), re, im)]
    order = _weft.bind("sort", [*columns, index], {"dim": 0, "num_keys": len(columns)})[-1] if columns else index
    ordered = _weft.take(rows, order, 0, "clip")
    if n == 0:
        return order, ordered, _weft.full((0,), False, "bool")
    high, low = ordered[1:], ordered[:-1]
    differ = high != low
    if equal_nan and _weft.is_inexact(rows.dtype):
        differ = differ & ((high == high) | (low == low))
    first = _weft.concatenate([_weft.full((1,), True, "bool"), _weft.reduce("reduce_or", differ, -1, False)], 0)
    return order, ordered, first


def unique(
    ar: NestedLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: NestedLike | None = None,
    sorted: bool = True,
) -> Any:
    """The sorted different elements of an array, or slices along an axis.

    Args:
        ar: array, number or nested list of numbers.
        return_index: whether to return where each occurs first.
        return_inverse: whether to return which of them each element is.
        return_counts: whether to return how often each occurs.
        axis: slices along this axis are compared; None: elements.
        equal_nan: whether NaN count as one.
        size: inside jit: how many elements the result has; the smallest ones.
        sorted: accepted: the result is always sorted.

    Returns: array; with a return_ argument a tuple of it and int32 arrays in the order of the arguments.

    Raises:
        weft.TracerError: the array is traced and size is not given.
        ValueError: an empty array is to be filled up without fill_value.

    Example:
        >>> wnp.unique(wnp.array([3, 1, 3, 2]), return_counts=True)
        (Array([1, 2, 3], dtype=int32), Array([1, 1, 2], dtype=int32))
    """
    del sorted
    a = _array(ar)
    if axis is None:
        rows = a.reshape(-1, 1)
    else:
        axis = _weft.check_axis(axis, a.ndim, "unique")
        moved = _weft.moveaxis(a, axis, 0)
        width = 1
        for d in moved.shape[1:]:
            width *= d
        rows = moved.reshape(moved.shape[0], width)
    order, ordered, first = _sorted_rows(rows, equal_nan)
    n = rows.shape[0]
    total = _int_sum(first)
    count = int(total) if size is None else size
    if n == 0 and count > 0 and fill_value is None:
        raise value_error(f"unique: {count} elements of an empty array; give fill_value=")
    (at,) = nonzero(first, size=count, fill_value=0)
    valid = _weft.iota((count,), 0, "int32") < total
    values = _weft.take(ordered, at, 0, "clip") if n else _weft.full((count, rows.shape[1]), 0, rows.dtype)
    if size is not None and fill_value is not None:
        fill = _weft.array(fill_value, rows.dtype, False).reshape(-1)
        values = _weft.where(valid[:, None], values, fill)
    if axis is None:
        out = [values.reshape(-1)]
    else:
        out = [_weft.moveaxis(values.reshape((count,) + moved.shape[1:]), 0, axis)]
    # Where size is given, padding repeats the first element's index and has count 0.
    if return_index:
        out.append(_weft.take(order, at, 0, "clip").astype(int) if n else at)
    if return_inverse:
        rank = _weft.cumulative("cumsum", first.astype("int32"), 0, False) - 1
        inverse = _weft.full((n,), 0, "int32").at[order].set(rank)
        out.append((inverse.reshape(a.shape) if axis is None else inverse).astype(int))
    if return_counts:
        (begins,) = nonzero(first, size=count + 1, fill_value=n)  # each ends where the next one begins
        out.append(_weft.where(valid, begins[1:] - at, 0).astype(int))
    return out[0] if len(out) == 1 else tuple(out)


class UniqueAll(NamedTuple):
    """The result of unique_all."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """The result of unique_counts."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """The result of unique_inverse."""

    values: Array
    inverse_indices: Array


def unique_all(x: NestedLike, /, *, size: int | None = None, fill_value: NestedLike | None = None) -> UniqueAll:
    """The sorted different elements and everything about them; NaN differ from each other.

    Returns: named tuple (values, indices, inverse_indices, counts).

    Raises:
        weft.TracerError: the array is traced and size is not given.

    Example:
        >>> wnp.unique_all(wnp.array([3, 1, 3])).indices
        Array([1, 0], dtype=int32)
    """
    return UniqueAll(*unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value))


def unique_counts(x: NestedLike, /, *, size: int | None = None, fill_value: NestedLike | None = None) -> UniqueCounts:
    """The sorted different elements and how often each occurs; NaN differ from each other.

    Returns: named tuple (values, counts).

    Raises:
        weft.TracerError: the array is traced and size is not given.

    Example:
        >>> wnp.unique_counts(wnp.array([3, 1, 3])).counts
        Array([1, 2], dtype=int32)
    """
    return UniqueCounts(*unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value))


def unique_inverse(x: NestedLike, /, *, size: int | None = None, fill_value: NestedLike | None = None) -> UniqueInverse:
    """The sorted different elements and which of them each element is; NaN differ from each other.

    Returns: named tuple (values, inverse_indices).

    Raises:
        weft.TracerError: the array is traced and size is not given.

    Example:
        >>> wnp.unique_inverse(wnp.array([3, 1, 3])).inverse_indices
        Array([1, 0, 1], dtype=int32)
    """
    return UniqueInverse(*unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value))


def unique_values(x: NestedLike, /, *, size: int | None = None, fill_value: NestedLike | None = None) -> Array:
    """The sorted different elements; NaN differ from each other.

    Returns: vector.

    Raises:
        weft.TracerError: the array is traced and size is not given.

    Example:
        >>> wnp.unique_values(wnp.array([3, 1, 3]))
        Array([1, 3], dtype=int32)
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


def isin(
    element: NestedLike,
    test_elements: NestedLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Whether each element is among others.

    Args:
        element: array, number or nested list of numbers.
        test_elements: the others, of any shape.
        invert: whether to ask for those that are not.
        method: "auto", "compare_all", "binary_search" or "sort", without effect.

    Returns: array of booleans of the shape of element.

    Raises:
        ValueError: there is no such method.

    Example:
        >>> wnp.isin(wnp.array([1, 2, 3]), wnp.array([2, 5]))
        Array([False,  True, False], dtype=bool)
    """
    del assume_unique
    one_of(method, ("auto", "compare_all", "binary_search", "sort"), "isin: method")
    element, test = _together(element, test_elements)
    test = test.reshape(-1)
    n = test.shape[0]
    if not isinstance(n, int) or n <= _COMPARED or "complex" in (_weft.dtype_kind(a.dtype) for a in (element, test)):
        found = _weft.reduce("reduce_or", element[..., None] == test, -1, False)
    else:
        test = sort(test)
        found = _weft.take(test, searchsorted(test, element), 0, "clip") == element
    return _weft.logical_not(found) if invert else found


# Up to here comparing with all elements takes less time than sorting them.
_COMPARED = 32


def union1d(
    ar1: NestedLike, ar2: NestedLike, *, size: int | None = None, fill_value: NestedLike | None = None
) -> Array:
    """The sorted different elements of two arrays together.

    Returns: vector.

    Raises:
        weft.TracerError: an array is traced and size is not given.

    Example:
        >>> wnp.union1d(wnp.array([3, 1]), wnp.array([2, 3]))
        Array([1, 2, 3], dtype=int32)
    """
    return unique(_joined(ar1, ar2), size=size, fill_value=fill_value)


def _joined(ar1, ar2) -> Array:
    return _weft.concatenate([a.reshape(-1) for a in _together(ar1, ar2)], 0)


def _chosen(values, keep, size, fill_value) -> Array:
    (at,) = nonzero(keep, size=size, fill_value=0)
    out = _weft.take(values, at, 0, "clip") if values.shape[0] else _weft.full(at.shape, 0, values.dtype)
    if size is None:
        return out
    fill = 0 if fill_value is None else fill_value
    return _weft.where(_weft.iota((size,), 0, "int32") < _int_sum(keep), out, _weft.array(fill, values.dtype, False))


def _distinct(ar, keep) -> tuple[Array, Array]:
    """The sorted elements of a vector, and which are the first of their value, where keep(sorted elements) holds."""
    _, rows, first = _sorted_rows(_array(ar).reshape(-1, 1), True)
    values = rows.reshape(-1)
    return values, first & keep(values)


def setdiff1d(
    ar1: NestedLike,
    ar2: NestedLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: NestedLike | None = None,
) -> Array:
    """The sorted different elements of one array that are not in another.

    Args:
        assume_unique: take the elements of ar1 for different: those kept stay in their order, repetitions too.
        fill_value: with size: what fills the result; None: 0.

    Returns: vector.

    Raises:
        weft.TracerError: an array is traced and size is not given.

    Example:
        >>> wnp.setdiff1d(wnp.array([3, 1, 2]), wnp.array([2]))
        Array([1, 3], dtype=int32)
    """
    outside = lambda v: isin(v, ar2, invert=True)
    if assume_unique:
        values = _array(ar1).reshape(-1)
        return _chosen(values, outside(values), size, fill_value)
    return _chosen(*_distinct(ar1, outside), size, fill_value)


def intersect1d(
    ar1: NestedLike,
    ar2: NestedLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: NestedLike | None = None,
) -> Any:
    """The sorted different elements that are in both of two arrays.

    Args:
        return_indices: whether to return where each occurs first in ar1 and in ar2.
        fill_value: with size: what fills the result; None: the smallest common element, or 0 if there is none.

    Returns: vector; with return_indices a tuple of it and two int32 vectors, filled with the sizes of ar1 and ar2.

    Raises:
        weft.TracerError: an array is traced and size is not given.

    Example:
        >>> wnp.intersect1d(wnp.array([3, 1, 2]), wnp.array([2, 3, 7]))
        Array([2, 3], dtype=int32)
    """
    del assume_unique
    ar1, ar2 = (a.reshape(-1) for a in _together(ar1, ar2))
    values, keep = _distinct(ar1, lambda v: isin(v, ar2))
    if size is not None and fill_value is None:
        # JAX fills with the only element there is, though it is not common.
        fill_value = _joined(ar1, ar2) if ar1.size + ar2.size == 1 else _chosen(values, keep, 1, 0)
    out = _chosen(values, keep, size, fill_value)
    if not return_indices:
        return out
    valid = _weft.iota(out.shape, 0, "int32") < _int_sum(keep)
    places = []
    for a in (ar1, ar2):
        # Behind the last element there is one more place, for what is found nowhere.
        same = _weft.pad_constant((out[:, None] == a[None, :]) & valid[:, None], [0, 0], [0, 1], True)
        places.append(_weft.argreduce("argmax", same.astype("int32"), 1, False))
    return out, places[0], places[1]


def setxor1d(
    ar1: NestedLike,
    ar2: NestedLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: NestedLike | None = None,
) -> Array:
    """The sorted different elements that are in exactly one of two arrays.

    Args:
        fill_value: with size: what fills the result; None: 0.

    Returns: vector.

    Raises:
        weft.TracerError: an array is traced and size is not given.

    Example:
        >>> wnp.setxor1d(wnp.array([3, 1]), wnp.array([2, 3]))
        Array([1, 2], dtype=int32)
    """
    ar1, ar2 = _together(ar1, ar2)
    if assume_unique:  # what has no equal beside it
        values = sort(_weft.concatenate([ar1.reshape(-1), ar2.reshape(-1)], 0))
        ends = _weft.full((min(values.shape[0], 1),), True, "bool")
        differs = values[1:] != values[:-1]
        keep = _weft.concatenate([ends, differs], 0) & _weft.concatenate([differs, ends], 0)
        return _chosen(values, keep, size, fill_value)
    # NaN is in neither of two arrays that hold it.
    one, in_one = _distinct(ar1, lambda v: isin(v, ar2, invert=True))
    other, in_other = _distinct(ar2, lambda v: isin(v, ar1, invert=True))
    values, keep = _weft.concatenate([one, other], 0), _weft.concatenate([in_one, in_other], 0)
    order = argsort(values)
    return _chosen(_weft.take(values, order, 0, "clip"), _weft.take(keep, order, 0, "clip"), size, fill_value)


# What parameters mean in several functions of this module.
_PARAMETERS = {
    "ar1": "array, number or nested list of numbers.",
    "ar2": "array, number or nested list of numbers.",
    "assume_unique": "accepted, without effect.",
    "fill_value": "with size: what fills the result; None: the smallest element.",
    "size": "inside jit: how many elements the result has.",
    "x": "array, number or nested list of numbers.",
}

_docs.complete(globals(), _PARAMETERS, arrays=True)
