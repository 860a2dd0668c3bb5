"""jax.interpreters.mlir, as far as libraries say by it what their primitives compute.

A lowering is called with Weft's traced values in the places of MLIR's, so that one that is made by lower_fun, or passes
on what such ones give, works. What builds MLIR by hand asks for names that are not here, and the error says which."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any

import weft

from .._core import tree as _tree
from .._core.errors import not_implemented, type_error, value_error
from ..callbacks import io_callback, pure_callback
from .core import ShapedArray
from .effects import TokenSet, check_lowerable, ordered_effects
from .user_primitives import Primitive

__all__ = ["LoweringRuleContext", "ModuleContext", "TokenSet", "emit_python_callback", "lower_fun", "register_lowering"]

_Rule = Callable[..., Any]


class ModuleContext:
    """What lowerings of one program share."""

    platforms = property(lambda _: (weft.default_backend(),))
    platform = property(lambda _: weft.default_backend())

    def add_keepalive(self, keepalive: Any) -> None:
        """Nothing: programs hold what they call."""


class LoweringRuleContext:
    """What a lowering is told besides its operands: the types of operands and results."""

    def __init__(self, primitive: Primitive, avals_in: Sequence[Any], avals_out: Sequence[Any] | None):
        self.primitive, self.avals_in, self._avals_out = primitive, list(avals_in), avals_out
        self.module_context = ModuleContext()
        self.platforms = None
        self.tokens_in = TokenSet()
        self.tokens_out: TokenSet | None = None

    def set_tokens_out(self, tokens_out: TokenSet) -> None:
        """Says what orders the effects that come after."""
        self.tokens_out = tokens_out

    @property
    def avals_out(self) -> list[Any]:
        """The types of the results."""
        if self._avals_out is None:
            raise not_implemented(f"Abstract evaluation for '{self.primitive}' not implemented")
        return list(self._avals_out)


def lower_fun(fun: _Rule, multiple_results: bool = True) -> _Rule:
    """A lowering made of a function of arrays."""

    def lowered(ctx: LoweringRuleContext, /, *operands: Any, **params: Any) -> list[Any]:
        del ctx
        out = fun(*operands, **params)
        return list(out) if multiple_results else [out]

    return lowered


# jax.platform -> what stands before the common rule.
_PLATFORMS = {"cpu": "cpu", "gpu": "cuda", "cuda": "cuda"}
_OTHERS = {"tpu", "rocm", "METAL", "metal", "oneapi"}
_for_platform: set[Primitive] = set()


def register_lowering(
    prim: Primitive, rule: _Rule, platform: str | None = None, inline: bool = True, cacheable: bool = True
) -> _Rule:
    """Says what a primitive computes: rule(ctx, *operands, **params) -> results. The rule for the platform there is
    stands before the one for all."""
    del inline, cacheable
    if platform is not None and platform not in _PLATFORMS and platform not in _OTHERS:
        known = ", ".join(sorted({*_PLATFORMS, *_OTHERS}))
        raise not_implemented(
            f"Registering an MLIR lowering rule for primitive {prim} for an unknown platform {platform}. Known "
            f"platforms are: {known}."
        )
    if not isinstance(prim, Primitive):
        raise type_error(f"mlir.register_lowering: expected a primitive, got {prim!r}")
    if not callable(rule):
        raise type_error(f"mlir.register_lowering: the rule of '{prim}' must be a function, got {rule!r}")
    if prim.is_weft:
        raise not_implemented(
            f"weft.as_jax: mlir.register_lowering: '{prim}' is an operation of Weft's own, which Weft compiles; make a "
            "jax.extend.core.Primitive"
        )
    if platform is not None and _PLATFORMS.get(platform) != weft.default_backend():
        return rule
    if platform is None and prim in _for_platform:
        return rule
    if platform is not None:
        _for_platform.add(prim)

    def lower(primitive: Primitive, avals_in: Any, avals_out: Any, operands: Any, params: dict[str, Any]) -> list[Any]:
        ctx = LoweringRuleContext(primitive, avals_in, avals_out)
        happening = primitive.effects_of(operands, params)
        check_lowerable(happening)
        ordered = ordered_effects.filter_in(happening)
        ctx.tokens_in = TokenSet.create(ordered)
        found = rule(ctx, *operands, **params)
        if ordered:
            _check_tokens(primitive, ordered, ctx.tokens_out)
        # A value of several of MLIR's is a list of them; here every value is one.
        return _tree.leaves(found)

    prim.set_rule("lower", lower)
    _lowerings._given[prim] = rule
    return rule


def _check_tokens(primitive: Primitive, ordered: Sequence[Any], tokens: TokenSet | None) -> None:
    if tokens is None:
        raise value_error(
            f"Lowering rule for `{primitive}` needs to set `tokens_out` because it has effects: {ordered}"
        )
    if tokens.effects() != set(ordered):
        raise value_error(
            f"Lowering rule for `{primitive}` returns incorrect set of output token. Expected: {ordered} vs. Actual: "
            f"{tuple(tokens.effects())}"
        )


class _Lowerings(MutableMapping[Primitive, _Rule]):
    """primitive -> its lowering."""

    def __init__(self) -> None:
        self._given: dict[Primitive, _Rule] = {}

    def __setitem__(self, primitive: Primitive, rule: _Rule) -> None:
        register_lowering(primitive, rule)

    def __getitem__(self, primitive: Primitive) -> _Rule:
        return self._given[primitive]

    def __delitem__(self, primitive: Primitive) -> None:
        del self._given[primitive]
        primitive.remove_rule("lower")

    def __iter__(self) -> Iterator[Primitive]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)


_lowerings = _Lowerings()


# Classes of values that JAX holds in programs -> what makes MLIR of them; here they are containers of arrays.
_constant_handlers: dict[type, _Rule] = {}


def emit_python_callback(
    ctx: LoweringRuleContext,
    callback: _Rule,
    token: Any,
    operands: Sequence[Any],
    operand_avals: Sequence[ShapedArray],
    result_avals: Sequence[ShapedArray],
    *,
    has_side_effect: bool,
    **_: Any,
) -> tuple[list[Any], Any, None]:
    """A call of a Python function when the program runs: (results, token, what is to be kept alive)."""
    del ctx, operand_avals
    types = [weft.ShapeDtype(aval.shape, aval.dtype) for aval in result_avals]
    call = io_callback if has_side_effect else pure_callback
    out = call(lambda *arrays: list(callback(*map(weft.numpy.asarray, arrays))), types, *operands)
    return list(out), token, None
