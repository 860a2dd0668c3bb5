"""Functions with derivative rules of their own."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, ParamSpec, TypeVar, cast

import numpy as np

from . import _weft
from ._core import stateful
from ._core import tree as _tree
from ._core.closures import traced_values
from ._core.errors import missing_rule, type_error, value_error
from ._core.facts import knowing, trees_differ
from ._core.names import forwarded, update_wrapper, wraps
from ._core.shapes import FLOAT0, ShapeDtype
from ._core.tracing import (
    Flat,
    as_positional,
    call_traced,
    check_callable,
    flat_function,
    flatten_result,
    positions_of,
    trace_flat,
)
from ._sharding.meshes import current_mesh, mesh_around
from .arguments import ints
from .derivatives import lanes_apart
from .symbolic_zeros import CustomVJPPrimal, SymbolicZero, with_zeros

__all__ = ["custom_gradient", "custom_jvp", "custom_vjp"]

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Rule = TypeVar("_Rule", bound=Callable[..., Any])


def _undifferentiated(flat: Flat, what: str) -> Any:
    """The function run, where nothing is traced that could be differentiated: its rules are not asked. What it jits is
    compiled: a solver that Python steers calls one function often."""
    as_arrays: Callable[[list], list] = lambda leaves: [_weft.array(leaf, None, False) for leaf in leaves]
    if _tree.jax_semantics():
        as_arrays = lambda leaves: leaves  # in JAX a number goes in and comes out as it is
    leaves = as_arrays(flat.leaves)
    args, kwargs = (tuple(leaves), {}) if flat.plain else _tree.unflatten(flat.in_tree, leaves)
    results = flatten_result(flat, call_traced(flat.function, args, kwargs, flat.name, what))
    return _tree.unflatten(flat.out_tree, as_arrays(results))


class _Calls(threading.local):
    """The functions with rules that are called while another one is traced, by this thread."""

    def __init__(self):
        self._open: list[list] = []

    @contextlib.contextmanager
    def inside(self, function: Any) -> Iterator[list]:
        """While `function` is traced: a list of those that it calls, which is complete at the end. What their rules may
        use is then among what `function` captured."""
        called: list = []
        self._open.append(called)
        try:
            yield called
        finally:
            self._open.pop()
        if self._open:
            self._open[-1].append(function)


_calls = _Calls()


class _Numbers:
    """The numbers that programs give rules: one for all calls of a kind, so that equal programs are equal."""

    def __init__(self, **said: Any):
        self._of: dict[Any, int] = {}
        self._said = said

    def number(self, flat: Flat, fixed: Sequence) -> int:
        """That of this call, once it was traced; 0 where what is fixed makes it one of its kind."""
        if not all(value is None or type(value) in (bool, int, float, complex, str, bytes) for value in fixed):
            return 0
        given = tuple((type(value), repr(value)) for value in fixed)
        leaves = tuple(_weft.abstract(leaf)[2:] for leaf in flat.leaves)
        key = flat.in_tree, flat.out_tree, leaves, given, _weft.context_key()
        if len(self._of) > 1000:
            self._of.clear()
        if key not in self._of:
            self._of[key] = _weft.new_rule_number()
            if len(named) > 10000:
                named.clear()
            named[self._of[key]] = {"name": flat.name, **self._said}
        return self._of[key]


named: dict[int, dict[str, Any]] = {}  # what rules are called, by the numbers that programs give them


_name_of: Callable[[Any], str] = lambda rule: getattr(rule, "__name__", type(rule).__name__)


class _HostRule:
    """A rule as transforms run it, on leaves. It holds nothing of the call but structures: a program that holds it may
    live long. What a rule that was given wrong results says ends with the stack of the call."""

    def __init__(self, what: str, rule: Callable, fixed: Sequence, flat: Flat, traced: Any, symbolic: bool):
        self._what, self._rule, self._fixed, self._symbolic = what, rule, fixed, symbolic
        self._name, self._in_tree, self._out_tree = flat.name, flat.in_tree, flat.out_tree
        self._results = _weft.result_specs(traced)
        self._mesh = current_mesh()

    def _run(self, rule: Callable, args: tuple) -> Any:
        """A rule of the user's, inside the mesh that was around the call."""
        with mesh_around(self._mesh):
            return call_traced(rule, args, {}, self._name, self._what)

    def _said(self, role: str, problem: str, where: str) -> str:
        return _at(f"{self._what}: the {role} of '{self._name}' {problem}", where)

    def _values(self, value: Any, role: str, where: str) -> list:
        """The leaves of the value that a rule gives, as those of the function's."""
        leaves, tree = _tree.flatten(value)
        if tree != self._out_tree:
            problem = f"returns a value that is {_tree.in_words(tree)}, the function {_tree.in_words(self._out_tree)}"
            raise self._knowing(type_error(self._said(role, problem, where)), value)
        try:
            return self._fitting(leaves, self._results, tree, role, "value", where)
        except TypeError as error:
            raise self._knowing(error, value) from None

    def _knowing(self, error: Exception, value: Any) -> Exception:
        """The exception, which knows what the rule gives as the value."""
        return knowing(
            error,
            kind="rule",
            what=self._what,
            rule=self._rule,
            name=self._name,
            value=value,
            trees=(_tree.structure(value), self._out_tree),
            results=[spec[:2] for spec in self._results],
        )

    def _fitting(self, leaves: list, specs: Sequence[tuple], tree: Any, role: str, part: str, where: str) -> list:
        """The leaves in the dtypes of the specs: a weak one is converted."""
        out: list = []
        for i, (leaf, (shape, dtype, *_)) in enumerate(zip(leaves, specs, strict=True)):
            if leaf is None:
                out.append(None)
                continue
            path = lambda i=i: _tree.path_texts(tree)[i]
            if not _weft.is_operand(leaf):
                raise type_error(self._said(role, f"gives a {part}{path()} that is no array: {leaf!r}", where))
            given, given_dtype, weak, _ = _weft.abstract(leaf)
            other = given_dtype != dtype and not weak and _weft.is_inexact(dtype)
            if other and _tree.jax_semantics() and part != "value" and _weft.is_inexact(given_dtype):
                other = _weft.dtype_kind(given_dtype) != _weft.dtype_kind(dtype)  # JAX rounds what rules give
            if tuple(given) != tuple(shape) or other:
                problem = f"gives a {part}{path()} {_named(given_dtype, given)}, expected {_named(dtype, shape)}"
                raise type_error(self._said(role, problem, where))
            out.append(leaf if given_dtype == dtype else _weft.astype(leaf, dtype))
        return out

    def _zero(self, shape: Sequence, dtype: Any) -> Any:
        if _tree.jax_semantics() and not _weft.is_inexact(dtype):
            return SymbolicZero(ShapeDtype(shape, FLOAT0)) if self._symbolic else np.zeros(shape, FLOAT0)
        return SymbolicZero(ShapeDtype(shape, dtype)) if self._symbolic else _weft.full(shape, 0, dtype)

    def _moved(self, given: Sequence, specs: Sequence[tuple]) -> list:
        """Tangents or cotangents as the user's rule gets them: zeros for None."""
        return [self._zero(shape, dtype) if g is None else g for g, (shape, dtype, *_) in zip(given, specs)]


class _JvpRule(_HostRule):
    """(arguments, tangents or None) -> (values, tangents or None)."""

    def __call__(self, leaves: list, tangents: list, where: str) -> tuple[list, list]:
        role = "rule"
        primals, _ = _tree.unflatten(self._in_tree, leaves)
        moved, _ = _tree.unflatten(self._in_tree, self._moved(tangents, [_weft.abstract(x) for x in leaves]))
        out = self._run(self._rule, (*self._fixed, primals, moved))
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            problem = f"must return (value, tangent), got {_tree.in_words(_tree.structure(out))}"
            error = type_error(self._said(role, problem, where))
            raise knowing(error, kind="no pair", rule=self._rule, name=self._name, value=out)
        value, tangent = out
        slopes, tree = _tree.flatten(tangent)
        if (value_tree := _tree.structure(value)) == tree != self._out_tree:
            self._values(value, role, where)  # raises
        if value_tree != self._out_tree or tree != self._out_tree:
            found = f"{_tree.in_words(value_tree)} and {_tree.in_words(tree)}"
            problem = f"must return a value and a tangent that are each {_tree.in_words(self._out_tree)}, got {found}"
            error = type_error(self._said(role, problem, where))
            raise knowing(error, kind="pair of trees", rule=self._rule, name=self._name, trees=(value_tree, tree))
        values = self._values(value, role, where)
        known = [
            None if isinstance(slope, SymbolicZero) or not _weft.is_inexact(dtype) else slope
            for slope, (_, dtype, _) in zip(slopes, self._results)
        ]
        return values, self._fitting(known, self._results, tree, role, "tangent", where)


class _ForwardRule(_HostRule):
    """(arguments, which are differentiated) -> (values, residuals that are traced, the backward rule for them)."""

    def __init__(self, backward: Callable, order: Sequence[int | None], *rest: Any):
        super().__init__(*rest)
        self._backward, self._order = backward, order

    def __call__(self, leaves: list, perturbed: list[bool], where: str) -> tuple[list, list, Callable]:
        role = "forward rule"
        args, _ = _tree.unflatten(
            self._in_tree,
            [CustomVJPPrimal(x, on) for x, on in zip(leaves, perturbed)] if self._symbolic else leaves,
        )
        moving, fixed = iter(args), iter(self._fixed)
        every = [next(moving) if is_moving else next(fixed) for is_moving in self._order]
        out = self._run(self._rule, tuple(every))
        if not isinstance(out, tuple) or len(out) != 2:
            raise type_error(self._said(role, "must return (value, residuals)", where))
        value, residuals = out
        values = lanes_apart(self._values(value, role, where))
        kept, tree = _tree.flatten(residuals)
        traced = [_weft.is_traced(leaf) for leaf in kept]
        specs = [_weft.abstract(leaf)[:3] for leaf in leaves]
        # What is not traced stays what it is: a number or a flag of Python's, a string, a function, an array.
        fixed_leaves = [None if on else leaf for on, leaf in zip(traced, kept)]
        backward = _BackwardRule(self, specs, perturbed, tree, traced, fixed_leaves)
        return values, lanes_apart([leaf for on, leaf in zip(traced, kept) if on]), backward


class _BackwardRule:
    """(residuals that are traced, cotangents or None) -> the cotangents of the arguments that are differentiated."""

    def __init__(self, forward: _ForwardRule, specs, perturbed, residual_tree, traced, fixed_leaves):
        self._forward, self._specs, self._perturbed = forward, specs, perturbed
        self._residual_tree, self._traced, self._fixed_leaves = residual_tree, traced, fixed_leaves

    def __call__(self, residuals: list, cotangents: list, where: str) -> list:
        rules, role = self._forward, "backward rule"
        arrays, given = iter(residuals), iter(cotangents)
        kept = [next(arrays) if on else leaf for on, leaf in zip(self._traced, self._fixed_leaves)]
        every = [next(given) if _weft.is_inexact(dtype) else None for _, dtype, _ in rules._results]
        ct = _tree.unflatten(rules._out_tree, rules._moved(every, rules._results))
        res = _tree.unflatten(self._residual_tree, kept)
        cts = rules._run(rules._backward, (*rules._fixed, res, ct))
        args, _ = _tree.unflatten(rules._in_tree, list(range(len(self._specs))))
        if not isinstance(cts, (tuple, list)) or len(cts) != len(args):
            expected = f"a tuple of {len(args)} cotangent{'s' * (len(args) != 1)}, one for each argument"
            problem = f"must return {expected}, got {_tree.in_words(_tree.structure(cts))}"
            trees = _tree.structure(args), _tree.structure(cts)
            raise trees_differ("backward rule", rules._said(role, problem, where), *trees)
        self._check_zeros(cts, args, where)
        zero = SymbolicZero(None)  # in the places of what is zero for any shape
        leaves, tree = _tree.flatten(with_zeros(tuple(map(_in_container, cts, args)), args, zero))
        if tree != (in_tree := _tree.structure(args)):
            message = (
                f"{rules._what}: the cotangents of '{rules._name}' are {_tree.in_words(tree)}, the arguments "
                f"{_tree.in_words(in_tree)}"
            )
            raise trees_differ("backward rule", _at(message, where), in_tree, tree)
        known = [
            None if isinstance(leaf, SymbolicZero) or not _weft.is_inexact(dtype) else leaf
            for leaf, (_, dtype, _) in zip(leaves, self._specs)
        ]
        fitting = rules._fitting(known, self._specs, tree, role, "cotangent of its arguments ", where)
        return [
            _weft.full(shape, 0, dtype) if leaf is None else leaf
            for leaf, on, (shape, dtype, _) in zip(fitting, self._perturbed, self._specs)
            if on
        ]

    def _check_zeros(self, cts: Sequence, args: Sequence, where: str) -> None:
        """Raises ValueError for a zero of another shape than the argument in whose place it is."""
        for n, (ct, place) in enumerate(zip(cts, args)):
            if not isinstance(ct, SymbolicZero) or ct.aval is None or not isinstance(place, int):
                continue
            shape, dtype, _ = self._specs[place]
            if ct.shape != tuple(shape):
                problem = f"gives a cotangent of its arguments [{n}] {_named(ct.dtype, ct.shape)}"
                problem += f", expected {_named(dtype, shape)}; None is a zero of any shape"
                raise value_error(self._forward._said("backward rule", problem, where))


def _in_container(ct: Any, arg: Any) -> Any:
    """The cotangent of an argument; an array may stand for that of a container of one."""
    tree = _tree.structure(arg) if _weft.is_operand(ct) else None
    return _tree.unflatten(tree, [ct]) if tree is not None and tree.num_leaves == 1 else ct


def _at(message: str, where: str) -> str:
    """The message with the stack of the call, which is not the caller's any more."""
    return f"{message}\n{where}" if where else message


def _named(dtype, shape) -> str:
    return f"{dtype}[{','.join(map(str, shape))}]"


def _identifiers(names: Sequence[str]) -> list[str]:
    return [name if name.isidentifier() else "" for name in names]


class custom_jvp(Generic[_P, _R]):
    """A function whose forward derivative is given by a rule; reverse mode follows by transposing the rule.

    Args:
        fun: the function; a decorator.
        nondiff_argnums: position or positions of arguments that are passed to Python as they are, and first to the
            rule.
        nondiff_argnames: names of further ones.
        elementwise: whether every element of the value, and its derivatives, depend on the elements of the arguments at
            its place alone. Then `where(x > 0, f(x), 0)` has the derivative 0 where x is not positive, also where that
            of f is infinite there, as it has for Weft's own functions.

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
    __getattr__ = forwarded

    def __init__(
        self,
        fun: Callable[_P, _R],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: Sequence[str] = (),
        *,
        elementwise: bool = False,
    ):
        check_callable(fun, "custom_jvp")
        names = positions_of(fun, nondiff_argnames, "custom_jvp")
        self._function, self._nondiff = (
            fun,
            tuple(sorted({*ints(nondiff_argnums, "custom_jvp: nondiff_argnums"), *names})),
        )
        self._elementwise = elementwise
        self._rule: Callable[..., Any] | None = None
        self._symbolic, self._numbers = False, _Numbers()
        update_wrapper(self, fun)

    def defjvp(self, jvp: _Rule, symbolic_zeros: bool = False) -> _Rule:
        """Gives the rule.

        Args:
            jvp: (primals, tangents) -> (value, tangent); with nondiff_argnums these arguments come first.
            symbolic_zeros: whether the rule gets a SymbolicZero for a tangent that is zero, such as that of an argument
                that is not differentiated, and may give some; otherwise it gets zeros.

        Returns: the rule.

        Example:
            >>> f = weft.custom_jvp(lambda x: x)
            >>> _ = f.defjvp(lambda primals, tangents: (f(*primals), 7.0 * tangents[0]))
            >>> weft.grad(f)(1.0)
            Array(7., dtype=float32, weak_type=True)
        """
        check_callable(jvp, "defjvp")
        self._rule, self._symbolic = jvp, bool(symbolic_zeros)
        self._numbers = _Numbers(jvp=_name_of(jvp), symbolic_zeros=self._symbolic)
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
            raise missing_rule(f"custom_jvp: '{self.__name__}' has no rule; give one with @{self.__name__}.defjvp")
        if stateful.references is not None:
            return stateful.references.custom_jvp(self, args, kwargs)
        return self._call(*args, **kwargs)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        assert self._rule is not None
        every = as_positional(self._function, args, kwargs, "custom_jvp")
        function, fixed, moving, _ = _fixed(self._function, self._nondiff, every)
        flat = flat_function(
            function, moving, {}, [i for i in range(len(every)) if i not in self._nondiff], self._function
        )
        if not _weft.is_tracing():
            return _undifferentiated(flat, "custom_jvp")
        with _calls.inside(self) as inner:
            traced = trace_flat(flat, "custom_jvp", known=True, concrete=False)
        rule = _JvpRule("custom_jvp", self._rule, fixed, flat, traced, self._symbolic)
        out = _weft.custom_jvp_call(
            traced,
            flat.leaves,
            _identifiers(flat.names),
            traced_values(self._rule, fixed, but=inner),
            rule,
            self._numbers.number(flat, fixed),
            self._elementwise,
        )
        return _tree.unflatten(flat.out_tree, out)


class custom_vjp(Generic[_P, _R]):
    """A function whose reverse derivative is given by two rules.

    Args:
        fun: the function; a decorator.
        nondiff_argnums: position or positions of arguments that are passed to Python as they are, and first to the
            backward rule.
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
    __getattr__ = forwarded

    def __init__(
        self, fun: Callable[_P, _R], nondiff_argnums: int | Sequence[int] = (), nondiff_argnames: Sequence[str] = ()
    ):
        check_callable(fun, "custom_vjp")
        names = positions_of(fun, nondiff_argnames, "custom_vjp")
        self._function, self._nondiff = (
            fun,
            tuple(sorted({*ints(nondiff_argnums, "custom_vjp: nondiff_argnums"), *names})),
        )
        self._forward: Callable[..., Any] | None = None
        self._backward: Callable[..., Any] | None = None
        self._symbolic, self._numbers = False, _Numbers()
        update_wrapper(self, fun)

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
            symbolic_zeros: whether fwd takes a CustomVJPPrimal for each array, which says whether it is differentiated,
                and bwd a SymbolicZero for a cotangent that is zero, and may give some; otherwise bwd gets zeros.
            optimize_remat: accepted, without effect: what a remat does not need of fwd is never computed.

        Residuals are what bwd needs of fwd, a tree of any leaves: those that are no arrays (True, 3, a string) reach
        bwd as they are.

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
        self._forward, self._backward, self._symbolic = fwd, bwd, bool(symbolic_zeros)
        self._numbers = _Numbers(fwd=_name_of(fwd), bwd=_name_of(bwd), symbolic_zeros=self._symbolic)

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        if self._forward is None:
            raise missing_rule(
                f"custom_vjp: '{self.__name__}' has no rules; give them with {self.__name__}.defvjp(fwd, bwd)"
            )
        if stateful.references is not None:
            return stateful.references.custom_vjp(self, args, kwargs)
        return self._call(*args, **kwargs)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        assert self._forward is not None and self._backward is not None
        every = as_positional(self._function, args, kwargs, "custom_vjp")
        function, fixed, moving, order = _fixed(self._function, self._nondiff, every)
        flat = flat_function(
            function, moving, {}, [i for i in range(len(every)) if i not in self._nondiff], self._function
        )
        if not _weft.is_tracing():
            return _undifferentiated(flat, "custom_vjp")
        # In a device of pmap the backward rule is given and gives that device's own cotangents.
        flat.leaves = flat.specs = lanes_apart(flat.leaves)
        with _calls.inside(self) as inner:
            traced = trace_flat(flat, "custom_vjp", known=True, concrete=False, finish=lanes_apart)
        rest = ("custom_vjp", self._forward, fixed, flat, traced, self._symbolic)
        out = _weft.custom_vjp_call(
            traced,
            flat.leaves,
            _identifiers(flat.names),
            traced_values(self._forward, self._backward, fixed, but=inner),
            _ForwardRule(self._backward, order, *rest),
            self._numbers.number(flat, fixed),
        )
        return _tree.unflatten(flat.out_tree, out)


def _fixed(function: Callable, nondiff: tuple[int, ...], args: tuple) -> tuple[Callable, list, tuple, list[bool]]:
    """The function of the arguments that are differentiated; the others; these; and which of all they are."""
    order = [i not in nondiff for i in range(len(args))]
    if not nondiff:
        return function, [], args, order
    kept = {i: args[i] for i in nondiff}

    def partial_function(*rest, **kwargs):
        it = iter(rest)
        return function(*[kept[i] if i in kept else next(it) for i in range(len(args))], **kwargs)

    update_wrapper(partial_function, function)
    moving = tuple(a for i, a in enumerate(args) if i not in kept)
    return partial_function, [args[i] for i in nondiff], moving, order


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

    @wraps(fun)
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
