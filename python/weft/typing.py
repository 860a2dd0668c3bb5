"""Types for annotations of programs that use Weft.

>>> from weft.typing import ArrayLike
>>> def scaled(x: ArrayLike, by: float = 2.0) -> weft.Array:
...     return wnp.asarray(x) * by
>>> scaled(3)
Array(6., dtype=float32, weak_type=True)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeAlias, TypeVar, Union

import numpy as np

from ._weft import Array, Dim

__all__ = ["ArrayLike", "DTypeLike", "Jitted", "NDArrayLike", "NestedLike", "Shape"]

# Libraries read the members of these unions, ask isinstance() of them, and put names of types that come later beside
# them (ArrayLike | "Matrix"), which only typing.Union allows.
if TYPE_CHECKING:
    _NumPys: TypeAlias = np.ndarray[Any, Any]
    _DType: TypeAlias = np.dtype[Any]
else:
    _NumPys, _DType = np.ndarray, np.dtype

# What a function of arrays takes: an array, traced or not, NumPy's, or a number.
ArrayLike: TypeAlias = Union[Array, _NumPys, np.generic, bool, int, float, complex]  # noqa: UP007
# An array, traced or not, of Weft or of NumPy: what functions of weft.lax take that need a rank.
NDArrayLike: TypeAlias = Union[Array, _NumPys]  # noqa: UP007
# What functions of weft.numpy take: also nested lists of numbers and arrays.
NestedLike: TypeAlias = ArrayLike | Sequence[Any]
# What names a dtype: "float32", float, numpy.float32, weft.numpy.float32.
DTypeLike: TypeAlias = Union[str, type[Any], _DType, "SupportsDType"]
# The dimensions of an array.
Shape: TypeAlias = Sequence[int | Dim]

_P = ParamSpec("_P")
_R = TypeVar("_R", covariant=True)


class SupportsDType(Protocol):
    """What has a dtype, such as weft.numpy.float32."""

    @property
    def dtype(self) -> Any: ...


class Jitted(Protocol[_P, _R]):
    """What weft.jit returns: a function with the parameters and the result of the one that it was given.

    Example:
        >>> f = weft.jit(lambda x: x + 1)
        >>> f(1.0)
        Array(2., dtype=float32, weak_type=True)
        >>> f.explain()[0]["calls"]
        1
    """

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    # As a method it is bound like any function.
    def __get__(self, instance: Any, owner: Any = None) -> Callable[..., _R]: ...
    def lower(self, *args: Any, **kwargs: Any) -> Any: ...
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any: ...
    def explain(self, what: str | None = None) -> Any: ...
    def clear_cache(self) -> None: ...
