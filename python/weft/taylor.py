"""Taylor mode: derivatives of all orders at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _weft
from ._core import tree as _tree
from ._core.differentiable import fits
from ._core.errors import type_error, value_error
from ._core.tracing import check_callable, flat_function, trace_flat
from .pullbacks import apply_derivative

__all__ = ["jet"]


def jet(
    fun: Callable[..., Any], primals: Sequence[Any], series: Sequence[Any], factorial_scaled: bool = True
) -> tuple[Any, Any]:
    """The value of a function along a curve and its derivatives of orders 1 to K, in one pass.

    The work grows with the square of K, where K nested jvp double it each time. Works through everything that has a
    derivative, control flow and custom_jvp included, and under jit, vmap and grad.

    Args:
        fun: of arrays, or of trees of them.
        primals: tuple of the arguments, where the curve starts.
        series: for each argument the list of the curve's K derivatives, each of the argument's shape and dtype (a tree
            where the argument is one). Integers that move are taken as floats.
        factorial_scaled: False: series and terms are Taylor coefficients, derivatives divided by the factorial of their
            order.

    Returns: (value, terms): terms is like value, with the list of K derivatives in place of each array.

    Raises:
        ValueError: numbers of arguments, of terms, or structures differ.
        TypeError: a term has another shape or dtype than its argument.
        DerivativeError: an operation has no derivative of that order.

    Source: Griewank and Walther, "Evaluating Derivatives", 2nd ed., chapter 13.

    Example:
        >>> value, derivatives = weft.jet(wnp.sin, (0.0,), ((1.0, 0.0, 0.0),))
        >>> float(value), [float(d) for d in derivatives]
        (0.0, [1.0, 0.0, -1.0])
    """
    check_callable(fun, "jet")
    if not isinstance(primals, (tuple, list)) or not isinstance(series, (tuple, list)):
        raise type_error("jet: primals and series must be tuples, with one entry for each argument")
    if len(primals) != len(series):
        raise value_error(f"jet: {len(primals)} primals, but {len(series)} series")
    for i, terms in enumerate(series):
        if not isinstance(terms, (tuple, list)):
            raise type_error(f"jet: the series of argument {i} must be a list of terms, got {type(terms).__name__}")
    orders = {len(terms) for terms in series}
    if len(orders) > 1:
        raise value_error(f"jet: the arguments have series of different lengths: {[len(terms) for terms in series]}")
    order = orders.pop() if orders else 0
    flat = flat_function(fun, tuple(primals), {})
    leaves = [_term_leaves(i, primal, terms) for i, (primal, terms) in enumerate(zip(primals, series))]
    by_leaf = [[term[j] for term in terms] for terms in leaves for j in range(len(terms[0]) if terms else 0)]
    if order == 0:
        by_leaf = [[] for _ in flat.leaves]
    for j, (leaf, terms) in enumerate(zip(flat.leaves, by_leaf)):
        if not _weft.is_inexact(_weft.abstract(leaf)[1]) and not all(map(_is_zero, terms)):
            flat.leaves[j], by_leaf[j] = _weft.promote_inexact(leaf), [_weft.promote_inexact(term) for term in terms]
    active = [order > 0 and _weft.is_inexact(_weft.abstract(leaf)[1]) for leaf in flat.leaves]
    moving = []
    for leaf, terms, name, on in zip(flat.leaves, by_leaf, flat.names, active):
        if not on:
            continue
        shape, dtype, _, text = _weft.abstract(leaf)
        for k, term in enumerate(terms, 1):
            t_shape, t_dtype, t_weak, t_text = _weft.abstract(term)
            if shape != t_shape or not fits(dtype, t_dtype, t_weak):
                raise type_error(f"jet: term {k} of argument {name} is {t_text}, the argument itself {text}")
            term = _weft.astype(term, dtype)
            moving.append(_scaled(term, 1 / math.factorial(k)) if factorial_scaled and k > 1 else term)
    t = trace_flat(flat, "jet", known=True, differentiated=active)
    fn, active_out = _weft.jet(t, active, order)
    out = apply_derivative(fn, flat.leaves + t.captures + moving)
    values, rest = _weft.with_weak(out[: t.num_results], t.weak_results), iter(out[t.num_results :])
    terms_out = []
    for value, weak, on in zip(values, t.weak_results, active_out):
        if on:
            terms = _weft.with_weak([next(rest) for _ in range(order)], [weak] * order)
            if factorial_scaled:
                terms = [_scaled(c, math.factorial(k)) if k > 1 else c for k, c in enumerate(terms, 1)]
        else:
            terms = [_weft.full(value.shape, 0, value.dtype) for _ in range(order)]
        terms_out.append(terms)
    return _tree.unflatten(flat.out_tree, values), _tree.unflatten(flat.out_tree, terms_out)


def _scaled(x, factor: float):
    return x * factor


def _is_zero(term: Any) -> bool:
    """Whether it is known to be zero everywhere."""
    return not _weft.is_traced(term) and not np.any(term)


def _term_leaves(i: int, primal, terms) -> list[list]:
    structure = _tree.structure(primal)
    found = []
    for k, term in enumerate(terms, 1):
        leaves, tree = _tree.flatten(term)
        if tree != structure:
            raise value_error(
                f"jet: term {k} of argument {i} is {_tree.in_words(tree)}, the argument {_tree.in_words(structure)}"
            )
        found.append(leaves)
    return found
