"""Functions in which references are bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import scopes
from .given import naming, reachable, refuse_references_in, released, settled
from .refs import Ref
from .scopes import Site, Unbound


class Bound(Site):
    """A call of a transform of functions in which some references are bound."""

    def __init__(self, kind: str, refs: list[Ref], backward: Sequence[Ref] = (), differentiates: bool = False):
        super().__init__(kind, differentiates)
        self.refs, self.backward = refs, list(backward)

    def watching(self, function: Callable) -> Callable:
        """The function, which says where it uses a reference that is not bound."""

        def watched(*args: Any, **kwargs: Any) -> Any:
            self._enter(())
            out = function(*released(args), **released(kwargs))
            refuse_references_in(function, out, self.kind)
            return out

        return naming(watched, function)

    def binding(self, function: Callable, values: Sequence[Any]) -> Callable:
        """(*arguments) -> (result, what the references hold at the end); `values`: what they hold at the beginning."""

        def bound(*args: Any, **kwargs: Any) -> Any:
            return self.run(function, values, args, kwargs)

        return naming(bound, function)

    def run(self, function: Callable, values: Sequence[Any], args: tuple, kwargs: dict | None = None) -> Any:
        scope = self._enter(values)
        out = function(*released(args), **released(kwargs or {}))
        refuse_references_in(function, out, self.kind)
        return out, [scope.value(r) for r in self.refs]

    def _enter(self, values: Sequence[Any]) -> scopes.Scope:
        scope = scopes.here()
        assert scope is not None
        scope.site = self
        for ref, value in zip(self.refs, values):
            scope.bind(ref, value)
        return scope

    def values(self) -> list:
        return [scopes.read(r) for r in self.refs]

    def write(self, news: Sequence[Any]) -> None:
        """What the references hold after the call."""
        for ref, new in zip(self.refs, news):
            if id(ref) in self.written:
                scopes.write(ref, settled(ref, new))


def attempts(kind: str, roots: Any, attempt: Callable[[Bound], Any], differentiates: bool = False) -> Any:
    """attempt(site) with more and more references, until those that are used are bound."""
    refs, backward = reachable(roots), list[Ref]()
    while True:
        site = Bound(kind, refs, backward, differentiates)
        try:
            return attempt(site)
        except Unbound as unbound:
            if unbound.site is not site:
                raise
            if unbound.backward:
                backward = [*backward, unbound.ref]
            if not any(r is unbound.ref for r in refs):
                refs = [*refs, unbound.ref]
