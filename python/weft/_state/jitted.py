"""Jitted functions that use references: their programs take what references hold, and return what they hold at the end.

C++ calls such a function through call_jitted (python/native/jit.cc), from when it has been found to use one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _weft
from .._core import tree as _tree
from .._core.errors import value_error
from .._core.tracing import call_name, leaf_names
from . import scopes
from .given import called_as, naming, reachable, refuse_aliases, refuse_references_in, settled
from .refs import Ref
from .scopes import Site, Unbound

# Programs of other references that a jitted function remembers.
_REMEMBERED = 8


class _Slot:
    """Where a reference stands among the arguments of a jitted function: a container without leaves."""

    __slots__ = ("place",)

    def __init__(self, place: int):
        self.place = place


_tree.register(_Slot, lambda slot: ((), slot.place), lambda place, _: _Slot(place))


def _slotted(tree: Any, given: list[Ref]) -> Any:
    """The tree with places instead of references, which are appended to `given`."""

    def slot(x: Any) -> Any:
        if not isinstance(x, Ref):
            return x
        given.append(x)
        return _Slot(len(given) - 1)

    return _tree.map(slot, tree)


class _Program:
    """A lowered or compiled program that takes what references hold, and returns what they hold at the end. It shows
    what that program shows."""

    def __init__(self, state: _Jitted, inner: Any):
        self._state, self._inner = state, inner

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._inner, name)


class _Lowered(_Program):
    """... lowered."""

    def compile(self, *args: Any, **kwargs: Any) -> _Compiled:
        """The program, compiled."""
        return _Compiled(self._state, self._inner.compile(*args, **kwargs))


class _Compiled(_Program):
    """... compiled."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._state.run(self._inner, args, kwargs)


class _Jitted(Site):
    """What is known of a jitted function that uses references. `used`: those from outside, in the order in which its
    program takes them."""

    def __init__(self, jitted: Any):
        super().__init__("jit")
        self.used: list[Ref] = []
        self.touched: set[int] = set()
        self.slots: list[Ref] = []  # what stands for references among the arguments, while it is traced
        # Whether a backward rule may write references among the arguments, which then have to be the caller's own.
        self.inlined = False
        self.jitted = jitted
        self.inner = self._made(jitted)
        self.others: list[tuple[list[Ref], Any]] = []  # programs of other references

    def _made(self, jitted: Any) -> Any:
        """The jitted function (what references hold, *arguments) -> (result, what those that change hold at the
        end)."""

        def pure(held: Any, *args: Any, **kwargs: Any) -> Any:
            return self._pure(held, *args, **kwargs)

        inner = _weft.JitFunction(
            called_as(pure, jitted._function),
            frozenset(n + 1 for n in jitted._static_argnums),
            jitted._static_argnames,
            frozenset(n + 1 for n in jitted._donate_argnums),
            jitted._donate_argnames,
        )
        inner.__dict__["_inside"] = self
        for name, value in jitted.__dict__.items():
            if name not in ("_state", "_shardings", "lower", "explain", "eval_shape", "__wrapped__"):
                inner.__dict__[name] = value
        if "_shardings" in jitted.__dict__:
            ins, outs = jitted.__dict__["_shardings"]
            if ins is not None and not isinstance(ins, tuple):
                raise value_error(
                    f"jit: '{call_name(jitted._function)}' uses references, so in_shardings must be a tuple, with one "
                    "for each argument"
                )
            inner.__dict__["_shardings"] = (None if ins is None else (None, *ins), (outs, None, None, None))
        return inner

    def _pure(self, held: Any, *args: Any, **kwargs: Any) -> Any:
        values, contents = held
        scope = scopes.here()
        assert scope is not None
        scope.site = self
        used = self.used[: len(values)]
        for ref, value in zip(used, values):
            scope.bind(ref, value)
        inner = self.slots = [Ref(value) for value in contents]
        before = [scope.value(r) for r in inner]
        is_slot = lambda x: isinstance(x, _Slot)
        put = lambda tree: _tree.map(lambda x: inner[x.place] if is_slot(x) else x, tree, is_leaf=is_slot)
        static = self.jitted._static_argnums
        placed = [a if i in static else put(a) for i, a in enumerate(args)]
        named = {k: v if k in self.jitted._static_argnames else put(v) for k, v in kwargs.items()}
        function = self.jitted._function
        out = function(*placed, **named)
        refuse_references_in(function, out, "jit", lambda ref: self._given_as(ref, inner, args, kwargs))
        self.touched |= scope.touched | set(self.written)
        # What stays as it was is no result: a program would copy it.
        news = [scope.value(r) if id(r) in self.written else None for r in used]
        contents = [None if scope.value(r) is old else scope.value(r) for r, old in zip(inner, before)]
        return out, news, contents, scopes.leave(scope, inner)

    def __call__(self, args: tuple, kwargs: dict) -> Any:
        given, placed, named = self._placed(args, kwargs)
        if self.inlined and any(scopes.differentiating(r) is not None for r in given):
            return self.jitted._function(*args, **kwargs)
        where = lambda i: self._path(args, kwargs, i)
        try:
            results = self._with_held(given, where, lambda held: self.inner(held, *placed, **named))
        except Unbound as unbound:
            if unbound.site is not self or not unbound.inlined:
                raise
            return self.jitted._function(*args, **kwargs)
        for ref in given if self.inlined else ():
            if (around := scopes.stands_for_argument(ref)) is not None:
                around.inlined = True
        return self._written(given, results)

    def lowered(self, args: tuple, kwargs: dict, lower: Callable[..., Any]) -> _Lowered:
        """lower(jitted function, args, kwargs), for a function that uses references."""
        given, placed, named = self._placed(args, kwargs)
        where = lambda i: self._path(args, kwargs, i)
        return _Lowered(self, self._with_held(given, where, lambda held: lower(self.inner, (held, *placed), named)))

    def run(self, program: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
        """A compiled program on arguments, of which those that are static are not there."""
        given: list[Ref] = []
        args, kwargs = _slotted(args, given), _slotted(kwargs, given)
        held = [scopes.read(r) for r in self.used], [scopes.read(r) for r in given]
        return self._written(given, program(held, *args, **kwargs))

    def _placed(self, args: tuple, kwargs: dict) -> tuple[list[Ref], list, dict]:
        """The references among arguments, and the arguments with places in theirs."""
        static, names = self.jitted._static_argnums, self.jitted._static_argnames
        given: list[Ref] = []
        placed = [a if i in static else _slotted(a, given) for i, a in enumerate(args)]
        return given, placed, {k: v if k in names else _slotted(v, given) for k, v in kwargs.items()}

    def _with_held(self, given: list[Ref], where: Callable[[int], str], run: Callable[[Any], Any]) -> Any:
        """run(what references hold), with more and more of those from outside."""
        name = call_name(self.jitted._function)
        touched = lambda: [r for r in self.used if id(r) in self.touched]
        refuse_aliases(given, [], "jit", name, where)
        while True:
            if not all(map(scopes.usable, self.used)):
                self._use_others()
            refuse_aliases(given, touched(), "jit", name, where)
            held = ([scopes.read(r) for r in self.used], [scopes.read(r) for r in given])
            try:
                results = run(held)
                break
            except Unbound as unbound:
                if unbound.site is not self or unbound.inlined:
                    raise
                self.used.append(unbound.ref)
        refuse_aliases(given, touched(), "jit", name, where)
        return results

    def _use_others(self) -> None:
        """Uses references that there are here: those of another program of it, which it had before, or as many of those
        that it uses as there are."""
        self.others.append((self.used, self.inner))
        for used, inner in self.others:
            if used and all(map(scopes.usable, used)):
                self.used, self.inner = used, inner
                self.others.remove((used, inner))
                return
        self.others = [(used, inner) for used, inner in self.others[-_REMEMBERED:]]
        self.used = [r for r in self.used if scopes.usable(r)]
        self.inner = self._made(self.jitted)

    def _written(self, given: list[Ref], results: Any) -> Any:
        """The result, with what references hold at the end written into them."""
        out, news, contents, changed = results
        for ref, new in zip([*self.used, *given], [*news, *contents]):
            if new is not None:
                scopes.write(ref, settled(ref, new))
        scopes.take(changed, given)
        return out

    def _given_as(self, ref: Ref, inner: Sequence[Ref], args: tuple, kwargs: dict) -> str:
        """Which argument a reference of the trace is; empty for one that was made there."""
        place = next((i for i, slot in enumerate(inner) if slot is ref), None)
        if place is None:
            return ""
        leaves, tree = _tree.flatten((args, kwargs), is_leaf=lambda x: isinstance(x, _Slot))
        names = leaf_names(self.jitted._function, args, kwargs, tree=tree)
        return next(name for name, leaf in zip(names, leaves) if isinstance(leaf, _Slot) and leaf.place == place)

    def _path(self, args: tuple, kwargs: dict, i: int) -> str:
        is_ref = [isinstance(leaf, Ref) for leaf in _tree.leaves((args, kwargs))]
        tree = _tree.structure((args, kwargs))
        names = leaf_names(self.jitted._function, args, kwargs, tree=tree)
        return f"argument {[name for name, on in zip(names, is_ref) if on][i]}"


def _state_of(jitted: Any) -> _Jitted:
    state = jitted.__dict__.get("_state")
    if state is None:
        state = jitted.__dict__["_state"] = _Jitted(jitted)
    return state


def call_jitted(jitted: Any, args: tuple, kwargs: dict) -> Any:
    """A call of a jitted function that uses references."""
    return _state_of(jitted)(args, kwargs)


def lowered(jitted: Any, args: tuple, kwargs: dict, lower: Callable[..., Any]) -> Any:
    """lower(jitted function, args, kwargs), for one that uses references."""
    return _state_of(jitted).lowered(args, kwargs, lower)


def is_inner(jitted: Any) -> bool:
    """Whether it is what such a function is called through."""
    return "_inside" in jitted.__dict__


def first_trace(jitted: Any, function: Callable) -> Callable:
    """The function of a jitted one of which it is not known whether it uses references from outside."""

    def watched(*args: Any, **kwargs: Any) -> Any:
        scope = scopes.here()
        assert scope is not None
        scope.site = jitted
        out = function(*args, **kwargs)
        refuse_references_in(function, out, "jit")
        return out

    return naming(watched, function)


def found_before(jitted: Any) -> bool:
    """Whether a jitted function can reach references from outside; it is called with them from now on, so that its
    first trace is the only one."""
    found = reachable(jitted._function)
    if not found:
        return False
    _state_of(jitted).used += found
    jitted._stateful = True
    return True


def found_in(jitted: Any, unbound: Unbound) -> bool:
    """Whether a reference was found unbound in the trace of this jitted function; it is called with it from now on."""
    if unbound.site is not jitted:
        return False
    _state_of(jitted).used.append(unbound.ref)
    jitted._stateful = True
    return True
