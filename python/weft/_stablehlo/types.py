"""Element types and arrays as StableHLO writes them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _weft
from .._core.errors import not_implemented, value_error
from .attributes import quoted

__all__ = [
    "ELEMENTS",
    "OtherType",
    "TensorType",
    "TupleType",
    "array_of",
    "bits_of",
    "dense",
    "element",
    "listed_attributes",
    "tensor",
]


class _Element(NamedTuple):
    ours: str  # in types of the IR
    dtype: str  # in Python
    theirs: str
    bits: str  # the unsigned dtype that has an element's bits


# A random key is two words of 32 bits, and so an element of 64 bits.
_ROWS = [
    _Element("bool", "bool", "i1", "uint8"),
    _Element("i2", "int2", "i2", "uint8"),
    _Element("i4", "int4", "i4", "uint8"),
    _Element("i8", "int8", "i8", "uint8"),
    _Element("i16", "int16", "i16", "uint16"),
    _Element("i32", "int32", "i32", "uint32"),
    _Element("i64", "int64", "i64", "uint64"),
    _Element("u2", "uint2", "ui2", "uint8"),
    _Element("u4", "uint4", "ui4", "uint8"),
    _Element("u8", "uint8", "ui8", "uint8"),
    _Element("u16", "uint16", "ui16", "uint16"),
    _Element("u32", "uint32", "ui32", "uint32"),
    _Element("u64", "uint64", "ui64", "uint64"),
    _Element("f4e2m1fn", "float4_e2m1fn", "f4E2M1FN", "uint8"),
    _Element("f8e3m4", "float8_e3m4", "f8E3M4", "uint8"),
    _Element("f8e4m3", "float8_e4m3", "f8E4M3", "uint8"),
    _Element("f8e4m3b11fnuz", "float8_e4m3b11fnuz", "f8E4M3B11FNUZ", "uint8"),
    _Element("f8e4m3fn", "float8_e4m3fn", "f8E4M3FN", "uint8"),
    _Element("f8e4m3fnuz", "float8_e4m3fnuz", "f8E4M3FNUZ", "uint8"),
    _Element("f8e5m2", "float8_e5m2", "f8E5M2", "uint8"),
    _Element("f8e5m2fnuz", "float8_e5m2fnuz", "f8E5M2FNUZ", "uint8"),
    _Element("f8e8m0fnu", "float8_e8m0fnu", "f8E8M0FNU", "uint8"),
    _Element("f16", "float16", "f16", "uint16"),
    _Element("bf16", "bfloat16", "bf16", "uint16"),
    _Element("f32", "float32", "f32", "uint32"),
    _Element("f64", "float64", "f64", "uint64"),
    _Element("c64", "complex64", "complex<f32>", "float32"),
    _Element("c128", "complex128", "complex<f64>", "float64"),
    _Element("key", "key", "ui64", "uint64"),
]
_OURS = {row.ours: row for row in _ROWS}
_DTYPES = {row.dtype: row for row in _ROWS}
# Their name -> the dtype.
ELEMENTS = {row.theirs: row.dtype for row in _ROWS if row.ours != "key"}
ELEMENTS["index"] = "int64"  # of sizes and layouts


def bits_of(dtype: str) -> int:
    """How many bits an element of a dtype has."""
    row = _DTYPES[dtype]
    narrow = re.fullmatch(r"(?:u?i|f)(\d)(?:E\w+)?", row.theirs)
    return int(narrow[1]) if narrow else np.dtype(row.bits).itemsize * 8


def element(dtype: str) -> str:
    """What they call a dtype."""
    return _DTYPES[dtype].theirs


class TensorType(NamedTuple):
    """The type of an array. A size is None where the text does not say it."""

    shape: tuple[int | None, ...]
    dtype: str

    def __str__(self) -> str:
        sizes = "".join(f"{'?' if n is None else n}x" for n in self.shape)
        return f"tensor<{sizes}{element(self.dtype)}>"


class TupleType(NamedTuple):
    """The type of a tuple."""

    parts: tuple[Any, ...]


class OtherType(NamedTuple):
    """A type that no value here has: of tokens, of functions."""

    text: str


def tensor(ours: str) -> str:
    """The type of an array of the IR, `f32[2,3]`, as they write it."""
    found = re.fullmatch(r"(\w+)\[(.*)\](\{.*\})?", ours)  # in braces: the axes along which devices differ
    assert found is not None, ours
    name, sizes, _ = found.groups()
    if name not in _OURS:
        raise not_implemented(
            f"to_stablehlo: StableHLO has no {ours}: what a loop of unknown length records for its derivative. Give "
            "the loop a known length (weft.fori_loop, weft.scan), or write the function before it is differentiated"
        )
    shape = sizes.split(",") if sizes else []
    if not all(n.isdigit() for n in shape):
        raise not_implemented(f"to_stablehlo: {ours} has a symbolic size; trace the function for given shapes")
    return f"tensor<{''.join(f'{n}x' for n in shape)}{_OURS[name].theirs}>"


def dense(array: Any) -> str:
    """The elements of an array as an attribute's value, without its type: `dense<[1, 2]>`."""
    shape, dtype = tuple(array.shape), str(array.dtype)
    dtype = "key" if dtype.startswith("key") else dtype
    row = _DTYPES[dtype]
    if dtype == "key":
        bits = np.asarray(_weft.bind("random_unwrap", [array], {})[0])
        return _dense_of(np.ascontiguousarray(bits).view(np.uint64).reshape(shape), str)
    if dtype.startswith("complex"):
        return _dense_of(np.asarray(array), lambda z: f"({_float(z.real, row.bits)}, {_float(z.imag, row.bits)})")
    if row.dtype == "bool":
        return _dense_of(np.asarray(array), lambda x: "true" if x else "false", raw=False)
    if "float" in dtype:
        bits = np.asarray(_bits(array, row.bits))
        wide = np.asarray(_weft.astype(array, "float64"))
        if wide.size > _MOST and not _is_splat(bits):
            return f'dense<"0x{bits.tobytes().hex().upper()}">'
        texts = iter([_number(x, b, bits.dtype.itemsize) for x, b in zip(wide.ravel(), bits.ravel())])
        return _nested(shape, list(texts), _is_splat(bits))
    small = row.ours in ("i2", "i4", "u2", "u4")
    numbers = np.asarray(_weft.astype(array, "int8" if row.ours[0] == "i" else "uint8") if small else array)
    return _dense_of(numbers, lambda n: str(int(n)), raw=not small)


# Arrays of more elements are written as their bytes.
_MOST = 32


def _bits(array: Any, dtype: str) -> Any:
    return _weft.bind("bitcast", [array], {"dtype": _weft.dtype(dtype)})[0]


def _is_splat(a: np.ndarray) -> bool:
    """Whether all elements have the same bits: 0 and -0 are two numbers."""
    if a.size == 0:
        return False
    rows = np.ascontiguousarray(a).reshape(-1).view(np.uint8).reshape(a.size, -1)
    return bool((rows == rows[0]).all())


def _dense_of(a: np.ndarray, text: Any, raw: bool = True) -> str:
    splat = _is_splat(a)
    if raw and a.size > _MOST and not splat:
        return f'dense<"0x{np.ascontiguousarray(a).tobytes().hex().upper()}">'
    return _nested(a.shape, [text(x) for x in (a.ravel()[:1] if splat else a.ravel())], splat)


def _nested(shape: Sequence[int], texts: list[str], splat: bool) -> str:
    if splat:
        return f"dense<{texts[0]}>"
    for n in reversed(shape[1:] if shape else ()):
        texts = [f"[{', '.join(texts[i : i + n])}]" for i in range(0, len(texts), n)] if n else []
    return f"dense<[{', '.join(texts)}]>" if texts else "dense<>"


def _number(x: float, bits: int, width: int) -> str:
    if not math.isfinite(x):
        return f"0x{int(bits):0{2 * width}X}"
    text = f"{float(x):.6e}"  # as MLIR writes what so many digits say
    if float(text) == x:
        return text
    text = repr(float(x))
    mantissa, e, exponent = text.partition("e")
    return text if "." in mantissa else f"{mantissa}.0{e}{exponent}"


def _float(x: Any, dtype: str) -> str:
    bits = np.asarray(x, dtype)
    width = bits.dtype.itemsize
    return _number(float(x), int(bits.view(f"uint{8 * width}")), width)


_TOKEN = re.compile(r"0x[0-9A-Fa-f]+|[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?)|true|false")


def array_of(content: str, type_: TensorType, name: str) -> Any:
    """The array that the text between `dense<` and `>` describes. `name`: what errors say is wrong."""
    if any(n is None for n in type_.shape):
        raise value_error(f"{name}: an array whose size is not known: {type_}")
    shape: tuple[int, ...] = tuple(n for n in type_.shape if n is not None)
    size, row = math.prod(shape), _DTYPES[type_.dtype]
    content = content.strip()
    if content.startswith('"'):
        return _of_bytes(content, shape, size, row, name)
    words = _TOKEN.findall(content)
    if row.dtype.startswith("complex"):
        parts = [_value(w, row.bits) for w in words]
        values = np.array([complex(a, b) for a, b in zip(parts[::2], parts[1::2])], row.dtype)
    elif "float" in row.dtype:
        narrow = row.dtype not in ("float16", "float32", "float64")
        kind = "float64" if narrow else row.dtype
        values = np.array([_value(w, kind) if not w.startswith("0x") else _of_bits(w, row) for w in words], kind)
    elif row.dtype == "bool":
        values = np.array([w == "true" or w == "1" for w in words], bool)
    else:
        wide = {"int2": "int8", "int4": "int8", "uint2": "uint8", "uint4": "uint8"}.get(row.dtype, row.dtype)
        numbers = [int(w == "true") if w in ("true", "false") else int(w, 0 if "x" in w else 10) for w in words]
        width = np.dtype(wide).itemsize * 8
        values = np.array([n & (1 << width) - 1 for n in numbers], f"uint{width}").view(wide)
    if len(values) == 1 and not content.startswith("[") and size != 1:
        values = np.broadcast_to(values, (size,))
    if len(values) != size:
        raise value_error(f"{name}: {type_} has {size} elements, the text {len(values)}")
    return _as(values.reshape(shape), row.dtype)


def _as(values: Any, dtype: str) -> Any:
    return _weft.astype(_weft.array(np.asarray(values), None, False), dtype)


def _value(word: str, dtype: str) -> float:
    if word.startswith("0x"):
        kind = np.dtype(dtype)
        return float(np.array(int(word, 16), f"uint{8 * kind.itemsize}").view(kind))
    return float(word)


def _of_bits(word: str, row: _Element) -> float:
    bits = _weft.array(np.array(int(word, 16), row.bits), None, False)
    return float(np.asarray(_weft.astype(_bits(bits, row.dtype), "float64")))


def _of_bytes(content: str, shape: tuple[int, ...], size: int, row: _Element, name: str) -> Any:
    try:
        data = bytes.fromhex(content.strip('"').removeprefix("0x"))
    except ValueError:
        raise value_error(f"{name}: the elements {content[:40]} are no hexadecimal bytes") from None
    if row.dtype == "bool" and len(data) == -(-size // 8) and size > 1:
        bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")[:size]
        return _as(bits.reshape(shape).astype(bool), "bool")
    native = row.dtype if row.dtype.startswith("complex") else row.bits
    width = np.dtype(native).itemsize
    values = np.frombuffer(data, native) if len(data) % width == 0 else np.zeros(0, native)
    if len(values) == 1 != size:
        values = np.broadcast_to(values, (size,))
    if len(values) != size:
        raise value_error(f"{name}: {len(data)} bytes for an array of {size} elements of {width} bytes")
    values = values.reshape(shape)
    if row.dtype.startswith("complex") or row.dtype == row.bits:
        return _as(values, row.dtype)
    if row.dtype == "bool" or row.dtype in ("int2", "int4", "uint2", "uint4"):
        return _as(values.view("int8"), row.dtype)
    return _bits(_weft.array(np.ascontiguousarray(values), None, False), row.dtype)


def listed_attributes(attributes: Sequence[tuple[str, Any]]) -> str:
    """A dictionary of numbers, texts, dtypes and arrays."""
    return f"{{{', '.join(f'{name} = {_attribute(value)}' for name, value in attributes)}}}"


def _attribute(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, np.dtype):
        return element(str(value))
    if isinstance(value, (np.ndarray, np.generic)):
        array = _weft.array(value, None, False)
        return f"{dense(array)} : {tensor(_weft.abstract(array)[3])}"
    return f"{value} : i64" if isinstance(value, int) else f"{_float(value, 'float64')} : f64"
