"""The types of references."""

from __future__ import annotations

from typing import Any

from .._core.shapes import ShapedArray


class AbstractRef:
    """The type of a reference.

    Args:
        inner_aval: the type of the array that it holds.

    Example:
        >>> weft.typeof(weft.new_ref(1.0)).inner_aval.shape
        ()
    """

    def __init__(self, inner_aval: ShapedArray):
        self.inner_aval = inner_aval

    @property
    def shape(self) -> tuple:
        """The dimensions.

        Example:
            >>> weft.new_ref(wnp.ones(3)).aval.shape
            (3,)
        """
        return self.inner_aval.shape

    @property
    def dtype(self) -> Any:
        """The dtype.

        Example:
            >>> weft.new_ref(1.0).aval.dtype
            dtype('float32')
        """
        return self.inner_aval.dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractRef) and self.inner_aval == other.inner_aval

    def __hash__(self) -> int:
        return hash((AbstractRef, self.inner_aval))

    def __repr__(self) -> str:
        dims = ",".join(map(str, self.shape))
        return f"Ref{{{self.dtype}[{dims}]}}"
