"""Weft's operations as JAX's primitives."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import weft

from .. import _weft
from .._core.errors import not_implemented
from .._core.shapes import ShapedArray
from . import own_impls
from .effects import CHECK, no_effects, of_operation
from .hidden_scopes import one_product
from .jax_params import binding
from .mixed_products import operands_of
from .one_equation import SEVERAL, in_one_equation
from .precision import asked
from .user_primitives import Primitive

# Weft's name of a primitive -> JAX's, where they differ.
JAX_NAMES = {
    "bitcast": "bitcast_convert_type",
    "broadcast": "broadcast_in_dim",
    "call": "jit",
    "checkpoint_name": "name",
    "contract": "dot_general",
    "conv": "conv_general_dilated",
    "convert": "convert_element_type",
    "custom_jvp": "custom_jvp_call",
    "custom_vjp": "custom_vjp_call",
    "reverse": "rev",
    "select": "select_n",
    "spmd": "shard_map",
}
# The parameter of an equation that stands for several of Weft's: the program of these (one_equation).
COMPUTES = "computes"
# What has names of axes.
COLLECTIVES = frozenset(["pmax", "pmin", "psum", "pvary"])
_OUR_NAMES = {theirs: ours for ours, theirs in JAX_NAMES.items()}
# Sums over devices of what counts as a sum in parts there.
OF_PARTS = {"psum": "unreduced_psum", "psum_scatter": "unreduced_reduce_scatter"}
_OUR_NAMES.update((theirs, ours) for ours, theirs in OF_PARTS.items())
_OUR_NAMES["psum_invariant"] = "psum"  # over an axis of shard_map, where types say that its result is the same
_OUR_NAMES.update(dict.fromkeys(("debug_print", "debug_callback"), "io_callback"))  # jax.debug's, by Python
# Kinds of attributes that Python's values do not say, by primitive and attribute.
attribute_kinds: dict[tuple[str, str], str] = {("convert", "dtype"): "dtype"}


class WeftPrimitive(Primitive):
    """An operation of Weft's own. Two of one name are one object."""

    is_weft = True

    def __init__(self, name: str):
        super().__init__(name)
        self._ours = _OUR_NAMES.get(name, name)
        self.multiple_results = self._ours in _MANY_RESULTS

    def bind(self, /, *args: Any, **params: Any) -> Any:
        """The operation on arrays, with parameters as equations have them."""
        if own_impls.given and self.name in own_impls.given and not any(map(_weft.is_traced, args)):
            return own_impls.given[self.name](*args, **params)
        return self.impl(*args, **params)

    def impl(self, /, *args: Any, **params: Any) -> Any:
        """What Weft does for it."""
        if COMPUTES in params:
            return params[COMPUTES].run(*args)
        if self._ours in SEVERAL and self._ours not in operations():
            return in_one_equation("jax.lax", self.name, getattr(weft.lax, self.name))(*args, **params)
        if (bind := binding(self.name, params)) is not None:
            return bind(*args, **params)
        if params.get("precision") is not None:
            with asked(params.pop("precision")):
                return self.impl(*args, **params)
        if params.get("preferred_element_type") is not None:
            preferred = params.pop("preferred_element_type")
            with one_product(args, {"preferred_element_type": preferred}):
                return weft.lax.convert_element_type(self.impl(*operands_of(args, preferred), **params), preferred)
        regions = [region._fn for region in params.pop("regions", ())]
        if self._ours in elementwise():
            # In programs a number stands beside arrays, and a dimension of size 1 beside any other.
            shapes = [tuple(weft.numpy.shape(x)) for x in args]
            if len(set(shapes)) > 1:
                full = weft.numpy.broadcast_shapes(*shapes)
                args = tuple(x if s == full else weft.numpy.broadcast_to(x, full) for x, s in zip(args, shapes))
        attrs = {
            name: (attribute_kinds.get((self._ours, name)) or _kind_of(value), value) for name, value in params.items()
        }
        if CHECK in params:  # its number is none of the attributes that texts of programs have
            return list(_weft.bind(self._ours, list(args), params) or ())
        results = _weft.bind_program(self._ours, list(args), attrs, regions)
        return results if self.multiple_results else results[0]

    def effects_of(self, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """What it does besides computing: prints, calls functions of Python, checks."""
        return of_operation(self.name, params)

    def abstract_eval(self, /, *avals: Any, **params: Any) -> Any:
        """(types of the results, no effects)."""
        found = weft.eval_shape(lambda *xs: self.bind(*xs, **params), *avals)
        types = [ShapedArray(t.shape, t.dtype, t.weak_type) for t in (found if self.multiple_results else [found])]
        return (types if self.multiple_results else types[0]), no_effects

    def def_impl(self, impl: Callable[..., Any]) -> Callable[..., Any]:
        """See own_impls; what Weft does for it (impl) puts an end to that."""
        self.set_rule("impl", impl)
        return impl

    def set_rule(self, kind: str, rule: Callable[..., Any]) -> None:
        if kind == "impl":
            is_own = getattr(rule, "__func__", None) is WeftPrimitive.impl
            own_impls.give(self.name, None if is_own else rule)
            return
        raise not_implemented(
            f"weft.as_jax: '{self.name}' is an operation of Weft's own, whose {kind} stays; make a "
            "jax.extend.core.Primitive"
        )

    def __reduce__(self) -> Any:
        return primitive, (self.name,)


_MANY_RESULTS = frozenset(
    [
        "assert",
        "call",
        "cond",
        "custom_jvp",
        "custom_linear",
        "custom_vjp",
        "custom_vmap",
        "debug_print",
        "eigh",
        "eig",
        "io_callback",
        "linear_solve",
        "lu",
        "primitive",
        "pure_callback",
        "qr",
        "recur",
        "recursive",
        "remat",
        "scan",
        "snapshot_scan",
        "sort",
        "spmd",
        "svd",
        "tape_scan",
        "threefry2x32",
        "top_k",
        "unbox",
        "while",
    ]
)


@functools.cache
def operations() -> frozenset[str]:
    """The names of Weft's operations."""
    return frozenset(p["name"] for p in _weft.primitives())


@functools.cache
def elementwise() -> frozenset[str]:
    return frozenset(p["name"] for p in _weft.primitives() if p["elementwise"])


@functools.cache
def primitive(name: str) -> WeftPrimitive:
    """The operation of Weft's that JAX calls so."""
    return WeftPrimitive(name)


def _kind_of(value: Any) -> str:
    for python_type, kind in ((bool, "bool"), (int, "int"), (float, "float"), (str, "string")):
        if isinstance(value, python_type):
            return kind
    return "list of ints"
