"""What jax._src.dtypes has beside jax.dtypes: defaults, kinds, and which dtype follows from which."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

import weft
import weft.numpy as wnp

from .. import _weft
from .._core.errors import of_kind, value_error
from ..errors import TypePromotionError
from .dtypes import canonicalize_dtype, extended, float6, is_wide, issubdtype, scalar_type_of
from .literals import is_typed

python_scalar_types = {bool, int, float, complex}
python_scalar_types_to_dtypes = {
    bool: np.dtype(bool),
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
    complex: np.dtype(np.complex128),
}
python_scalar_dtypes = python_scalar_types_to_dtypes
bool_ = np.dtype(bool).type
numpy_scalar_types = {np.dtype(code).type for code in np.typecodes["AllInteger"] + "?efdFD"}
_weak_types = [int, float, complex]
_float8_dtypes = [
    np.dtype(getattr(ml_dtypes, f"float8_{name}"))
    for name in ["e3m4", "e4m3", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu"]
]
_float4_dtypes = [np.dtype(ml_dtypes.float4_e2m1fn)]
_intn_dtypes = [np.dtype(getattr(ml_dtypes, name)) for name in ("int2", "int4", "uint2", "uint4")]
_jax_types = [
    np.dtype(bool),
    *(np.dtype(f"{kind}{bits}") for kind in ("uint", "int") for bits in (8, 16, 32, 64)),
    *_intn_dtypes,
    *_float8_dtypes,
    *_float4_dtypes,
    np.dtype(ml_dtypes.bfloat16),
    *map(np.dtype, (np.float16, np.float32, np.float64, np.complex64, np.complex128)),
]
int1 = uint1 = None
int_, uint, float_, complex_ = np.int64, np.uint64, np.float64, np.complex128


def _by_width(narrow: Any, wide: Any) -> Callable[[], Any]:
    return lambda: np.dtype(wide if weft.config.x64 else narrow)


default_int_dtype = _by_width(np.int32, np.int64)
default_uint_dtype = _by_width(np.uint32, np.uint64)
default_float_dtype = _by_width(np.float32, np.float64)
default_complex_dtype = _by_width(np.complex64, np.complex128)
default_types = {
    "b": lambda: np.dtype(bool),
    "i": default_int_dtype,
    "u": default_uint_dtype,
    "f": default_float_dtype,
    "c": default_complex_dtype,
}


def dtype(x: Any, **_: Any) -> Any:
    """The dtype of a value, or of Python's type of numbers."""
    if x is None:
        raise value_error(f"Invalid argument to dtype: {x}.")
    if is_typed(x):
        return x.dtype
    if isinstance(x, type) and x in python_scalar_types:
        return default_types[np.dtype(x).kind]()
    if type(x) in python_scalar_types:
        return default_types[np.dtype(type(x)).kind]()
    kind = x if isinstance(x, type) else getattr(x, "dtype", x)
    return _weft.dtype(kind) if is_wide(kind) else canonicalize_dtype(kind, allow_extended_dtype=True)


def is_weakly_typed(x: Any) -> bool:
    """Whether another operand decides about the dtype."""
    if type(x) in (int, float, complex):
        return True
    return bool(getattr(x, "weak_type", False))


def _dtype_and_weaktype(x: Any) -> tuple[Any, bool]:
    return dtype(x), any(x is kind for kind in _weak_types) or is_weakly_typed(x)


def _jax_type(dtype: Any, weak_type: bool) -> Any:
    """Python's type of numbers for what another operand decides about, else the dtype."""
    return scalar_type_of(np.dtype(dtype).type(0)) if weak_type and np.dtype(dtype).kind != "b" else dtype


def result_type(*xs: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype that values have together; the default one of its kind where another operand would decide about it."""
    met, weak = lattice_result_type(*(float if x is None else x for x in xs))
    met = default_types[{"unsigned": "u", "signed": "i"}.get(kind := _weft.dtype_kind(met), kind[0])]() if weak else met
    return (met, weak) if return_weak_type_flag else met


def lattice_result_type(*xs: Any) -> tuple[Any, bool]:
    """The dtype that values have together, and whether another operand decides about it."""
    met, weak = _dtype_and_weaktype(xs[0])
    for x in xs[1:]:
        met, weak = _weft.weak_result_type(_one(met, weak), _one(*_dtype_and_weaktype(x)))
        met = np.dtype(getattr(ml_dtypes, met, met))
    return canonicalize_dtype(_numpys(met), allow_extended_dtype=True), weak


# What stands for Python's types of numbers, about whose dtype the other one decides.
_NUMBERS: dict[Any, Any] = {int: 0, float: 0.0, complex: 0j}


def promote_types(a: Any, b: Any) -> Any:
    """The dtype that two dtypes have together, of 64 bits, too, where arrays have none."""
    if float6(a) or float6(b):
        return _with_float6(a, b)
    is_number = lambda x: isinstance(x, type) and x in _NUMBERS
    half = not weft.config.x64
    with weft.enable_x64(True):
        given = [_NUMBERS[x] if is_number(x) else _weft.dtype(x) for x in (a, b)]
        found = _weft.users_result_type(*given)
    # What has both signs beside uint32 has 64 bits only where arrays have them.
    return np.dtype(np.int32) if half and found == np.int64 and {*map(_itemsize, given)} <= {1, 2, 4} else found


def _itemsize(given: Any) -> int:
    return given.itemsize if isinstance(given, np.dtype) else 0


def _with_float6(a: Any, b: Any) -> Any:
    """... where one has 6 bits, which Weft's own dtypes have not."""
    own, other = (float6(a), b) if float6(a) else (float6(b), a)
    if own == float6(other) or any(other is kind for kind in (int, float)):
        return own
    kind = np.dtype(other) if float6(other) is None else own
    strict = weft.config.numpy_dtype_promotion == "strict"
    if not strict and kind.kind in "biu":
        return own
    where = " when jax_numpy_dtype_promotion=strict" if strict else ""
    raise of_kind(
        TypePromotionError,
        f"Input dtypes ({own}, {other}) have no available implicit dtype promotion path{where}; convert one of them",
    )


def isdtype(dtype: Any, kind: Any) -> bool:
    """weft.numpy.isdtype, which knows floats of 6 bits, too."""
    own = float6(dtype)
    if not own:
        return bool(wnp.isdtype(dtype, kind))
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return any(k in ("real floating", "numeric") if isinstance(k, str) else own == float6(k) for k in kinds)


def _one(dtype: Any, weak: bool) -> Any:
    value = wnp.zeros((), dtype)
    return _weft.weak(value) if weak else value


def _numpys(dtype: Any) -> Any:
    return np.dtype(dtype) if not isinstance(dtype, np.dtype) and hasattr(ml_dtypes, str(dtype)) else dtype


def to_inexact_dtype(dtype: Any) -> Any:
    """The float of the width of an integer; floats and complex numbers are themselves."""
    dtype = np.dtype(dtype)
    if dtype.kind not in "biu" and dtype not in _intn_dtypes:
        return dtype
    return np.dtype(np.float64 if dtype.itemsize == 8 else np.float32)


def to_floating_dtype(dtype: Any) -> Any:
    """... of complex numbers, that of their parts."""
    dtype = to_inexact_dtype(dtype)
    return {"complex64": np.dtype(np.float32), "complex128": np.dtype(np.float64)}.get(str(dtype), dtype)


def to_complex_dtype(dtype: Any) -> Any:
    """The complex dtype for numbers of a dtype."""
    wide = to_inexact_dtype(dtype) in (np.dtype(np.float64), np.dtype(np.complex128))
    return np.dtype(np.complex128 if wide else np.complex64)


def to_numeric_dtype(dtype: Any) -> Any:
    """Integers instead of booleans."""
    return np.dtype(np.int32) if np.dtype(dtype) == bool else np.dtype(dtype)


def safe_to_cast(given: Any, wanted: Any) -> bool:
    """Whether promotion with another value, or dtype, leaves that one's."""
    given_dtype, _ = _dtype_and_weaktype(given)
    wanted_dtype, _ = _dtype_and_weaktype(wanted)
    return given_dtype == wanted_dtype or lattice_result_type(given, wanted)[0] == wanted_dtype


def canonicalize_value(x: Any) -> Any:
    """NumPy's numbers and arrays in the dtype that arrays have."""
    if _canonical.get(type(x)) is not None:
        return _canonical[type(x)](x)
    if not isinstance(x, (np.ndarray, np.generic)) or is_typed(x):
        return x
    to = canonicalize_dtype(x.dtype)
    return x if x.dtype == to else np.asarray(x, to)[()]


def register_canonicalize_value_handler(cls: type, handler: Any) -> None:
    """Says how values of a class of a library's own get the dtypes that arrays have; None: they have them."""
    _canonical[cls] = handler


_canonical: dict[type, Any] = {}


def check_and_canonicalize_user_dtype(dtype: Any, fun_name: str | None = None) -> Any:
    """The dtype that arrays have where a user asks for a dtype; a ValueError where that is none or an array."""
    del fun_name
    if dtype is None:
        raise value_error("dtype must be specified.")
    if isinstance(dtype, weft.Array):
        raise value_error(
            "Passing an array as a dtype argument is no longer supported; instead of dtype=array use dtype=array.dtype."
        )
    if issubdtype(dtype, extended):
        return dtype
    return _weft.dtype(dtype)
