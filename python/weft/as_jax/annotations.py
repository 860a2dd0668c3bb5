"""What libraries annotate their arguments with: jax._src.typing beside what weft.typing has of it."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from types import EllipsisType
from typing import Any, Protocol, Union, runtime_checkable

import numpy as np

from .._weft import Array

DType = np.dtype
ExtendedDType = Any
DimSize = Any  # an integer, or a size with a name
StaticScalar = Union[np.bool_, np.number, bool, int, float, complex]  # noqa: UP007
AnyInt = int | np.integer
PrecisionLike = Any  # a precision, the name of one, one for each of two operands, or None
DotDimensionNumbers = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]
ConvGeneralDilatedDimensionNumbers = Any  # None, texts for both operands and the result, or ConvDimensionNumbers
StaticIndex = AnyInt | slice | EllipsisType
Index = Union[StaticIndex, None, Sequence[AnyInt], Array, np.ndarray]  # noqa: UP007


@runtime_checkable
class SupportsDType(Protocol):
    """What has a dtype."""

    @property
    def dtype(self) -> Any: ...


class SupportsShape(Protocol):
    """What has a shape."""

    @property
    def shape(self) -> tuple[int, ...]: ...


class SupportsSize(Protocol):
    """What has a number of elements."""

    @property
    def size(self) -> int: ...


class SupportsNdim(Protocol):
    """What has a number of dimensions."""

    @property
    def ndim(self) -> int: ...


class DuckTypedArray(SupportsDType, SupportsShape, Protocol):
    """What has a dtype and a shape."""


class DeprecatedArg:
    """The default of a parameter that is on its way out."""

    def __repr__(self) -> str:
        return "Deprecated"


class DLDeviceType(enum.IntEnum):
    """Kinds of devices, by DLPack's numbers."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLROCM = 10
