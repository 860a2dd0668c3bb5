"""Types of a library's own (jax.experimental.hijax): an object of a registered class is a container of the arrays that
its type lowers it to, so that it passes through every transform.

Not there: types of objects that change other than Box, and types whose tangents are other than the tangents of these
arrays: where a derivative meets one it is an error."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import weft.numpy as wnp

from .._core import tree as _tree
from .._core.errors import not_implemented
from .._core.shapes import ShapedArray
from ..ref import AbstractRef, Ref, swap
from .core import AbstractValue, mapped_aval, own_types, unmapped_aval
from .effects import Effect
from .rules import Zero, is_undefined_primal

AbstractValue.register(AbstractRef)

__all__ = ["AbstractRef", "AbstractValue", "Ref", "Zero", "is_undefined_primal"]

Ty = AbstractValue


class HiType(AbstractValue):
    """A type of one's own. lo_ty() is the list of the types of the arrays that lower_val(value) gives, of which
    raise_val(*arrays) makes the value again."""

    is_high = True
    has_qdd = False

    def _missing(self, method: str) -> Any:
        raise not_implemented(f"weft.as_jax: {type(self).__name__} needs {method}")

    def lo_ty(self) -> list[Any]:
        """The types of the arrays."""
        return self._missing("lo_ty")

    def lower_val(self, hi_val: Any) -> list[Any]:
        """The arrays of a value."""
        return self._missing("lower_val")

    def raise_val(self, *lo_vals: Any) -> Any:
        """The value of arrays."""
        return self._missing("raise_val")

    def to_tangent_aval(self) -> Any:
        """The type of tangents."""
        return self._missing("to_tangent_aval")

    def vspace_zero(self) -> Any:
        """The tangent zero of this type."""
        return self._missing("vspace_zero")

    def vspace_add(self, x: Any, y: Any) -> Any:
        """The sum of two tangents of this type."""
        return self._missing("vspace_add")

    def to_ct_aval(self) -> Any:
        """The type of cotangents."""
        return self.to_tangent_aval()

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """The type as text."""
        return repr(self)


class MutableHiType(HiType):
    """... of objects that change; there are no values of one."""


class MappingSpec:
    """Along which axes vmap maps a value of a type of one's own."""


class HiPspec:
    """How such a value is cut over a mesh."""


def register_hitype(cls: type, typeof: Callable[[Any], Any]) -> None:
    """From now on objects of the class are values of the type that typeof(object) gives."""
    own_types[cls] = typeof

    def flatten(value: Any) -> tuple[list[Any], Any]:
        kind = typeof(value)
        if isinstance(kind, MutableHiType):
            raise not_implemented(f"weft.as_jax: {kind} is a type of objects that change, which programs have none of")
        return list(kind.lower_val(value)), kind

    _tree.register(cls, flatten, lambda kind, arrays: kind.raise_val(*arrays))


def is_type(x: Any) -> bool:
    """Whether it is a type of values, and no container of them."""
    return isinstance(x, AbstractValue)


def types_of_arrays(kinds: Any) -> list[Any]:
    """Of a tree of types: those of the arrays of the values."""
    return [t for kind in _tree.leaves(kinds, is_leaf=is_type) for t in _arrays_of(kind)]


def _arrays_of(kind: Any) -> list[Any]:
    if not isinstance(kind, HiType):
        return [kind]
    return [t for inner in kind.lo_ty() for t in _arrays_of(inner)]


def arrays_of(kinds: Any, values: Any) -> list[Any]:
    """Of a tree of types, and values of them: the arrays."""
    types, tree = _tree.flatten(kinds, is_leaf=is_type)
    found: list[Any] = []
    for kind, value in zip(types, tree.flatten_up_to(values), strict=True):
        if isinstance(kind, HiType):
            for inner, part in zip(kind.lo_ty(), kind.lower_val(value), strict=True):
                found += arrays_of(inner, part)
        else:
            found.append(value)
    return found


def values_of(kinds: Any, arrays: list[Any], each: Callable[[Any, list[Any]], Any] | None = None) -> Any:
    """Of a tree of types, and the arrays of values: the values. `each`: what makes one of its type and arrays."""
    rest = list(arrays)
    made = []
    for kind in _tree.leaves(kinds, is_leaf=is_type):
        count = len(_arrays_of(kind))
        mine, rest = rest[:count], rest[count:]
        made.append((each or _raised)(kind, mine))
    return _tree.unflatten(_tree.structure(kinds, is_leaf=is_type), made)


def _raised(kind: Any, arrays: list[Any]) -> Any:
    if not isinstance(kind, HiType):
        return arrays[0]
    parts, rest = [], list(arrays)
    for inner in kind.lo_ty():
        count = len(_arrays_of(inner))
        parts.append(_raised(inner, rest[:count]))
        rest = rest[count:]
    return kind.raise_val(*parts)


def tangent_of(kind: Any) -> Any:
    """The type of tangents of values of a type."""
    if not isinstance(kind, HiType):
        return kind.to_tangent_aval()
    if has_other_tangents(kind):
        raise not_implemented(
            f"weft.as_jax: the tangents of {kind} have other arrays than the tangents of its arrays, and Weft has no "
            "others"
        )
    return kind.to_tangent_aval()


def has_other_tangents(kind: Any) -> bool:
    """Whether tangents of a type are others than the tangents of its arrays."""
    own = [(t.shape, str(t.dtype)) for t in _arrays_of(kind.to_tangent_aval())]
    return own != [(t.shape, str(t.dtype)) for t in (t.to_tangent_aval() for t in _arrays_of(kind))]


def install() -> None:
    """From now on types of arrays have the methods of HiType."""
    kind: Any = ShapedArray
    kind.lo_ty = lambda self: [self]
    kind.lower_val = lambda self, value: [value]
    kind.raise_val = lambda self, value: value
    kind.dec_rank = lambda self, size, spec: mapped_aval(size, spec, self.update(sharding=None))
    kind.inc_rank = lambda self, size, spec: unmapped_aval(size, spec, self.update(sharding=None))
    kind.leading_axis_spec = lambda self: 0
    kind.vspace_zero = lambda self: wnp.zeros(self.shape, self.dtype)
    kind.vspace_add = lambda self, x, y: x + y
    of_references: Any = AbstractRef
    of_references.str_short = lambda self, *args, **kwargs: f"Ref{{{self.inner_aval.str_short(*args, **kwargs)}}}"
    of_references.update = lambda self, inner_aval=None, **_: AbstractRef(inner_aval or self.inner_aval)
    ref: Any = Ref
    ref.get = lambda self, idx=...: self[idx]
    ref.set = lambda self, value, idx=...: self.__setitem__(idx, value)
    ref.swap = lambda self, value, idx=...: swap(self, idx, value)
    for name in ("ndim", "size", "weak_type", "sharding"):
        setattr(of_references, name, property(operator.attrgetter(f"inner_aval.{name}")))


class AvalQDD:
    """The state of an object that changes."""

    def __init__(self, aval: Any, qdd: Any):
        self.aval, self.qdd = aval, qdd


class AvalMutableQDD(AvalQDD):
    """See AvalQDD."""


class aval_method:
    """A method of traced values of a type."""

    def __init__(self, fun: Any):
        self.fun = fun


class aval_property:
    """An attribute of traced values of a type."""

    def __init__(self, fget: Any):
        self.fget = fget


class BoxEffect(Effect):
    """A box is changed."""


box_effect = BoxEffect()


def instantiate_zeros(tangent: Any) -> Any:
    """The tangent, with zeros for one that does not move."""
    if not isinstance(tangent, Zero):
        return tangent
    return tangent.aval.vspace_zero() if isinstance(tangent.aval, HiType) else tangent.instantiate()


MutableArray = Ref


class TransformedRef:
    """A part of a reference; no object of this class exists."""
