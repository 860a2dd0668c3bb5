"""What operations do besides computing, as jax._src.effects says it: kinds of effects, and which may stand where.

Programs of Weft's keep the order of what they do themselves. Effects are what the rules of a library's own primitives
declare; here they are looked up, and refused where JAX refuses them."""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import weft

from .. import _weft
from .._core import tree as _tree
from .._core.errors import not_implemented, value_error
from .settings import config


class Effect:
    """What an operation does besides computing."""


Effects = set[Effect]
no_effects: frozenset[Any] = frozenset()


class JaxprInputEffect(Effect):
    """... to one of its inputs: in a rule the input is a position, in a program a variable."""

    def __init__(self, input: Any):
        self.input = input

    def replace(self, input: Any) -> JaxprInputEffect:
        """The same of another input."""
        return self.__class__(input)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JaxprInputEffect) and self.input == other.input

    def __hash__(self) -> int:
        return hash((self.__class__, self.input))

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.input})"


class RefEffect(JaxprInputEffect):
    """A function uses a reference."""


class ReadEffect(RefEffect):
    """... reads it."""


class WriteEffect(RefEffect):
    """... writes it."""


class AccumEffect(RefEffect):
    """... adds to it."""


class EffectTypeSet:
    """A set of classes of effects."""

    def __init__(self) -> None:
        self._types: list[type] = []

    def add_type(self, effect_type: type) -> None:
        """Adds a class."""
        self._types.append(effect_type)

    def contains(self, eff: Any) -> bool:
        """Whether an effect, or a class of effects, is of one of the classes."""
        return issubclass(eff if isinstance(eff, type) else type(eff), tuple(self._types))

    __contains__ = contains

    def filter_in(self, effects: Iterable[Any]) -> list[Any]:
        """The effects of these classes."""
        return [eff for eff in effects if self.contains(eff)]

    def filter_not_in(self, effects: Iterable[Any]) -> list[Any]:
        """The others."""
        return [eff for eff in effects if not self.contains(eff)]


lowerable_effects, ordered_effects, shardable_ordered_effects = EffectTypeSet(), EffectTypeSet(), EffectTypeSet()
control_flow_allowed_effects, custom_derivatives_allowed_effects = EffectTypeSet(), EffectTypeSet()
remat_allowed_effects, partial_eval_kept_effects = EffectTypeSet(), EffectTypeSet()


class DebugEffect(Effect):
    """A program prints, or calls a function of Python that looks at its values."""

    def __repr__(self) -> str:
        return "Debug"


class IOEffect(Effect):
    """A program calls a function of Python."""

    def __repr__(self) -> str:
        return "IO"


@functools.total_ordering
@dataclasses.dataclass(frozen=True)
class ErrorEffect(Effect):
    """A program has a check of jax.experimental.checkify: of this kind, with values of these types in its message."""

    error_type: type
    shape_dtypes: tuple[Any, ...]

    def __lt__(self, other: ErrorEffect) -> bool:
        return self._in_order() < other._in_order()

    def _in_order(self) -> tuple[Any, ...]:
        return str(self.error_type), [(t.shape, str(t.dtype)) for t in self.shape_dtypes]


debug_effect, io_effect = DebugEffect(), IOEffect()
for _allowed in (control_flow_allowed_effects, remat_allowed_effects, custom_derivatives_allowed_effects):
    _allowed.add_type(DebugEffect)
    _allowed.add_type(ErrorEffect)
control_flow_allowed_effects.add_type(IOEffect)
for _lowerable in (DebugEffect, IOEffect):
    lowerable_effects.add_type(_lowerable)
# Operations of Weft's that do something besides computing, by the names that programs show.
_KNOWN = {"debug_callback": debug_effect, "debug_print": debug_effect, "io_callback": io_effect}
CHECK = "check"  # the parameter of a check that is its number


def of_operation(name: str, params: Mapping[str, Any]) -> Any:
    """What an operation of Weft's does besides computing."""
    if CHECK in params:
        return _of_check(params[CHECK])
    return frozenset([_KNOWN[name]]) if name in _KNOWN else no_effects


def _of_check(number: int) -> Any:
    from .._checks.interpreter import KNOWN  # which has weft.numpy

    if number not in KNOWN:
        return no_effects
    found = KNOWN[number][0]
    types = tuple(weft.ShapeDtype(shape, dtype) for shape, dtype in found.spec)
    return frozenset([ErrorEffect(found.kind, types)])


class TokenSet:
    """Effects with what orders each."""

    def __init__(self, tokens: Mapping[Any, Any] | None = None):
        self._tokens = dict(tokens or {})

    @classmethod
    def create(cls, effects: Sequence[Any]) -> TokenSet:
        """New tokens for effects."""
        return cls({eff: object() for eff in effects})

    def __len__(self) -> int:
        return len(self._tokens)

    def get(self, effect: Any) -> Any:
        """The token of an effect."""
        return self._tokens[effect]

    def items(self) -> tuple[tuple[Any, Any], ...]:
        """Pairs of an effect and its token."""
        return tuple(self._tokens.items())

    def effects(self) -> set[Any]:
        """The effects."""
        return set(self._tokens)

    def subset(self, effects: Sequence[Any]) -> TokenSet:
        """Those of some effects."""
        return TokenSet({eff: self._tokens[eff] for eff in effects})

    def update_tokens(self, tokens: TokenSet) -> TokenSet:
        """The set with other tokens for some effects."""
        if not len(tokens):
            return self
        return TokenSet({eff: tokens._tokens.get(eff, token) for eff, token in self._tokens.items()})


class _RuntimeTokens:
    """What orders effects; Weft's programs keep their order themselves."""

    def __init__(self) -> None:
        self.current_tokens: dict[Any, Any] = {}

    def clear(self) -> None:
        """Nothing."""

    def block_until_ready(self) -> None:
        """Waits for what prints and calls back."""
        weft.effects_barrier()


runtime_tokens = _RuntimeTokens()


class _Around(threading.local):
    """What is around an operation that is traced: its kind, and the classes of effects that may stand in it."""

    def __init__(self) -> None:
        self.kinds: list[tuple[str, EffectTypeSet]] = []


_around = _Around()
# Of functions with rules JAX looks at effects where it checks programs (jax_enable_checks).
_ALLOWED = {"custom_jvp": custom_derivatives_allowed_effects, "custom_vjp": custom_derivatives_allowed_effects}


def control_flow(kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that takes functions or is one, in which some effects are refused: of lax, one with rules of its own,
    or one that pmap maps over devices."""
    allowed = _ALLOWED.get(kind, control_flow_allowed_effects)

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        _around.kinds.append((kind, allowed))
        try:
            return function(*args, **kwargs)
        finally:
            _around.kinds.pop()

    return called


def check(effects: Iterable[Any]) -> None:
    """Raises NotImplementedError or ValueError where an operation with these effects may not stand here."""
    if not effects:
        return
    for kind, allowed in reversed(_around.kinds):
        if kind == "pmap":
            _check_on_devices(effects)
        elif (kind not in _ALLOWED or _checks_programs()) and (refused := allowed.filter_not_in(effects)):
            which = "custom_derivatives" if kind in _ALLOWED else "control_flow"
            raise not_implemented(
                f"Effects not supported in `{kind}`: {refused}; effects.{which}_allowed_effects.add_type allows a "
                "class of them"
            )


def _checks_programs() -> bool:
    """Whether a function is traced whose program JAX would check."""
    return _weft.is_tracing() and bool(config.read("jax_enable_checks"))


def _check_on_devices(effects: Iterable[Any]) -> None:
    """Raises ValueError for effects with an order where several devices have them."""
    ordered = [eff for eff in ordered_effects.filter_in(effects) if not shardable_ordered_effects.contains(eff)]
    if ordered and weft.device_count() > 1:
        raise value_error(
            f"The following ordered effects are not supported for more than 1 device: {ordered}; "
            "effects.shardable_ordered_effects.add_type allows a class of them"
        )


def of_devices(pmap: Callable[..., Any]) -> Callable[..., Any]:
    """pmap, in whose functions effects with an order are refused."""

    @functools.wraps(pmap)
    def mapped(fun: Any = None, *args: Any, **kwargs: Any) -> Any:
        made = pmap(control_flow("pmap", fun) if callable(fun) else fun, *args, **kwargs)
        if callable(fun):
            made.__wrapped__ = fun
        return made

    return mapped


def check_lowerable(effects: Iterable[Any]) -> None:
    """Raises ValueError for effects that no program may have."""
    refused = {eff for eff in effects if not lowerable_effects.contains(eff)}
    if refused:
        raise value_error(
            f"Cannot lower jaxpr with effects: {refused}; effects.lowerable_effects.add_type allows a class of them"
        )


def dce_sink(x: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Nothing: what nobody reads is no part of a program."""
    del x, prevent_mlir_dce


class Token:
    """What JAX passes between operations that have to come one after the other. Weft's programs keep the order of what
    they do themselves: a token is a container of nothing."""


_tree.register(Token, lambda _: ((), None), lambda *_: Token())


def create_token(_: Any = None) -> Token:
    """A token."""
    return Token()


def after_all(*operands: Any) -> Token:
    """A token that comes after all of these."""
    del operands
    return Token()
