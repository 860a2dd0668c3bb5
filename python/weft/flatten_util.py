"""Trees of arrays as one vector, and back."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from . import _weft
from . import numpy as wnp
from ._core import copied as _copied
from ._core import docs as _docs
from ._core import tree as _tree
from ._core.errors import type_error
from ._weft import Array

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree: Any) -> tuple[Array, Callable[[Any], Any]]:
    """The elements of all arrays of a tree as one vector, and the function that makes the tree of such a vector.

    Args:
        pytree: tree of arrays and numbers.

    Returns: pair of a vector of the dtype that the leaves have together, and a function (vector) -> tree, whose leaves
        have the shapes and dtypes of the given ones; where all of these have one dtype, that of the vector.

    Raises:
        TypeError: a leaf is no array or number. Of the function: the vector is not as long as the tree, or (where
            leaves differ in their dtypes) of another dtype.

    Example:
        >>> vector, tree_of = weft.flatten_util.ravel_pytree({"w": wnp.ones((2, 2)), "b": 3.0})
        >>> vector
        Array([3., 1., 1., 1., 1.], dtype=float32)
        >>> tree_of(2 * vector)["b"]
        Array(6., dtype=float32)
    """
    leaves, treedef = _tree.flatten(pytree)
    arrays = [_weft.strong(_weft.array(x, None, False)) for x in leaves]
    shapes, dtypes = tuple(x.shape for x in arrays), tuple(x.dtype for x in arrays)
    dtype = _weft.result_type(*arrays) if arrays else _weft.default_dtype("float")
    flat = [x.reshape(-1).astype(dtype) for x in arrays]
    vector = _copied.concatenate(flat, 0) if flat else wnp.zeros(0, dtype)
    return vector, _TreeOf(treedef, shapes, dtypes, dtype)


class _TreeOf:
    """(vector) -> tree. Those of trees of one structure are equal, so that one jitted program serves all."""

    def __init__(self, *known: Any):
        self._known = known

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _TreeOf) and self._known == other._known

    def __hash__(self) -> int:
        return hash(self._known)

    def __call__(self, vector: Any) -> Any:
        treedef, shapes, dtypes, dtype = self._known
        vector = wnp.asarray(vector)
        total = sum(math.prod(shape) for shape in shapes)
        if vector.shape != (total,):
            raise type_error(f"ravel_pytree: a vector of {total} elements is needed, got shape {vector.shape}")
        alike = len(set(dtypes)) == 1  # then a vector of any dtype makes a tree of that one
        if not alike and vector.dtype != dtype:
            raise type_error(f"ravel_pytree: a vector of {dtype} is needed, got {vector.dtype}; convert it with astype")
        parts, at = [], 0
        for shape, own in zip(shapes, dtypes):
            n = math.prod(shape)
            part = vector[at : at + n].reshape(shape)
            # A vector of a complex dtype may stand for real leaves.
            if not alike and _weft.dtype_kind(part.dtype) == "complex" and _weft.dtype_kind(own) != "complex":
                part = wnp.real(part)
            parts.append(part if alike else part.astype(own))
            at += n
        return _tree.unflatten(treedef, parts)


_docs.complete(globals())
