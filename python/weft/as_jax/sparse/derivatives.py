"""Derivatives with respect to sparse arrays, which are sparse arrays of the same places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import weft
import weft.numpy as wnp

from ..._core import tree as _tree
from .bcoo import BCOO
from .util import JAXSparse


def _is_sparse(x: Any) -> bool:
    return isinstance(x, JAXSparse)


def _by_elements(transform: Callable[..., Any], f: Callable[..., Any], argnums: Any, args: Any, **options: Any) -> Any:
    """(what the transform gives for the elements of the arguments, what makes arguments of elements)."""
    which = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    which = tuple(n % len(args) for n in which)
    split = [_tree.flatten(args[n], is_leaf=_is_sparse) for n in which]
    leaves = tuple([leaf.data if _is_sparse(leaf) else leaf for leaf in found] for found, _ in split)

    def made_of(values: Sequence[Any]) -> tuple[Any, ...]:
        """Arguments with other elements; with more leading dimensions, of what is a derivative, too."""
        made = []
        for (found, structure), new in zip(split, values, strict=True):
            put = [_with_data(leaf, x) if _is_sparse(leaf) else x for leaf, x in zip(found, new, strict=True)]
            made.append(_tree.unflatten(structure, put))
        return tuple(made)

    def of_elements(values: Any) -> Any:
        whole = list(args)
        for n, arg in zip(which, made_of(values), strict=True):
            whole[n] = arg
        return f(*whole)

    return transform(of_elements, **options)(leaves), made_of, not isinstance(argnums, int)


def _with_data(leaf: Any, data: Any) -> Any:
    more = data.ndim - leaf.data.ndim
    if more == 0:
        return leaf._with(data)
    places = wnp.broadcast_to(leaf.indices, (*data.shape[:more], *leaf.indices.shape))
    return BCOO(
        (data, places),
        shape=(*data.shape[:more], *leaf.shape),
        indices_sorted=leaf.indices_sorted,
        unique_indices=leaf.unique_indices,
    )


def value_and_grad(
    f: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, **options: Any
) -> Callable[..., Any]:
    """weft.value_and_grad, of functions of sparse arrays too."""

    def transformed(*args: Any) -> Any:
        (value, grads), made_of, several = _by_elements(
            weft.value_and_grad, f, argnums, args, has_aux=has_aux, **options
        )
        made = made_of(grads)
        return value, made if several else made[0]

    return transformed


def grad(f: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, **options: Any) -> Callable[..., Any]:
    """weft.grad, of functions of sparse arrays too."""
    both = value_and_grad(f, argnums, has_aux, **options)

    def transformed(*args: Any) -> Any:
        value, grads = both(*args)
        return (grads, value[1]) if has_aux else grads

    return transformed


def _jacobian(transform: Callable[..., Any]) -> Callable[..., Any]:
    def of(f: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, **options: Any) -> Callable[..., Any]:
        def transformed(*args: Any) -> Any:
            found, made_of, several = _by_elements(transform, f, argnums, args, has_aux=has_aux, **options)
            rows, aux = found if has_aux else (found, None)
            made = made_of(rows)
            out = made if several else made[0]
            return (out, aux) if has_aux else out

        return transformed

    of.__name__ = of.__qualname__ = transform.__name__
    of.__doc__ = f"weft.{transform.__name__}, of functions of sparse arrays too, that return one array."
    return of


jacfwd, jacrev = _jacobian(weft.jacfwd), _jacobian(weft.jacrev)
jacobian = jacrev
