"""Derivatives of functions: grad, jvp, vjp and what they make up.

Each traces its function (with the given numbers known, outside jit), applies a transform written in C++, and inlines or
runs the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, overload

from . import _weft
from ._core import stateful
from ._core import tree as _tree
from ._core.differentiable import (
    check_complex,
    check_inexact,
    check_no_tangent,
    check_scalar,
    checked_cotangents,
    fits,
    no_derivative,
)
from ._core.errors import type_error
from ._core.facts import tangents_differ, trees_differ
from ._core.names import wraps
from ._core.shapes import ShapeDtype
from ._core.tracing import LEAF_TREE as _LEAF_TREE
from ._core.tracing import Flat, check_callable, flat_function, trace_flat, with_float0s
from ._sharding.typed import lying_as, of_cotangents
from .arguments import by_name, checked_argnums, flag, hold_others, holding_aux, positions, released
from .pullbacks import Pullback, Residuals, apply_derivative
from .tree_util import Partial

__all__ = ["grad", "jvp", "linear_transpose", "linearize", "value_and_grad", "vjp"]


def _argnums_flat(flat: Flat, args: tuple, argnums, what: str) -> tuple[list[bool], list[int]]:
    """Which leaves argnums names, and where."""
    nums = positions(argnums, len(args), flat.name, what)
    if flat.plain:
        return [i in nums for i in range(len(args))], nums
    owner = [i for i, a in enumerate(args) for _ in _tree.leaves(a)]
    owner += [-1] * (len(flat.leaves) - len(owner))
    mask = [o in nums for o in owner]
    return mask, nums


_P = ParamSpec("_P")
_R = TypeVar("_R")
_X = TypeVar("_X")
_Aux = TypeVar("_Aux")


def lanes_apart(leaves: Sequence) -> list:
    """Values as ones that differ between the devices of a pmap around. Reverse mode in a device of pmap is that in a
    lane of vmap: each has its own cotangent of an argument, and its own of a result. Of a value that is the same on all
    devices there would be one for all of them, the sum."""
    axes = _weft.axes_of_lanes()
    if not axes:
        return list(leaves)
    return [_weft.pvary(leaf, axes) if _weft.is_inexact(_weft.abstract(leaf)[1]) else leaf for leaf in leaves]


def _sum_of_lanes(results: list) -> list:
    """What reverse mode in a device of pmap differentiates, before the results: the sum of the first one over all
    lanes. Where that is the same on all devices, it stays so: a choice by it may have collectives."""
    if not results:
        return results
    same = [axis for axis in _weft.axes_of_lanes() if axis not in _weft.varying(results[0])]
    return [results[0] * _weft.axis_size(same, "grad") if same else results[0], *results]


_NOTHING = _tree.structure(())


def _value_and_aux(flat, has_aux: bool, what: str) -> tuple:
    """The structures of what is differentiated, and of what is passed on."""
    if not has_aux:
        return flat.out_tree, _NOTHING
    if flat.out_tree.type not in (tuple, list) or flat.out_tree.num_children != 2:
        raise type_error(f"{what}: with has_aux '{flat.name}' must return (value, aux)")
    return flat.out_tree.children()


@overload
def grad(
    fun: Callable[Concatenate[_X, _P], tuple[Any, _Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[_X, _P], tuple[_X, _Aux]]: ...
@overload
def grad(
    fun: Callable[Concatenate[_X, _P], Any],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    *,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[_X, _P], _X]: ...
@overload
def grad(
    fun: Callable[_P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
) -> Callable[_P, Any]: ...
def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
) -> Callable[..., Any]:
    """The gradient of a scalar function, by reverse mode.

    Outside jit the function is traced with the given numbers known, so Python `if` and `float()` work on its values;
    the path that is taken is the one that is differentiated, and what `float()` gives is a constant. NumPy does not
    take values that are differentiated.

    Args:
        fun: returns one real number, or (number, aux) with has_aux.
        argnums: with respect to which positional arguments: an integer, or a tuple of them. The other arguments may
            also be, or hold, what is no array: a string, a function, an object. These, numbers of Python's, and True
            and False go to the function as they are.
        has_aux: whether the function returns something else, too, which is passed on.
        holomorphic: whether it is a complex function of complex numbers; then the gradient is its complex derivative.
        allow_int: whether arguments may be integers; their gradient is of dtype bool (there is none).
        argnames: instead of argnums, the names of arguments, passed by position or by keyword: a string, or a sequence
            of them, which gives a tuple.

    Returns: function of the same arguments that returns the gradient, of the structure, shapes and dtypes of the
        argument (a tuple where argnums is one); with has_aux the pair (gradient, aux).

    Raises:
        TypeError: when called: the result is no real scalar, or an argument is not of a float or complex dtype.
        ValueError: when called: there is no such argument.
        weft.DerivativeError: when called: an operation has no derivative; the message names it.
        weft.TracerError: when called: NumPy is asked to compute with a value that is differentiated.

    Example:
        >>> weft.grad(lambda x: (x ** 2).sum())(wnp.array([1.0, 2.0]))
        Array([2., 4.], dtype=float32)
    """
    inner = _value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, argnames, "grad")

    @wraps(fun)
    def gradient(*args, **kwargs):
        value, g = inner(*args, **kwargs)
        return (g, value[1]) if has_aux else g

    return gradient


@overload
def value_and_grad(
    fun: Callable[Concatenate[_X, _P], _R],
    argnums: Literal[0] = 0,
    has_aux: bool = False,
    *,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[_X, _P], tuple[_R, _X]]: ...
@overload
def value_and_grad(
    fun: Callable[_P, _R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
) -> Callable[_P, tuple[_R, Any]]: ...
def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
) -> Callable[..., Any]:
    """The value and the gradient of a scalar function, by reverse mode; see grad.

    Args:
        fun: returns one real number, or (number, aux) with has_aux.
        argnums: with respect to which positional arguments: an integer, or a tuple of them.
        has_aux: whether the function returns something else, too, which is passed on.
        holomorphic: whether it is a complex function of complex numbers.
        allow_int: whether arguments may be integers.
        argnames: instead of argnums, the names of arguments, passed by position or by keyword: a string, or a sequence
            of them, which gives a tuple.

    Returns: function of the same arguments that returns (value, gradient); with has_aux ((value, aux), gradient).

    Raises:
        TypeError: when called: the result is no real scalar, or an argument is not of a float or complex dtype.
        ValueError: when called: there is no such argument.
        weft.DerivativeError: when called: an operation has no derivative; the message names it.

    Example:
        >>> weft.value_and_grad(lambda x: x ** 3)(2.0)
        (Array(8., dtype=float32, weak_type=True), Array(12., dtype=float32, weak_type=True))
    """
    return _value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, argnames, "value_and_grad")


def _value_and_grad(fun, argnums, has_aux: bool, holomorphic: bool, allow_int: bool, argnames, what: str):
    check_callable(fun, what)
    if argnames is not None:

        def of(function, argnums):
            return _value_and_grad(function, argnums, has_aux, holomorphic, allow_int, None, what)

        return by_name(of, fun, argnums, argnames, what)
    argnums, holomorphic = checked_argnums(argnums, what), flag(holomorphic, f"{what}: holomorphic")

    @wraps(fun)
    def value_and_gradient(*args, **kwargs):
        if stateful.references is not None:
            return stateful.references.value_and_grad(run, fun, args, kwargs, has_aux, argnums, what)
        return run(fun, has_aux, args, kwargs, argnums)

    def run(fun: Callable, has_aux: bool, args: tuple, kwargs: dict, argnums: Any) -> Any:
        called, args, kwargs = hold_others(fun, args, kwargs, argnums)
        if has_aux:
            called = holding_aux(called)
        flat = flat_function(called, args, kwargs, original=fun)
        if not args:
            raise type_error(
                f"{what}: '{flat.name}' was called without positional arguments; derivatives are with respect to one"
            )
        mask, nums = _argnums_flat(flat, args, argnums, what)
        inexact, of_leaves = _weft.inexact_and_weak(flat.leaves)
        active = [wanted and can for wanted, can in zip(mask, inexact)]
        if active != mask:
            check_inexact(flat, mask, what, allow_int)
        apart = bool(_weft.axes_of_lanes())
        if apart:
            flat.leaves = flat.specs = [x if not m else lanes_apart([x])[0] for x, m in zip(flat.leaves, mask)]
        finish = _sum_of_lanes if apart else None
        t = trace_flat(flat, what, known=True, differentiated=active, finish=finish)
        if stateful.references is not None:
            stateful.references.check_aux(t, active)
        value_tree, aux_tree = _value_and_aux(flat, has_aux, what)
        if value_tree != _LEAF_TREE:
            raise type_error(
                f"{what}: '{flat.name}' must return one scalar, got {_tree.in_words(value_tree)}; choose one of "
                f"its numbers, or sum "
                "them up" + ("" if has_aux else ". Pass has_aux=True if it returns (value, aux)")
            )
        if holomorphic:
            check_complex(flat, mask, what)
        try:
            fn = _weft.grad(t, active, True, has_aux or apart, holomorphic)
        except TypeError:
            check_scalar(flat, _weft.result_specs(t)[apart], holomorphic, what)
            raise
        weak = t.weak_results
        slopes = [w for w, on in zip(_weak(flat.leaves) if apart else of_leaves, active) if on]
        out = _weft.apply(fn, flat.leaves + t.captures, weak[:1] + slopes + weak[1:])
        n = sum(active)
        places = of_cotangents([leaf for leaf, on in zip(flat.leaves, active) if on])
        value, found, aux = out[0], iter(lying_as(out[1 : 1 + n], places, what)), out[1 + n :]
        if apart:
            value, *aux = aux
        grads = [
            next(found) if on else no_derivative(_weft.abstract(leaf)[0])
            for wanted, on, leaf in zip(mask, active, flat.leaves)
            if wanted
        ]
        if flat.plain and isinstance(argnums, int):
            result = grads[0]
        else:
            by_arg = _split(grads, args, nums)
            result = by_arg[0] if isinstance(argnums, int) else tuple(by_arg)
        return ((value, released(_tree.unflatten(aux_tree, aux))) if has_aux else value), result

    return value_and_gradient


def _weak(leaves: Sequence) -> list[bool]:
    """Which arguments are weakly typed: their cotangents are, too."""
    return [_weft.abstract(leaf)[2] for leaf in leaves]


def _split(grads: list, args: tuple, nums: list[int]) -> list:
    """Gradients, in the order of the flat arguments, as one tree per entry of nums."""
    pieces, at = {}, 0
    for n in sorted(set(nums)):
        tree = _tree.structure(args[n])
        pieces[n] = _tree.unflatten(tree, grads[at : at + tree.num_leaves])
        at += tree.num_leaves
    return [pieces[n] for n in nums]


@overload
def jvp(
    fun: Callable[..., _R], primals: Sequence[Any], tangents: Sequence[Any], has_aux: Literal[False] = False
) -> tuple[_R, _R]: ...
@overload
def jvp(
    fun: Callable[..., tuple[_R, _Aux]], primals: Sequence[Any], tangents: Sequence[Any], has_aux: Literal[True]
) -> tuple[_R, _R, _Aux]: ...
@overload
def jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool) -> Any: ...
def jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """Forward mode: the value of a function and its derivative along a direction.

    Args:
        fun: the function.
        primals: tuple of its arguments.
        tangents: tuple of directions, of the structure, shapes and dtypes of the primals (of integers: anything,
            ignored). That of a reference is a reference, which holds the direction of what the other one holds.
        has_aux: whether the function returns (value, aux).

    Returns: pair (value, derivative); with has_aux (value, derivative, aux).

    Raises:
        TypeError: tangents do not fit the primals.
        weft.DerivativeError: an operation has no derivative; the message names it.

    Example:
        >>> weft.jvp(wnp.sin, (0.0,), (1.0,))
        (Array(0., dtype=float32, weak_type=True), Array(1., dtype=float32, weak_type=True))
    """
    check_callable(fun, "jvp")
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        kinds = f"{type(primals).__name__} and {type(tangents).__name__}"
        raise type_error(f"jvp: primals and tangents must be tuples of arguments, got {kinds}")
    of_other_types = _tree.jax_semantics() and type(primals) is not type(tangents)
    if of_other_types or len(primals) != len(tangents):
        t, p = (f"a {type(given).__name__} of length {len(given)}" for given in (tangents, primals))
        trees = _tree.structure(primals), _tree.structure(tangents)
        raise trees_differ("jvp", f"jvp: tangents are {t}, primals {p}", *trees)
    primals, tangents = tuple(primals), tuple(tangents)
    if stateful.references is not None:
        if stateful.references.refs_among(primals):
            return stateful.references.jvp_of_references(jvp, fun, primals, tangents, has_aux)
        run = lambda f, p, aux: _jvp(f, p, tangents, aux)
        return stateful.references.forward(run, fun, primals, has_aux, "jvp")
    return _jvp(fun, primals, tangents, has_aux)


def _jvp(fun: Callable[..., Any], primals: tuple, tangents: tuple, has_aux: bool) -> Any:
    flat = flat_function(holding_aux(fun) if has_aux else fun, primals, {}, original=fun)
    t_leaves, t_tree = _tree.flatten((tangents, {}))
    if t_tree != flat.in_tree:
        raise tangents_differ("jvp", flat.in_tree, t_tree)
    active = [_weft.is_inexact(_weft.abstract(leaf)[1]) for leaf in flat.leaves]
    moving = []
    for leaf, tangent, name, on in zip(flat.leaves, t_leaves, flat.names, active):
        if not on:
            check_no_tangent(leaf, tangent, name)
            continue
        (shape, dtype, _, text), (t_shape, t_dtype, t_weak, t_text) = _weft.abstract(leaf), _weft.abstract(tangent)
        if shape != t_shape or not fits(dtype, t_dtype, t_weak):
            raise type_error(f"jvp: the tangent of argument {name} is {t_text}, the argument itself {text}")
        moving.append(_weft.astype(tangent, dtype))
    t = trace_flat(flat, "jvp", known=True, differentiated=active)
    if stateful.references is not None:
        stateful.references.check_aux(t, active)
    _value_and_aux(flat, has_aux, "jvp")
    fn, active_out = _weft.jvp(t, active)
    out = apply_derivative(fn, flat.leaves + t.captures + moving)
    n = t.num_results
    values, rest = _weft.with_weak(out[:n], t.weak_results), iter(out[n:])
    derivative = [next(rest) if a else _zero_tangent(v) for v, a in zip(values, active_out)]
    derivative = _weakened(derivative, values)
    primal_out = _tree.unflatten(flat.out_tree, with_float0s(flat, values))
    tangent_out = _tree.unflatten(flat.out_tree, derivative)
    if has_aux:
        return primal_out[0], tangent_out[0], released(primal_out[1])
    return primal_out, tangent_out


def _zero_tangent(value):
    return _weft.full(value.shape, 0, value.dtype) if _weft.is_inexact(value.dtype) else no_derivative(value.shape)


def _weakened(tangents: list, values: list) -> list:
    """Tangents as weakly typed as their values."""
    moving = [_weft.is_inexact(v.dtype) for v in values]
    weak = iter(
        _weft.with_weak(
            [t for t, on in zip(tangents, moving) if on], [v.weak_type for v, on in zip(values, moving) if on]
        )
    )
    return [next(weak) if on else t for t, on in zip(tangents, moving)]


@overload
def vjp(
    fun: Callable[..., _R], *primals: Any, has_aux: Literal[False] = False
) -> tuple[_R, Callable[[Any], tuple[Any, ...]]]: ...
@overload
def vjp(
    fun: Callable[..., tuple[_R, _Aux]], *primals: Any, has_aux: Literal[True]
) -> tuple[_R, Callable[[Any], tuple[Any, ...]], _Aux]: ...
@overload
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool) -> Any: ...
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Reverse mode: the value of a function, and a function that takes a cotangent back.

    Args:
        fun: the function.
        *primals: its arguments.
        has_aux: whether the function returns (value, aux).

    Returns: pair (value, pullback); with has_aux (value, pullback, aux). pullback(cotangent) returns a tuple of the
        cotangents of the arguments; it may be called several times. It is a tree whose leaves are what it keeps, so
        jitted functions and derivative rules take and return it.

    Raises:
        TypeError: when the pullback is called: the cotangent does not fit the value.
        weft.DerivativeError: an operation has no derivative; the message names it.

    Example:
        >>> value, pullback = weft.vjp(lambda x, y: (x * y).sum(), wnp.array([2.0]), wnp.array([3.0]))
        >>> value, pullback(1.0)
        (Array(6., dtype=float32), (Array([3.], dtype=float32), Array([2.], dtype=float32)))
    """
    check_callable(fun, "vjp")
    if stateful.references is not None:
        return stateful.references.forward(_vjp, fun, primals, has_aux, "vjp")
    return _vjp(fun, primals, has_aux)


def _vjp(fun: Callable[..., Any], primals: tuple, has_aux: bool) -> Any:
    flat = flat_function(holding_aux(fun) if has_aux else fun, primals, {}, original=fun)
    active = [_weft.is_inexact(_weft.abstract(leaf)[1]) for leaf in flat.leaves]
    flat.leaves = flat.specs = lanes_apart(flat.leaves)
    t = trace_flat(flat, "vjp", known=True, differentiated=active, finish=lanes_apart)
    if stateful.references is not None:
        stateful.references.check_aux(t, active)
    value_tree, aux_tree = _value_and_aux(flat, has_aux, "vjp")
    count, n, in_tree = value_tree.num_leaves, t.num_results, flat.in_tree
    forward, backward, _ = _weft.vjp(t, active, count)
    out = _weft.apply(forward, flat.leaves + t.captures, t.weak_results)
    values, residuals = out[:n], out[n:]
    leaf_types = [_weft.abstract(leaf)[0] for leaf in flat.leaves]
    slopes = [weak for weak, on in zip(_weak(flat.leaves), active) if on]
    places = of_cotangents([leaf for leaf, on in zip(flat.leaves, active) if on])
    specs, name = [_weft.abstract(v) for v in values[:count]], flat.name

    # What it knows beside its arguments belongs to no trace, as the call does: it is part of the structure of a tree.
    def pullback(residuals, *cotangents):
        if len(cotangents) != 1:
            raise type_error(
                f"vjp: the function that vjp gave for '{name}' was called with {len(cotangents)} arguments; it takes "
                f"one, the cotangent of what '{name}' returns, which may be a container"
            )
        moving = lanes_apart(checked_cotangents(cotangents[0], value_tree, specs, "vjp"))
        back = _weft.with_weak(apply_derivative(backward, residuals + moving), slopes)
        back = iter(lying_as(back, places, "vjp"))
        grads = [next(back) if a else no_derivative(shape) for a, shape in zip(active, leaf_types)]
        return _tree.unflatten(in_tree, grads)[0]

    def takes() -> Any:
        return _tree.unflatten(value_tree, [ShapeDtype(s, d, weak_type=w) for s, d, w, _ in specs])

    known: Any = pullback
    known.takes = takes  # the types of the cotangents
    known.kept = Residuals(in_tree, forward, n)
    values = with_float0s(flat, values)
    value, applied = _tree.unflatten(value_tree, values[:count]), Pullback(pullback, residuals)
    if has_aux:
        return value, applied, released(_tree.unflatten(aux_tree, values[count:]))
    return value, applied


@overload
def linearize(
    fun: Callable[..., tuple[_R, _Aux]], *primals: Any, has_aux: Literal[True]
) -> tuple[_R, Callable[..., _R], _Aux]: ...
@overload
def linearize(
    fun: Callable[..., _R], *primals: Any, has_aux: Literal[False] = False
) -> tuple[_R, Callable[..., _R]]: ...
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of a function, and its derivative at that place as a linear function, without computing it again.

    Args:
        fun: the function.
        *primals: its arguments.
        has_aux: whether the function returns (value, aux).

    Returns: pair (value, f_jvp), or (value, f_jvp, aux); f_jvp(*tangents) is the derivative of the value along them. It
        is a tree whose leaves are what it keeps, as the pullback of vjp is.

    Raises:
        TypeError: when f_jvp is called: tangents do not fit the primals.
        weft.DerivativeError: an operation has no derivative; the message names it.

    Example:
        >>> value, f_jvp = weft.linearize(lambda x: x ** 3, 2.0)
        >>> value, f_jvp(1.0)
        (Array(8., dtype=float32, weak_type=True), Array(12., dtype=float32, weak_type=True))
    """
    check_callable(fun, "linearize")
    if stateful.references is not None:
        return stateful.references.forward(_linearize, fun, primals, has_aux, "linearize")
    return _linearize(fun, primals, has_aux)


def _linearize(fun: Callable[..., Any], primals: tuple, has_aux: bool) -> Any:
    flat = flat_function(holding_aux(fun) if has_aux else fun, primals, {}, original=fun)
    leaves_in = [_weft.abstract(leaf) for leaf in flat.leaves]
    active = [_weft.is_inexact(dtype) for _, dtype, _, _ in leaves_in]
    t = trace_flat(flat, "linearize", known=True, differentiated=active)
    if stateful.references is not None:
        stateful.references.check_aux(t, active)
    value_tree, aux_tree = _value_and_aux(flat, has_aux, "linearize")
    count, n, in_tree = value_tree.num_leaves, t.num_results, flat.in_tree
    primal, tangent, _ = _weft.linearize(t, active, count)
    out = _weft.apply(primal, flat.leaves + t.captures, t.weak_results)
    values, residuals = out[:n], out[n:]
    specs, names = [_weft.abstract(v) for v in values[:count]], flat.names

    # What it knows beside its arguments belongs to no trace: it is part of the structure of a tree.
    def apply_tangents(residuals, *tangents):
        leaves, tangent_tree = _tree.flatten((tangents, {}))
        if tangent_tree != in_tree:
            raise tangents_differ("linearize", in_tree, tangent_tree)
        moving = []
        for x, (shape, dtype, _, text), on, name in zip(leaves, leaves_in, active, names):
            if not on:
                continue
            t_shape, t_dtype, t_weak, t_text = _weft.abstract(x)
            if t_shape != shape or not fits(dtype, t_dtype, t_weak):
                raise type_error(f"linearize: the tangent of argument {name} is {t_text}, the argument itself {text}")
            moving.append(_weft.astype(x, dtype))
        results = iter(apply_derivative(tangent, residuals + moving))
        moved = iter(_weft.with_weak(list(results), [weak for _, dtype, weak, _ in specs if _weft.is_inexact(dtype)]))
        found = [next(moved) if _weft.is_inexact(dtype) else no_derivative(shape) for shape, dtype, _, _ in specs]
        return _tree.unflatten(value_tree, found)

    apply_tangents.__dict__["_fn"] = tangent
    value, applied = _tree.unflatten(value_tree, values[:count]), Partial(apply_tangents, residuals)
    if has_aux:
        return value, applied, released(_tree.unflatten(aux_tree, values[count:]))
    return value, applied


def linear_transpose(fun: Callable[..., Any], *primals: Any) -> Callable[[Any], tuple[Any, ...]]:
    """The transpose of a linear function.

    Args:
        fun: the function.
        *primals: arguments, of which the types count: arrays, numbers or weft.ShapeDtype.

    Returns: function (cotangent) -> tuple of cotangents of the arguments.

    Raises:
        TypeError: arguments and results are neither all of float and complex dtypes nor all of integers; the cotangent
            does not fit the result.
        weft.DerivativeError: the function is not linear in an operation; the message names it.

    Example:
        >>> weft.linear_transpose(lambda x: 3 * x, wnp.ones(2))(wnp.array([1.0, 2.0]))
        (Array([3., 6.], dtype=float32),)
    """
    what = "linear_transpose"
    check_callable(fun, what)
    flat = flat_function(fun, primals, {})
    whole = bool(flat.leaves) and not any(_weft.is_inexact(_weft.abstract(leaf)[1]) for leaf in flat.leaves)
    check_inexact(flat, [True] * len(flat.leaves), what, allow_int=whole)
    lanes = _weft.axes_of_lanes()
    if lanes:
        flat.specs = [
            ShapeDtype(shape, dtype, weak_type=weak, varying=sorted({*_weft.varying(leaf), *lanes}))
            for leaf, (shape, dtype, weak, _) in zip(flat.leaves, map(_weft.abstract, flat.leaves))
        ]
    t = trace_flat(flat, what, known=False, finish=lanes_apart)
    fn = _weft.linear_transpose(t, [True] * len(flat.leaves))
    out_tree, in_tree = flat.out_tree, flat.in_tree
    specs = [(tuple(s), d, w, _weft.abstract(ShapeDtype(s, d))[3]) for s, d, w in _weft.result_specs(t)]
    for _, dtype, _, text in specs:
        if _weft.is_inexact(dtype) == whole:
            expected = "an integer dtype, as the arguments have" if whole else "a float or complex dtype"
            raise type_error(f"{what}: '{flat.name}' returns {text}; expected {expected}")
    weak, places = _weak(flat.leaves), of_cotangents(flat.leaves)

    def transposed(cotangent):
        moving = lanes_apart(checked_cotangents(cotangent, out_tree, specs, what, whole))
        found = lying_as(_weft.apply(fn, t.captures + moving, weak), places, what)
        return _tree.unflatten(in_tree, found)[0]

    return transposed
