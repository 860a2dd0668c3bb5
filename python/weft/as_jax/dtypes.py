"""jax.dtypes."""

from __future__ import annotations

import inspect
import sys
import types
import warnings
from typing import Any

import ml_dtypes
import numpy as np

import weft
import weft.numpy as wnp

from .. import _weft
from .._core.errors import PACKAGE, type_error, value_error
from .._core.shapes import FLOAT0
from ..random._generators import KeyDtype
from .settings import ExplicitX64Mode, config


class extended(np.generic):
    """The kind of dtypes that are no numbers: issubdtype(key.dtype, extended)."""


class prng_key(extended):
    """The kind of the dtypes of random keys."""


# Libraries that print types look for their names in JAX's modules.
extended.__module__ = prng_key.__module__ = "jax._src.dtypes"


class ExtendedDType:
    """A dtype of a library's own (extended_dtypes.py)."""

    type: Any = extended
    _rules: Any = None


DType = np.dtype

float0 = FLOAT0


# Dtypes that no array has.
_FLOAT6 = tuple(map(np.dtype, (ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn)))


def float6(dtype: Any) -> Any:
    """The dtype, where it is one of floats of 6 bits; None: it is none."""
    return next((kind for kind in _FLOAT6 if dtype in (kind, kind.type) or str(dtype) == str(kind)), None)


def _is_key(dtype: Any) -> bool:
    return str(dtype).startswith("key")


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether a dtype is of a kind; dtypes of random keys are of the kinds prng_key and extended alone."""
    given, b = arg1, arg2
    a = getattr(given, "dtype", given) if not isinstance(given, type) else given
    if given is not a and _is_key(a) and hasattr(given, "shape"):
        raise value_error(
            f"issubdtype: an array of {a} is no dtype. Could not convert Array to a dtype; give its .dtype"
        )
    if isinstance(a, ExtendedDType):
        return isinstance(b, type) and issubclass(a.type, b)
    if _is_key(a):
        return b in (prng_key, extended, np.generic) or a == b
    if isinstance(a, type) and issubclass(a, extended):
        return isinstance(b, type) and issubclass(a, b)
    if isinstance(b, type) and issubclass(b, extended):
        return False
    if float6(a) or float6(b):
        return float6(a) == float6(b) or b in (np.floating, np.inexact, np.number, np.generic)
    return wnp.issubdtype(a, b)


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> Any:
    """The dtype that arrays of a dtype have: of 32 bits instead of 64 unless x64 is on."""
    if _is_key(dtype):
        if not allow_extended_dtype:
            raise type_error(f"canonicalize_dtype: {dtype} is no dtype of numbers")
        return dtype
    if dtype == FLOAT0:
        return FLOAT0
    if isinstance(dtype, np.dtype) and dtype.kind == "O":  # of NumPy alone
        return dtype
    half = None if weft.config.x64 else _HALVES.get(_name(dtype))
    return half or float6(dtype) or _weft.dtype(dtype)


def is_wide(dtype: Any) -> bool:
    """Whether a dtype has 64 bits that arrays do not have unless x64 is on."""
    return not _is_key(dtype) and _name(dtype) in _HALVES


def _name(dtype: Any) -> str:
    try:
        return np.dtype(dtype).name
    except TypeError:
        return ""


# What 64 bits become where x64 is off, whatever the option jax_explicit_x64_dtypes says of dtypes that are asked for.
_HALVES = {
    "int64": np.dtype("int32"),
    "uint64": np.dtype("uint32"),
    "float64": np.dtype("float32"),
    "complex128": np.dtype("complex64"),
}


def _keeps_64_bits(dtype: Any) -> bool:
    """Whether a dtype of 64 bits that is asked for stays as it is, though x64 is off."""
    mode = config.read("jax_explicit_x64_dtypes")
    if mode in (ExplicitX64Mode.ERROR, "error"):
        raise value_error(
            f"Explicitly requested dtype {dtype} is not available. To enable more dtypes, set the jax_enable_x64 or "
            "jax_explicit_x64_dtypes configuration options"
        )
    if mode in (ExplicitX64Mode.ALLOW, "allow"):
        return True
    _warn_of_32_bits(dtype)
    return False


# Functions that say something of dtypes, or of types, and make no array: JAX does not warn there.
_OF_DTYPES = frozenset(["_taken", "can_cast", "finfo", "iinfo", "isdtype", "issubdtype", "promote_types"])


def _names(value: Any, name: str) -> bool:
    """Whether a value is a dtype, or the name or the class of one."""
    if isinstance(value, (str, type, np.dtype)):
        return _name(value) == name
    return getattr(value, "dtype", None) is not None and callable(value) and _name(value.dtype) == name


def _warn_of_32_bits(dtype: Any) -> None:
    """Warns, at the user's line, that an array of 64 bits that is asked for has 32. The package asks for such dtypes,
    too: the function that the user called must have been given it."""
    frame: types.FrameType | None = sys._getframe(2)
    first: types.FrameType | None = None
    level, name = 3, _name(dtype)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        if frame.f_code.co_name in _OF_DTYPES:
            return
        first, frame, level = frame, frame.f_back, level + 1
    if first is not None:
        of = inspect.getargvalues(first)
        given = [of.locals.get(each) for each in of.args]
        given += of.locals.get(of.varargs or "", ())
        given += of.locals.get(of.keywords or "", {}).values()
        if not any(_names(x, name) for x in given):
            return
    warnings.warn(
        f"Explicitly requested dtype {dtype} is not available, and will be truncated to dtype "
        f"{_HALVES.get(_name(dtype), dtype)}. To enable more dtypes, set the jax_enable_x64 configuration option or "
        "the JAX_ENABLE_X64 shell environment variable. See https://github.com/jax-ml/jax#current-gotchas for more.",
        UserWarning,
        stacklevel=level,
    )


def install() -> None:
    """From now on the option jax_explicit_x64_dtypes says what a dtype of 64 bits means where x64 is off, and the
    classes of jax.numpy's dtypes say that they are its."""
    _weft.ask_about_narrowing(_keeps_64_bits)
    scalar = type(wnp.float32)
    for kind in vars(wnp).values():
        if isinstance(kind, scalar):
            kind.__module__ = "jax.numpy"
    # As those of NumPy do, dtypes of keys tell the class of their numbers.
    KeyDtype.type = prng_key


def iinfo(dtype: Any) -> Any:
    """The limits of an integer dtype, as ml_dtypes shows them."""
    return ml_dtypes.iinfo(wnp.iinfo(dtype).dtype)


def scalar_type_of(x: Any) -> type:
    """Python's type of an element: bool, int, float or complex."""
    kinds = {"bool": bool, "signed": int, "unsigned": int, "float": float, "complex": complex}
    return kinds[_weft.dtype_kind(wnp.result_type(x))]


def itemsize_bits(dtype: Any) -> int:
    """The bits of an element."""
    if dtype is None:
        raise value_error("dtype cannot be None.")
    kind = (
        np.dtype(_weft.dtype(dtype)) if isinstance(dtype, type) and issubclass(dtype, (int, float)) else np.dtype(dtype)
    )
    if kind.kind == "V" and str(kind).startswith(("int", "uint", "float")):  # one of ml_dtypes
        return (ml_dtypes.iinfo if "int" in str(kind) else ml_dtypes.finfo)(kind).bits
    return kind.itemsize * 8


def supports_inf(dtype: Any) -> bool:
    """Whether a dtype has an infinity."""
    if not wnp.issubdtype(dtype, np.inexact):
        return False
    return bool(np.isinf(np.asarray(np.inf).astype(_weft.dtype(dtype))))


def is_python_scalar(x: Any) -> bool:
    """Whether a value is one of Python's numbers, or takes part in arithmetic like one."""
    return isinstance(x, (bool, int, float, complex)) or (hasattr(x, "weak_type") and x.weak_type and not x.shape)
