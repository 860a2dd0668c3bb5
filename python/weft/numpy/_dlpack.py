"""Arrays of other libraries, by DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _weft
from .._core import docs as _docs
from .._core.errors import type_error
from .._core.tree import jax_semantics
from .._sharding.placing import placed
from .._weft import Array
from ..typing import NestedLike

__all__ = ["from_dlpack"]

_WIDE = frozenset(np.dtype(name) for name in ("int64", "uint64", "float64", "complex128"))


def from_dlpack(x: NestedLike, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """The array of another library, without a copy: what is written to that one afterwards is seen in this one, and in
    results that are still to be computed from it. An array that is not row-major, or does not begin at a multiple of
    the size of its numbers, is copied.

    Args:
        x: an object with the method __dlpack__: an array in host memory.
        copy: True: the array gets memory of its own. False: an error where it would have to be copied.

    Returns: array of its shape and dtype.

    Raises:
        TypeError: x has no such method, or has a dtype without counterpart.
        NotImplementedError: x is on another device, or of another major version of DLPack.
        ValueError: x would have to be copied, and copy is False; it was taken before, or its header says what cannot
            be.

    Example:
        >>> import numpy as np
        >>> wnp.from_dlpack(np.arange(3.0))
        Array([0., 1., 2.], dtype=float64)
    """
    if not hasattr(x, "__dlpack__"):
        raise type_error(f"from_dlpack: x is {x!r} of type '{type(x).__name__}', which has no method __dlpack__")
    out = _weft.from_dlpack(x, copy)
    if jax_semantics() and out.dtype in _WIDE:  # of 32 bits, unless x64 is on
        out = out.astype(_weft.array(np.empty(0, out.dtype), None, True).dtype)
    return placed(out, "from_dlpack", device)


_docs.complete(globals(), {}, arrays=True)
