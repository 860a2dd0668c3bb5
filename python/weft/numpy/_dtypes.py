"""dtypes and what is asked about them."""

from __future__ import annotations

import copyreg
import sys
from typing import Any

import numpy as np

from .. import _weft
from .._core import docs as _docs
from .._core.errors import type_error, value_error
from .._core.shapes import ShapeDtype
from .._weft import Array
from ..typing import DTypeLike, NestedLike

__all__ = [
    "complex_",
    "cdouble",
    "csingle",
    "double",
    "single",
    "bfloat16",
    "bool_",
    "can_cast",
    "complex64",
    "complex128",
    "complexfloating",
    "dtype",
    "finfo",
    "float16",
    "float32",
    "float64",
    "float4_e2m1fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float_",
    "floating",
    "generic",
    "iinfo",
    "inexact",
    "int16",
    "int2",
    "int32",
    "int4",
    "int64",
    "int8",
    "int_",
    "integer",
    "iscomplexobj",
    "isdtype",
    "isrealobj",
    "isscalar",
    "issubdtype",
    "number",
    "promote_types",
    "result_type",
    "signedinteger",
    "uint",
    "uint16",
    "uint2",
    "uint32",
    "uint4",
    "uint64",
    "uint8",
    "unsignedinteger",
]


class _Scalar(type):
    """The class of float32 and the others: a dtype that is also a function, where float32(x) is x as an array of that
    dtype. It stands wherever NumPy takes a dtype, and equals NumPy's. Like NumPy's scalar types they are classes, of
    which there are no objects."""

    dtype: Any
    type: Any

    def __new__(cls, name: str) -> Any:
        dtype = _weft.dtype(name)
        parts = {"__module__": "weft.numpy", "__qualname__": name, "__doc__": cls.__doc__}
        return super().__new__(cls, name, (), {**parts, "dtype": dtype, "type": getattr(dtype, "type", None)})

    def __init__(self, name: str):
        super().__init__(name, (), {})

    def __call__(self, x=0) -> Array:
        return _weft.array(x, self.dtype, False)

    def __instancecheck__(self, x: Any) -> bool:
        """isinstance(x, float32): whether x is one of NumPy's numbers of the dtype."""
        return self.type is not None and isinstance(x, self.type)

    def __eq__(self, other) -> bool:
        if isinstance(other, _Scalar):
            return self.dtype == other.dtype
        try:
            return bool(self.dtype == other)
        except TypeError:
            return NotImplemented

    def __hash__(self) -> int:
        # As NumPy's scalar type, and as JAX's: numpy.int32 is in {int32}.
        return hash(self.dtype if self.type is None else self.type)

    def __repr__(self) -> str:
        # Under weft.as_jax it is a class of jax.numpy.
        weft_own = self.__module__.startswith("weft.")
        return f"{self.__module__}.{self.__name__}" if weft_own else super().__repr__()


def _scalar(name: str) -> Any:
    return bool_ if name == "bool" else globals()[name]


# By their names, whatever module says that it has them.
copyreg.pickle(_Scalar, lambda scalar: (_scalar, (scalar.__name__,)))

bool_: Any = _Scalar("bool")
int2: Any = _Scalar("int2")
int4: Any = _Scalar("int4")
int8: Any = _Scalar("int8")
int16: Any = _Scalar("int16")
int32: Any = _Scalar("int32")
int64: Any = _Scalar("int64")
uint2: Any = _Scalar("uint2")
uint4: Any = _Scalar("uint4")
uint8: Any = _Scalar("uint8")
uint16: Any = _Scalar("uint16")
uint32: Any = _Scalar("uint32")
uint64: Any = _Scalar("uint64")
float4_e2m1fn: Any = _Scalar("float4_e2m1fn")
float8_e3m4: Any = _Scalar("float8_e3m4")
float8_e4m3: Any = _Scalar("float8_e4m3")
float8_e4m3b11fnuz: Any = _Scalar("float8_e4m3b11fnuz")
float8_e4m3fn: Any = _Scalar("float8_e4m3fn")
float8_e4m3fnuz: Any = _Scalar("float8_e4m3fnuz")
float8_e5m2: Any = _Scalar("float8_e5m2")
float8_e5m2fnuz: Any = _Scalar("float8_e5m2fnuz")
float8_e8m0fnu: Any = _Scalar("float8_e8m0fnu")
float16: Any = _Scalar("float16")
bfloat16: Any = _Scalar("bfloat16")
float32: Any = _Scalar("float32")
float64: Any = _Scalar("float64")
complex64: Any = _Scalar("complex64")
complex128: Any = _Scalar("complex128")
int_, uint, float_, complex_ = int32, uint32, float32, complex64
single, double, csingle, cdouble = float32, float64, complex64, complex128

dtype = np.dtype
generic, number, inexact, floating, complexfloating = (
    np.generic,
    np.number,
    np.inexact,
    np.floating,
    np.complexfloating,
)
integer, signedinteger, unsignedinteger = np.integer, np.signedinteger, np.unsignedinteger


def finfo(dtype: Any) -> Any:
    """The limits of a float dtype: bits, eps, max, min, tiny ...

    Args:
        dtype: a float or complex dtype, bfloat16 and those of 4 and 8 bits too (these need ml_dtypes), or an array.

    Returns: NumPy's finfo, or that of ml_dtypes, which has the same attributes.

    Raises:
        ValueError: dtype is no float dtype.

    Example:
        >>> wnp.finfo(wnp.bfloat16).eps, wnp.finfo("float32").bits
        (0.0078125, 32)
    """
    own = _weft.dtype(dtype.dtype if isinstance(dtype, Array) else dtype)
    if isinstance(own, np.dtype) and own.kind in "fc" and own.isbuiltin == 1:  # 2: one of ml_dtypes
        return np.finfo(own)
    if not _weft.is_inexact(own):
        raise value_error(f"finfo: a float dtype is needed, got {own}; iinfo is for integers")
    import ml_dtypes  # only this needs it: it may not be installed

    return ml_dtypes.finfo(own)


def iinfo(dtype: Any) -> Any:
    """The limits of an integer dtype: bits, max, min.

    Args:
        dtype: an integer dtype, those of 2 and 4 bits too (these need ml_dtypes), or an array.

    Returns: NumPy's iinfo, or that of ml_dtypes, which has the same attributes.

    Raises:
        ValueError: dtype is no integer dtype.

    Example:
        >>> wnp.iinfo(wnp.int8).max
        127
    """
    own = _weft.dtype(dtype.dtype if isinstance(dtype, Array) else dtype)
    if _weft.dtype_kind(own) not in ("signed", "unsigned"):
        raise value_error(f"iinfo: an integer dtype is needed, got {own}; finfo is for floats")
    if isinstance(own, np.dtype) and own.kind in "iu":
        return np.iinfo(own)
    import ml_dtypes  # only this needs it: it may not be installed

    return ml_dtypes.iinfo(own)


def result_type(*args: Any) -> Any:
    """The dtype that arrays, numbers and dtypes have together, by JAX's promotion table: Python numbers are weak,
    integers with floats give that float, 64-bit stays.

    Args:
        *args: arrays, numbers and dtypes, at least one.

    Returns: NumPy dtype.

    Raises:
        ValueError: no arguments are given.
        TypeError: an argument is none of these.

    Source: docs.jax.dev, "Type promotion semantics", the lattice of types.

    Example:
        >>> wnp.result_type(wnp.int32, wnp.float16)
        dtype('float16')
        >>> wnp.result_type(wnp.ones(2, "bfloat16"), 1.0)
        dtype(bfloat16)
    """
    return (_weft.users_result_type if _asked_by_user() else _weft.result_type)(*args)


def _asked_by_user() -> bool:
    """Whether a program called the calling function: numpy_dtype_promotion="strict" is about its arguments."""
    return not sys._getframe(2).f_globals.get("__name__", "").startswith("weft.")


def promote_types(a: DTypeLike, b: DTypeLike) -> Any:
    """The dtype that two dtypes have together, by JAX's promotion table.

    Args:
        a: a dtype.
        b: a dtype.

    Returns: NumPy dtype.

    Raises:
        TypeError: an argument is no dtype.

    Example:
        >>> wnp.promote_types("int32", "float16")
        dtype('float16')
    """
    own = _weft.dtype(a), _weft.dtype(b)
    return (_weft.users_result_type if _asked_by_user() else _weft.result_type)(*own)


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether a dtype is of a kind of NumPy's hierarchy; bfloat16 is a floating dtype, int4 a signed integer.

    Args:
        arg1: a dtype.
        arg2: a dtype, or a kind such as weft.numpy.floating or integer.

    Returns: bool.

    Raises:
        TypeError: an argument is no dtype.

    Example:
        >>> wnp.issubdtype(wnp.bfloat16, wnp.floating)
        True
    """
    added = lambda d: isinstance(d, type) and d.__module__.startswith("ml_dtypes")
    plain = lambda d: d.dtype if isinstance(d, _Scalar) else np.dtype(d) if isinstance(d, str) or added(d) else d
    arg1, arg2 = plain(arg1), plain(arg2)
    if isinstance(arg1, np.dtype) and (arg1.kind == "V" or added(arg1.type)) and isinstance(arg2, type):
        kinds = {"signed": (np.signedinteger, np.integer), "unsigned": (np.unsignedinteger, np.integer)}
        return arg2 in (*kinds.get(_weft.dtype_kind(arg1), (np.floating, np.inexact)), np.number, np.generic)
    return np.issubdtype(arg1, arg2)


def isdtype(dtype: DTypeLike, kind: Any) -> bool:
    """Whether a dtype is of a kind of the array API.

    Args:
        dtype: a dtype.
        kind: "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric",
            a dtype, or a tuple of these.

    Returns: bool.

    Raises:
        ValueError: there is no such kind.
        TypeError: dtype is no dtype.

    Example:
        >>> wnp.isdtype(wnp.int8, ("bool", "integral"))
        True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(dtype, np.dtype) and isinstance(kind, np.dtype):
        return dtype == kind  # those of other libraries, too
    mine = _weft.dtype_kind(dtype)
    kinds = {
        "bool": {"bool"},
        "signed integer": {"signed"},
        "unsigned integer": {"unsigned"},
        "integral": {"signed", "unsigned"},
        "real floating": {"float"},
        "complex floating": {"complex"},
        "numeric": {"signed", "unsigned", "float", "complex"},
    }
    if isinstance(kind, str):
        if kind not in kinds:
            raise value_error(f"isdtype: there is no kind {kind!r}; the kinds are {', '.join(kinds)}")
        return mine in kinds[kind]
    return _weft.dtype(dtype) == _weft.dtype(kind)


def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Whether a dtype converts to another by a rule of NumPy's.

    Args:
        from_: a dtype.
        to: a dtype.
        casting: "no", "equiv", "safe", "same_kind" or "unsafe".

    Returns: bool.

    Raises:
        TypeError: an argument is no dtype.
        ValueError: there is no such rule.

    Example:
        >>> wnp.can_cast("int32", "int64"), wnp.can_cast("float64", "float32")
        (True, False)
    """
    return np.can_cast(_weft.dtype(from_), _weft.dtype(to), casting)  # type: ignore[arg-type]


def summed_in(dtype: Any, preferred_element_type: DTypeLike | None, name: str) -> Any:
    """The dtype in which a product of operands of a dtype is computed: the wider of it and the result's."""
    if preferred_element_type is None:
        return dtype
    wanted = _weft.dtype(preferred_element_type)
    whole = ("signed", "unsigned")
    if _weft.dtype_kind(dtype) in whole and _weft.dtype_kind(wanted) in whole:
        if iinfo(wanted).bits < iinfo(dtype).bits:
            raise type_error(f"{name}: preferred_element_type {wanted} is narrower than the operands' {dtype}")
        if iinfo(dtype).bits < 8:  # which no other dtype is promoted with
            return wanted
    if str(dtype).startswith("float8") and _weft.is_inexact(wanted):
        return wanted
    if _weft.dtype_kind(dtype) == "complex" and _weft.dtype_kind(wanted) != "complex":
        raise type_error(f"{name}: preferred_element_type {wanted} is not complex, as the operands' {dtype} is")
    return _weft.result_type(dtype, wanted)


def product_dtype(lhs: Array, rhs: Array, preferred_element_type: DTypeLike | None, name: str) -> Any:
    """The same of two operands; those of two 8-bit floats, which have no common dtype, in the one that is asked for."""
    both = all(str(x.dtype).startswith("float8") for x in (lhs, rhs))
    if both and preferred_element_type is not None and _weft.is_inexact(preferred_element_type):
        return _weft.dtype(preferred_element_type)
    return summed_in(_weft.users_result_type(lhs, rhs), preferred_element_type, name)


def same_bits(x: Array, dtype: Any) -> Array:
    """The bits of the elements as another dtype of the same width."""
    to = _weft.dtype(dtype)
    if str(x.dtype).removeprefix("u") == str(to).removeprefix("u"):  # to the same width integers convert bit by bit
        return x.astype(to)
    return _weft.bind_elementwise("bitcast", (x,), {"dtype": to})


def taken_as(x: NestedLike, dtype: Any, what: str, exact: bool = False) -> Array:
    """x in the dtype of the array that takes it, which it must not widen: no fraction, imaginary part or digit is lost.
    `exact`: nor may x have another dtype, unless it is weak. `what` names the function and x."""
    known = _weft.is_operand(x) or isinstance(x, ShapeDtype)
    own = _weft.abstract(x)[1] if known else _weft.array(x, None, False).dtype
    weak = x.weak_type if isinstance(x, Array) else type(x) in (bool, int, float, complex)
    met = _weft.result_type(x if _weft.is_operand(x) else own, dtype)
    if met != dtype or (exact and not weak and own != dtype):
        raise type_error(f"{what} has dtype {own}, the operand {dtype}; convert one of them")
    return _weft.array(x, dtype, False)


def _as_array(x: Any) -> Any:
    """The array that an object of another class stands for, if it says so."""
    is_other = hasattr(x, "__jax_array__") or hasattr(x, "__weft_array__")
    return _weft.array(x, None, False) if is_other and not isinstance(x, Array) else x


def iscomplexobj(x: NestedLike) -> bool:
    """Whether the elements are of a complex dtype.

    Returns: bool.

    Example:
        >>> wnp.iscomplexobj(wnp.array([1j]))
        True
    """
    x = _as_array(x)
    if hasattr(x, "dtype"):
        return _weft.dtype_kind(_weft.dtype(x.dtype)) == "complex"
    if isinstance(x, (list, tuple)) or hasattr(x, "__weft_array__") or hasattr(x, "__jax_array__"):
        return _weft.dtype_kind(_weft.array(x, None, False).dtype) == "complex"
    return isinstance(x, complex)


def isrealobj(x: NestedLike) -> bool:
    """Whether the elements are not of a complex dtype.

    Returns: bool.

    Example:
        >>> wnp.isrealobj(wnp.array([1.0]))
        True
    """
    return not iscomplexobj(x)


def isscalar(element: NestedLike) -> bool:
    """Whether something is a single number: Python's, NumPy's or an array without dimensions.

    Args:
        element: any object.

    Returns: bool.

    Example:
        >>> wnp.isscalar(3), wnp.isscalar(wnp.ones(2))
        (True, False)
    """
    x = _as_array(element)
    return np.isscalar(x) or (isinstance(x, (Array, np.ndarray)) and x.ndim == 0)


_docs.complete(globals())
