"""Jacobian matrices and matrices of second derivatives: jvp and vjp under vmap."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

from . import _weft
from . import tree as _tree
from ._tracing import call_name
from .arguments import by_name, checked_argnums, of_chosen
from .batching import vmap
from .derivatives import jvp, vjp

__all__ = ["hessian", "jacfwd", "jacrev"]

_P = ParamSpec("_P")


def _weft_array(x):
    return _weft.array(x, None, False)


def _standard_basis(tree):
    """The unit vectors of a tree of arrays, stacked along a new first axis; and the leaves' sizes."""
    from . import numpy as wnp

    leaves, treedef = _tree.flatten(tree)
    sizes = [wnp.size(leaf) for leaf in leaves]
    total = sum(sizes)
    basis, at = [], 0
    for leaf, size in zip(leaves, sizes):
        block = wnp.eye(total, size, -at, dtype=leaf.dtype)
        basis.append(block.reshape((total, *leaf.shape)))
        at += size
    return _tree.unflatten(treedef, basis), sizes


def _blocks(y, leaves: Sequence, sizes: Sequence[int], last: bool) -> list:
    """An array cut along its last or first axis into a block for each leaf, with the leaf's shape in place of the axis."""
    blocks, at = [], 0
    for leaf, size in zip(leaves, sizes, strict=True):
        if last:
            blocks.append(y[..., at : at + size].reshape(y.shape[:-1] + leaf.shape))
        else:
            blocks.append(y[at : at + size].reshape(leaf.shape + y.shape[1:]))
        at += size
    return blocks


def _check_jacobian(what: str, function: Callable[..., Any], role: str, values: Any, holomorphic: bool) -> None:
    """Raises TypeError unless all are real, or all complex for holomorphic functions."""
    for leaf in _tree.leaves(values):
        dtype = leaf.dtype
        if (_weft.dtype_kind(dtype) == "complex") != holomorphic or not _weft.is_inexact(dtype):
            expected = "complex ones" if holomorphic else "real floating-point ones"
            hint = "" if holomorphic else " (holomorphic=True is for complex-differentiable functions)"
            raise TypeError(f"{what}: '{call_name(function)}' has a {role} {leaf.type}; expected {expected}{hint}")


def jacfwd(
    fun: Callable[_P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
) -> Callable[_P, Any]:
    """The Jacobian matrix by forward mode, column by column: for functions of few numbers.

    Args:
        fun: the function.
        argnums: with respect to which positional arguments: an integer, or a tuple of them.
        has_aux: whether the function returns (value, aux).
        holomorphic: whether the function is complex-differentiable, with complex arguments and results.
        argnames: instead of argnums, the names of arguments, passed by position or by keyword: a string, or a sequence
            of them, which gives a tuple.

    Returns: function of the same arguments that returns the Jacobian, of the result's shape followed by the argument's
        (trees of them, for trees); with has_aux (Jacobian, aux).

    Raises:
        TypeError: when called: an argument is not of a float dtype, or complex where holomorphic does not say so.
        weft.DerivativeError: when called: an operation has no derivative; the message names it.

    Example:
        >>> weft.jacfwd(lambda x: x ** 2)(wnp.array([1.0, 2.0]))
        Array([[2., 0.],
               [0., 4.]], dtype=float32)
    """
    if argnames is not None:
        of = functools.partial(jacfwd, has_aux=has_aux, holomorphic=holomorphic)
        return by_name(of, fun, argnums, argnames, "jacfwd")
    argnums = checked_argnums(argnums, "jacfwd")

    @functools.wraps(fun, updated=())
    def jacobian(*args, **kwargs):
        single = isinstance(argnums, int)
        function, chosen = of_chosen(fun, args, kwargs, argnums, "jacfwd")
        picked = _tree.map(_weft_array, chosen)
        _check_jacobian("jacfwd", fun, "argument", picked, holomorphic)
        basis, sizes = _standard_basis(picked)

        def push(*tangents):
            out: Any = jvp(function, picked, tangents, has_aux=has_aux)
            if holomorphic:
                _check_jacobian("jacfwd", fun, "result", out[0], True)
            return out[1:] if has_aux else out[1]

        pushed = vmap(push, in_axes=0, out_axes=(-1, None) if has_aux else -1)(*basis)
        columns, aux = pushed if has_aux else (pushed, None)
        leaves, treedef = _tree.flatten(picked)

        def one_result(y):
            result = _tree.unflatten(treedef, _blocks(y, leaves, sizes, last=True))
            return result[0] if single else result

        result = _tree.map(one_result, columns)
        return (result, aux) if has_aux else result

    return jacobian


def jacrev(
    fun: Callable[_P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
) -> Callable[_P, Any]:
    """The Jacobian matrix by reverse mode, row by row: for functions with few results.

    Args:
        fun: the function.
        argnums: with respect to which positional arguments: an integer, or a tuple of them.
        has_aux: whether the function returns (value, aux).
        holomorphic: whether the function is complex-differentiable, with complex arguments and results.
        allow_int: whether integer arguments are let through; their part of the result is of dtype bool.
        argnames: instead of argnums, the names of arguments, passed by position or by keyword: a string, or a sequence
            of them, which gives a tuple.

    Returns: function of the same arguments that returns the Jacobian, of the result's shape followed by the argument's
        (trees of them, for trees); with has_aux (Jacobian, aux).

    Raises:
        TypeError: when called: an argument is not of a float dtype, or complex where holomorphic does not say so.
        weft.DerivativeError: when called: an operation has no derivative; the message names it.

    Example:
        >>> weft.jacrev(lambda x: wnp.array([x[0] * x[1]]))(wnp.array([3.0, 2.0]))
        Array([[2., 3.]], dtype=float32)
    """
    if argnames is not None:
        of = functools.partial(jacrev, has_aux=has_aux, holomorphic=holomorphic, allow_int=allow_int)
        return by_name(of, fun, argnums, argnames, "jacrev")
    argnums = checked_argnums(argnums, "jacrev")

    @functools.wraps(fun, updated=())
    def jacobian(*args, **kwargs):
        single = isinstance(argnums, int)
        function, chosen = of_chosen(fun, args, kwargs, argnums, "jacrev")
        picked = _tree.map(_weft_array, chosen)
        if holomorphic:
            _check_jacobian("jacrev", fun, "argument", picked, holomorphic)
        for leaf in _tree.leaves(picked):
            if not allow_int and not _weft.is_inexact(leaf.dtype):
                raise TypeError(f"jacrev: '{call_name(fun)}' is differentiated in an argument {leaf.type}")
        out: Any = vjp(function, *picked, has_aux=has_aux)
        value, pullback = out[:2]
        _check_jacobian("jacrev", fun, "result", value, holomorphic)
        basis, sizes = _standard_basis(value)
        rows, rows_tree = _tree.flatten(vmap(pullback)(basis))
        leaves, treedef = _tree.flatten(value)
        cut = [_blocks(r, leaves, sizes, last=False) for r in rows]
        by_result = [_tree.unflatten(rows_tree, [blocks[i] for blocks in cut]) for i in range(len(leaves))]
        result = _tree.unflatten(treedef, [b[0] if single else b for b in by_result])
        return (result, out[2]) if has_aux else result

    return jacobian


def hessian(
    fun: Callable[_P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
) -> Callable[_P, Any]:
    """The matrix of second derivatives of a scalar function: forward mode over reverse mode.

    Args:
        fun: the function.
        argnums: with respect to which positional arguments: an integer, or a tuple of them.
        has_aux: whether the function returns (value, aux).
        holomorphic: whether the function is complex-differentiable, with complex arguments and results.
        argnames: instead of argnums, the names of arguments, passed by position or by keyword: a string, or a sequence
            of them, which gives a tuple.

    Returns: function of the same arguments that returns the matrix, of the argument's shape twice; with has_aux
        (matrix, aux).

    Raises:
        TypeError: when called: an argument is not of a float dtype.
        weft.DerivativeError: when called: an operation has no derivative; the message names it.

    Example:
        >>> weft.hessian(lambda x: x[0] ** 2 * x[1])(wnp.array([1.0, 2.0]))
        Array([[4., 2.],
               [2., 0.]], dtype=float32)
    """
    if argnames is not None:
        of = functools.partial(hessian, has_aux=has_aux, holomorphic=holomorphic)
        return by_name(of, fun, argnums, argnames, "hessian")
    inner = jacrev(fun, argnums, has_aux, holomorphic=holomorphic)
    return jacfwd(inner, argnums, has_aux, holomorphic=holomorphic)
