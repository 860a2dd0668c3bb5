"""The names of JAX's exceptions, for programs that catch them: what Weft raises in the same place.

One exception of Weft's may stand for several of JAX's: TracerError for all that ask a traced value for its number.
"""

from ._weft import TracerError

__all__ = [
    "ConcretizationTypeError",
    "JAXIndexError",
    "JAXTypeError",
    "JaxRuntimeError",
    "NonConcreteBooleanIndexError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "UnexpectedTracerError",
]

ConcretizationTypeError = TracerArrayConversionError = TracerBoolConversionError = TracerError
NonConcreteBooleanIndexError = TracerIntegerConversionError = UnexpectedTracerError = TracerError
JAXTypeError, JAXIndexError, JaxRuntimeError = TypeError, IndexError, RuntimeError
