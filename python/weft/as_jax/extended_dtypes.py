"""Arrays of dtypes of a library's own (jax.dtypes.ExtendedDType): containers of the array that they are stored as.

The rules of such a dtype say what one element is stored as (`physical_element_aval`), and that it converts to that and
back (`allow_conversion`). lax.convert_element_type does so. An array passes through every transform; the operations on
it are those that move elements, comparisons, and the library's own primitives (user_primitives.py). Derivatives are
those of the array that is stored.

A library whose arrays are objects of a class of its own outside of programs says how they are stored
(`shard_arg_handlers`), and how they are made of what programs give (`global_sharded_result_handler` of the rules)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import weft

from .. import _weft
from .._core import tree as _tree
from .._core.errors import value_error
from .._core.shapes import ShapedArray
from .core import pytype_aval_mappings
from .dtypes import ExtendedDType


class ExtendedArray:
    """An array of a dtype of a library's own."""

    def __init__(self, dtype: Any, data: Any):
        self.dtype, self.data = dtype, data

    @property
    def _inner(self) -> int:
        return len(_element(self.dtype).shape)

    @property
    def shape(self) -> tuple[Any, ...]:
        """Without the dimensions of one element."""
        return tuple(self.data.shape[: len(self.data.shape) - self._inner])

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> Any:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def aval(self) -> ShapedArray:
        """Its type."""
        return ShapedArray(self.shape, self.dtype)

    @property
    def T(self) -> Any:
        """The dimensions in the opposite order."""
        return moving(weft.numpy.transpose)(self)

    @property
    def at(self) -> _Places:
        """x.at[index].set(y), .get()."""
        return _Places(self)

    def astype(self, dtype: Any) -> Any:
        """convert_element_type."""
        return converted(self, dtype)

    def reshape(self, *shape: Any) -> Any:
        """The elements in another shape."""
        return moving(weft.numpy.reshape)(self, shape[0] if len(shape) == 1 else shape)

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, ExtendedArray) or other.dtype != self.dtype:
            return NotImplemented
        same = self.data == other.data
        return weft.numpy.all(same, axis=tuple(range(same.ndim - self._inner, same.ndim)))

    def __ne__(self, other: object) -> Any:
        same = self.__eq__(other)
        return same if same is NotImplemented else ~same

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, index: Any) -> ExtendedArray:
        every = index if isinstance(index, tuple) else (index,)
        if not any(i is Ellipsis for i in every):
            every = (*every, Ellipsis)
        return ExtendedArray(self.dtype, self.data[(*every, *[slice(None)] * self._inner)])

    def __repr__(self) -> str:
        return f"Array(shape={self.shape}, dtype={self.dtype})"


class _Places:
    """x.at, and with an index x.at[index]."""

    def __init__(self, of: ExtendedArray, index: Any = None):
        self._of, self._index = of, index

    def __getitem__(self, index: Any) -> _Places:
        return _Places(self._of, index)

    def get(self, **options: Any) -> ExtendedArray:
        """x[index]."""
        return ExtendedArray(self._of.dtype, self._of.data.at[self._index].get(**options))

    def set(self, values: Any, **options: Any) -> ExtendedArray:
        """x with other elements at these places."""
        return ExtendedArray(self._of.dtype, self._of.data.at[self._index].set(as_stored(values), **options))


def made(dtype: Any, data: Any) -> Any:
    """The array of this dtype: outside of programs what the library makes of it."""
    result = getattr(dtype._rules, "global_sharded_result_handler", None)
    if result is None or _weft.is_tracing() or not isinstance(data, weft.Array) or _weft.is_traced(data):
        return ExtendedArray(dtype, data)
    return result(ExtendedArray(dtype, data).aval, data.sharding, True)(data)


class EArray(ExtendedArray):
    """One that a library makes of a type and of what is stored, as the object that it has outside of programs."""

    def __init__(self, aval: Any, data: Any):
        super().__init__(aval.dtype, data)


_tree.register(EArray, lambda x: ((x.data,), x.dtype), lambda dtype, data: made(dtype, data[0]))
_tree.register(ExtendedArray, lambda x: ((x.data,), x.dtype), lambda dtype, data: made(dtype, data[0]))


class _ArgumentHandlers(dict[type, Any]):
    """Class of a library's own -> handler(objects, shardings, layouts, how they are copied) -> the arrays that they
    are stored as."""

    def __setitem__(self, cls: type, handler: Any) -> None:
        from . import devices  # noqa: F401  (handlers ask shardings for their devices; it imports this module)

        known = cls in self
        super().__setitem__(cls, handler)
        if not known:
            _tree.register(cls, self._stored, lambda dtype, data: made(dtype, data[0]))

    def _stored(self, x: Any) -> Any:
        place = weft.SingleDeviceSharding(weft.devices()[0])
        return tuple(self[type(x)]([x], [place], [None], [None])), pytype_aval_mappings[type(x)](x).dtype


shard_arg_handlers = _ArgumentHandlers()


class _Result:
    """What makes the result of a program of the array that it gives."""

    def __init__(self, make: Callable[[Any], Any] = lambda x: x):
        self._make = make

    def wrap(self, make: Callable[[Any], Any]) -> _Result:
        """The same, and then `make`."""
        return _Result(lambda x: make(self._make(x)))

    def __call__(self, x: Any) -> Any:
        return self._make(x)


global_result_handlers: dict[type, Any] = {ShapedArray: lambda aval, sharding, committed: _Result()}


def physical_aval(aval: ShapedArray) -> ShapedArray:
    """The type of what is stored; random keys are one word of their own."""
    if not is_extended(aval.dtype):
        return aval
    element = _element(aval.dtype)
    return ShapedArray((*aval.shape, *element.shape), element.dtype)


def as_extended(x: Any) -> Any:
    """An object of a library's own class as an ExtendedArray; others as they are."""
    if type(x) not in shard_arg_handlers:
        return x
    (data,), dtype = shard_arg_handlers._stored(x)
    return ExtendedArray(dtype, data)


def as_stored(x: Any) -> Any:
    """What an array of such a dtype is stored as; others as they are."""
    x = as_extended(x)
    return x.data if isinstance(x, ExtendedArray) else x


def logical_aval(aval: Any, dtype: Any) -> Any:
    """The type of an array of a dtype of a library's own, by that of what is stored; dtype None: the type itself."""
    if dtype is None:
        return aval
    return ShapedArray(aval.shape[: len(aval.shape) - len(_element(dtype).shape)], dtype)


def dtype_of(x: Any) -> Any:
    """The dtype of a library's own that an array or a type has; None: it has none."""
    dtype = getattr(x, "dtype", None)
    return dtype if is_extended(dtype) else None


# Functions that move elements, whatever they are.
_MOVING = frozenset(
    [
        "broadcast",
        "broadcast_in_dim",
        "broadcast_to",
        "concatenate",
        "dynamic_index_in_dim",
        "dynamic_slice",
        "dynamic_slice_in_dim",
        "dynamic_update_index_in_dim",
        "dynamic_update_slice",
        "dynamic_update_slice_in_dim",
        "expand_dims",
        "flip",
        "gather",
        "index_in_dim",
        "moveaxis",
        "ravel",
        "repeat",
        "reshape",
        "rev",
        "roll",
        "select",
        "select_n",
        "slice",
        "slice_in_dim",
        "squeeze",
        "stack",
        "swapaxes",
        "take",
        "take_along_axis",
        "tile",
        "transpose",
        "where",
    ]
)


def moving_elements(module: str, name: str, function: Any) -> Any:
    """A function of jax.numpy or jax.lax, which moves elements of these dtypes, too, if it moves any."""
    return moving(function) if name in _MOVING and module in ("jax.numpy", "jax.lax") else function


def _is_own(x: Any) -> bool:
    return isinstance(x, ExtendedArray) or type(x) in shard_arg_handlers


def moving(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which does to each number of an element what it does to numbers."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if not own_dtypes_exist() or not any(
            _is_own(x) or (isinstance(x, (list, tuple)) and any(map(_is_own, x))) for x in args
        ):
            return function(*args, **kwargs)
        leaves, structure = weft.tree.flatten(args, is_leaf=_is_own)
        own = [i for i, x in enumerate(leaves) if _is_own(x)]
        arrays = [as_extended(leaves[i]) for i in own]
        dtype = arrays[0].dtype
        element = tuple(_element(dtype).shape)

        def on_numbers(*numbers: Any) -> Any:
            given = list(leaves)
            for i, number in zip(own, numbers):
                given[i] = number
            return function(*weft.tree.unflatten(structure, given), **kwargs)

        numbers = [x.data.reshape((*x.shape, math.prod(element))) for x in arrays]
        out = weft.vmap(on_numbers, in_axes=-1, out_axes=-1)(*numbers)
        return made(dtype, out.reshape((*out.shape[:-1], *element)))

    return called


def _element(dtype: Any) -> Any:
    """What one element is stored as."""
    return dtype._rules.physical_element_aval(dtype)


def own_dtypes_exist() -> bool:
    """Whether a library has a dtype of its own."""
    return bool(ExtendedDType.__subclasses__())


def is_extended(dtype: Any) -> bool:
    """Whether it is a dtype of a library's own."""
    return isinstance(dtype, ExtendedDType)


def converted(x: Any, dtype: Any) -> Any:
    """An array that is stored so as one of the dtype, or one of the dtype as what it is stored as. Raises ValueError
    for other conversions."""
    x = as_extended(x)
    own = x.dtype if isinstance(x, ExtendedArray) else None
    if own is not None and is_extended(dtype):
        if own == dtype:
            return x
        raise value_error(f"cannot directly convert from {own} to {dtype}: convert to {_element(own).dtype} first")
    rules = (own if own is not None else dtype)._rules
    element = _element(own if own is not None else dtype)
    allowed = getattr(rules, "allow_conversion", False)
    stored = _weft.dtype(element.dtype)
    if own is not None:
        if not allowed or _weft.dtype(dtype) != stored:
            raise value_error(f"can only convert {own} to its representation, {stored}, got {dtype}")
        return x.data
    x = _weft.array(x, None, False)
    shape = tuple(element.shape)
    if not allowed or x.dtype != stored or tuple(x.shape[x.ndim - len(shape) :]) != shape or x.ndim < len(shape):
        raise value_error(
            f"can only convert to {dtype} from its representation, arrays of {stored} whose last dimensions are "
            f"{shape}, got {x.dtype} of shape {x.shape}"
        )
    return made(dtype, x)
