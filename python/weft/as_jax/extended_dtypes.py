"""Arrays of dtypes of a library's own (jax.dtypes.ExtendedDType): containers of the array that they are stored as.

The rules of such a dtype say what one element is stored as (`physical_element_aval`), and that it converts to that and
back (`allow_conversion`). lax.convert_element_type does so, and an array passes through every transform; there are no
operations on it but indexing, and derivatives are those of the array that is stored."""

from __future__ import annotations

from typing import Any

import weft

from .. import _weft
from .._core import tree as _tree
from .._core.errors import value_error
from .dtypes import ExtendedDType


class ExtendedArray:
    """An array of a dtype of a library's own."""

    def __init__(self, dtype: Any, data: Any):
        self.dtype, self.data = dtype, data

    @property
    def shape(self) -> tuple[Any, ...]:
        """Without the dimensions of one element."""
        inner = len(_element(self.dtype).shape)
        return tuple(self.data.shape[: len(self.data.shape) - inner])

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> Any:
        """The number of elements."""
        return weft.numpy.zeros(self.shape).size

    def astype(self, dtype: Any) -> Any:
        """convert_element_type."""
        return converted(self, dtype)

    def __getitem__(self, index: Any) -> ExtendedArray:
        every = index if isinstance(index, tuple) else (index,)
        if not any(i is Ellipsis for i in every):
            every = (*every, Ellipsis)
        return ExtendedArray(self.dtype, self.data[(*every, *[slice(None)] * len(_element(self.dtype).shape))])

    def __repr__(self) -> str:
        return f"Array(shape={self.shape}, dtype={self.dtype})"


_tree.register(ExtendedArray, lambda x: ((x.data,), x.dtype), lambda dtype, data: ExtendedArray(dtype, data[0]))


def _element(dtype: Any) -> Any:
    """What one element is stored as."""
    return dtype._rules.physical_element_aval(dtype)


def is_extended(dtype: Any) -> bool:
    """Whether it is a dtype of a library's own."""
    return isinstance(dtype, ExtendedDType)


def converted(x: Any, dtype: Any) -> Any:
    """An array that is stored so as one of the dtype, or one of the dtype as what it is stored as. Raises ValueError
    for other conversions."""
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
    return ExtendedArray(dtype, x)
