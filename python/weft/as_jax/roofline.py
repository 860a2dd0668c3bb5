"""jax.experimental.roofline: how many operations a program does, and how many bytes it moves, by rules for its
equations.

`flops` and `hbm_bytes` count matrix products alone, as if all else were fused into them; `unfused_flops` and
`unfused_hbm_bytes` count each equation by itself. `peak_hbm_bytes` is the most that has to be kept between two
equations. `ici_bytes` and `ici_latency` are of what devices send each other along the axes of a mesh, which they lie on
in rings. An equation without a rule counts nothing."""

from __future__ import annotations

import collections
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import weft

from .._core import tree as _tree
from .._core.errors import type_error, value_error
from .._core.shapes import ShapedArray
from . import jaxprs
from .transforms import fwd_and_bwd, make_jaxpr


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineRuleContext:
    """What a rule knows of its equation, besides its operands and parameters."""

    name_stack: Any
    primitive: Any
    avals_in: Sequence[Any]
    avals_out: Sequence[Any]
    jaxpr_eqn_ctx: Any
    mesh: Any
    pin_lhs_in_vmem: bool
    pin_rhs_in_vmem: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineShape:
    """The shape and the dtype of an operand."""

    shape: tuple[int, ...]
    dtype: Any

    @classmethod
    def from_aval(cls, aval: Any) -> RooflineShape:
        """... of a type."""
        if not isinstance(aval, ShapedArray):
            raise type_error(f"roofline: expected the type of an array, got {aval!r} of type '{type(aval).__name__}'")
        return cls(shape=tuple(map(int, aval.shape)), dtype=aval.dtype)

    @property
    def size(self) -> int:
        """How many elements there are."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """How many bytes they are."""
        return self.size * int(getattr(self.dtype, "itemsize", 0))

    @classmethod
    def total_bytes(cls, avals: Sequence[Any]) -> int:
        """... those of several types."""
        return sum(cls.from_aval(aval).bytes for aval in avals)


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineResult:
    """What is counted. ici_bytes and ici_latency are of what devices send along each axis of a mesh."""

    flops: int = 0
    unfused_flops: int = 0
    ici_bytes: dict[str, int] = field(default_factory=dict)
    ici_latency: dict[str, int] = field(default_factory=dict)
    hbm_bytes: int = 0
    peak_hbm_bytes: int = 0
    unfused_hbm_bytes: int = 0

    @classmethod
    def zeros(cls) -> RooflineResult:
        """That of nothing."""
        return cls()

    def __add__(self, other: RooflineResult) -> RooflineResult:
        by_axis = lambda a, b: {axis: a.get(axis, 0) + b.get(axis, 0) for axis in {**a, **b}}
        return RooflineResult(
            flops=self.flops + other.flops,
            unfused_flops=self.unfused_flops + other.unfused_flops,
            ici_bytes=by_axis(self.ici_bytes, other.ici_bytes),
            ici_latency=by_axis(self.ici_latency, other.ici_latency),
            hbm_bytes=self.hbm_bytes + other.hbm_bytes,
            peak_hbm_bytes=max(self.peak_hbm_bytes, other.peak_hbm_bytes),
            unfused_hbm_bytes=self.unfused_hbm_bytes + other.unfused_hbm_bytes,
        )

    def __mul__(self, constant: float) -> RooflineResult:
        times = lambda n: int(n * constant)
        return RooflineResult(
            flops=times(self.flops),
            unfused_flops=times(self.unfused_flops),
            ici_bytes={axis: times(n) for axis, n in self.ici_bytes.items()},
            ici_latency={axis: times(n) for axis, n in self.ici_latency.items()},
            hbm_bytes=times(self.hbm_bytes),
            peak_hbm_bytes=times(self.peak_hbm_bytes),
            unfused_hbm_bytes=times(self.unfused_hbm_bytes),
        )

    __rmul__ = __mul__


_Rule = Callable[..., RooflineResult]
# By the names of Weft's own operations, and by primitives of a program's own.
_rules: dict[Any, _Rule] = {}


def _key(prim: Any) -> Any:
    return prim.name if getattr(prim, "is_weft", False) else prim


def register_roofline(prim: Any) -> Callable[[_Rule], _Rule]:
    """rule(context, *operands, **parameters) counts equations of a primitive from now on."""

    def register(rule: _Rule) -> _Rule:
        _rules[_key(prim)] = rule
        return rule

    return register


def register_standard_roofline(prim: Any) -> None:
    """From now on equations of a primitive count nothing."""
    _rules[_key(prim)] = lambda *_, **__: RooflineResult()


# --- Rules ------------------------------------------------------------------------------------------------------------


def _rule_of(names: str) -> Callable[[_Rule], _Rule]:
    def register(rule: _Rule) -> _Rule:
        _rules.update(dict.fromkeys(names.split(), rule))
        return rule

    return register


def _sizes(avals: Sequence[Any]) -> list[RooflineShape]:
    return [RooflineShape.from_aval(aval) for aval in avals]


def _moved(context: RooflineRuleContext) -> int:
    """The bytes of operands and results."""
    return RooflineShape.total_bytes([*context.avals_in, *context.avals_out])


@_rule_of(
    "abs acos acosh add and asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt ceil conj cos cosh digamma div eq "
    "erf erf_inv erfc exp exp2 expm1 floor ge gt imag integer_pow is_finite le lgamma log log1p logistic lt max min "
    "mul ne neg not or pow real rem round rsqrt sign sin sinh sqrt square sub tan tanh xor"
)
def _elementwise(context: RooflineRuleContext, *_: RooflineShape, **__: Any) -> RooflineResult:
    return RooflineResult(unfused_flops=_sizes(context.avals_out)[0].size, unfused_hbm_bytes=_moved(context))


@_rule_of("cummax cummin cumprod cumsum cumlogsumexp")
def _cumulative(context: RooflineRuleContext, x: RooflineShape, *, dim: int, **_: Any) -> RooflineResult:
    each = 2 if context.primitive.name == "cumlogsumexp" else 1
    return RooflineResult(unfused_flops=each * x.shape[dim], unfused_hbm_bytes=_moved(context))


@_rule_of("reduce_sum")
def _reduce_sum(context: RooflineRuleContext, x: RooflineShape, **_: Any) -> RooflineResult:
    (out,) = _sizes(context.avals_out)
    return RooflineResult(unfused_flops=x.size - out.size, unfused_hbm_bytes=_moved(context))


@_rule_of("select_n")
def _select(context: RooflineRuleContext, which: RooflineShape, *_: RooflineShape, **__: Any) -> RooflineResult:
    (out,) = _sizes(context.avals_out)
    return RooflineResult(unfused_flops=out.size, unfused_hbm_bytes=which.bytes + out.bytes)


@_rule_of("dot_general")
def _dot_general(context: RooflineRuleContext, a: RooflineShape, b: RooflineShape, *, spec: str, **_: Any) -> Any:
    letters = spec.partition("->")[0].split(",")
    sizes = {letter: n for names, x in zip(letters, (a, b)) for letter, n in zip(names, x.shape)}
    flops = 2 * math.prod(sizes.values())
    # It is never fused; operands that are pinned are not moved.
    moved = RooflineShape.total_bytes(context.avals_out)
    moved += 0 if context.pin_lhs_in_vmem else a.bytes
    moved += 0 if context.pin_rhs_in_vmem else b.bytes
    return RooflineResult(flops=flops, unfused_flops=flops, hbm_bytes=moved, unfused_hbm_bytes=_moved(context))


def _positions(size: int, taps: int, out: int, stride: int, low: int, dilation: int, tap_dilation: int) -> int:
    """Of one dimension of a convolution: how many pairs of an element of the result and of the kernel meet an element
    of the input, and neither padding nor what dilation puts between them."""
    if tap_dilation == 1:
        starts = np.arange(out, dtype=np.int64) * stride - low
        first = np.maximum(-(-starts // dilation), 0)
        last = np.minimum((starts + taps - 1) // dilation, size - 1)
        return int(np.maximum(last - first + 1, 0).sum())
    total = 0
    starts = np.arange(out, dtype=np.int64) * stride - low
    for tap in range(taps):
        places = starts + tap * tap_dilation
        total += int(((places >= 0) & (places <= (size - 1) * dilation) & (places % dilation == 0)).sum())
    return total


@_rule_of("conv_general_dilated")
def _conv(context: RooflineRuleContext, x: RooflineShape, kernel: RooflineShape, **params: Any) -> RooflineResult:
    (out,) = _sizes(context.avals_out)  # batch, features, then space; the kernel: features out, features in
    places = zip(x.shape[2:], kernel.shape[2:], out.shape[2:], params["strides"], params["lo"])
    dilations = zip(params["lhs_dilation"], params["rhs_dilation"])
    pairs = math.prod(_positions(*given, *pair) for given, pair in zip(places, dilations))
    flops = 2 * out.shape[0] * out.shape[1] * kernel.shape[1] * pairs
    return RooflineResult(unfused_flops=flops, unfused_hbm_bytes=_moved(context))


@_rule_of("gather")
def _gather(
    context: RooflineRuleContext, x: RooflineShape, indices: RooflineShape, *, mode: str = "", **_: Any
) -> RooflineResult:
    (out,) = _sizes(context.avals_out)
    # Out of bounds: two comparisons with each end and what joins them, a mask over the result and a choice by it.
    flops = 4 * indices.size + out.size if mode == "fill" else 0
    return RooflineResult(unfused_flops=flops, unfused_hbm_bytes=2 * out.bytes + indices.bytes)


@_rule_of("scatter scatter_add scatter_max scatter_min scatter_mul scatter_sub")
def _scatter(
    context: RooflineRuleContext, x: RooflineShape, indices: RooflineShape, updates: RooflineShape, **_: Any
) -> RooflineResult:
    flops = 0 if context.primitive.name == "scatter" else updates.size
    return RooflineResult(unfused_flops=flops, unfused_hbm_bytes=3 * updates.bytes + indices.bytes)


@_rule_of("pure_callback io_callback debug_callback debug_print")
def _callback(context: RooflineRuleContext, *_: RooflineShape, **__: Any) -> RooflineResult:
    return RooflineResult(unfused_hbm_bytes=_moved(context))


def _axes_of(context: RooflineRuleContext, axes: Sequence[str]) -> dict[str, int]:
    """The axes of the mesh that something is sent along, and how many devices lie along each."""
    if context.mesh is None:
        raise value_error(f"roofline: '{context.primitive.name}' sends along {tuple(axes)}: give the mesh as mesh=")
    return {axis: int(context.mesh.shape[axis]) for axis in axes}


def _sent(sizes: dict[str, int], sent: float, steps: float) -> RooflineResult:
    return RooflineResult(ici_bytes=dict.fromkeys(sizes, int(sent)), ici_latency=dict.fromkeys(sizes, int(steps)))


def _around_rings(sizes: dict[str, int], whole: float) -> RooflineResult:
    """What one device starts with goes around the ring of each axis, the longest first; each of as many parts as there
    are axes takes them in another order, so that all links are busy."""
    if math.prod(sizes.values()) == 1:
        return _sent(sizes, 0, 0)
    part, sent = whole // len(sizes), 0.0
    for size in sorted(sizes.values(), reverse=True):
        sent += part * (size - 1)
        part *= size
    return _sent(sizes, sent, max(sizes.values()) * len(sizes))


@_rule_of("all_gather")
def _all_gather(context: RooflineRuleContext, *xs: RooflineShape, axes: Sequence[str], **_: Any) -> RooflineResult:
    return _around_rings(_axes_of(context, axes), sum(x.bytes for x in xs))


@_rule_of("psum_scatter reduce_scatter")
def _reduce_scatter(context: RooflineRuleContext, *xs: RooflineShape, axes: Sequence[str], **_: Any) -> RooflineResult:
    sizes = _axes_of(context, axes)
    return _around_rings(sizes, sum(x.bytes for x in xs) / math.prod(sizes.values()))


@_rule_of("psum psum_invariant")
def _psum(context: RooflineRuleContext, *xs: RooflineShape, axes: Sequence[str], **_: Any) -> RooflineResult:
    """A sum of parts, and their gathering."""
    return _reduce_scatter(context, *xs, axes=axes) * 2


@_rule_of("pmax pmin")
def _extreme(context: RooflineRuleContext, *xs: RooflineShape, axes: Sequence[str], **_: Any) -> RooflineResult:
    """Counted as one number for each operand, as JAX does."""
    return _around_rings(_axes_of(context, axes), sum(x.bytes // max(x.size, 1) for x in xs))


@_rule_of("all_to_all")
def _all_to_all(context: RooflineRuleContext, *xs: RooflineShape, axes: Sequence[str], **_: Any) -> RooflineResult:
    """Half of all data go across the links in the middle, of a ring twice as many."""
    sizes = _axes_of(context, axes)
    if math.prod(sizes.values()) == 1:
        return _sent(sizes, 0, 0)
    least = min(sizes.values())
    links = least ** (len(sizes) - 1) * (2 if least > 2 else 1)
    whole = sum(x.bytes for x in xs) * math.prod(sizes.values())
    return _sent(sizes, whole / 2 / links, sum(size / 2 for size in sizes.values()))


@_rule_of("ppermute")
def _ppermute(
    context: RooflineRuleContext, *xs: RooflineShape, axes: Sequence[str], perm: Sequence[int], **_: Any
) -> RooflineResult:
    """Each pair sends along one axis after the other, the shorter way around; the busiest link counts."""
    sizes = _axes_of(context, axes)
    if math.prod(sizes.values()) == 1:
        return _sent(sizes, 0, 0)
    shape, busy, longest = tuple(sizes.values()), collections.Counter[Any](), 0
    for source, target in zip(perm[::2], perm[1::2]):
        start, end = (tuple(map(int, np.unravel_index(device, shape))) for device in (source, target))
        hops = 0
        for d, size in enumerate(shape):
            there, back = (end[d] - start[d]) % size, (start[d] - end[d]) % size
            step = 1 if there <= back else -1
            places = [(start[d] + step * hop) % size for hop in range(min(there, back) + 1)]
            for link in zip(places, places[1:]):
                busy[tuple(sorted((*start[:d], place, *start[d + 1 :]) for place in link))] += 1
            hops += len(places) - 1
        longest = max(longest, hops)
    return _sent(sizes, sum(x.bytes for x in xs) * max(busy.values(), default=0), longest)


# --- Programs ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Options:
    mesh: Any
    pin_lhs_in_vmem: bool
    pin_rhs_in_vmem: bool


def _live(jaxpr: jaxprs.Jaxpr) -> list[jaxprs.JaxprEqn]:
    """The equations that results depend on, or that do something."""
    wanted = set(jaxpr.outvars)
    kept = []
    for eqn in reversed(jaxpr.eqns):
        if not eqn.outvars or any(v in wanted for v in eqn.outvars):
            wanted.update(eqn.invars)
            kept.append(eqn)
    return kept[::-1]


def _kept_bytes(variables: Any) -> int:
    return sum(RooflineShape.from_aval(v.aval).bytes for v in variables if isinstance(v, jaxprs.Var))


def _of_program(jaxpr: jaxprs.Jaxpr, options: _Options) -> RooflineResult:
    eqns = _live(jaxpr)
    last = {v: i for i, eqn in enumerate(eqns) for v in eqn.invars}
    last.update(dict.fromkeys(jaxpr.outvars, len(eqns)))
    held = {v for v in [*jaxpr.constvars, *jaxpr.invars] if v in last}
    result = RooflineResult(peak_hbm_bytes=_kept_bytes(held))
    for i, eqn in enumerate(eqns):
        result += _of_equation(eqn, options)
        held = {v for v in [*held, *eqn.outvars] if last.get(v, -1) > i}
        result = replace(result, peak_hbm_bytes=max(result.peak_hbm_bytes, _kept_bytes(held)))
    return result


def _of_equation(eqn: jaxprs.JaxprEqn, options: _Options) -> RooflineResult:
    rule = _rules.get(_key(eqn.primitive))
    if rule is not None:
        avals_in, avals_out = [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars]
        context = RooflineRuleContext(
            name_stack=getattr(eqn.source_info, "name_stack", None),
            primitive=eqn.primitive,
            avals_in=avals_in,
            avals_out=avals_out,
            jaxpr_eqn_ctx=None,
            mesh=options.mesh,
            pin_lhs_in_vmem=options.pin_lhs_in_vmem,
            pin_rhs_in_vmem=options.pin_rhs_in_vmem,
        )
        return rule(context, *_sizes(avals_in), **eqn.params)
    parts = [_of_program(region.jaxpr, options) for region in eqn.params.get("regions") or ()]
    if not parts:
        return RooflineResult()
    if eqn.primitive.name == "cond":  # the dearest branch
        return max(parts, key=lambda part: (part.unfused_flops, part.unfused_hbm_bytes))
    if eqn.primitive.name in ("custom_jvp_call", "custom_vjp_call", "custom_vmap_call"):
        return parts[0]
    whole = functools.reduce(lambda a, b: a + b, parts)  # of a while loop: one trip
    if eqn.primitive.name != "scan":
        return whole
    return replace(whole * int(eqn.params["length"]), peak_hbm_bytes=whole.peak_hbm_bytes)


def roofline(
    f: Callable[..., Any],
    mesh: Any = None,
    in_specs: Any = None,
    out_specs: Any = None,
    *,
    pin_lhs_in_vmem: bool = False,
    pin_rhs_in_vmem: bool = False,
    vjp: bool = False,
    print_jaxpr: bool = False,
) -> Callable[..., tuple[Any, RooflineResult]]:
    """A function of the arguments of f, or of their types: (types of the results, what is counted). With a mesh it is
    of one device's part; with vjp of the way back through f."""

    def counted(*args: Any) -> tuple[Any, RooflineResult]:
        run = f
        if mesh is not None and in_specs is not None and out_specs is not None:
            run = weft.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs)
        args = _tree.map(_type_of, args)
        shapes = weft.eval_shape(run, *args)
        if mesh is not None and out_specs is not None:
            shapes = _tree.map(lambda spec, of: _tree.map(functools.partial(_on, mesh, spec), of), out_specs, shapes)
        if vjp:
            forward, run = fwd_and_bwd(run, tuple(range(len(args))), jitted=False)
            out, pull = weft.eval_shape(forward, *args)
            args = pull, out
        closed = make_jaxpr(run)(*args)
        if print_jaxpr:
            print(closed)
        each = [eqn for eqn in closed.jaxpr.eqns if eqn.primitive.name == "shard_map"]
        counted = each[-1].params["jaxpr"] if each else closed.jaxpr  # that of one device
        return shapes, _of_program(counted, _Options(mesh, pin_lhs_in_vmem, pin_rhs_in_vmem))

    return counted


def roofline_and_grad(
    f: Callable[..., Any], mesh: Any = None, in_specs: Any = None, out_specs: Any = None, **options: Any
) -> Callable[..., tuple[Any, RooflineResult, RooflineResult]]:
    """... (types of the results, what is counted of f, and of the way back, with arguments of bfloat16 as in JAX)."""

    def counted(*args: Any) -> tuple[Any, RooflineResult, RooflineResult]:
        shapes, forward = roofline(f, mesh, in_specs, out_specs, **options)(*args)
        halves = _tree.map(lambda x: weft.ShapeDtype(x.shape, "int32" if x.dtype == "int32" else "bfloat16"), args)
        _, back = roofline(f, mesh, in_specs, out_specs, vjp=True, **options)(*halves)
        return shapes, forward, back

    return counted


def _on(mesh: Any, spec: Any, x: Any) -> Any:
    return weft.ShapeDtype(x.shape, x.dtype, sharding=weft.NamedSharding(mesh, spec))


def _type_of(x: Any) -> Any:
    return weft.ShapeDtype(x.shape, x.dtype) if getattr(x, "ndim", 0) else x
