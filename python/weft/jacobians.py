"""Jacobian matrices and matrices of second derivatives: jvp and vjp under vmap."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

from . import _weft
from ._core import tree as _tree
from ._core.errors import type_error
from ._core.names import wraps
from ._core.tracing import call_name, check_callable
from .arguments import by_name, checked_argnums, of_chosen
from .batching import vmap
from .derivatives import jvp, vjp

__all__ = ["hessian", "jacfwd", "jacrev"]

_P = ParamSpec("_P")


def _weft_array(x):
    return _weft.array(x, None, False)


def _one_number(leaves: Sequence) -> bool:
    """Whether there is one direction alone: then nothing is batched, since a batch of one would only add operations."""
    return len(leaves) == 1 and leaves[0].size == 1


def _along_basis(function: Callable[[Any], tuple[Any, Any]], tree, axis: int) -> tuple[Any, Any]:
    """What (vector) -> (result, aux) gives for the unit vectors of a tree of arrays: the results stacked along `axis`,
    0 or -1, without that axis for one number; and aux, which does not depend on the vector."""
    leaves, treedef = _tree.flatten(tree)
    if _one_number(leaves):
        return function(_tree.unflatten(treedef, [_weft.full(leaves[0].shape, 1, leaves[0].dtype)]))
    total = sum(leaf.size for leaf in leaves)
    basis, at = [], 0
    for leaf in leaves:
        rows, columns = (_weft.iota((total, leaf.size), d, "int32") for d in (0, 1))
        block = (rows - at == columns).astype(leaf.dtype)
        basis.append(block.reshape((total, *leaf.shape)))
        at += leaf.size
    return vmap(function, out_axes=(axis, None))(_tree.unflatten(treedef, basis))


def _blocks(y, tree, axis: int) -> list:
    """A result of _along_basis cut along that axis: a block per leaf, with the leaf's shape in place of the axis."""
    leaves = _tree.leaves(tree)
    if _one_number(leaves):
        return [y.reshape(y.shape + leaves[0].shape if axis else leaves[0].shape + y.shape)]
    blocks, at = [], 0
    for leaf in leaves:
        if axis == 0:
            blocks.append(y[at : at + leaf.size].reshape(leaf.shape + y.shape[1:]))
        else:
            blocks.append(y[..., at : at + leaf.size].reshape(y.shape[:-1] + leaf.shape))
        at += leaf.size
    return blocks


def _check_jacobian(what: str, function: Callable[..., Any], role: str, values: Any, holomorphic: bool) -> None:
    """Raises TypeError unless all are real, or all complex for holomorphic functions."""
    for leaf in _tree.leaves(values):
        dtype = leaf.dtype
        if (_weft.dtype_kind(dtype) == "complex") != holomorphic or not _weft.is_inexact(dtype):
            expected = "complex ones" if holomorphic else "real floating-point ones"
            hint = "" if holomorphic else " (holomorphic=True is for complex-differentiable functions)"
            raise type_error(f"{what}: '{call_name(function)}' has {role} {leaf.type}; expected {expected}{hint}")


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
    check_callable(fun, "jacfwd")
    argnums = checked_argnums(argnums, "jacfwd")

    @wraps(fun)
    def jacobian(*args, **kwargs):
        single = isinstance(argnums, int)
        function, chosen = of_chosen(fun, args, kwargs, argnums, "jacfwd")
        picked = _tree.map(_weft_array, chosen)
        _check_jacobian("jacfwd", fun, "an argument", picked, holomorphic)

        def push(tangents):
            out = jvp(function, picked, tangents, has_aux=has_aux)
            if holomorphic:
                _check_jacobian("jacfwd", fun, "a result", out[0], True)
            for leaf in _tree.leaves(out[0]):
                if not _weft.is_inexact(leaf.dtype):
                    raise type_error(f"jacfwd: '{call_name(fun)}' has a result {leaf.type}, which has no derivative")
            return out[1], out[2] if has_aux else ()

        columns, aux = _along_basis(push, picked, -1)

        def one_result(y):
            result = _tree.unflatten(_tree.structure(picked), _blocks(y, picked, -1))
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
    check_callable(fun, "jacrev")
    argnums = checked_argnums(argnums, "jacrev")

    @wraps(fun)
    def jacobian(*args, **kwargs):
        single = isinstance(argnums, int)
        function, chosen = of_chosen(fun, args, kwargs, argnums, "jacrev")
        picked = _tree.map(_weft_array, chosen)
        if holomorphic:
            _check_jacobian("jacrev", fun, "an argument", picked, holomorphic)
        for leaf in _tree.leaves(picked):
            if not allow_int and not _weft.is_inexact(leaf.dtype):
                raise type_error(f"jacrev: '{call_name(fun)}' is differentiated in an argument {leaf.type}")
        out = vjp(function, *picked, has_aux=has_aux)
        value, pullback = out[:2]
        _check_jacobian("jacrev", fun, "a result", value, holomorphic)
        rows, rows_tree = _tree.flatten(_along_basis(lambda ct: (pullback(ct), ()), value, 0)[0])
        cut = [_blocks(r, value, 0) for r in rows]
        leaves, treedef = _tree.flatten(value)
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
    check_callable(fun, "hessian")
    if argnames is not None:
        of = functools.partial(hessian, has_aux=has_aux, holomorphic=holomorphic)
        return by_name(of, fun, argnums, argnames, "hessian")
    inner = jacrev(fun, argnums, has_aux, holomorphic=holomorphic)
    return jacfwd(inner, argnums, has_aux, holomorphic=holomorphic)
