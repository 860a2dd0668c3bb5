"""Shapes and dtypes without arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .. import _weft
from .errors import type_error, value_error
from .names import belong_to


class ShapeDtype:
    """A shape and a dtype in place of an array, where only they matter: weft.make_ir, weft.eval_shape, callbacks.

    Args:
        shape: the dimensions: integers, weft.Dim or their text, such as "n" or "2*n+1".
        dtype: the dtype; float: the default float dtype.
        weak_type: whether it takes the dtype of what it meets, like a Python number.
        varying: inside shard_map, the axes of the mesh along which the value differs between devices.

    Raises:
        TypeError: dtype is no dtype, or shape no sequence of sizes.
        ValueError: a text is no dimension, or a dimension is negative.

    Example:
        >>> weft.ShapeDtype((3, 4), "float32")
        ShapeDtype((3, 4), float32)
        >>> weft.make_ir(lambda x: x.T)(weft.ShapeDtype(("n", 3))).out_types
        ['f32[3,n]']
    """

    __slots__ = ("shape", "dtype", "weak_type", "varying")

    def __init__(self, shape: Sequence, dtype: Any = float, weak_type: bool = False, varying: Sequence[str] = ()):
        if not isinstance(shape, Iterable):
            raise type_error(f"ShapeDtype: shape must be a tuple of sizes, got {shape!r}")
        self.shape = tuple(_weft.Dim(d) if isinstance(d, str) else d for d in shape)
        for d in self.shape:
            if not isinstance(d, (int, np.integer, _weft.Dim)):
                raise type_error(
                    f"ShapeDtype: shape has {d!r} of type '{type(d).__name__}'; a size is an integer, a weft.Dim or "
                    "its text"
                )
            if isinstance(d, int) and d < 0:
                raise value_error(f"ShapeDtype: a dimension of shape {self.shape} is negative")
        self.dtype = _weft.dtype(dtype)
        self.weak_type = weak_type
        self.varying = list(varying)

    @property
    def ndim(self) -> int:
        """The number of dimensions.

        Example:
            >>> weft.ShapeDtype((3, 4)).ndim
            2
        """
        return len(self.shape)

    @property
    def size(self) -> Any:
        """The number of elements.

        Example:
            >>> weft.ShapeDtype((3, 4)).size
            12
        """
        n: Any = 1
        for d in self.shape:
            n = d * n
        return n

    def __repr__(self) -> str:
        return f"ShapeDtype({self.shape}, {self.dtype}{', weak_type=True' if self.weak_type else ''})"

    def __eq__(self, other) -> bool:
        return isinstance(other, ShapeDtype) and (self.shape, self.dtype, self.weak_type, self.varying) == (
            other.shape,
            other.dtype,
            other.weak_type,
            other.varying,
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak_type))


belong_to({"__name__": "weft"}, ShapeDtype)
