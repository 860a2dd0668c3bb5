"""Functions with batching rules of their own, as jax.custom_batching."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

from . import _weft
from ._core import tree as _tree
from ._core.errors import missing_rule, type_error
from ._core.names import forwarded, update_wrapper
from ._core.shapes import ShapeDtype
from ._core.tracing import Flat, as_positional, call_name, flat_function, trace_flat
from ._sharding.meshes import current_mesh, mesh_around
from .control import scan

__all__ = ["custom_vmap", "sequential_vmap"]


_P = ParamSpec("_P")
_R = TypeVar("_R")
_Rule = TypeVar("_Rule", bound=Callable[..., Any])


class custom_vmap(Generic[_P, _R]):
    """A function that vmap replaces by a rule of its own: the function over a whole axis of its arguments.

    The rule holds wherever the function goes: inside jit and loops, and under derivatives, where vmap takes the same
    derivative, forward or reverse, of what the rule gives. It may use what the function itself captures.

    Args:
        fun: of arrays, or of trees of them. Values that it captures cannot be mapped.

    Returns: the function, to which def_vmap gives its rule.

    Raises:
        TypeError: at a call: there is no rule. Under vmap: what the rule gives has another structure, shape or dtype
            than what the function gives.

    Example:
        >>> @weft.custom_batching.custom_vmap
        ... def f(x, y):
        ...     return x + y ** 2
        >>> @f.def_vmap
        ... def f_rule(axis_size, in_batched, xs, ys):
        ...     print("the rule, for", axis_size, "lanes:", in_batched)
        ...     return xs + ys ** 2, True
        >>> weft.vmap(f, in_axes=(0, None))(wnp.arange(3.0), 2.0)
        the rule, for 3 lanes: [True, False]
        Array([4., 5., 6.], dtype=float32)
    """

    __name__: str
    __getattr__ = forwarded

    def __init__(self, fun: Callable[_P, _R]):
        self._function = fun
        self._rule: Callable[..., Any] | None = None
        self._ids: dict[Any, int] = {}
        update_wrapper(self, fun)

    def def_vmap(self, rule: _Rule) -> _Rule:
        """Gives the rule: rule(axis_size, in_batched, *args) -> (result, out_batched).

        The arguments that are mapped have the axis in front; in_batched says which, in their structure, and out_batched
        likewise of the result (a prefix of its structure suffices)."""
        self._rule = rule
        self._ids = {}
        return rule

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        if self._rule is None:
            raise missing_rule(
                f"custom_vmap: '{call_name(self._function)}' has no rule; give one with "
                f"@{call_name(self._function)}.def_vmap"
            )
        flat = flat_function(self._function, as_positional(self._function, args, kwargs, "custom_vmap"), {})
        traced = trace_flat(flat, "custom_vmap", known=False)
        results = _weft.result_specs(traced)
        # The same number at every call of the same kind, so that programs are recognised.
        leaves = tuple(_weft.abstract(leaf)[3] for leaf in flat.leaves)
        key = flat.in_tree, flat.out_tree, leaves, _weft.context_key()
        number = self._ids.get(key)
        if number is None:
            number = self._ids.setdefault(key, _weft.new_rule_number())
        rule = _of_mapped(_rule_of(self._rule, flat, results))
        return _tree.unflatten(flat.out_tree, _weft.custom_vmap(traced, flat.leaves, rule, number))


def _of_mapped(rule: Callable) -> Callable:
    """The same, but that it gives None where no argument is mapped, unless JAX's meaning holds.

    In a derivative of which no argument is mapped together with its tangent, JAX tells the rule that none is mapped. A
    rule of Weft's may take it that one is."""
    return lambda size, flags, specs: rule(size, flags, specs) if any(flags) or _tree.jax_semantics() else None


def _rule_of(rule: Callable, call: Flat, results: list, what: str = "custom_vmap") -> Callable:
    """What C++ calls for a mapped call: (size, flags, specs) -> (traced rule, flags of results)."""
    in_tree, out_tree, name, mesh = call.in_tree, call.out_tree, call.name, current_mesh()
    who = call_name(rule)

    def batched(size, flags, specs):
        flags_out: list[bool] = []
        in_batched = list(_tree.unflatten(in_tree, list(flags))[0])

        def whole(*args):
            with mesh_around(mesh):
                out = rule(size, in_batched, *args)
            if not isinstance(out, (tuple, list)) or len(out) != 2:
                raise type_error(f"{what}: the rule of '{name}' ({who}) must return (result, out_batched)")
            result, out_batched = out
            leaves, tree = _tree.flatten(result)
            if tree != out_tree:
                raise type_error(
                    f"{what}: the rule of '{name}' ({who}) returns {_tree.in_words(tree)}, the function "
                    f"{_tree.in_words(out_tree)}"
                )
            flags_out[:] = [bool(f) for f in _tree.prefix_leaves(out_batched, result, f"{what}: out_batched")]
            return _tree.unflatten(tree, [_like(*item) for item in zip(leaves, flags_out, results)])

        def _like(leaf, on, spec):
            shape, dtype, _ = spec
            wanted = (size, *shape) if on else tuple(shape)
            got, got_dtype, weak, text = _weft.abstract(leaf)
            if tuple(got) != wanted or (got_dtype != dtype and not weak):
                raise type_error(
                    f"{what}: the rule of '{name}' ({who}) returns {text}; expected the shape {wanted} and {dtype}"
                )
            return _weft.astype(leaf, dtype)

        flat = Flat()
        flat.function, flat.name = whole, who
        flat.specs = flat.leaves = [ShapeDtype(shape, dtype) for shape, dtype in specs]
        flat.names, flat.in_tree, flat.out_tree = [""] * len(specs), in_tree, None
        return trace_flat(flat, what, known=False), flags_out

    return batched


def sequential_vmap(function: Callable[_P, _R]) -> custom_vmap[_P, _R]:
    """A function that vmap runs lane after lane, as lax.map does, instead of over all lanes at once.

    Args:
        function: of arrays, or of trees of them.

    Returns: the function, a custom_vmap.

    Example:
        >>> f = weft.custom_batching.sequential_vmap(lambda x: x * 2)
        >>> weft.vmap(f)(wnp.arange(3.0))
        Array([0., 2., 4.], dtype=float32)
    """
    wrapped = custom_vmap(function)
    again: Any = wrapped

    def rule(axis_size, in_batched, *args):
        leaves, tree = _tree.flatten(args)
        flags = _tree.leaves(in_batched)
        mapped = [leaf for leaf, on in zip(leaves, flags) if on]

        def one(_, lane):
            it = iter(lane)
            return None, again(*_tree.unflatten(tree, [next(it) if on else x for x, on in zip(leaves, flags)]))

        return scan(one, None, mapped, length=axis_size)[1], True

    wrapped.def_vmap(rule)
    return wrapped
