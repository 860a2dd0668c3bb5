"""The kinds of exceptions, under JAX's names where it has one: programs that catch JAX's catch Weft's.

TracerError is what asks a traced value for its number, or uses one after its trace; the others of tracing are kinds
of it.
"""

from ._weft import (
    ArgumentError,
    AxisError,
    ConcretizationTypeError,
    NonConcreteBooleanIndexError,
    OutOfMemoryError,
    ShardingTypeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    TypePromotionError,
    UnexpectedTracerError,
)

__all__ = [
    "ArgumentError",
    "AxisError",
    "ConcretizationTypeError",
    "JAXIndexError",
    "JAXTypeError",
    "JaxRuntimeError",
    "KeyReuseError",
    "NonConcreteBooleanIndexError",
    "OutOfMemoryError",
    "ShardingTypeError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "TypePromotionError",
    "UnexpectedTracerError",
]


class KeyReuseError(RuntimeError):
    """A random key is used twice (weft.debug_key_reuse, weft.ir.check_key_reuse)."""


JAXTypeError, JAXIndexError, JaxRuntimeError = TypeError, IndexError, RuntimeError
