"""JAX's tables of rules of primitives, as mappings: to set an entry gives the primitive its rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from .._core.errors import key_error, not_implemented, type_error
from .user_primitives import Primitive

_Rule = Callable[..., Any]

# (kind, operation) of Weft's own -> what its rule is already: libraries that set it ask for nothing else.
_THE_SAME = {("transpose", "stop_gradient"): "the identity, in as_jax.transforms.linear_transpose"}


class RuleTable(MutableMapping[Primitive, _Rule]):
    """primitive -> its rule of one kind.

    Args:
        kind: of the rules.
        name: what JAX calls the table.
        builtin: gives the rule of one of Weft's own operations, which follows from its transforms.
        adapted: makes of a rule with the arguments that it has in this table one with those that primitives call.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        builtin: Callable[[Primitive], _Rule],
        adapted: Callable[[Primitive, _Rule], _Rule] = lambda _, rule: rule,
    ):
        self._kind, self._name, self._builtin, self._adapted = kind, name, builtin, adapted
        self._given: dict[Primitive, _Rule] = {}

    def __setitem__(self, primitive: Primitive, rule: _Rule) -> None:
        if not isinstance(primitive, Primitive):
            raise type_error(f"{self._name}: the key must be a primitive, got {primitive!r}")
        if primitive.is_weft:
            if (self._kind, primitive.name) in _THE_SAME:
                return
            raise not_implemented(
                f"weft.as_jax: {self._name}[{primitive}_p]: '{primitive}' is an operation of Weft's own, whose rules "
                "stay; wrap functions in jax.custom_jvp, jax.custom_vjp or jax.custom_batching.custom_vmap"
            )
        if not callable(rule):
            raise type_error(f"{self._name}[{primitive}_p]: the rule must be a function, got {rule!r}")
        self._given[primitive] = rule
        primitive.set_rule(self._kind, self._adapted(primitive, rule))

    def __getitem__(self, primitive: Primitive) -> _Rule:
        if primitive in self._given:
            return self._given[primitive]
        if isinstance(primitive, Primitive) and primitive.is_weft:
            return self._builtin(primitive)
        raise key_error(f"{self._name} has no rule of '{primitive}'")

    def __contains__(self, primitive: object) -> bool:
        return primitive in self._given or (isinstance(primitive, Primitive) and primitive.is_weft)

    def __delitem__(self, primitive: Primitive) -> None:
        del self._given[primitive]
        primitive.remove_rule(self._kind)

    def __iter__(self) -> Iterator[Primitive]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)
