"""Arrays in files, in NumPy's formats."""

from __future__ import annotations

import os
from typing import IO, Any

import numpy as np

from .. import _weft
from .._core import docs as _docs
from ..typing import NestedLike
from ._dtypes import bfloat16

__all__ = ["load", "save", "savez"]

File = str | os.PathLike[str] | IO[bytes]


def save(file: File, arr: NestedLike, allow_pickle: bool = False) -> None:
    """Writes an array to a .npy file.

    Args:
        file: a path, to which .npy is added where it lacks, or an open binary file.
        arr: array, number or nested list of numbers; integers of 2 and 4 bits are written as such of 8.
        allow_pickle: as numpy.save's; arrays of numbers need no pickle.

    Returns: None.

    Raises:
        OSError: the file cannot be written.
        weft.TracerError: the array is traced: its numbers are not known yet.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> wnp.save(folder + "/x.npy", wnp.arange(3))
        >>> wnp.load(folder + "/x.npy")
        Array([0, 1, 2], dtype=int32)
    """
    np.save(file, _known(arr), allow_pickle)


def _known(x: NestedLike) -> np.ndarray:
    """As it is written. NumPy's format has no name for integers of fewer than 8 bits, which are written in 8, nor for
    8-bit floats, which are bytes (ml_dtypes has a name for some, which NumPy does not read back)."""
    if isinstance(x, (np.ndarray, np.generic, bool, int, float, complex)):
        return np.asarray(x)  # what is NumPy's or Python's loses nothing
    a = _weft.array(x, None, False)
    values, kind = np.asarray(a), _weft.dtype_kind(a.dtype)
    if str(a.dtype).startswith(("float8", "float4")):
        return values.view("V1")
    whole = values.dtype.kind == "V" and kind in ("signed", "unsigned")
    return values.astype("int8" if kind == "signed" else "uint8") if whole else values


def savez(file: File, *args: NestedLike, **kwds: NestedLike) -> None:
    """Writes arrays to a .npz file.

    Args:
        file: a path, to which .npz is added where it lacks, or an open binary file.
        *args: arrays: arr_0, arr_1 and so on in the file.
        **kwds: arrays with their names.

    Returns: None.

    Raises:
        OSError: the file cannot be written.
        ValueError: two arrays have one name.
        weft.TracerError: an array is traced: its numbers are not known yet.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> wnp.savez(file, wnp.ones(2), rate=0.5)
        >>> _ = file.seek(0)
        >>> sorted(wnp.load(file))
        ['arr_0', 'rate']
    """
    named: dict[str, Any] = {name: _known(x) for name, x in kwds.items()}
    np.savez(file, *[_known(x) for x in args], **named)


def load(file: File, *args: Any, **kwargs: Any) -> Any:
    """What is in a .npy file, or a mapping from names to what is in a .npz file.

    Args:
        file: a path or an open binary file.
        *args: further arguments of numpy.load.
        **kwargs: further arguments of numpy.load.

    Returns: array of the dtype in the file; of a .npz file numpy.lib.npyio.NpzFile, whose arrays are NumPy's.

    Raises:
        OSError: the file cannot be read.
        TypeError: it holds 8-bit floats, for which NumPy's format has no name.
        ValueError: it holds no arrays, or objects.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> wnp.save(file, wnp.array([1.5, 2.0], "bfloat16"))
        >>> _ = file.seek(0)
        >>> wnp.load(file)
        Array([1.5, 2], dtype=bfloat16)
    """
    given = np.load(file, *args, **kwargs)
    if not isinstance(given, np.ndarray):
        return given
    # NumPy's format has no name for bfloat16: it says "two bytes".
    return _weft.array(given.view(bfloat16.dtype) if given.dtype == np.dtype("V2") else given, None, False)


_docs.complete(globals(), {}, arrays=True)
