"""Numbers and NumPy's arrays that say of which dtype of arrays they are, and whether they are weak
(jax._src.literals). Weft's programs hold numbers of their own: these are what libraries make themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft

from .. import _weft
from .._core.shapes import ShapedArray


class _Number:
    """A number with a dtype, which is kept whatever the width of numbers is (`enable_x64`)."""

    weak_type = True
    dtype: Any

    def __new__(cls, value: Any, dtype: Any) -> Any:
        number = super().__new__(cls, value)  # type: ignore[call-arg]
        number.dtype = np.dtype(dtype)
        return number

    @property
    def aval(self) -> ShapedArray:
        """Its type."""
        return ShapedArray((), self.dtype, True)

    def __getnewargs__(self) -> Any:
        return self._plain(self), self.dtype  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._plain(self)!r}, dtype={self.dtype.name})"  # type: ignore[attr-defined]


class TypedInt(_Number, int):
    """An integer with a dtype."""

    _plain = int


class TypedFloat(_Number, float):
    """A real number with a dtype."""

    _plain = float


class TypedComplex(_Number, complex):
    """A complex number with a dtype."""

    _plain = complex


class LiteralArray:
    """What TypedNdArray is called, too."""


class TypedNdArray(np.ndarray, LiteralArray):
    """An array of NumPy's whose dtype is kept, and which may be weak."""

    weak_type = False

    def __new__(cls, val: Any, aval: Any = None) -> TypedNdArray:
        array = np.asarray(val).view(cls)
        array.weak_type = bool(getattr(aval, "weak_type", False))
        return array

    def __array_finalize__(self, made_of: Any) -> None:
        self.weak_type = getattr(made_of, "weak_type", False)

    @property
    def aval(self) -> ShapedArray:
        """Its type."""
        return ShapedArray(self.shape, self.dtype, self.weak_type)

    @property
    def val(self) -> np.ndarray:
        """The same as an array of NumPy's own class."""
        return np.asarray(self).view(np.ndarray)


def is_typed(x: Any) -> bool:
    """Whether it is one of these."""
    return isinstance(x, (_Number, TypedNdArray))


def as_array(x: Any) -> Any:
    """The array of such a value; others as they are."""
    if not is_typed(x):
        return x
    plain = x.val if isinstance(x, TypedNdArray) else x._plain(x)
    with weft.enable_x64(True):
        out = _weft.array(plain, x.dtype, False)
    return _weft.weak(out) if x.weak_type else out


def arrays_in(tree: Any) -> Any:
    """A tree with arrays in the places of these."""
    return weft.tree.map(as_array, tree) if any(map(is_typed, weft.tree.leaves(tree))) else tree


def stage(x: Any, /) -> Any:
    """jax.lax.stage, of these values, too."""
    return weft.lax.stage(as_array(x))
