"""jax.experimental.hijax.VJPHiPrimitive: operations of a program's own, with their rules as methods of a class. Weft
keeps none of them in its programs: a call is that of a function with the rules of custom_vjp or custom_jvp."""

from __future__ import annotations

from typing import Any, NamedTuple

import weft
import weft.numpy as wnp

from .._core import tree as _tree
from .._core.errors import not_implemented
from ..custom import custom_jvp, custom_vjp
from ..custom_batching import custom_vmap
from ..symbolic_zeros import CustomVJPPrimal, SymbolicZero
from ..tree_util import register_static
from .rules import Zero


class GradAccum:
    """The place of a gradient in vjp_bwd."""

    def __init__(self, aval: Any):
        self.aval, self.value = aval, None

    def accum(self, gradient: Any) -> None:
        """Adds a gradient."""
        if gradient is not None and not isinstance(gradient, Zero):
            self.value = gradient if self.value is None else self.value + gradient


class ValAccum(GradAccum):
    """... which is returned."""


class NullAccum(GradAccum):
    """... which nobody wants."""

    def accum(self, gradient: Any) -> None:
        del gradient


class _AxisData(NamedTuple):
    """What `batch` is told of the mapped axis."""

    name: Any
    size: int
    spmd_name: Any = None
    explicit_mesh_axis: Any = None


@register_static
class _Inputs:
    """The types of inputs, and which of them are differentiated: no arrays, so that it passes through rules as a part
    of the structure."""

    def __init__(self, types: tuple, moving: tuple):
        self.types, self.moving = types, moving

    def __hash__(self) -> int:
        return hash(str((self.types, self.moving)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Inputs) and (self.types, self.moving) == (other.types, other.moving)


def _is_none(x: Any) -> bool:
    return x is None


class VJPHiPrimitive:
    """An operation: `expand` computes it. A class sets in_avals, out_aval and params in its __init__."""

    in_avals: tuple
    out_aval: Any
    params: dict

    def __init__(self) -> None:
        for name in ("in_avals", "out_aval", "params"):
            if not hasattr(self, name):
                raise AttributeError(f"subclass __init__ should set `self.{name}`")
        if self._has("vjp_bwd") and self._has("vjp_bwd_retval"):
            raise AttributeError(f"subclass {type(self)} should not override both `vjp_bwd` and `vjp_bwd_retval`")
        self.in_avals_flat, self.in_tree = _tree.flatten(self.in_avals)
        self.out_avals_flat, self.out_tree = _tree.flatten(self.out_aval)
        self.__dict__.update(self.params)
        self.check(*self.in_avals)

    def _has(self, rule: str) -> bool:
        return getattr(type(self), rule) is not getattr(VJPHiPrimitive, rule)

    def _lacks(self, support: str, rule: str) -> Exception:
        return not_implemented(f"for {support} support, subclass {type(self)} must implement `{rule}`")

    def check(self, *arg_tys: Any) -> None:
        """Whether the types of arguments are right; a class may say."""

    def expand(self, *args: Any) -> Any:
        """What the operation computes."""
        raise self._lacks("any", "expand")

    def vjp_fwd(self, nzs_in: Any, /, *args: Any) -> Any:
        """(result, residuals), given which arguments are differentiated."""
        raise self._lacks("grad", "vjp_fwd")

    def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: Any) -> None:
        """Adds gradients into their places."""
        for place, gradient in zip(arg_accums, self.vjp_bwd_retval(res, outgrad), strict=True):
            if gradient is not None:
                _tree.map(lambda p, g: p.accum(g), place, gradient)

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
        """The gradients, None for what has none."""
        raise self._lacks("grad", "vjp_bwd` or `vjp_bwd_retval")

    def jvp(self, primals: Any, tangents: Any) -> Any:
        """(result, its tangent)."""
        raise self._lacks("jvp", "jvp")

    def lin(self, nzs_in: Any, *primals: Any) -> Any:
        """(result, residuals) of forward mode in two parts."""
        raise self._lacks("linearize", "lin")

    def linearized(self, residuals: Any, *tangents: Any) -> Any:
        """The tangent of the result."""
        raise self._lacks("linearize", "linearized")

    def batch(self, axis_data: Any, args: Any, dims: Any) -> Any:
        """(results, their mapped dimensions) of arguments with these mapped dimensions."""
        raise self._lacks("vmap", "batch")

    def batch_dim_rule(self, axis_data: Any, dims: Any, /) -> Any:
        """The mapped dimensions of results, where `expand` is mapped; Weft puts them first."""
        raise self._lacks("vmap", "batch` or `batch_dim_rule")

    def __call__(self, *args: Any) -> Any:
        function = self._batched() if self._has("batch") else self.expand
        if self._has("vjp_fwd") or not (self._has("jvp") or self._has("lin")):
            return self._with_vjp(function)(*args)
        return self._with_jvp(function)(*args)

    def _batched(self) -> Any:
        function = custom_vmap(self.expand)

        @function.def_vmap
        def rule(size: int, mapped: Any, *args: Any) -> Any:
            dims = tuple(_tree.map(lambda on: 0 if on else None, on) for on in mapped)
            out, out_dims = self.batch(_AxisData(None, size), args, dims)
            places = _tree.prefix_leaves(out_dims, out, "batch", _is_none)
            leaves, tree = _tree.flatten(out)
            first = [x if d is None else wnp.moveaxis(x, d, 0) for x, d in zip(leaves, places, strict=True)]
            return _tree.unflatten(tree, first), _tree.unflatten(tree, [d is not None for d in places])

        return function

    def _with_jvp(self, function: Any) -> Any:
        call = custom_jvp(lambda *args: function(*args))

        @call.defjvp
        def rule(primals: Any, tangents: Any) -> Any:
            if self._has("jvp"):
                return self.jvp(primals, tangents)
            moving = tuple(_tree.map(lambda _: True, t) for t in tangents)
            out, residuals, *_ = self.lin(moving, *primals)
            return out, self.linearized(residuals, *tangents)

        return call

    def _with_vjp(self, function: Any) -> Any:
        call = custom_vjp(lambda *args: function(*args))

        def forward(*args: Any) -> Any:
            is_primal = lambda x: isinstance(x, CustomVJPPrimal)
            moving = tuple(_tree.map(lambda x: bool(x.perturbed), a, is_leaf=is_primal) for a in args)
            values = tuple(_tree.map(lambda x: x.value, a, is_leaf=is_primal) for a in args)
            out, residuals, *more = self.vjp_fwd(moving, *values)
            if len(more) > 1:
                raise not_implemented(f"{type(self).__name__}.vjp_fwd: structured residuals")
            types = tuple(_tree.map(weft.typeof, v) for v in values)
            return out, (residuals, _Inputs(types, moving))

        def backward(kept: Any, cotangent: Any) -> Any:
            residuals, inputs = kept
            is_zero = lambda x: isinstance(x, SymbolicZero)
            cotangent = _tree.map(lambda x: Zero(x.aval) if is_zero(x) else x, cotangent, is_leaf=is_zero)
            places = tuple(
                _tree.map(lambda on, aval: (ValAccum if on else NullAccum)(aval), on, aval)
                for on, aval in zip(inputs.moving, inputs.types, strict=True)
            )
            self.vjp_bwd(residuals, cotangent, *places)
            return tuple(_tree.map(_gradient, place) for place in places)

        call.defvjp(forward, backward, symbolic_zeros=True)
        return call

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self.params}]"

    def __hash__(self) -> int:
        return hash((type(self), tuple(sorted(self.params.items()))))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.params == other.params


def _gradient(place: GradAccum) -> Any:
    return SymbolicZero(place.aval) if place.value is None else place.value
