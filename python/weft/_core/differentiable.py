"""What of a function can be differentiated: TypeErrors that name the argument or the result that cannot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _weft
from . import tree as _tree
from .errors import type_error
from .facts import trees_differ
from .shapes import FLOAT0, ShapeDtype
from .tracing import Flat


def check_inexact(flat: Flat, mask: list[bool], what: str, allow_int: bool = False) -> None:
    for leaf, wanted, name in zip(flat.leaves, mask, flat.names):
        if wanted and not allow_int and not _weft.is_inexact(_weft.abstract(leaf)[1]):
            raise type_error(
                f"{what}: argument {name} of '{flat.name}' is {_weft.abstract(leaf)[3]}; derivatives need a "
                f"float or complex dtype"
            )


def check_complex(flat: Flat, mask: Sequence[bool], what: str) -> None:
    for leaf, wanted, name in zip(flat.leaves, mask, flat.names):
        if wanted and _weft.dtype_kind(_weft.abstract(leaf)[1]) != "complex":
            raise type_error(
                f"{what}: with holomorphic=True argument {name} of '{flat.name}' must be complex, got "
                f"{_weft.abstract(leaf)[3]}"
            )


def check_scalar(flat: Flat, spec: tuple, holomorphic: bool, what: str) -> None:
    """Raises TypeError unless a result is one that has a gradient."""
    shape, dtype, _ = spec
    is_complex = _weft.dtype_kind(dtype) == "complex"
    if not shape and _weft.is_inexact(dtype) and (holomorphic or not is_complex):
        return
    remedy = "sum it up, take one element, or use weft.jacrev, which gives the derivatives of all of them"
    if not shape:
        remedy = "holomorphic=True is for complex derivatives" if is_complex else "convert it: x.astype(float)"
    raise type_error(
        f"{what}: '{flat.name}' must return one {'complex' if holomorphic else 'real floating-point'} scalar, got "
        f"{_weft.abstract(ShapeDtype(shape, dtype))[3]}; {remedy}"
    )


def no_derivative(shape: tuple[int, ...]) -> Any:
    """What stands for the derivative of an integer, or with respect to one: zeros of dtype bool; where JAX's meaning is
    asked for, NumPy's zeros of JAX's dtype float0."""
    if _tree.jax_semantics():
        return np.zeros(shape, FLOAT0)
    return _weft.full(shape, 0, "bool")


def fits(dtype: Any, of_tangent: Any, weak: bool) -> bool:
    """Whether a tangent or cotangent of this dtype is one of a value of dtype `dtype`: a weakly typed one is converted,
    where nothing of it is lost; for JAX not even an integer."""
    if dtype == of_tangent:
        return True
    kinds = (
        {"float", _weft.dtype_kind(dtype)} if _tree.jax_semantics() else {"float", "signed", _weft.dtype_kind(dtype)}
    )
    return weak and _weft.dtype_kind(of_tangent) in kinds


def check_no_tangent(leaf, tangent, name: str) -> None:
    """Raises TypeError unless it is what stands for the tangent of an integer or boolean: zeros of dtype bool, as
    derivatives are given, or of JAX's float0."""
    if getattr(getattr(tangent, "dtype", None), "kind", None) == "V":
        return
    _, _, _, text = _weft.abstract(leaf)
    _, t_dtype, _, t_text = _weft.abstract(tangent)
    if _weft.dtype_kind(t_dtype) != "bool":
        raise type_error(
            f"jvp: argument {name} is {text}, which has no derivative, and its tangent is {t_text}; give a float, or "
            f"zeros of dtype bool for the tangent"
        )


def checked_cotangents(cotangent: Any, tree: Any, specs: Sequence, what: str, every: bool = False) -> list:
    """The leaves of a cotangent for inexact results of these types, or for every one, checked and converted."""
    cts, ct_tree = _tree.flatten(cotangent)
    if ct_tree != tree:
        message = f"{what}: the cotangent is {_tree.in_words(ct_tree)}, the result {_tree.in_words(tree)}"
        raise trees_differ(what, message, tree, ct_tree)
    moving = []
    for ct, (shape, dtype, _, text) in zip(cts, specs):
        if not (every or _weft.is_inexact(dtype)):
            continue
        ct_shape, ct_dtype, ct_weak, ct_text = _weft.abstract(ct)
        other = ct_weak and _weft.dtype_kind(ct_dtype) != _weft.dtype_kind(dtype)
        strict = what == "linear_transpose" and _tree.jax_semantics()
        if ct_shape != shape or not fits(dtype, ct_dtype, ct_weak) or (other and strict):
            raise type_error(f"{what}: a cotangent is {ct_text}, the result {text}")
        moving.append(_weft.astype(ct, dtype))
    return moving
