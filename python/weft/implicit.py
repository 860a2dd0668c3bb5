"""Solutions of equations, differentiated through the equation instead of through the solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _weft
from ._core import tree as _tree
from ._core.errors import type_error
from ._core.tracing import flat_function, trace_flat
from .api import stop_gradient
from .arguments import flag
from .closure_conversion import with_captures
from .custom import custom_jvp
from .derivatives import jvp, linear_transpose, linearize

__all__ = ["custom_linear_solve", "custom_root"]


def like(what: str, got: Any, wanted: Any, of: str, name: str = "b"):
    """`got` with the dtypes of `wanted`; TypeError where structures, shapes or dtypes do not fit."""
    leaves, tree = _tree.flatten(got)
    expected, expected_tree = _tree.flatten(wanted)
    if tree != expected_tree:
        raise type_error(f"{what}: {of} returns {_tree.in_words(tree)}, {name} is {_tree.in_words(expected_tree)}")
    out = []
    for leaf, want in zip(leaves, expected):
        (shape, dtype, weak, text), (w_shape, w_dtype, _, w_text) = _weft.abstract(leaf), _weft.abstract(want)
        if shape != w_shape or (dtype != w_dtype and not weak):
            raise type_error(f"{what}: {of} returns {text} where {name} has {w_text}")
        out.append(_weft.astype(leaf, w_dtype))
    return _tree.unflatten(tree, out)


def custom_linear_solve(
    matvec: Callable[..., Any],
    b: Any,
    solve: Callable[..., Any],
    transpose_solve: Callable[..., Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """The x with matvec(x) = b, found by a solver whose code is never differentiated.

    Derivatives follow from the equation: forward mode solves once more with the same map, reverse mode solves with the
    transposed map. They go to everything that matvec captures, and to b.

    Args:
        matvec: a linear function of a tree like b, to such a tree.
        b: array or tree of arrays of float or complex dtype.
        solve: (matvec, b) -> x, a tree like b.
        transpose_solve: (vecmat, b) -> x with vecmat(x) = b, for reverse mode; vecmat is the transpose of matvec.
        symmetric: whether the map is its own transpose, so that solve serves reverse mode too.
        has_aux: whether the solvers return (x, aux); aux counts as a constant.

    Returns: x, a tree like b; (x, aux) with has_aux.

    Raises:
        TypeError: the result of a solver or of matvec is not like b.
        DerivativeError: reverse mode with neither transpose_solve nor symmetric.

    Example:
        >>> a = wnp.array([[4.0, 1.0], [1.0, 3.0]])
        >>> def solve(a, b):
        ...     by_lu = lambda matvec, b: wnp.linalg.solve(a, b)
        ...     return weft.lax.custom_linear_solve(lambda x: a @ x, b, by_lu, symmetric=True)
        >>> solve(a, wnp.array([9.0, 5.0]))
        Array([2., 1.], dtype=float32)
    """
    what = "custom_linear_solve"
    symmetric = flag(symmetric, f"{what}: symmetric")
    leaves, tree = _tree.flatten(b)
    b = _tree.unflatten(tree, [_weft.array(leaf, None, False) for leaf in leaves])

    def apply(v):
        return like(what, matvec(v), b, "matvec")

    def by(solver, given, name):
        def solution(v):
            out = solver(given, v)
            if not has_aux:
                return like(what, out, b, name), None
            if not isinstance(out, (tuple, list)) or len(out) != 2:
                raise type_error(f"{what}: with has_aux {name} must return (x, aux)")
            return like(what, out[0], b, name), out[1]

        return solution

    def vecmat(v):
        return linear_transpose(apply, b)(v)[0]

    functions = [by(solve, matvec, "solve"), apply]
    if transpose_solve is not None:
        functions.append(by(transpose_solve, matvec if symmetric else vecmat, "transpose_solve"))

    def traces() -> tuple[list, list]:
        flats = [flat_function(f, (b,), {}) for f in functions]
        return flats, [trace_flat(flat, what, known=False) for flat in flats]

    flats, traced = traces()
    # Inside shard_map the solution differs between devices where the map or the right side does.
    differ = {axis for t in traced for i in range(len(leaves)) for axis in _weft.result_varying(t, i)[0]}
    if not all(differ <= set(_weft.varying(leaf)) for leaf in _tree.leaves(b)):
        b = _tree.map(lambda leaf: _weft.pvary(leaf, sorted(differ | set(_weft.varying(leaf)))), b)
        flats, traced = traces()
    out = _weft.linear_solve(traced, _tree.leaves(b), symmetric and transpose_solve is None)
    x, aux = _tree.unflatten(flats[0].out_tree, out)
    return (x, aux) if has_aux else x


def custom_root(
    f: Callable[..., Any],
    initial_guess: Any,
    solve: Callable[..., Any],
    tangent_solve: Callable[..., Any],
    has_aux: bool = False,
) -> Any:
    """An x with f(x) = 0, found by a solver whose code is never differentiated.

    Derivatives with respect to what f captures follow from the implicit function theorem: dx = -(df/dx)^-1 df.

    Args:
        f: a function of a tree like initial_guess, to such a tree.
        initial_guess: array or tree of arrays; the root does not depend on it, so it has derivative zero.
        solve: (f, initial_guess) -> x.
        tangent_solve: (g, y) -> x with g(x) = y, for the linear function g that df/dx is at the root.
        has_aux: whether solve returns (x, aux); aux counts as a constant.

    Returns: x, a tree like initial_guess; (x, aux) with has_aux.

    Raises:
        TypeError: the result of a solver is not like initial_guess.

    Example:
        >>> def sqrt(a):
        ...     newton = lambda f, x: weft.fori_loop(0, 10, lambda _, x: x - f(x) / weft.grad(f)(x), x)
        ...     return weft.lax.custom_root(lambda x: x ** 2 - a, 1.0, newton, lambda g, y: y / g(1.0))
        >>> weft.grad(sqrt)(4.0)
        Array(0.25, dtype=float32, weak_type=True)
    """
    what = "custom_root"
    leaves, tree = _tree.flatten(initial_guess)
    guess = stop_gradient(_tree.unflatten(tree, [_weft.array(leaf, None, False) for leaf in leaves]))
    converted, captured = with_captures(lambda x: like(what, f(x), x, "f"), guess)

    def answer(out):
        if not has_aux:
            return like(what, out, guess, "solve"), None
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            raise type_error(f"{what}: with has_aux solve must return (x, aux)")
        return like(what, out[0], guess, "solve"), out[1]

    # What the solvers capture travels along too. It does not move the root, so its tangents do not count; the second
    # derivative goes through what tangent_solve captures.
    run, of_solve = with_captures(
        lambda start, values: answer(solve(lambda x: converted(x, *values), start)), guess, captured
    )

    def tangent(x, right, values):
        _, g = linearize(lambda v: converted(v, *values), x)
        return like(what, tangent_solve(g, right), x, "tangent_solve")

    step, of_tangent = with_captures(tangent, guess, guess, captured)

    @custom_jvp
    def root(values, solver_values, tangent_values):
        return run(guess, values, *solver_values)

    @root.defjvp
    def root_jvp(primals, tangents):
        values, _, tangent_values = primals
        x, aux = root(*primals)
        _, moved = jvp(lambda *v: converted(x, *v), tuple(values), tuple(tangents[0]))
        dx = step(x, _tree.map(lambda m: -m, moved), values, *tangent_values)
        return (x, aux), (dx, _tree.map(lambda a: a * 0, aux))

    x, aux = root(captured, stop_gradient(of_solve), of_tangent)
    return (x, aux) if has_aux else x
