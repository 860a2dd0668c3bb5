"""Derivatives of functions that use references, and functions with rules that do.

What a function writes is an auxiliary result of its derivative. What the backward rule of a custom_vjp writes (it keeps
cotangents, say) happens while the derivative goes back. So it goes back too: a *shadow* of the reference is carried
through the function beside it, unchanged, and the cotangent of the shadow is what the reference holds on the way
back. It begins with what the reference holds at the end of the function, each backward rule that changes it hands on
what it makes of it, and the cotangent that arrives at the beginning is what the reference holds after all.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from .. import _weft
from .._core import tree as _tree
from .._core.errors import of_kind, type_error, value_error
from .._core.tracing import as_positional, call_name
from ..api import stop_gradient, typeof
from ..custom import custom_jvp as with_rule
from ..pullbacks import OfReferences, Pullback
from ..symbolic_zeros import SymbolicZero
from . import scopes
from .binding import Bound, attempts
from .given import (
    Given,
    called_as,
    held,
    naming,
    reachable,
    refs_among,
    refuse_given_twice,
    refuse_references_in,
    released,
    settled,
)
from .refs import Ref, new_ref
from .scopes import Site, Unbound


class _Thread(threading.local):
    def __init__(self) -> None:
        self.sites: list[Bound] = []


_thread = _Thread()


def end_results() -> bool:
    """Whether what references from outside hold at the end are the last results of the function that is being traced
    for a derivative: check_aux looks at them."""
    return bool(_thread.sites and _thread.sites[-1].refs)


def check_aux(traced: Any, active: Sequence[bool]) -> None:
    """Of a function whose derivative is taken: raises ValueError where it writes what is differentiated into a
    reference
    from outside. What its references hold at the end are its last results."""
    site = _thread.sites[-1] if _thread.sites else None
    if site is None or not site.written or not site.refs:
        return
    _, moves = _weft.jvp(traced, list(active))
    for ref, moving in zip(site.refs, moves[len(moves) - len(site.refs) :]):
        if moving and id(ref) in site.written:
            where = site.written[id(ref)]
            raise value_error(
                f"{site.kind}: a value that is differentiated is written into a reference of type {ref._type} that was "
                f"made outside of the differentiated function{ref._line}{', ' + where if where else ''}. Its "
                f"derivative "
                "would be lost: write weft.lax.stop_gradient(value), return the value with has_aux=True, or make the "
                "reference inside"
            )


def _refuse_moving(args: Any, what: str, name: str) -> None:
    leaves, tree = _tree.flatten(args)
    for leaf, path in zip(leaves, _tree.path_texts(tree)):
        if isinstance(leaf, Ref):
            raise type_error(
                f"{what}: argument{path} of '{name}' is a reference of type {leaf._type}{leaf._line}, which has no "
                "derivative; differentiate with respect to an array, and make the reference inside: weft.new_ref(x)"
            )


class _Shadows:
    """While a function is traced: its references have shadows, of which backward rules know."""

    def __init__(self, refs: Sequence[Ref], tokens: Sequence[Any]):
        self._refs, self._tokens, self._before = refs, tokens, [r._back for r in refs]

    def __enter__(self) -> list[Ref]:
        for ref, token in zip(self._refs, self._tokens):
            ref._back = Ref(token)
        return [ref._back for ref in self._refs]

    def __exit__(self, *_: object) -> None:
        for ref, before in zip(self._refs, self._before):
            ref._back = before


def _pair(out: Any, what: str, fun: Callable) -> tuple:
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        raise type_error(f"{what}: with has_aux '{call_name(fun)}' must return (value, aux)")
    return out[0], out[1]


def _checked(site: Bound, run: Callable[[], Any]) -> Any:
    _thread.sites.append(site)
    try:
        return run()
    finally:
        _thread.sites.pop()


def value_and_grad(run: Callable, fun: Callable, args: tuple, kwargs: dict, has_aux: bool, nums: Any, what: str) -> Any:
    """run(fun, has_aux, args, kwargs, argnums) -> (value, gradient), with has_aux ((value, aux), gradient)."""
    chosen = [nums] if isinstance(nums, int) else list(nums)
    for n in chosen:
        if -len(args) <= n < len(args):
            _refuse_moving(args[n], what, call_name(fun))

    def attempt(site: Bound) -> Any:
        given, named = held(args), held(kwargs)
        if not site.refs:
            return run(site.watching(fun), has_aux, given, named, nums)
        values = site.values()

        def function(*arguments: Any, **keywords: Any) -> Any:
            tokens = ()
            if site.backward:
                *arguments, tokens = arguments  # type: ignore[assignment]
            with _Shadows(site.backward, tokens) as shadows:
                out, news = site.run(fun, values, tuple(arguments), keywords)
                value, aux = _pair(out, what, fun) if has_aux else (out, None)
                loss = value
                for ref, shadow in zip(site.backward, shadows):
                    # Adds nothing, and has the contents as its derivative by the shadow.
                    last, contents = scopes.read(shadow), stop_gradient(scopes.read(ref))
                    still = (last - stop_gradient(last)) * contents
                    loss = loss + _weft.astype(still.sum(), _weft.abstract(value)[1])
            return loss, (value, aux, news)

        if site.backward:
            places = [n % len(args) for n in chosen]
            tokens = tuple(scopes.read(r) for r in site.backward)
            result = _checked(
                site, lambda: run(naming(function, fun), True, (*given, tokens), named, (*places, len(args)))
            )
        else:
            result = _checked(site, lambda: run(naming(function, fun), True, given, named, nums))
        (_, (value, aux, news)), slopes = result
        site.write(news)
        if site.backward:
            *slopes, contents = slopes
            slopes = slopes[0] if isinstance(nums, int) else tuple(slopes)
            for ref, new in zip(site.backward, contents):
                scopes.write(ref, settled(ref, new))
        return ((value, aux) if has_aux else value), slopes

    return attempts(what, (fun, args, kwargs), attempt, differentiates=True)


def forward(run: Callable, fun: Callable, primals: tuple, has_aux: bool, what: str) -> Any:
    """jvp, vjp, linearize: run(fun, primals, has_aux) -> (value, derivative), with has_aux (value, derivative, aux)."""
    if what == "vjp" and any(isinstance(leaf, Ref) for leaf in _tree.leaves(primals)):
        return _of_references(run, fun, primals, has_aux)
    _refuse_moving(primals, what, call_name(fun))

    def attempt(site: Bound) -> Any:
        if not site.refs:
            return run(site.watching(fun), primals, has_aux)
        values = site.values()

        def function(*arguments: Any) -> Any:
            tokens = ()
            if site.backward:
                *arguments, tokens = arguments  # type: ignore[assignment]
            with _Shadows(site.backward, tokens) as shadows:
                out, news = site.run(fun, values, tuple(arguments))
                value, aux = _pair(out, what, fun) if has_aux else (out, None)
                last = [scopes.read(c) for c in shadows]
            return ((value, last) if site.backward else value), (aux, news)

        given = (*primals, tuple(scopes.read(r) for r in site.backward)) if site.backward else primals
        value, derivative, (aux, news) = _checked(site, lambda: run(naming(function, fun), given, True))
        site.write(news)
        if site.backward:
            value, pull = value[0], derivative

            def backwards(cotangent: Any) -> Any:
                *cotangents, contents = pull((cotangent, [scopes.read(r) for r in site.backward]))
                for ref, new in zip(site.backward, contents):
                    scopes.write(ref, settled(ref, new))
                return tuple(cotangents)

            derivative = Pullback(backwards)

        return (value, derivative, aux) if has_aux else (value, derivative)

    return attempts(what, (fun, primals), attempt, differentiates=True)


def jvp_of_references(jvp: Callable, fun: Callable, primals: tuple, tangents: tuple, has_aux: bool) -> Any:
    """jvp along what references among the tangents hold: both hold at the end what the function makes of it."""
    (leaves, tree), (moving, moving_tree) = _tree.flatten(primals), _tree.flatten(tangents)
    if moving_tree != tree or any(isinstance(x, Ref) != isinstance(dx, Ref) for x, dx in zip(leaves, moving)):
        raise type_error("jvp: tangents of references are references; these tangents have others, or another structure")
    refs, tangent_refs = refs_among(leaves), refs_among(moving)
    if len({id(ref) for ref in [*refs, *tangent_refs]}) < 2 * len(refs):
        raise value_error(f"jvp: a reference is given to '{call_name(fun)}' twice; its tangent would have two places")

    def function(*arguments: Any) -> Any:
        own = [new_ref(x) if isinstance(leaf, Ref) else x for x, leaf in zip(_tree.leaves(arguments), leaves)]
        out = fun(*_tree.unflatten(tree, own))
        value, aux = _pair(out, "jvp", fun) if has_aux else (out, None)
        return (value, [scopes.read(ref) for ref in refs_among(own)]), aux

    contents = lambda xs: _tree.unflatten(tree, [scopes.read(x) if isinstance(x, Ref) else x for x in xs])
    (value, last), (slope, moved), aux = jvp(naming(function, fun), contents(leaves), contents(moving), has_aux=True)
    for ref, new in zip(refs, last):
        scopes.write(ref, settled(ref, new))
    for ref, new in zip(tangent_refs, moved):
        if _weft.is_inexact(ref.dtype):  # others do not move
            scopes.write(ref, settled(ref, new))
    return (value, slope, aux) if has_aux else (value, slope)


def _of_references(run: Callable, fun: Callable, primals: tuple, has_aux: bool) -> Any:
    """vjp with respect to what references among the arguments hold. Inside, the function has references of its own;
    what they hold at the end is a result of it, whose cotangent is what the reference of the gradient holds."""
    leaves, tree = _tree.flatten(primals)
    refs = [leaf for leaf in leaves if isinstance(leaf, Ref)]
    refuse_given_twice("vjp", fun, primals)  # its gradient would have two places

    def function(*arguments: Any) -> Any:
        own = [new_ref(x) if isinstance(leaf, Ref) else x for x, leaf in zip(_tree.leaves(arguments), leaves)]
        out = fun(*_tree.unflatten(tree, own))
        value, aux = _pair(out, "vjp", fun) if has_aux else (out, None)
        return (value, [scopes.read(ref) for ref in own if isinstance(ref, Ref)]), aux

    given = _tree.unflatten(tree, [scopes.read(leaf) if isinstance(leaf, Ref) else leaf for leaf in leaves])
    (value, last), pull, aux = forward(run, naming(function, fun), given, True, "vjp")
    for ref, new in zip(refs, last):
        scopes.write(ref, settled(ref, new))
    types = [typeof(scopes.read(leaf)) if isinstance(leaf, Ref) else None for leaf in leaves]
    derivative = OfReferences(tree, types).pullback(pull)
    return (value, derivative, aux) if has_aux else (value, derivative)


# --- Rules ------------------------------------------------------------------------------------------------------------


def _bind(site: Site, refs: Sequence[Ref], values: Sequence[Any]) -> scopes.Scope:
    scope = scopes.here()
    assert scope is not None
    scope.site = site
    for ref, value in zip(refs, values):
        scope.bind(ref, value)
    return scope


def _write(site: Site, refs: Sequence[Ref], news: Sequence[Any], forward: Any) -> None:
    """What references hold after a call: of those that the function wrote, and those that its forward rule can. Rules
    say
    what the derivative of the result is; what a reference holds has none."""
    others = {id(r) for r in reachable(forward) if not _weft.carries_derivative(scopes.read(r))}
    for ref, new in zip(refs, news):
        if id(ref) in site.written or id(ref) in others:
            scopes.write(ref, settled(ref, stop_gradient(new)))


def _fixed(function: Any, args: tuple) -> tuple[list, Callable]:
    """The arguments that are differentiated; and a function that puts them in their places again."""
    moving = [i for i in range(len(args)) if i not in function._nondiff]

    def every(given: Sequence[Any]) -> list:
        full = list(args)
        for i, value in zip(moving, released(tuple(given))):
            full[i] = value
        return full

    return [held(args[i]) for i in moving], every


def _cotangents_of_contents(refs: Sequence[Ref], args: Sequence[Any], cts: Sequence[Any]) -> Any:
    """Of what references hold, the cotangents that a rule gives for those that are arguments; None: of none."""
    given = {id(arg.ref): ct for arg, ct in zip(args, cts) if isinstance(arg, Given) and ct is not None}
    if not given:
        return None
    return [given.get(id(r)) for r in refs]


def _without_derivative(value: Any, ref: Ref, fun: Callable) -> Any:
    """What a reference holds that the function of a custom_vjp uses from outside: an error where it is differentiated,
    as it is for arrays."""
    if not _weft.is_inexact(ref.dtype):
        return value

    def rule(*_: Any) -> Any:
        raise of_kind(
            _weft.DerivativeError,
            f"custom_vjp: '{call_name(fun)}' uses a reference of type {ref._type}, made{ref._line or ' here'}, from "
            "outside, and is differentiated with respect to what that holds, about which its rule says nothing; make "
            "the reference an argument of the function",
        )

    same = with_rule(lambda x: x)
    same.defjvp(rule)
    return same(value)


def custom_vjp(function: Any, args: tuple, kwargs: dict) -> Any:
    """A call of a custom_vjp, as one whose function and rules take what references hold, and return it."""
    every_arg = as_positional(function._function, args, kwargs, "custom_vjp")
    refs = reachable(function._function, function._forward, function._backward, every_arg)
    if not refs:
        return function._call(*args, **kwargs)
    refuse_given_twice("custom_vjp", function._function, every_arg)
    if not _weft.is_tracing():
        out = function._function(*args, **kwargs)
        refuse_references_in(function._function, out, "custom_vjp")
        return out
    changed = [*refs_among(every_arg), *reachable(function._backward)]
    changed = [r for i, r in enumerate(changed) if _weft.is_inexact(r.dtype) and not any(r is c for c in changed[:i])]
    for ref in changed:
        if (around := scopes.stands_for_argument(ref)) is not None:
            around.inlined = True
            if scopes.differentiated_around(ref):
                raise Unbound(ref, around, inlined=True)
        site = scopes.differentiating(ref)
        if site is not None and site.kind in ("grad", "value_and_grad", "vjp") and ref not in site.backward:
            raise Unbound(ref, site, backward=True)
    changed = [r for r in changed if scopes.differentiating(r) is not None and r._back is not None]
    site = Site("custom_vjp")
    moving, every = _fixed(function, every_arg)
    fixed = [every_arg[i] for i in function._nondiff]
    arguments = {id(arg.ref) for arg in moving if isinstance(arg, Given)}
    captured = [r for r in reachable(function._function) if id(r) not in arguments]

    def primal(values: Any, tokens: Any, *given: Any) -> Any:
        scope = _bind(site, refs, values)
        out = function._function(*every(given))
        refuse_references_in(function._function, out, "custom_vjp")
        return out, [scope.value(r) for r in refs], tokens

    def fwd(values: Any, tokens: Any, *given: Any) -> Any:
        scope = _bind(site, refs, values)
        out = function._forward(*every(given))
        if not isinstance(out, tuple) or len(out) != 2:
            return out
        return (out[0], [scope.value(r) for r in refs], tokens), out[1]

    def bwd(residuals: Any, cotangents: Any) -> Any:
        ct, _, tokens = cotangents
        scope = _bind(Site("custom_vjp"), changed, tokens)
        cts = function._backward(*fixed, residuals, ct)
        if not isinstance(cts, (tuple, list)):
            return cts
        # That of a reference among the arguments is one of what it held.
        held_cts = _cotangents_of_contents(refs, moving, cts)
        cts = [None if not _tree.leaves(arg) else c for arg, c in zip(moving, cts, strict=True)]
        return (held_cts, [settled(r, scope.value(r)) for r in changed], *cts)

    inner = type(function)(called_as(primal, function._function))
    inner.defvjp(fwd, bwd, symbolic_zeros=False)
    values, tokens = [scopes.read(r) for r in refs], [scopes.read(r._back) for r in changed]
    values = [
        _without_derivative(value, ref, function._function) if any(ref is c for c in captured) else value
        for ref, value in zip(refs, values)
    ]
    out, news, tokens = inner._call(values, tokens, *moving)
    _write(site, refs, news, function._forward)
    for ref, token in zip(changed, tokens):
        scopes.write(ref._back, token)
    return out


def custom_jvp(function: Any, args: tuple, kwargs: dict) -> Any:
    """A call of a custom_jvp, likewise."""
    every_arg = as_positional(function._function, args, kwargs, "custom_jvp")
    refs = reachable(function._function, function._rule, every_arg)
    if not refs:
        return function._call(*args, **kwargs)
    refuse_given_twice("custom_vjp", function._function, every_arg)
    if not _weft.is_tracing():
        out = function._function(*args, **kwargs)
        refuse_references_in(function._function, out, "custom_vjp")
        return out
    site = Site("custom_jvp")
    moving, every = _fixed(function, every_arg)
    fixed = [every_arg[i] for i in function._nondiff]

    def primal(values: Any, *given: Any) -> Any:
        scope = _bind(site, refs, values)
        out = function._function(*every(given))
        refuse_references_in(function._function, out, "custom_vjp")
        return out, [scope.value(r) for r in refs]

    def rule(primals: Any, tangents: Any) -> Any:
        (values, *given), (_, *moved) = primals, tangents
        scope = _bind(site, refs, values)
        full = every(given)
        chosen = tuple(a for i, a in enumerate(full) if i not in function._nondiff)
        out = function._rule(*fixed, chosen, released(tuple(moved)))
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            return out
        news = [scope.value(r) for r in refs]
        return (out[0], news), (out[1], [SymbolicZero(n) for n in news])

    inner = type(function)(called_as(primal, function._function))
    inner.defjvp(rule, symbolic_zeros=function._symbolic)
    values = [scopes.read(r) for r in refs]
    out, news = inner._call(values, *moving)
    _write(site, refs, news, None)
    return out
