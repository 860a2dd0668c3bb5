"""Functions with derivative rules of their own."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar, cast

from . import _weft
from . import tree as _tree
from ._errors import type_error
from ._tracing import Flat, ShapeDtype, as_positional, check_callable, flat_function, positions_of, trace_flat

__all__ = ["closure_convert", "custom_gradient", "custom_jvp", "custom_vjp"]

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Rule = TypeVar("_Rule", bound=Callable[..., Any])

_NUMBERS: dict[Any, int] = {}
_COUNTER = itertools.count(1)


def _number(function: Callable[..., Any]) -> int:
    """By which tracer/rule_depth.h knows a function. Functions made by the same line of code share one: a rule that
    makes custom functions, whose rules make others, comes to an end, too."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    return _NUMBERS.setdefault(getattr(function, "__code__", type(function)), next(_COUNTER))


def _undifferentiated(flat: Flat, what: str) -> Any:
    """The function run, where nothing is traced that could be differentiated: its rules are not asked."""
    traced = trace_flat(flat, what, known=True)
    return _tree.unflatten(flat.out_tree, _weft.apply(traced.fn, flat.leaves + traced.captures, traced.weak_results))


class SymbolicZero:
    """A tangent or cotangent known to be zero, for rules with symbolic_zeros=True.

    Args:
        aval: shape and dtype.

    Example:
        >>> weft.custom_derivatives.SymbolicZero(weft.ShapeDtype((3,))).shape
        (3,)
    """

    def __init__(self, aval: Any):
        self.aval = aval

    @property
    def shape(self) -> tuple:
        """The dimensions.

        Example:
            >>> weft.custom_derivatives.SymbolicZero(weft.ShapeDtype((3,))).shape
            (3,)
        """
        return tuple(self.aval.shape)

    @property
    def dtype(self) -> Any:
        """The dtype.

        Example:
            >>> weft.custom_derivatives.SymbolicZero(weft.ShapeDtype((3,))).dtype
            float32
        """
        return self.aval.dtype


class CustomVJPPrimal:
    """An argument of the forward rule of a custom_vjp with symbolic_zeros=True.

    Args:
        value: the array.
        perturbed: whether it is differentiated.

    Example:
        >>> weft.custom_derivatives.CustomVJPPrimal(1.0, True).value
        1.0
    """

    def __init__(self, value: Any, perturbed: bool):
        self.value, self.perturbed = value, perturbed


def _with_primals(forward: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(forward, updated=())
    def rule(*args):
        return forward(*_tree.map(lambda leaf: CustomVJPPrimal(leaf, True), args))

    return rule


def _named(dtype, shape) -> str:
    return f"{dtype}[{','.join(map(str, shape))}]"


def _check_leaves(what: str, role: str, tree, given: Sequence[tuple], expected: Sequence[tuple]) -> None:
    """Raises TypeError unless the leaves that have derivatives are of the shapes and dtypes expected."""
    for path, (shape, dtype, _), (e_shape, e_dtype, _) in zip(_tree.path_texts(tree), given, expected, strict=True):
        if (shape, dtype) != (e_shape, e_dtype) and _weft.is_inexact(e_dtype):
            raise type_error(f"{what} gives a {role}{path} {_named(dtype, shape)}, expected {_named(e_dtype, e_shape)}")


def _check_rule(what: str, function, rule, out_tree) -> None:
    """The value and tangents that a rule gives, beside what its function gives."""
    expected, given = _weft.result_specs(function), _weft.result_specs(rule)
    n = len(expected)
    _check_leaves(what, "value", out_tree, given[:n], expected)
    _check_leaves(what, "tangent", out_tree, given[n:], expected)


class custom_jvp(Generic[_P, _R]):
    """A function whose forward derivative is given by a rule; reverse mode follows by transposing the rule.

    Args:
        fun: the function; a decorator.
        nondiff_argnums: positions of arguments that are passed to Python as they are, and first to the rule.
        nondiff_argnames: names of further ones.

    Raises:
        TypeError: when called: there is no rule; when called inside a transform: it returns another structure than
            (value, tangent).

    Example:
        >>> @weft.custom_jvp
        ... def log1pexp(x):
        ...     return wnp.log(1 + wnp.exp(x))
        >>> @log1pexp.defjvp
        ... def log1pexp_jvp(primals, tangents):
        ...     (x,), (t,) = primals, tangents
        ...     return log1pexp(x), (1 - 1 / (1 + wnp.exp(x))) * t
        >>> weft.grad(log1pexp)(100.0)
        Array(1., dtype=float32, weak_type=True)
    """

    __name__: str

    def __init__(
        self, fun: Callable[_P, _R], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()
    ):
        check_callable(fun, "custom_jvp")
        names = positions_of(fun, nondiff_argnames, "custom_jvp")
        self._function, self._nondiff = fun, tuple(sorted({*nondiff_argnums, *names}))
        self._rule: Callable[..., Any] | None = None
        functools.update_wrapper(self, fun)

    def defjvp(self, jvp: _Rule, symbolic_zeros: bool = False) -> _Rule:
        """Gives the rule.

        Args:
            jvp: (primals, tangents) -> (value, tangent); with nondiff_argnums these arguments come first.
            symbolic_zeros: whether the rule knows SymbolicZero among the tangents. It is traced before anybody knows
                which tangents are zero: all are arrays here.

        Returns: the rule.

        Example:
            >>> f = weft.custom_jvp(lambda x: x)
            >>> _ = f.defjvp(lambda primals, tangents: (f(*primals), 7.0 * tangents[0]))
            >>> weft.grad(f)(1.0)
            Array(7., dtype=float32, weak_type=True)
        """
        del symbolic_zeros
        check_callable(jvp, "defjvp")
        self._rule = jvp
        return jvp

    def defjvps(self, *rules: Callable[..., Any] | None) -> None:
        """Gives one rule per argument.

        Args:
            *rules: (tangent, value, *primals) -> its part of the tangent; None: no contribution.

        Returns: None.

        Example:
            >>> f = weft.custom_jvp(lambda x, y: x * y)
            >>> f.defjvps(lambda t, value, x, y: t * y, None)
            >>> weft.grad(f, (0, 1))(2.0, 3.0)
            (Array(3., dtype=float32, weak_type=True), Array(0., dtype=float32, weak_type=True))
        """

        function: Callable[..., _R] = self

        def rule(primals, tangents):
            value = function(*primals)
            parts = [r(t, value, *primals) for r, t in zip(rules, tangents) if r is not None]
            total = parts[0] if parts else _tree.map(lambda v: v * 0, value)
            for part in parts[1:]:
                total = _tree.map(lambda a, b: a + b, total, part)
            return value, total

        self.defjvp(rule)

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        if self._rule is None:
            raise type_error(f"custom_jvp: '{self.__name__}' has no rule; give one with @{self.__name__}.defjvp")
        every = as_positional(self._function, args, kwargs, "custom_jvp")
        function, rule, moving = _fixed(self._function, self._rule, self._nondiff, every)
        flat = flat_function(function, moving, {})
        if not _weft.is_tracing():
            return _undifferentiated(flat, "custom_jvp")
        traced = trace_flat(flat, "custom_jvp", known=True, concrete=False)
        number = _number(self._function)
        if _weft.rules_left(number) == 0:
            return _tree.unflatten(flat.out_tree, _weft.without_rule(traced, flat.leaves))
        n = len(moving)

        def rule_flat(*both):
            return rule(tuple(both[:n]), tuple(both[n:]))

        flat_rule = flat_function(rule_flat, moving + moving, {}, original=rule)
        known = [True] * len(flat.leaves) + [False] * len(flat.leaves)
        traced_rule = trace_flat(flat_rule, "custom_jvp", known=known, rule=number, concrete=False)
        expected = _tree.structure((_tree.unflatten(flat.out_tree, [0] * flat.out_tree.num_leaves),) * 2)
        if flat_rule.out_tree != expected:
            raise type_error(
                f"custom_jvp: the rule of '{flat.name}' must return (value, tangent) of structure "
                f"{expected}, got {flat_rule.out_tree}"
            )
        _check_rule(f"custom_jvp: the rule of '{flat.name}'", traced, traced_rule, flat.out_tree)
        _weft.unify_varying(traced, traced_rule, tangents=True)
        return _tree.unflatten(flat.out_tree, _weft.custom_jvp(traced, traced_rule, flat.leaves))


class custom_vjp(Generic[_P, _R]):
    """A function whose reverse derivative is given by two rules.

    Args:
        fun: the function; a decorator.
        nondiff_argnums: positions of arguments that are passed to Python as they are, and first to the backward rule.
        nondiff_argnames: names of further ones.

    Raises:
        TypeError: when called: there are no rules; when called inside a transform: they return other structures than
            those of the value and arguments.

    Example:
        >>> @weft.custom_vjp
        ... def clip_gradient(x):
        ...     return x
        >>> clip_gradient.defvjp(lambda x: (x, None), lambda _, ct: (wnp.clip(ct, -1, 1),))
        >>> weft.grad(lambda x: 5 * clip_gradient(x))(2.0)
        Array(1., dtype=float32, weak_type=True)
    """

    __name__: str

    def __init__(
        self, fun: Callable[_P, _R], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()
    ):
        check_callable(fun, "custom_vjp")
        names = positions_of(fun, nondiff_argnames, "custom_vjp")
        self._function, self._nondiff = fun, tuple(sorted({*nondiff_argnums, *names}))
        self._forward: Callable[..., Any] | None = None
        self._backward: Callable[..., Any] | None = None
        self._symbolic = False
        functools.update_wrapper(self, fun)

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Gives the two rules.

        Args:
            fwd: (*arguments) -> (value, residuals).
            bwd: (residuals, cotangent) -> tuple of the cotangents of the arguments; None is zero. With
                nondiff_argnums these arguments come first.
            symbolic_zeros: whether fwd takes a CustomVJPPrimal for each array, and bwd knows SymbolicZero among the
                cotangents. The rules are traced before anybody knows which arguments are differentiated: all are
                `perturbed` here, and all cotangents are arrays.
            optimize_remat: accepted, without effect: what a remat does not need of fwd is never computed.

        Returns: None.

        Example:
            >>> f = weft.custom_vjp(lambda x: x * x)
            >>> f.defvjp(lambda x: (x * x, x), lambda x, ct: (2 * x * ct,))
            >>> weft.grad(f)(3.0)
            Array(6., dtype=float32, weak_type=True)
        """
        del optimize_remat
        check_callable(fwd, "defvjp")
        check_callable(bwd, "defvjp")
        self._forward, self._backward, self._symbolic = fwd, bwd, symbolic_zeros

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        if self._forward is None:
            raise type_error(
                f"custom_vjp: '{self.__name__}' has no rules; give them with {self.__name__}.defvjp(fwd, bwd)"
            )
        every = as_positional(self._function, args, kwargs, "custom_vjp")
        assert self._backward is not None  # checked by __call__, together with the forward rule
        backward_rule, fixed = self._backward, [every[i] for i in self._nondiff]
        function, _, moving = _fixed(self._function, self._forward, self._nondiff, every)
        forward = _fixed(self._forward, self._forward, self._nondiff, every)[0]
        if self._symbolic:
            forward = _with_primals(forward)
        flat = flat_function(function, moving, {})
        if not _weft.is_tracing():
            return _undifferentiated(flat, "custom_vjp")
        # In a device of pmap the backward rule is given and gives that device's own cotangents.
        from .derivatives import lanes_apart

        flat.leaves = flat.specs = lanes_apart(flat.leaves)
        traced = trace_flat(flat, "custom_vjp", known=True, concrete=False, finish=lanes_apart)
        number = _number(self._function)
        if _weft.rules_left(number) == 0:
            return _tree.unflatten(flat.out_tree, _weft.without_rule(traced, flat.leaves))
        flat_fwd = flat_function(forward, moving, {})
        flat_fwd.leaves = flat_fwd.specs = flat.leaves
        traced_fwd = trace_flat(flat_fwd, "custom_vjp", known=True, rule=number, concrete=False, finish=lanes_apart)
        if flat_fwd.out_tree.num_children != 2 or flat_fwd.out_tree.type is not tuple:
            raise type_error(f"custom_vjp: the forward rule of '{flat.name}' must return (value, residuals)")
        value_tree, residual_tree = flat_fwd.out_tree.children()
        if value_tree != flat.out_tree:
            raise type_error(
                f"custom_vjp: the forward rule of '{flat.name}' returns a value of structure {value_tree}, "
                f"the function {flat.out_tree}"
            )
        from ._tracing import ShapeDtype

        n = value_tree.num_leaves
        what = f"custom_vjp: the forward rule of '{flat.name}'"
        _check_leaves(what, "value", value_tree, _weft.result_specs(traced_fwd)[:n], _weft.result_specs(traced))
        _weft.unify_varying(traced, traced_fwd, tangents=False)
        specs = [
            ShapeDtype(shape, dtype, varying=_weft.result_varying(traced_fwd, i)[0])
            for i, (shape, dtype, _) in enumerate(_weft.result_specs(traced_fwd))
        ]
        residuals = _tree.unflatten(residual_tree, _residual_values(traced_fwd, flat.leaves, specs)[n:])
        cotangents = _tree.unflatten(value_tree, specs[:n])
        in_tree = _tree.structure(moving)

        def backward(res, ct):
            cts = backward_rule(*fixed, res, ct)
            if not isinstance(cts, (tuple, list)) or len(cts) != len(moving):
                raise type_error(
                    f"custom_vjp: the backward rule of '{flat.name}' must return a tuple of {len(moving)} cotangents"
                )
            filled = []
            for a, c in zip(moving, cts):
                filled.append(
                    _tree.map(lambda x: _weft.full(_weft.abstract(x)[0], 0, _weft.abstract(x)[1]), a)
                    if c is None
                    else c
                )
            if _tree.structure(tuple(filled)) != in_tree:
                raise type_error(
                    f"custom_vjp: the cotangents of '{flat.name}' have the structure "
                    f"{_tree.structure(tuple(filled))}, the arguments {in_tree}"
                )
            return tuple(filled)

        flat_bwd = flat_function(backward, (residuals, cotangents), {})
        known = [True] * residual_tree.num_leaves + [False] * n
        traced_bwd = trace_flat(flat_bwd, "custom_vjp", known=known, rule=number, concrete=False)
        what = f"custom_vjp: the backward rule of '{flat.name}'"
        wanted = [_weft.abstract(leaf)[:3] for leaf in flat.leaves]
        _check_leaves(what, "cotangent of its arguments ", in_tree, _weft.result_specs(traced_bwd), wanted)
        return _tree.unflatten(flat.out_tree, _weft.custom_vjp(traced, traced_fwd, traced_bwd, flat.leaves))


def _residual_values(forward: Any, leaves: list, specs: list[ShapeDtype]) -> list:
    """What the forward rule gives for these arguments, so that Python may ask for the numbers in the backward rule.
    In the program it is dead code. Its types alone, where it would be more than that."""
    if forward.fn.has_effects:
        return specs
    values = _weft.apply(forward.fn, leaves + forward.captures)
    return [spec if _weft.varying(value) else value for value, spec in zip(values, specs, strict=True)]


def _fixed(function: Callable, rule: Callable, nondiff: tuple[int, ...], args: tuple):
    """The function and its rule with the arguments that are not differentiated filled in."""
    if not nondiff:
        return function, rule, args
    kept = {i: args[i] for i in nondiff}

    def partial_function(*rest, **kwargs):
        it = iter(rest)
        return function(*[kept[i] if i in kept else next(it) for i in range(len(args))], **kwargs)

    functools.update_wrapper(partial_function, function)
    front = [args[i] for i in nondiff]

    def partial_rule(*rest):
        return rule(*front, *rest)

    return partial_function, partial_rule, tuple(a for i, a in enumerate(args) if i not in kept)


def custom_gradient(fun: Callable[_P, tuple[_R, Any]]) -> Callable[_P, _R]:
    """A function that returns its value and a pullback, made one that returns the value and has that derivative.

    Args:
        fun: (*arguments) -> (value, pullback); pullback(cotangent) gives the cotangent of the argument, or a tuple
            of them for several.

    Returns: function (*arguments) -> value.

    Example:
        >>> @weft.custom_gradient
        ... def f(x):
        ...     return x ** 2, lambda g: (g * x * 3,)
        >>> weft.grad(f)(2.0)
        Array(6., dtype=float32, weak_type=True)
    """

    both: Callable[..., tuple[Any, Any]] = fun

    @functools.wraps(fun, updated=())
    def value_of(*args):
        return both(*args)[0]

    wrapped: Any = custom_vjp(value_of)

    def forward(*args):
        return both(*args)[0], args

    def backward(args, cotangent):
        cts = both(*args)[1](cotangent)
        return tuple(cts) if isinstance(cts, (tuple, list)) else (cts,)

    wrapped.defvjp(forward, backward)
    return cast(Callable[_P, _R], wrapped)


def closure_convert(fun: Callable[..., _R], *example_args: Any) -> tuple[Callable[..., _R], list[Any]]:
    """A function that takes what it captured as arguments, for rules that differentiate with respect to it.

    Args:
        fun: the function.
        *example_args: arguments that it is traced with.

    Returns: pair (converted, values): the traced values that it captured, and a function called converted(*args,
        *values).

    Raises:
        TypeError: when converted is called with arguments of another structure.

    Example:
        >>> def solve(x):
        ...     step, captured = weft.closure_convert(lambda y: x * y, 1.0)
        ...     return step(5.0, *captured)
        >>> weft.grad(solve)(2.0)
        Array(5., dtype=float32, weak_type=True)
    """
    flat = flat_function(fun, example_args, {})
    traced = trace_flat(flat, "closure_convert", known=False)
    values = traced.captures
    in_tree = flat.in_tree

    def converted(*args):
        count = len(args) - len(values)
        leaves, tree = _tree.flatten((args[:count], {}))
        if tree != in_tree:
            raise type_error(f"closure_convert: '{flat.name}' was converted for arguments {in_tree}, got {tree}")
        return _tree.unflatten(flat.out_tree, _weft.apply(traced.fn, leaves + list(args[count:]), traced.weak_results))

    return converted, list(values)
