"""Operations on types of a library's own (jax.experimental.hijax): each is a primitive on the arrays of its operands,
whose rules are those of the library on their values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import weft

from .. import _weft
from .._core import tree as _tree
from .._core.errors import not_implemented
from . import ad, hidden_scopes
from .core import own_types, typeof
from .hijax import (
    HiType,
    arrays_of,
    has_other_tangents,
    instantiate_zeros,
    is_type,
    tangent_of,
    types_of_arrays,
    values_of,
)
from .rules import SymbolicZero, UndefinedPrimal, Zero, is_undefined_primal
from .user_primitives import AxisData, Primitive

__all__ = ["HiPrimitive", "NullAccum", "Static", "VJPHiPrimitive", "custom_vjp3"]

custom_vjp3 = weft.custom_vjp


class Static:
    """A value that is part of the structure of what it stands in."""

    def __init__(self, val: Any):
        self.val = val


_tree.register(Static, lambda x: ((), x.val), lambda val, _: Static(val))


class _Call(NamedTuple):
    """A call: what is called, and the types of operands and results."""

    of: Any
    takes: Any
    gives: Any
    params: tuple[tuple[str, Any], ...] = ()


class _OnArrays(Primitive):
    """The primitive on arrays that stands for an operation."""

    multiple_results = True

    def __init__(self, name: str, with_jvp: bool, with_transpose: bool, with_batch: bool):
        super().__init__(name)
        self.def_abstract_eval(lambda *_, call: types_of_arrays(call.gives))
        self.set_rule("lower", self._lowered)
        if with_jvp:
            self.set_rule("jvp", self._moved)
        if with_transpose:
            self.set_rule("transpose", self._transposed)
        if with_batch:
            self.set_rule("batch", self._batched)

    def call(self, call: _Call, args: Any) -> Any:
        """What the operation gives for these values."""
        arrays = arrays_of(call.takes, args)
        for kind in _tree.leaves(call.gives, is_leaf=is_type):
            if isinstance(kind, HiType) and type(kind).to_tangent_aval is not HiType.to_tangent_aval:
                # Integers alone have no derivative, and no rule would be asked what their tangents are.
                arrays = [_watched(x, kind) if _weft.is_inexact(weft.typeof(x).dtype) else x for x in arrays]
        return values_of(call.gives, self.bind(*arrays, call=call))

    def _lowered(self, _: Any, __: Any, ___: Any, operands: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        call = params["call"]
        return arrays_of(call.gives, call.of._on_values(*values_of(call.takes, list(operands)), **dict(call.params)))

    def _moved(self, primals: Any, tangents: Any, /, *, call: _Call) -> Any:
        moving = _types_of_tangents(call.takes)
        given = values_of(moving, list(tangents), _tangent)
        out, slope = call.of.jvp(values_of(call.takes, list(primals)), given, **dict(call.params))
        return arrays_of(call.gives, out), _arrays_of_tangents(_types_of_tangents(call.gives), slope)

    def _transposed(self, cts: Any, /, *operands: Any, call: _Call) -> list[Any]:
        ct = values_of(_types_of_tangents(call.gives), list(cts), _tangent)
        args = values_of(call.takes, list(operands), _linear)
        found = call.of._cotangents(ct, args, dict(call.params))
        return _arrays_of_tangents(_types_of_tangents(call.takes), found)

    def _batched(self, axis: AxisData, operands: Any, axes: Any, /, *, call: _Call) -> Any:
        dims = values_of(call.takes, list(axes), lambda _, mine: mine[0])
        out, out_dims = call.of.batch(axis, values_of(call.takes, list(operands)), dims, **dict(call.params))
        types, tree = _tree.flatten(call.gives, is_leaf=is_type)
        whole = tree.flatten_up_to(out_dims) if len(types) != 1 or tree.num_nodes != 1 else [out_dims]
        return tree.flatten_up_to(out), list(whole)


def _watched(x: Any, kind: HiType) -> Any:
    """The array, whose derivative is an error where the tangents of a type made of it have other arrays than Weft's."""
    if not has_other_tangents(kind):
        return x
    same = weft.custom_jvp(lambda x: x)
    same.defjvp(lambda primals, tangents: (primals[0], tangent_of(kind)))
    return same(x)


def _types_of_tangents(kinds: Any) -> Any:
    tree = _tree.structure(kinds, is_leaf=is_type)
    return _tree.unflatten(tree, [tangent_of(kind) for kind in _tree.leaves(kinds, is_leaf=is_type)])


def _tangent(kind: Any, arrays: list[Any]) -> Any:
    """A tangent, of its type and arrays."""
    if all(isinstance(x, Zero) for x in arrays):
        return Zero(kind)
    return values_of(kind, [ad.instantiate_zeros(x) for x in arrays])


def _linear(kind: Any, arrays: list[Any]) -> Any:
    return UndefinedPrimal(kind) if any(map(is_undefined_primal, arrays)) else values_of(kind, arrays)


def _arrays_of_tangents(kinds: Any, found: Any) -> list[Any]:
    """The arrays of tangents, of which some may be zero."""
    types, tree = _tree.flatten(kinds, is_leaf=is_type)
    is_zero = lambda x: x is None or isinstance(x, (Zero, SymbolicZero))
    arrays: list[Any] = []
    parts = [found] if tree.num_nodes == 1 else _parts(tree, found, is_zero)
    for kind, value in zip(types, parts, strict=True):
        lo = types_of_arrays(kind)
        arrays += [Zero(t) for t in lo] if is_zero(value) else arrays_of(kind, value)
    return arrays


def _parts(tree: Any, found: Any, is_zero: Callable[[Any], bool]) -> list[Any]:
    """What stands where a tree has its leaves; None and zeros stay."""
    del tree
    whole = _tree.map(_Leaf, found, is_leaf=lambda x: is_zero(x) or is_value(x))
    return [leaf.value for leaf in _tree.leaves(whole)]


def is_value(x: Any) -> bool:
    """Whether it is a value of a type of one's own."""
    return type(x) in own_types


class _Leaf:
    def __init__(self, value: Any):
        self.value = value


class HiPrimitive(Primitive):
    """An operation: abstract_eval(*types) gives (type, effects), to_lojax(*values) the value; jvp and transpose are
    rules on values."""

    multiple_results = False

    def __init__(self, name: str):
        super().__init__(name)
        mine, own = type(self), HiPrimitive
        given = (getattr(mine, rule) is not getattr(own, rule) for rule in ("jvp", "transpose", "batch"))
        self._on_arrays = _OnArrays(name, *given)

    def is_high(self, *_: Any, **__: Any) -> bool:
        """Whether it takes or gives values of types of one's own."""
        return True

    def to_lojax(self, *values: Any, **params: Any) -> Any:
        """What it computes."""
        raise not_implemented(f"weft.as_jax: '{self.name}' needs to_lojax")

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        """(value, tangent)."""
        raise not_implemented(f"weft.as_jax: '{self.name}' needs jvp")

    def transpose(self, *args: Any, **params: Any) -> Any:
        """The cotangents of the operands, of that of the result and the operands."""
        raise not_implemented(f"weft.as_jax: '{self.name}' needs transpose")

    def batch(self, axis_data: Any, args: Any, dims: Any, **params: Any) -> Any:
        """(result, its axes); without it what to_lojax does is mapped."""
        raise not_implemented(f"weft.as_jax: '{self.name}' needs batch")

    def bind(self, /, *args: Any, **params: Any) -> Any:
        """The operation on values."""
        takes = tuple(map(typeof, args))
        gives = self.abstract_eval(*takes, **params)[0]
        gives = tuple(gives) if self.multiple_results else gives
        with hidden_scopes.hi_primitive():
            found = self._on_arrays.call(_Call(self, takes, gives, tuple(sorted(params.items()))), args)
        return list(found) if self.multiple_results else found

    def _on_values(self, *args: Any, **params: Any) -> Any:
        found = self.to_lojax(*args, **params)
        return tuple(found) if self.multiple_results else found

    def _cotangents(self, ct: Any, args: Any, params: dict[str, Any]) -> Any:
        ct = tuple(map(instantiate_zeros, ct)) if self.multiple_results else instantiate_zeros(ct)
        found = self.transpose(list(ct) if self.multiple_results else ct, *args, **params)
        return tuple(found)


class _Sum:
    """Where a rule of transposition puts the cotangents of one operand."""

    def __init__(self, aval: Any):
        self.aval, self.value = aval, None

    def accum(self, x: Any) -> None:
        """Adds one."""
        if x is None or isinstance(x, Zero):
            return
        self.value = x if self.value is None else _added(self.aval, self.value, x)


class NullAccum:
    """The place of a cotangent that nobody wants."""

    value = None

    def accum(self, x: Any) -> None:
        """Drops one."""


def _by_type(kinds: Any, values: Any, each: Callable[[Any, Any], Any]) -> Any:
    """Of a tree of types, and values of them: the tree of each(type, value)."""
    types, tree = _tree.flatten(kinds, is_leaf=is_type)
    return _tree.unflatten(tree, [each(*pair) for pair in zip(types, tree.flatten_up_to(values), strict=True)])


def _added(kind: Any, x: Any, y: Any) -> Any:
    return kind.vspace_add(x, y) if isinstance(kind, HiType) else _tree.map(lambda a, b: a + b, x, y)


class VJPHiPrimitive:
    """An operation, one object for each choice of parameters: in_avals, out_aval and params are set before __init__
    of this class. expand(*args) says what it computes, the other methods its derivatives and vmap."""

    in_avals: Any
    out_aval: Any
    params: dict[str, Any]
    effects: frozenset[Any] = frozenset()

    def __init__(self) -> None:
        for name in ("in_avals", "out_aval", "params"):
            if not hasattr(self, name):
                raise AttributeError(f"subclass __init__ should set `self.{name}`")
        if self._has("vjp_bwd") and self._has("vjp_bwd_retval"):
            raise AttributeError(f"subclass {type(self)} should not override both `vjp_bwd` and `vjp_bwd_retval`")
        self.in_avals = tuple(self.in_avals)
        self.__dict__.update(self.params)
        self.check(*self.in_avals)

    @classmethod
    def _has(cls, rule: str) -> bool:
        return getattr(cls, rule) is not getattr(VJPHiPrimitive, rule)

    @classmethod
    def _on_arrays(cls) -> _OnArrays:
        found: Any = cls
        return _primitive_of(found)

    def check(self, *arg_tys: Any) -> None:
        """Refuses types."""

    def expand(self, *args: Any) -> Any:
        """What it computes."""
        raise not_implemented(f"subclass {type(self)} must implement `expand`")

    def vjp_fwd(self, nzs_in: Any, /, *args: Any) -> Any:
        """(result, residuals); nzs_in: which arguments are differentiated."""
        raise not_implemented(f"for grad support, subclass {type(self)} must implement `vjp_fwd`")

    def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: Any) -> None:
        """Adds the cotangents of the arguments."""
        for places, found in zip(arg_accums, self.vjp_bwd_retval(res, outgrad), strict=True):
            tree = _tree.structure(places)
            parts = [None] * tree.num_leaves if found is None else tree.flatten_up_to(found)
            for place, x in zip(_tree.leaves(places), parts, strict=True):
                place.accum(x)

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
        """The cotangents of the arguments."""
        raise not_implemented(f"for grad support, subclass {type(self)} must implement `vjp_bwd` or `vjp_bwd_retval`")

    def jvp(self, primals: Any, tangents: Any) -> Any:
        """(result, tangent)."""
        raise not_implemented(f"for jvp support, subclass {type(self)} must implement `jvp`")

    def lin(self, nzs_in: Any, /, *args: Any) -> Any:
        """(result, residuals); nzs_in: which arguments move."""
        raise not_implemented(f"for linearize support, subclass {type(self)} must implement `lin` and `linearized`")

    def linearized(self, residuals: Any, /, *tangents: Any) -> Any:
        """The tangent, linear in those of the arguments."""
        raise not_implemented(f"for linearize support, subclass {type(self)} must implement `lin` and `linearized`")

    def transpose(self, out_ct: Any, *maybe_accums: Any) -> None:
        """Adds the cotangents of what is linear."""
        raise not_implemented(f"for transpose support, subclass {type(self)} must implement `transpose`")

    def batch(self, axis_data: Any, args: Any, dims: Any) -> Any:
        """(result, its axes); without it what expand does is mapped."""
        raise not_implemented(f"for vmap support, subclass {type(self)} must implement `batch`")

    def _on_values(self, *args: Any) -> Any:
        return self.expand(*args)

    def _cotangents(self, ct: Any, args: Any, _: dict[str, Any]) -> Any:
        sums = [_Sum(tangent_of(x.aval)) if is_undefined_primal(x) else x for x in args]
        self.transpose(ct, *sums)
        return tuple(x.value if isinstance(x, _Sum) else None for x in sums)

    def __call__(self, *args: Any) -> Any:
        with hidden_scopes.hi_primitive():
            return self._called(args)

    def _called(self, args: tuple[Any, ...]) -> Any:
        call = _Call(self, self.in_avals, self.out_aval)
        if not self._has("vjp_fwd") and (self._has("jvp") or self._has("transpose")):
            return self._on_arrays().call(call, args)
        if not self._has("vjp_fwd") and self._has("lin"):
            linear = weft.custom_jvp(lambda *xs: self._on_arrays().call(call, xs))
            linear.defjvp(self._by_lin, symbolic_zeros=True)
            return linear(*args)
        function = weft.custom_vjp(lambda *xs: self._on_arrays().call(call, xs))
        function.defvjp(self._forward, self._backward, symbolic_zeros=True)
        return function(*args)

    def _by_lin(self, primals: Any, tangents: Any) -> Any:
        is_zero = lambda t: isinstance(t, SymbolicZero)
        marks = _tree.map(lambda t: not is_zero(t), tuple(tangents), is_leaf=is_zero)
        moving = _by_type(self.in_avals, marks, lambda _, part: any(_tree.leaves(part)))
        moved = _tree.map(lambda t: Zero(t.aval).instantiate() if is_zero(t) else t, tuple(tangents), is_leaf=is_zero)
        out, residuals, *_ = self.lin(moving, *primals)
        return out, self.linearized(residuals, *moved)

    def _forward(self, *args: Any) -> Any:
        is_primal = lambda x: hasattr(x, "perturbed")
        values = _tree.map(lambda x: x.value if is_primal(x) else x, args, is_leaf=is_primal)
        marks = _tree.map(lambda x: bool(x.perturbed) if is_primal(x) else False, args, is_leaf=is_primal)
        moving = _by_type(self.in_avals, marks, lambda _, part: any(_tree.leaves(part)))
        out, residuals, *_ = self.vjp_fwd(moving, *values)
        return out, (residuals, Static(moving))

    def _backward(self, kept: Any, ct: Any) -> Any:
        residuals, moving = kept
        is_zero = lambda x: isinstance(x, SymbolicZero)

        def cotangent(kind: Any, part: Any) -> Any:
            if all(map(is_zero, _tree.leaves(part, is_leaf=is_zero))):
                return Zero(tangent_of(kind))
            return _tree.map(lambda x: Zero(x.aval).instantiate() if is_zero(x) else x, part, is_leaf=is_zero)

        place = lambda kind, on: _Sum(tangent_of(kind)) if on else NullAccum()
        places = _by_type(self.in_avals, moving.val, place)
        self.vjp_bwd(residuals, _by_type(self.out_aval, ct, cotangent), *places)
        return _tree.map(lambda x: x.value, places)

    def __hash__(self) -> int:
        return hash((type(self).__name__, tuple(self.params.items()), self.in_avals))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and (self.params, self.in_avals) == (other.params, other.in_avals)

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self.params}]"


@functools.cache
def _primitive_of(cls: Any) -> _OnArrays:
    return _OnArrays(cls.__name__, cls._has("jvp"), cls._has("transpose"), cls._has("batch"))
