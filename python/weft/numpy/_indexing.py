"""Indexing beyond subscripts, and x.at[...]."""

from __future__ import annotations

from typing import Any

from .. import _weft
from .._weft import Array

__all__ = [
    "argwhere",
    "choose",
    "compress",
    "extract",
    "flatnonzero",
    "ix_",
    "nonzero",
    "put_along_axis",
    "take",
    "take_along_axis",
    "isin",
    "newaxis",
    "unravel_index",
    "ravel_multi_index",
]

newaxis = None


def take(a, indices, axis: int | None = None, mode: str = "clip") -> Array:
    """Slices of an array at indices along an axis (None: of the flattened array). Out of range: mode "clip" takes the
    nearest, "fill" gives NaN (integers: the smallest number), "wrap" counts around."""
    a, indices = _weft.array(a, None, False), _weft.array(indices, None, False)
    if axis is None:
        a, axis = a.reshape(-1), 0
    if mode == "wrap":
        indices, mode = indices % a.shape[axis], "clip"
    return _weft.take(a, indices, axis, mode)


def take_along_axis(arr, indices, axis: int | None) -> Array:
    """For each position, the element whose index along the axis is given there."""
    arr, indices = _weft.array(arr, None, False), _weft.array(indices, None, False)
    if axis is None:
        arr, axis = arr.reshape(-1), 0
    return _weft.take_along_axis(arr, indices, axis)


def put_along_axis(arr, indices, values, axis: int) -> Array:
    """A copy with elements replaced at the indices along an axis."""
    arr, indices = _weft.array(arr, None, False), _weft.array(indices, None, False)
    axis = _weft.check_axis(axis, arr.ndim, "put_along_axis")
    key = tuple(indices if d == axis else _weft.iota(indices.shape, d, "int32") for d in range(arr.ndim))
    return arr.at[key].set(values)


def nonzero(a, *, size: int | None = None, fill_value=None) -> tuple[Array, ...]:
    """The indices of the elements that are not 0, one array per dimension. Values must be known, unless size= is given:
    then the first `size` of them, padded with fill_value (0)."""
    a = _weft.array(a, None, False)
    if size is None:
        return tuple(_weft.nonzero(a))
    flat = (a != 0).reshape(-1)
    n = flat.shape[0]
    # Position of each hit among the hits; the others go out of bounds and are dropped.
    place = _weft.where(flat, _weft.cumulative("cumsum", flat.astype("int32"), 0, False) - 1, size)
    total = _weft.reduce("reduce_sum", flat.astype("int32"), None, False)
    at = _weft.full((size,), 0, "int32").at[place].set(_weft.iota((n,), 0, "int32"))
    out = unravel_index(at, a.shape)
    valid = _weft.iota((size,), 0, "int32") < total
    fills = fill_value if isinstance(fill_value, (tuple, list)) else [0 if fill_value is None else fill_value] * a.ndim
    return tuple(_weft.where(valid, o, f) for o, f in zip(out, fills))


def argwhere(a, *, size: int | None = None, fill_value=None) -> Array:
    """nonzero as rows."""
    return _weft.stack(list(nonzero(a, size=size, fill_value=fill_value)), 1)


def flatnonzero(a, *, size: int | None = None, fill_value=None) -> Array:
    """nonzero of the flattened array."""
    return nonzero(_weft.array(a, None, False).reshape(-1), size=size, fill_value=fill_value)[0]


def extract(condition, arr) -> Array:
    """The elements where a known condition holds."""
    return _weft.array(arr, None, False).reshape(-1)[_weft.array(condition, bool, False).reshape(-1)]


def compress(condition, a, axis: int | None = None) -> Array:
    """The slices where a known condition holds."""
    return take(a, nonzero(condition)[0], axis)


def choose(a, choices) -> Array:
    """Elements of one of several arrays, chosen by index."""
    stacked = _weft.stack([_weft.array(c, None, False) for c in choices], 0)
    a = _weft.array(a, None, False)
    return _weft.take_along_axis(stacked, _weft.broadcast_to(a, stacked.shape[1:])[None], 0)[0]


def ix_(*args) -> tuple[Array, ...]:
    """Index arrays that select a block of rows, columns ..."""
    n = len(args)
    return tuple(
        _weft.array(a, None, False).reshape([-1 if d == i else 1 for d in range(n)]) for i, a in enumerate(args)
    )


def isin(element, test_elements) -> Array:
    """Whether each element is among the test elements."""
    element, test = _weft.array(element, None, False), _weft.array(test_elements, None, False).reshape(-1)
    return _weft.reduce("reduce_or", element[..., None] == test, -1, False)


def unravel_index(indices, shape) -> tuple[Array, ...]:
    """Indices of the flattened array as indices of each dimension."""
    indices, out = _weft.array(indices, None, False), []
    for n in reversed(tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)):
        out.append(indices % n)
        indices = indices // n
    return tuple(reversed(out))


def ravel_multi_index(multi_index, dims) -> Array:
    """Indices of each dimension as indices of the flattened array."""
    out: Any = 0
    for i, n in zip(multi_index, dims):
        out = out * n + _weft.array(i, None, False)
    return out


class _At:
    """x.at: a place in an array. x.at[i].set(v) is a new array; x itself never changes.

    Out of bounds: updates are dropped, reads take the nearest element. mode="fill" (or "drop"), "clip" or
    "promise_in_bounds" says otherwise.
    """

    __slots__ = ("_array",)

    def __init__(self, array):
        self._array = array

    def __getitem__(self, index) -> _Place:
        return _Place(self._array, index)


_READ_MODES = {None: "clip", "drop": "fill", "fill": "fill", "clip": "clip", "promise_in_bounds": "promise"}
_MODES = {None: "drop", "drop": "drop", "fill": "drop", "clip": "clip", "promise_in_bounds": "promise"}


class _Place:
    __slots__ = ("_array", "_index")

    def __init__(self, array, index):
        self._array, self._index = array, index

    def _update(self, values, kind, mode):
        if mode not in _MODES:
            raise ValueError(f"at[]: there is no mode {mode!r}")
        return _weft.update_item(self._array, self._index, values, kind, _MODES[mode])

    def set(self, values, *, mode=None, **_) -> Array:
        """The array with values at this place."""
        return self._update(values, "set", mode)

    def add(self, values, *, mode=None, **_) -> Array:
        """The array with values added at this place; an index that occurs twice adds twice."""
        return self._update(values, "add", mode)

    def subtract(self, values, *, mode=None, **_) -> Array:
        """The array with values subtracted at this place."""
        return self._update(-_weft.array(values, None, False), "add", mode)

    def multiply(self, values, *, mode=None, **_) -> Array:
        """The array multiplied by values at this place."""
        return self._update(values, "mul", mode)

    mul = multiply

    def divide(self, values, *, mode=None, **_) -> Array:
        """The array divided by values at this place."""
        return self.apply(lambda x: x / values, mode=mode)

    def power(self, values, *, mode=None, **_) -> Array:
        """The array raised to values at this place."""
        return self.apply(lambda x: x**values, mode=mode)

    def min(self, values, *, mode=None, **_) -> Array:
        """The smaller of array and values at this place."""
        return self._update(values, "min", mode)

    def max(self, values, *, mode=None, **_) -> Array:
        """The larger of array and values at this place."""
        return self._update(values, "max", mode)

    def apply(self, function, *, mode=None, **_) -> Array:
        """The array with a function applied at this place."""
        return self._update(function(self.get()), "set", mode)

    def get(self, *, mode=None, fill_value=None, **_) -> Array:
        """The elements at this place; mode "fill" gives NaN or fill_value out of bounds."""
        if mode not in _READ_MODES:
            raise ValueError(f"at[]: there is no mode {mode!r}")
        out = _weft.getitem(self._array, self._index, _READ_MODES[mode])
        if mode in ("fill", "drop") and fill_value is not None:
            inside = _weft.getitem(_weft.full(self._array.shape, 1.0, "float32"), self._index, "fill")
            out = _weft.where(inside == 1, out, fill_value)
        return out
