"""What JAX's functions take to choose how XLA or a library of linear algebra computes. Weft's choice is its own: they
are accepted, and have no effect."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

from .._core.errors import value_error


class AccuracyMode(enum.Enum):
    """How accurate functions of single elements are: Weft's are always as accurate as they can be."""

    HIGHEST = 1
    DEFAULT = 2


class Tolerance:
    """How far functions of single elements may be off.

    Args:
        atol: absolutely.
        rtol: relatively.
        ulps: in units in the last place.
    """

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0):
        if min(atol, rtol, ulps) < 0:
            raise value_error("Tolerances must be non-negative.")
        if atol == rtol == ulps == 0:
            raise value_error("At least one of atol, rtol, or ulps must be set.")
        self.atol, self.rtol, self.ulps = atol, rtol, ulps


class DotAlgorithm(NamedTuple):
    """How products of arrays are summed up."""

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


DotAlgorithmPreset = enum.Enum(
    "DotAlgorithmPreset",
    "DEFAULT ANY_F8_ANY_F8_F32 ANY_F8_ANY_F8_F32_FAST_ACCUM ANY_F8_ANY_F8_ANY ANY_F8_ANY_F8_ANY_FAST_ACCUM F16_F16_F16 "
    "F16_F16_F32 BF16_BF16_BF16 BF16_BF16_F32 BF16_BF16_F32_X3 BF16_BF16_F32_X6 BF16_BF16_F32_X9 TF32_TF32_F32 "
    "TF32_TF32_F32_X3 F32_F32_F32 F64_F64_F64",
)


class EigImplementation(enum.Enum):
    """Which library computes eigenvalues."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class EighImplementation(enum.Enum):
    """How eigenvalues of symmetric matrices are computed."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class SvdAlgorithm(enum.Enum):
    """How singular values are computed."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"
