"""Transforms of functions that use references.

A function that changes references becomes one that takes what they hold and returns what they hold at the end: loops
carry it, branches return it, gradients have it as an auxiliary result, jitted functions take and return it. What
references a function uses is guessed from what it can reach; where it uses another one, it is traced once more
(scopes.Unbound).
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from .._core import tree as _tree
from .._core.errors import type_error, value_error
from .._core.tracing import call_name
from . import scopes
from .binding import Bound, attempts
from .derivatives import check_aux, custom_jvp, custom_vjp, end_results, forward, jvp_of_references, value_and_grad
from .given import (
    held,
    naming,
    parts_as_references,
    reachable,
    refs_among,
    refuse_aliases,
    refuse_given_twice,
    refuse_references_in,
    refuse_result,
    released,
    settled,
)
from .jitted import call_jitted, first_trace, found_before, found_in, is_inner, lowered
from .refs import Ref, RefPart
from .scopes import Unbound

__all__ = [
    "Ref",
    "Unbound",
    "call_jitted",
    "check_aux",
    "custom_jvp",
    "custom_vjp",
    "end_results",
    "first_trace",
    "forward",
    "found_before",
    "found_in",
    "is_inner",
    "jvp_of_references",
    "lowered",
    "refs_among",
    "refuse_result",
    "value_and_grad",
]

begin, end = scopes.begin, scopes.end


# --- Branches, loops --------------------------------------------------------------------------------------------------


def branches(run: Callable, index: Any, functions: list, operands: tuple, what: str) -> Any:
    """cond and switch: run(index, functions, operands, what)."""
    for function in functions:
        refuse_given_twice(what, function, operands, reachable(function) if refs_among(operands) else ())

    def attempt(site: Bound) -> Any:
        given = held(operands)
        if not site.refs:
            return run(index, [site.watching(f) for f in functions], given, what)
        values = site.values()
        out, news = run(index, [site.binding(f, values) for f in functions], given, what)
        site.write(news)
        return out

    return attempts(what, (functions, operands), attempt)


def _refuse_carried(carry: Any, what: str) -> None:
    for leaf, path in zip(*_paths(carry)):
        if isinstance(leaf, Ref):
            raise value_error(
                f"{what}: the carry{path} is a reference of type {leaf._type}{leaf._line}; references are not carried. "
                "Use it in the function from outside, and carry arrays"
            )


def _paths(tree: Any) -> tuple[list, list[str]]:
    leaves, structure = _tree.flatten(tree)
    return leaves, _tree.path_texts(structure)


def _names(carry: Any, paths: Sequence[str] | None, site: Bound) -> list[str]:
    own = _tree.path_texts(_tree.structure(carry)) if paths is None else list(paths)
    return [*own, *(f" (what the reference of type {r._type}{r._line} holds)" for r in site.refs)]


def while_loop(
    run: Callable, cond_fun: Callable, body_fun: Callable, init: Any, what: str, paths: Any, strategy: str
) -> Any:
    """run(cond_fun, body_fun, init, what, paths, strategy)."""
    _refuse_carried(init, what)

    def attempt(site: Bound) -> Any:
        if not site.refs:
            return run(site.watching(cond_fun), site.watching(body_fun), init, what, paths, strategy)

        def condition(state: Any) -> Any:
            carry, values = state
            before = dict(site.written)
            out, _ = site.run(cond_fun, values, (carry,))
            if len(site.written) > len(before):
                changed = next(r for r in site.refs if id(r) in site.written and id(r) not in before)
                raise value_error(
                    f"{what}: the condition '{call_name(cond_fun)}' changes a reference of type {changed._type}"
                    f"{changed._line}; only the body may"
                )
            return out

        def body(state: Any) -> Any:
            carry, values = state
            return site.run(body_fun, values, (carry,))

        start = (init, site.values())
        names = _names(init, paths, site)
        out, news = run(naming(condition, cond_fun), naming(body, body_fun), start, what, names, strategy)
        site.write(news)
        return out

    return attempts(what, (cond_fun, body_fun), attempt)


def scan(
    run: Callable, f: Callable, init: Any, xs: Any, length: Any, reverse: bool, what: str, paths: Any, snapshots: int
) -> Any:
    """run(f, init, xs, length, reverse, what, paths, snapshots). References among xs are those of slices inside."""
    if refs_among(init):
        refuse_given_twice(what, f, (init,), reachable(f))
    _refuse_carried(init, what)
    xs, write, bases = parts_as_references(xs, lambda _: True, what, call_name(f))
    given = refs_among(xs)
    refuse_aliases(given, [], what, call_name(f), lambda i: f"reference {i} of xs")
    leaves, tree = _tree.flatten(xs)
    is_ref = [isinstance(leaf, Ref) for leaf in leaves]

    def attempt(site: Bound) -> Any:
        refuse_aliases(bases, site.refs, what, call_name(f), lambda i: f"part {i} of xs")
        if not site.refs and not given:
            carry, found = run(_leaving(site.watching(f)), init, xs, length, reverse, what, paths, snapshots)
            scopes.take(found[1], [])
            return carry, found[0]
        site.refs = [r for r in site.refs if not any(r is g for g in given)]
        arrays = [scopes.read(leaf) if on else leaf for leaf, on in zip(leaves, is_ref)]

        def step(state: Any, x: Any) -> Any:
            carry, values = state
            parts = [Ref(leaf) if on else leaf for leaf, on in zip(_tree.leaves(x), is_ref)]
            out, news = site.run(f, values, (carry, _tree.unflatten(tree, parts)))
            if not isinstance(out, tuple) or len(out) != 2:
                raise type_error(
                    f"{what}: '{call_name(f)}' must return a pair (carry, y), got "
                    f"{_tree.in_words(_tree.structure(out))}"
                )
            inner = [scopes.read(part) for part, on in zip(parts, is_ref) if on]
            return (out[0], news), (out[1], inner, scopes.leave(scopes.here(), []))

        state, (ys, slices, changed) = run(
            naming(step, f),
            (init, site.values()),
            _tree.unflatten(tree, arrays),
            length,
            reverse,
            what,
            _names(init, paths, site),
            snapshots,
        )
        site.write(state[1])
        for ref, new in zip(given, slices):
            scopes.write(ref, settled(ref, new))
        scopes.take(changed, [])
        return state[0], ys

    out = attempts(what, f, attempt)
    write()
    return out


def _leaving(f: Callable) -> Callable:
    """The body of a scan, whose results have beside them what it leaves to its caller."""

    def leaving(carry: Any, x: Any) -> Any:
        out = f(carry, x)
        if not isinstance(out, tuple) or len(out) != 2:
            return out  # scan says what it should be
        return out[0], (out[1], scopes.leave(scopes.here(), []))

    return naming(leaving, f)


def plainly(kind: str, run: Callable, fun: Callable, args: tuple, kwargs: dict) -> Any:
    """A transform that returns what the function does: run(fun, args, kwargs)."""

    def attempt(site: Bound) -> Any:
        given, named = held(args), held(kwargs)
        if not site.refs:
            return run(site.watching(fun), given, named)
        out, news = run(site.binding(fun, site.values()), given, named)
        site.write(news)
        return out

    return attempts(kind, (fun, args, kwargs), attempt)


def beside(kind: str, run: Callable, fun: Callable, args: tuple, kwargs: dict) -> Any:
    """A transform that returns something beside what the function does: run(fun, args, kwargs) -> (that, result)."""

    def attempt(site: Bound) -> Any:
        given, named = held(args), held(kwargs)
        if not site.refs:
            return run(site.watching(fun), given, named)
        found, (out, news) = run(site.binding(fun, site.values()), given, named)
        site.write(news)
        return found, out

    return attempts(kind, (fun, args, kwargs), attempt)


class _Looked(threading.local):
    refs: Sequence[weakref.ref[Ref]] = ()  # those that were bound when a program of this thread was looked at last


_looked = _Looked()


def looked_at() -> list[Ref]:
    """The references that may be used by the function that `looking` has traced last."""
    return [ref for there in _looked.refs if (ref := there()) is not None]


def looking(kind: str, run: Callable, fun: Callable, args: tuple, kwargs: dict) -> Any:
    """A transform that only looks at the program of a function (make_ir, eval_shape): references stay as they are."""

    def attempt(site: Bound) -> Any:
        given, named = held(args), held(kwargs)
        _looked.refs = ()
        if not site.refs:
            return run(site.watching(fun), given, named)
        values = site.values()
        found = run(naming(lambda *a, **k: site.run(fun, values, a, k)[0], fun), given, named)
        _looked.refs = list(map(weakref.ref, site.refs))
        return found

    return attempts(kind, (fun, args, kwargs), attempt)


def beginning_with(kind: str, refs: list[Ref], fun: Callable) -> Callable:
    """(contents, args, kwargs) -> (result, what the references hold at the end), of a function that uses them."""
    return naming(lambda contents, args, kwargs: Bound(kind, refs).run(fun, contents, args, kwargs), fun)


# --- Batches ----------------------------------------------------------------------------------------------------------


def vmap(run: Callable, fun: Callable, in_axes: Any, out_axes: Any, args: tuple, kwargs: dict) -> Any:
    """run(fun, in_axes, out_axes, args, kwargs). References that are mapped are those of slices inside; others may only
    be read."""
    leaves, tree = _tree.flatten(args)
    if not any(isinstance(leaf, Ref) for leaf in leaves):
        return run(fun, in_axes, out_axes, args, kwargs)
    axes = _tree.prefix_leaves(in_axes, args, "vmap: in_axes")
    whole, write, bases = parts_as_references(args, lambda i: axes[i] is not None, "vmap", call_name(fun))
    if bases:
        kept: list[Any] = []
        rest = iter(axes)
        for node in _tree.leaves(args, is_leaf=lambda x: isinstance(x, RefPart)):
            own = [next(rest) for _ in _tree.leaves(node)]
            kept += own[:1] if isinstance(node, RefPart) and own[0] is not None else own
        out = vmap(run, fun, _tree.unflatten(_tree.structure(whole), kept), out_axes, whole, kwargs)
        write()
        return out
    mapped = [isinstance(leaf, Ref) and axis is not None for leaf, axis in zip(leaves, axes)]
    given = [leaf for leaf, on in zip(leaves, mapped) if on]
    refuse_aliases(given, [], "vmap", call_name(fun), lambda i: f"mapped reference {i}")
    arrays = [scopes.read(leaf) if on else leaf for leaf, on in zip(leaves, mapped)]
    places = [axis % max(leaf.ndim, 1) for leaf, axis, on in zip(leaves, axes, mapped) if on]

    def inside(*inner: Any, **named: Any) -> Any:
        found, structure = _tree.flatten(inner)
        marks = iter(inner_mapped)
        parts = [Ref(leaf) if next(marks) else leaf for leaf in found]
        refs = [part for part in parts if isinstance(part, Ref)]
        out = fun(*released(_tree.unflatten(structure, parts)), **named)
        refuse_references_in(fun, out, "vmap")
        return out, [scopes.read(r) for r in refs]

    # What is not mapped is held, with its axis gone from the list.
    inner_mapped = [on for leaf, on in zip(leaves, mapped) if not isinstance(leaf, Ref) or on]
    rest = held(_tree.unflatten(tree, arrays))
    held_axes = [axis for leaf, axis, on in zip(leaves, axes, mapped) if not isinstance(leaf, Ref) or on]
    inner_axes = _tree.unflatten(_tree.structure(rest), held_axes) if held_axes else 0
    out, news = run(naming(inside, fun), inner_axes, (out_axes, places), rest, kwargs)
    for ref, new in zip(given, news):
        scopes.write(ref, settled(ref, new))
    return out


def shard_map(run: Callable, f: Callable, args: tuple, specs: list, out_specs: Any) -> Any:
    """run(f, args, specs, out_specs), with a spec for each leaf of the arguments. References among them are those of
    the
    devices' parts inside; others may only be read."""
    leaves, tree = _tree.flatten(args)
    is_ref = [isinstance(leaf, Ref) for leaf in leaves]
    if not any(is_ref):
        return run(f, args, specs, out_specs)
    given = [leaf for leaf, on in zip(leaves, is_ref) if on]
    refuse_aliases(given, [], "shard_map", call_name(f), lambda i: f"reference {i}")

    def inside(*parts: Any) -> Any:
        found = [Ref(part) if on else part for part, on in zip(_tree.leaves(parts), is_ref)]
        out = f(*_tree.unflatten(tree, found))
        refuse_references_in(f, out, "shard_map")
        return out, [scopes.read(r) for r, on in zip(found, is_ref) if on]

    arrays = _tree.unflatten(tree, [scopes.read(leaf) if on else leaf for leaf, on in zip(leaves, is_ref)])
    places = [spec for spec, on in zip(specs, is_ref) if on]
    out, news = run(naming(inside, f), arrays, specs, (out_specs, places))
    for ref, new in zip(given, news):
        scopes.write(ref, settled(ref, new))
    return out
