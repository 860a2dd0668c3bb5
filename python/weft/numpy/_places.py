"""x.at[...]: places in arrays, and copies of the array with other values there."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _weft
from .._core import options
from .._core.errors import index_error, is_one_of, of_kind, type_error, value_error
from .._core.tree import jax_semantics
from .._weft import Array
from ..arguments import joined
from ..batching import vmap
from ..control import fori_loop
from ..typing import NestedLike
from ._out_sharding import lying


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


_READ_MODES = {None: "promise", "drop": "fill", "fill": "fill", "clip": "clip", "promise_in_bounds": "promise"}
_MODES = {None: "drop", "drop": "drop", "fill": "drop", "clip": "clip", "promise_in_bounds": "promise"}


_NAMED_MODES = ", ".join(repr(m) for m in _MODES if m)


class GatherScatterMode(enum.Enum):
    """What gather and scatter do where a window sticks out of the operand; their names in lower case do as well.

    Example:
        >>> weft.lax.GatherScatterMode.CLIP.value
        'clip'
    """

    CLIP = "clip"
    FILL_OR_DROP = "fill"
    PROMISE_IN_BOUNDS = "promise"
    ONE_HOT = "one_hot"


def _name_of(mode: str | enum.Enum | None) -> str | None:
    names: dict[Any, Any] = {
        GatherScatterMode.CLIP: "clip",
        GatherScatterMode.FILL_OR_DROP: "fill",
        GatherScatterMode.PROMISE_IN_BOUNDS: "promise_in_bounds",
    }
    return names.get(mode, mode) if isinstance(mode, enum.Enum) else mode


_COMBINE: dict[str, Any] = {
    "set": lambda x, v: _weft.broadcast_to(v, x.shape),
    "add": lambda x, v: x + v,
    "mul": lambda x, v: x * v,
    "min": lambda x, v: _weft.binary("minimum")(x, v),
    "max": lambda x, v: _weft.binary("maximum")(x, v),
}


def _check_values(array: Array, values: Any) -> None:
    """As JAX does: warns of values that the dtype of an array does not hold, and refuses other dtypes where none are
    promoted."""
    kind, number = array.dtype, isinstance(values, (bool, int, float, complex))
    if kind == getattr(values, "dtype", None) or not _weft.is_operand(values):
        return
    sample = type(values)(0) if number else values  # it may be too large for its own dtype
    own = _weft.result_type(sample)
    if own == kind:
        return
    loses = _weft.result_type(sample, kind) != kind
    if options.numpy_dtype_promotion.value == "strict" and (loses or not (number or _weft.abstract(values)[2])):
        raise of_kind(
            _weft.TypePromotionError,
            f"dtypes {kind} and {own} meet, and numpy_dtype_promotion is 'strict', so none is converted: convert "
            "the values with astype, or set numpy_dtype_promotion to 'standard'",
        )
    if loses:
        warnings.warn(
            f"scatter inputs have incompatible types: cannot safely cast value from dtype={own} to dtype={kind} with "
            "jax_numpy_dtype_promotion=standard. In future JAX releases this will result in an error.",
            FutureWarning,
            stacklevel=3,
        )


def _updating(
    name: str,
    does: str,
    example: str,
    values: str = "",
    update: Callable[..., Array] | None = None,
    dtype: str = " and dtype",
):
    """A method of _Place that gives a copy with other values there. `update` takes the place, values and the mode."""

    def method(
        self,
        values: NestedLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | enum.Enum | None = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        mode = _name_of(mode)
        if jax_semantics():
            _check_values(self._array, values)
        if out_sharding is not None:
            return self._lying(out_sharding, name, values, mode=mode, wrap_negative_indices=wrap_negative_indices)
        place = self._placed(wrap_negative_indices, mode)
        return update(place, values, mode) if update else place._update(values, name, mode)

    method.__name__, method.__qualname__ = name, f"_Place.{name}"
    method.__doc__ = f"""A copy {does} at this place.

        Args:
            values: array or number that broadcasts to the place{values}.
            indices_are_sorted: accepted, without effect.
            unique_indices: accepted, without effect.
            mode: what indices out of bounds do: None, "drop" or "fill" leaves them out, "clip" takes the nearest
                element, "promise_in_bounds" says that there are none.
            out_sharding: how the result is cut: a weft.NamedSharding, or a PartitionSpec for the mesh around the call.
            wrap_negative_indices: whether negative ones count from the end; if not, they are out of bounds.

        Returns: array of the same shape{dtype}.

        Raises:
            ValueError: there is no such mode.
            TypeError: values do not broadcast to the place, or out_sharding is given.

        Example:
            >>> {example}
        """
    return method


class _Place:
    __slots__ = ("_array", "_index")

    def __init__(self, array, index):
        self._array = array
        self._index: Any = tuple(map(joined, index)) if isinstance(index, tuple) else joined(index)

    def _mask(self):
        """The index, where it is one boolean array whose numbers are not known."""
        index = self._index
        if isinstance(index, Array) and _weft.is_traced(index) and _weft.dtype_kind(index.dtype) == "bool":
            rank = index.ndim
            if index.shape != self._array.shape[:rank]:
                raise index_error(f"at[]: a mask of shape {index.shape} for an array of shape {self._array.shape}")
            return index.reshape(index.shape + (1,) * (self._array.ndim - rank))
        return None

    def _update(self, values, kind, mode):
        if not is_one_of(mode, _MODES):
            raise value_error(f"at[]: there is no mode {mode!r}; the modes are {_NAMED_MODES}")
        mask = self._mask()
        if mask is not None:
            # How many elements are chosen is not known, so every one of them gets the same value.
            value = _weft.array(values, None, False)
            if value.ndim > self._array.ndim - self._index.ndim:
                raise type_error(
                    f"at[]: inside jit a boolean mask takes one value for all its elements, got shape {value.shape}; "
                    "use weft.numpy.where(mask, values, x) with values of the shape of x"
                )
            at = _COMBINE[kind](self._array, _weft.astype(value, self._array.dtype))
            return _weft.where(mask, at.astype(self._array.dtype), self._array)
        return _weft.update_item(self._array, self._index, joined(values), kind, _MODES[mode])

    def _lying(self, out_sharding: Any, name: str, *arrays: Any, **options: Any) -> Array:
        """What a method of this place gives, cut over a mesh."""

        def at(array, *given):
            return getattr(_Place(array, self._index), name)(*given, **options)

        return lying(out_sharding, at, self._array, *arrays)

    def _placed(self, wrap_negative_indices, mode) -> _Place:
        """This place, its negative indices out of bounds where they do not wrap."""
        if wrap_negative_indices:
            return self
        entries = self._index if isinstance(self._index, tuple) else (self._index,)
        return _Place(self._array, tuple(_unwrapped(e, mode) for e in entries))

    def _factors(self, values, mode) -> Array:
        """Ones, and the products of values at this place."""
        return _Place(_weft.full(self._array.shape, 1, self._array.dtype), self._index)._update(values, "mul", mode)

    set = _updating(
        "set",
        "with values",
        """wnp.zeros(3).at[1].set(5.0)
            Array([0., 5., 0.], dtype=float32)""",
    )
    add = _updating(
        "add",
        "with values added, twice where an index occurs twice,",
        """wnp.zeros(3).at[wnp.array([0, 0, 2])].add(1.0)
            Array([2., 0., 1.], dtype=float32)""",
    )
    subtract = _updating(
        "subtract",
        "with values subtracted, twice where an index occurs twice,",
        """wnp.zeros(3).at[1].subtract(5.0)
            Array([ 0., -5.,  0.], dtype=float32)""",
        update=lambda place, values, mode: place._update(-_weft.array(values, None, False), "add", mode),
    )
    multiply = mul = _updating(
        "multiply",
        "multiplied by values, twice where an index occurs twice,",
        """wnp.ones(3).at[1].multiply(5.0)
            Array([1., 5., 1.], dtype=float32)""",
        update=lambda place, values, mode: place._update(values, "mul", mode),
    )
    divide = _updating(
        "divide",
        "divided by values, twice where an index occurs twice,",
        """wnp.ones(3).at[1].divide(4.0)
            Array([1.  , 0.25, 1.  ], dtype=float32)""",
        ", converted to the dtype of the array first",
        lambda place, values, mode: place._array / place._factors(values, mode),
        ", of a float dtype",
    )
    power = _updating(
        "power",
        "raised to powers, twice where an index occurs twice,",
        """wnp.array([2.0, 3.0]).at[1].power(2.0)
            Array([2., 9.], dtype=float32)""",
        ": the exponents, converted to the dtype of the array first",
        lambda place, values, mode: place._array ** place._factors(values, mode),
    )
    min = _updating(
        "min",
        "with the smaller of element and value",
        """wnp.array([2.0, 3.0]).at[wnp.array([0, 1])].min(2.5)
            Array([2. , 2.5], dtype=float32)""",
    )
    max = _updating(
        "max",
        "with the larger of element and value",
        """wnp.array([2.0, 3.0]).at[wnp.array([0, 1])].max(2.5)
            Array([2.5, 3. ], dtype=float32)""",
    )

    def apply(
        self,
        function: Callable[..., Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | enum.Enum | None = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """A copy with a function applied to the elements at this place; an index that occurs twice applies it twice.

        Args:
            function: takes an array and returns one of the same shape, element by element.
            indices_are_sorted: as for set.
            unique_indices: whether no element occurs twice, which is then not looked for.
            mode: as for set.
            out_sharding: as for set.
            wrap_negative_indices: as for set.

        Returns: array of the same shape and dtype.

        Example:
            >>> wnp.array([2.0, 3.0]).at[1].apply(lambda x: x * 10)
            Array([ 2., 30.], dtype=float32)
            >>> wnp.array([2.0, 3.0]).at[wnp.array([1, 1])].apply(lambda x: x * 10)
            Array([  2., 300.], dtype=float32)
        """
        mode = _name_of(mode)
        if out_sharding is not None:
            options = {"mode": mode, "unique_indices": unique_indices, "wrap_negative_indices": wrap_negative_indices}
            return self._lying(out_sharding, "apply", function=function, **options)
        place = self._placed(wrap_negative_indices, mode)
        mask = place._mask()
        if mask is not None:
            return _weft.where(mask, function(self._array), self._array)
        values = place.get(mode=mode or "fill")
        if unique_indices or not place._may_repeat():
            values = function(values)
        else:
            values = _applied(function, values, place._occurrences(mode))
        return place._update(values, "set", mode)

    def _may_repeat(self) -> bool:
        """Whether an element may be chosen twice: only arrays of integers do that."""
        entries = self._index if isinstance(self._index, tuple) else (self._index,)
        plain = (int, np.integer, slice, bool, np.bool_, type(None), type(Ellipsis))
        return any(
            not isinstance(e, plain) and (a := _weft.array(e, None, False)).ndim and _weft.dtype_kind(a.dtype) != "bool"
            for e in entries
        )

    def _occurrences(self, mode) -> Array:
        """How often each of the elements at this place is chosen, in the shape of the place; 0 out of bounds."""
        counts = _Place(_weft.full(self._array.shape, 0, "int32"), self._index)
        counts = _Place(counts._update(1, "add", mode), self._index)
        return counts.get(mode=mode or "fill", fill_value=0)

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | enum.Enum | None = None,
        fill_value: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The elements at this place.

        Args:
            indices_are_sorted: accepted, without effect.
            unique_indices: accepted, without effect.
            mode: what indices out of bounds do: None or "clip" takes the nearest element, "fill" or "drop" gives
                fill_value.
            fill_value: None: NaN for floats, the smallest integer.
            out_sharding: as for set.
            wrap_negative_indices: whether negative ones count from the end; if not, they are out of bounds.

        Returns: array, as x[index].

        Raises:
            ValueError: there is no such mode.

        Example:
            >>> wnp.array([2.0, 3.0]).at[wnp.array([0, 7])].get(mode="fill")
            Array([ 2., nan], dtype=float32)
        """
        mode = _name_of(mode)
        if not is_one_of(mode, _READ_MODES):
            raise value_error(f"at[]: there is no mode {mode!r}; the modes are {_NAMED_MODES}")
        if out_sharding is not None:
            options = {"mode": mode, "fill_value": fill_value, "wrap_negative_indices": wrap_negative_indices}
            return self._lying(out_sharding, "get", **options)
        index = self._placed(wrap_negative_indices, mode or "clip")._index
        out = _weft.getitem(self._array, index, _READ_MODES[mode])
        if mode in ("fill", "drop") and fill_value is not None:
            inside = _weft.getitem(_weft.full(self._array.shape, 1.0, "float32"), index, "fill")
            out = _weft.where(inside == 1, out, _weft.array(fill_value, out.dtype, False))
        return out


def _applied(function: Callable[..., Any], values, times) -> Array:
    """The function applied to each value as often as `times` says."""

    def once(_, value):
        result = _weft.array(function(value), None, False)
        if result.shape != ():
            raise type_error(f"at[].apply: the function gave {result.type} for one element; expected one element")
        return _weft.astype(result, value.dtype)

    def repeated(value, count):
        return fori_loop(0, count, once, value)

    return vmap(repeated)(values.reshape(-1), times.reshape(-1)).reshape(values.shape)


def _unwrapped(entry, mode):
    """An entry of a subscript whose negative integers do not count from the end: they are out of bounds."""
    if entry is None or entry is Ellipsis or isinstance(entry, (slice, bool, np.bool_)):
        return entry
    index = _weft.array(entry, None, False)
    if _weft.dtype_kind(index.dtype) != "signed":
        return entry
    index = index if index.dtype.itemsize >= 4 else index.astype("int32")
    nearest = mode in ("clip", "promise_in_bounds")
    return _weft.where(index < 0, 0 if nearest else np.iinfo(index.dtype).max, index)
