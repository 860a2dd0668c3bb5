"""Arrays from bytes, texts and iterators, as texts, and the order of products of einsum."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from .. import _weft
from .._core import docs as _docs
from .._core.errors import type_error, value_error
from .._core.tree import jax_semantics
from .._weft import Array
from ..typing import DTypeLike, NDArrayLike, NestedLike

__all__ = [
    "array_repr",
    "array_str",
    "einsum_path",
    "frombuffer",
    "fromfile",
    "fromiter",
    "fromstring",
    "get_printoptions",
    "iterable",
    "place",
    "printoptions",
    "set_printoptions",
]


def frombuffer(buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> Array:
    """A vector of the elements in a buffer of bytes.

    Args:
        buffer: bytes, or an object with the buffer protocol.
        dtype: the dtype of the elements; float: the default float dtype.
        count: how many; -1: all.
        offset: at which byte they begin.

    Returns: array.

    Raises:
        ValueError: the buffer is too short, or its size is no multiple of an element's.

    Example:
        >>> wnp.frombuffer(bytes([1, 2, 3]), wnp.uint8)
        Array([1, 2, 3], dtype=uint8)
    """
    kind = _of_bytes(dtype)
    return _weft.array(np.frombuffer(buffer, kind, count, offset), None, True)


def _of_bytes(dtype: DTypeLike) -> np.dtype:
    """The dtype of elements that are bytes already: one that is asked for, whatever dtype arrays get of it."""
    if jax_semantics():
        try:
            return np.dtype(dtype)
        except TypeError:  # one that NumPy does not have
            pass
    return np.dtype(_weft.dtype(dtype))


def fromfile(file: Any, dtype: DTypeLike = float, count: int = -1, sep: str = "", offset: int = 0) -> Array:
    """A vector of the elements in a file, as bytes or as text.

    Args:
        file: its name, or an open file.
        dtype: the dtype of the elements; float: the default float dtype.
        count: how many; -1: all.
        sep: what stands between elements of a text; "": the file has bytes.
        offset: at which byte they begin.

    Returns: array.

    Raises:
        TypeError: file is neither.

    Example:
        >>> import pathlib, tempfile
        >>> name = pathlib.Path(tempfile.mkdtemp()) / "numbers"
        >>> _ = name.write_bytes(bytes([1, 2]))
        >>> wnp.fromfile(name, wnp.uint8)
        Array([1, 2], dtype=uint8)
    """
    if not isinstance(file, (str, bytes, os.PathLike)) and not hasattr(file, "fileno"):
        raise type_error(f"fromfile: file must be a name or an open file, got {file!r} of type '{type(file).__name__}'")
    kind = np.dtype(_weft.dtype(dtype))
    return _weft.array(np.fromfile(file, kind, count, sep, offset), None, True)


def fromiter(iter: Iterable[Any], dtype: DTypeLike, count: int = -1) -> Array:
    """A vector of what an iterator gives.

    Args:
        iter: an iterable of numbers.
        dtype: the dtype of the elements.
        count: how many; -1: all.

    Returns: array.

    Example:
        >>> wnp.fromiter((n * n for n in range(3)), int)
        Array([0, 1, 4], dtype=int32)
    """
    return _weft.array(np.fromiter(iter, np.dtype(_weft.dtype(dtype)), count), None, True)


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """A vector of the numbers in a text.

    Args:
        string: the text.
        dtype: the dtype of the elements; float: the default float dtype.
        count: how many; -1: all.
        sep: what stands between them.

    Returns: array.

    Raises:
        ValueError: sep is empty.

    Example:
        >>> wnp.fromstring("1, 2", int, sep=",")
        Array([1, 2], dtype=int32)
    """
    if not sep:
        raise value_error("fromstring: sep must not be empty; use frombuffer for bytes")
    return _weft.array(np.fromstring(string, np.dtype(_weft.dtype(dtype)), count, sep=sep), None, True)


def array_repr(
    arr: NDArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """An array as repr shows it.

    Args:
        max_line_width: as of numpy.array_repr.
        precision: how many digits.
        suppress_small: whether numbers near 0 are shown as 0.

    Returns: str.

    Example:
        >>> wnp.array_repr(wnp.array([1.0, 2.0]), precision=2)
        'Array([1., 2.], dtype=float32)'
    """
    return np.array_repr(np.asarray(arr), max_line_width, precision, suppress_small).replace("array(", "Array(", 1)


def array_str(
    a: NDArrayLike, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None
) -> str:
    """An array as str shows it.

    Args:
        max_line_width: as of numpy.array_str.
        precision: how many digits.
        suppress_small: whether numbers near 0 are shown as 0.

    Returns: str.

    Example:
        >>> wnp.array_str(wnp.array([1.0, 2.0]))
        '[1. 2.]'
    """
    return np.array_str(np.asarray(a), max_line_width, precision, suppress_small)


def get_printoptions() -> dict[str, Any]:
    """How arrays are shown: NumPy's settings, which Weft's arrays follow.

    Returns: dictionary.

    Example:
        >>> wnp.get_printoptions()["precision"]
        8
    """
    return dict(np.get_printoptions())


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """Changes how arrays are shown: numpy.set_printoptions.

    Args:
        *args: as of numpy.set_printoptions.
        **kwargs: as of numpy.set_printoptions.

    Returns: None.

    Example:
        >>> wnp.set_printoptions(precision=8)
    """
    np.set_printoptions(*args, **kwargs)


@contextlib.contextmanager
def printoptions(*args: Any, **kwargs: Any) -> Iterator[dict[str, Any]]:
    """How arrays are shown inside a with block: numpy.printoptions.

    Args:
        *args: as of numpy.printoptions.
        **kwargs: as of numpy.printoptions.

    Returns: context manager.

    Example:
        >>> with wnp.printoptions(precision=2):
        ...     print(wnp.array([1.23456]))
        [1.23]
    """
    with np.printoptions(*args, **kwargs) as options:
        yield dict(options)


def iterable(y: Any) -> bool:
    """Whether something can be iterated over.

    Args:
        y: any object.

    Returns: bool.

    Example:
        >>> wnp.iterable([1]), wnp.iterable(1)
        (True, False)
    """
    return bool(np.iterable(y))


def place(arr: NDArrayLike, mask: NestedLike, vals: NestedLike, *, inplace: bool = True) -> Array:
    """A copy in which elements where a mask is true are replaced, one after the other.

    Args:
        mask: booleans of the shape of arr.
        vals: the values, begun again when they end.
        inplace: must be False: arrays never change.

    Returns: array of the shape of arr.

    Raises:
        ValueError: inplace is True, or sizes do not fit.

    Example:
        >>> wnp.place(wnp.arange(4), wnp.array([True, False, True, True]), wnp.array([10, 20]), inplace=False)
        Array([10,  1, 20, 10], dtype=int32)
    """
    if inplace:
        raise value_error("place: arrays never change; write x = place(x, ..., inplace=False)")
    x, where, values = _weft.array(arr, None, False), _weft.array(mask, None, False), _weft.array(vals, None, False)
    if x.size != where.size:
        raise value_error(f"place: arr and mask must have the same size, got {x.size} and {where.size}")
    if not values.size:
        if x.size:
            raise value_error("place: vals must not be empty")
        return x
    chosen = where.reshape(-1).astype(bool)
    count = chosen.astype("int32").cumsum() - 1
    taken = values.reshape(-1)[count % values.size].astype(x.dtype)
    out: Array = _weft.where(chosen, taken, x.reshape(-1)).reshape(x.shape)
    return out


def einsum_path(subscripts: Any, *operands: Any, optimize: Any = "greedy") -> tuple[list[Any], str]:
    """In which order einsum had best multiply: numpy.einsum_path of arrays of the same shapes.

    Args:
        subscripts: as of einsum.
        *operands: arrays, or whatever has a shape.
        optimize: "greedy", "optimal" or a path.

    Returns: pair of a list and a text that explains it.

    Example:
        >>> wnp.einsum_path("ij,jk,k->i", wnp.ones((2, 2)), wnp.ones((2, 2)), wnp.ones(2))[0]
        ['einsum_path', (1, 2), (0, 1)]
    """
    plain = [np.broadcast_to(np.float32(0), op.shape) if hasattr(op, "shape") else op for op in (subscripts, *operands)]
    path, text = np.einsum_path(*plain, optimize=optimize)  # type: ignore[arg-type]
    return list(path), str(text)


_docs.complete(globals(), {})
