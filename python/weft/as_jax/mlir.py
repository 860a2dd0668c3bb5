"""jax.interpreters.mlir, as far as libraries say by it what their primitives compute.

A lowering is called with Weft's traced values in the places of MLIR's, so that one that is made by lower_fun, or passes
on what such ones give, works, and one that calls operations of StableHLO: of traced values they compute. What builds
MLIR by hand asks for names that are not here, and the error says which."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any

import weft

from .. import _weft
from .._core import tree as _tree
from .._core.errors import not_implemented, type_error, value_error
from .._stablehlo.types import element
from ..callbacks import io_callback, pure_callback
from . import mlir_ir as ir
from .core import ShapedArray
from .effects import TokenSet, check_lowerable, ordered_effects
from .user_primitives import Primitive

__all__ = [
    "LoweringRuleContext",
    "ModuleContext",
    "TokenSet",
    "aval_to_ir_type",
    "aval_to_ir_types",
    "dense_int_array",
    "dtype_to_ir_type",
    "emit_python_callback",
    "i32_attr",
    "i64_attr",
    "ir_constant",
    "lower_fun",
    "register_lowering",
]

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
    stands before the one for all. None takes what was said away."""
    del inline, cacheable
    if platform is not None and platform not in _PLATFORMS and platform not in _OTHERS:
        known = ", ".join(sorted({*_PLATFORMS, *_OTHERS}))
        raise not_implemented(
            f"Registering an MLIR lowering rule for primitive {prim} for an unknown platform {platform}. Known "
            f"platforms are: {known}."
        )
    if not isinstance(prim, Primitive):
        raise type_error(f"mlir.register_lowering: expected a primitive, got {prim!r}")
    if rule is None:
        if prim in _lowerings:
            del _lowerings[prim]
        return rule
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


def dtype_to_ir_type(dtype: Any) -> ir.Type:
    """The type of an element."""
    return ir.Type(element(str(_weft.dtype(dtype))))


def aval_to_ir_type(module_context: Any, aval: Any) -> ir.RankedTensorType:
    """The type of an array."""
    del module_context
    return ir.RankedTensorType(aval.shape, dtype_to_ir_type(aval.dtype))


def aval_to_ir_types(module_context: Any, aval: Any) -> tuple[ir.RankedTensorType]:
    """The types of what an array is made of: its own."""
    return (aval_to_ir_type(module_context, aval),)


def ir_constant(val: Any, **_: Any) -> Any:
    """A known array or number, among the values of a lowering."""
    return weft.numpy.asarray(val)


def i32_attr(i: int) -> ir.IntegerAttr:
    """A number of 32 bits, among the attributes of an operation."""
    return ir.IntegerAttr.get(ir.Type("i32"), i)


def i64_attr(i: int) -> ir.IntegerAttr:
    """A number of 64 bits, among the attributes of an operation."""
    return ir.IntegerAttr.get(ir.Type("i64"), i)


def dense_int_array(xs: Sequence[int]) -> ir.DenseI64ArrayAttr:
    """Numbers, among the attributes of an operation."""
    return ir.DenseI64ArrayAttr.get(xs)


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
