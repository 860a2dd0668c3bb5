"""What pickles of arrays and programs call when they are read.

Functions of this module and nothing else: an unpickler that admits only what it is told to admit can name them. (A
native function would be written as an expression for `eval`, which such an unpickler refuses.) Pickles on disk name
them, so they stay as they are.
"""

from . import _weft


def array(dtype: str, shape: tuple[int, ...], data: bytes, weak: bool) -> _weft.Array:
    """An array of these bytes. Raises ValueError where they do not fit its type."""
    return _weft._array_from_bytes(dtype, shape, data, weak)


def program(text: str, file: str) -> _weft.Fn:
    """The function of this text of the IR. Raises ParseError."""
    return _weft.parse_fn(text, file)
