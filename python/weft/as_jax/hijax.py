"""Classes of JAX that libraries derive from or name in isinstance() when they are imported. Weft has no types of one's
own in programs: no object of these classes, references apart, is ever part of a program."""

from __future__ import annotations

from typing import Any

import weft.numpy as wnp

from .._core.errors import not_implemented, type_error
from ..ref import AbstractRef, Ref
from .core import AbstractValue
from .rules import Zero, is_undefined_primal

AbstractValue.register(AbstractRef)

__all__ = ["AbstractRef", "AbstractValue", "Ref", "Zero", "is_undefined_primal"]


class HiType(AbstractValue):
    """A type of one's own."""


class MutableHiType(HiType):
    """... of objects that change."""


class HiPrimitive:
    """An operation on such types."""

    def __init__(self, name: str):
        self.name = name

    def bind(self, *_: Any, **__: Any) -> Any:
        raise not_implemented(f"weft.as_jax: Weft has no types of one's own in programs, which '{self.name}' is for")


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


def register_hitype(cls: type, typeof: Any) -> None:
    """Nothing: values of the class are refused where arrays are expected."""
    del cls, typeof


def instantiate_zeros(tangent: Any) -> Any:
    """The tangent, with zeros for one that does not move."""
    return wnp.zeros(tangent.aval.shape, tangent.aval.dtype) if isinstance(tangent, Zero) else tangent


MutableArray = Ref


def cur_qdd(x: Any) -> Any:
    """The state of an object that changes; of none here."""
    raise type_error(f"weft.as_jax: {x!r} is no object that changes")


class TransformedRef:
    """A part of a reference; no object of this class exists."""


class EArray:
    """An array of a dtype that is stored as another."""
