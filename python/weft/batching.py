"""vmap: a function of one value, made one of a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from . import _weft
from ._core import stateful
from ._core import tree as _tree
from ._core.errors import not_implemented, sharding_type_error, type_error, value_error
from ._core.facts import knowing
from ._core.names import wraps
from ._core.shapes import ShapeDtype
from ._core.tracing import call_name, check_callable, flat_function, trace_flat, with_float0s
from ._sharding.meshes import Mesh, current_mesh
from ._sharding.partitioning import constrain, lying_as_in_program, mapped_over, meshes_of
from ._sharding.shardings import PartitionSpec, spec_axes, with_open_dims
from ._sharding.typed import place_of, without_dims
from .arguments import check_axes, hold, is_fixed, releasing
from .collectives import axis_names, check_axis_name

__all__ = ["vmap"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def vmap(
    fun: Callable[_P, _R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: str | None = None,
    axis_size: int | None = None,
    spmd_axis_name: str | tuple[str, ...] | None = None,
) -> Callable[_P, _R]:
    """A function of one more dimension: maps a function over an axis of its arguments. It is traced once, and each
    operation made one on batches; there is no loop.

    Args:
        fun: the function.
        in_axes: the axis per argument: an integer, None for an argument that is the same for all, or a tree of them (a
            prefix of the argument's structure suffices); a tuple has one per argument. Keyword arguments map axis 0.
            What is the same for all may be no array: a string, a function, an object.
        out_axes: where the new axis is in each result: an integer, None for a result that is the same for all, or a
            tree.
        axis_name: a name for the mapped axis: collectives inside over that name (weft.lax.psum, all_gather, ppermute,
            axis_index ...) work across the lanes.
        axis_size: the size of the axis, where no argument says; otherwise it must agree.
        spmd_axis_name: the axis of a mesh, or several, that cut the mapped axis: of the mesh around the call, or else
            of the mesh of an argument; where there is none it says nothing.

    Returns: function of the same arguments, with one more dimension each.

    Raises:
        ValueError: when called: sizes differ, nothing is mapped, an axis is out of range, or a mapped result has
            out_axes None.
        TypeError: when called: in_axes holds something else.

    Example:
        >>> weft.vmap(lambda x, w: x @ w, in_axes=(0, None))(wnp.ones((5, 3)), wnp.ones(3)).shape
        (5,)
        >>> weft.vmap(lambda x: x - weft.lax.pmean(x, "batch"), axis_name="batch")(wnp.array([1.0, 2.0, 6.0]))
        Array([-2., -1.,  3.], dtype=float32)
    """
    check_callable(fun, "vmap")
    check_axes(in_axes, "vmap: in_axes")
    check_axes(out_axes, "vmap: out_axes")
    cut_by = () if spmd_axis_name is None else tuple(axis_names(spmd_axis_name, "vmap: spmd_axis_name"))
    if axis_name is not None:
        check_axis_name(axis_name, "vmap")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    elif isinstance(in_axes, dict):
        raise type_error(
            f"vmap: in_axes must be an integer, None, or a tuple of entries for the positional arguments, got {in_axes}"
        )

    @wraps(fun)
    def mapped(*args, **kwargs):
        if stateful.references is not None:
            return stateful.references.vmap(run, fun, in_axes, out_axes, args, kwargs)
        return run(fun, in_axes, out_axes, args, kwargs)

    if fun.__doc__ and _tree.jax_semantics():
        name = call_name(fun)
        mapped.__doc__ = (
            f"Vectorized version of {name}. Takes similar arguments as {name} but with additional array axes over "
            f"which {name} is mapped.\n\nOriginal documentation:\n\n{fun.__doc__}"
        )

    def run(fun: Callable, in_axes: Any, out_axes: Any, args: tuple, kwargs: dict) -> Any:
        name = call_name(fun)
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise value_error(
                f"vmap: in_axes has {len(in_axes)} entries, but '{name}' was called with {len(args)} "
                f"positional arguments"
            )
        axes = _tree.prefix_leaves(in_axes, args, "vmap: in_axes") if args else []
        function, args, axes = _hold_unmapped(fun, args, axes)
        flat = flat_function(function, args, kwargs, original=fun)
        axes += [0] * (len(flat.leaves) - len(axes))
        specs, moved, size, first = [], [], axis_size, "axis_size"
        for leaf, axis, path in zip(flat.leaves, axes, flat.names):
            shape, dtype, weak, text = _weft.abstract(leaf)
            if axis is None:
                moved.append(leaf)
                specs.append(leaf)
                continue
            if not -len(shape) <= axis < len(shape):
                raise value_error(
                    f"vmap: in_axes maps axis {axis} of argument {path} of '{name}', which is {text}, of "
                    f"{len(shape)} dimensions"
                )
            axis %= len(shape)
            if size is None:
                size, first = shape[axis], f"axis {axis} of argument {path}"
            elif size != shape[axis]:
                raise value_error(
                    f"vmap: mapped sizes of '{name}' differ: {size} ({first}) and {shape[axis]} (axis "
                    f"{axis} of argument {path}){_all_sizes(flat, axes, len(_tree.leaves(args)))}"
                )
            moved.append(_weft.moveaxis(leaf, axis, 0) if axis else leaf)
            specs.append(
                ShapeDtype(
                    shape[:axis] + shape[axis + 1 :],
                    dtype,
                    weak_type=weak,
                    varying=_weft.varying(leaf),
                    sharding=without_dims(place_of(leaf), [axis], len(shape)),
                )
            )
        typed = _mapped_by(flat, axes, cut_by)
        if size is None:
            empty = "" if flat.leaves else f": the arguments, {args} and {kwargs}, hold no array"
            raise value_error(f"vmap: no argument of '{name}' is mapped, and axis_size is not given{empty}")
        flat.specs = specs
        batched = [axis is not None for axis in axes]
        bound = [] if axis_name is None else [(axis_name, size, False)]
        known = axis_name is None and not cut_by and not typed and _tree.jax_semantics() and _weft.computes_known()
        with mapped_over(cut_by, typed):
            t = trace_flat(flat, "vmap", known=[not b for b in batched], axes=bound, computes_known=known)
        outs = _tree.prefix_leaves_of(out_axes, flat.out_tree, "vmap: out_axes")
        ranks = [len(shape) for shape, _, _ in _weft.result_specs(t)]
        if len(outs) != len(ranks):
            raise value_error(
                f"vmap: '{name}' returns a container with {len(ranks)} leaves that has {len(outs)} once it is put "
                "together from others: what a container takes for a leaf must not depend on its value"
            )
        for axis, rank in zip(outs, ranks):
            if axis is not None and not -rank - 1 <= axis <= rank:
                raise value_error(
                    f"vmap: out_axes has {axis} for a result of {rank} dimensions (without the mapped one)"
                )
        if isinstance(size, int) and size == 0 and None not in outs and not cut_by and not typed:
            made = [_empty(shape, kind, weak, axis) for (shape, kind, weak), axis in zip(_weft.result_specs(t), outs)]
            return _tree.unflatten(flat.out_tree, made)
        # A mesh inside that has an axis of this name hides it there; nobody may speak of it outside.
        hidden = axis_name is not None and any(axis_name in mesh.axis_names for mesh in meshes_of(t))
        try:
            fn = _weft.vmap(t, batched, size, outs, "" if axis_name is None or hidden else axis_name)
            if cut_by:
                moved = _cut_mapped(moved, [0 if b else None for b in batched], cut_by)
            results = _weft.apply(fn, moved + t.captures, t.weak_results)
        except ValueError as error:
            if None in outs and "its out_axes entry is None" in str(error.args[0]):
                knowing(error, kind="mapped result", axis_name=axis_name)
            raise
        except NameError:
            if not hidden:
                raise
            raise not_implemented(
                f"vmap: the mapped axis '{axis_name}' has the name of an axis of the mesh inside, and is used outside "
                "of it; give it another name"
            ) from None
        if _weft.meshes_of(t) and not _weft.is_tracing():
            results = lying_as_in_program(fn, moved + t.captures, results)
        if cut_by or typed:
            results = _cut_mapped(results, outs, cut_by or typed, meshes_of(t))
        return _tree.unflatten(flat.out_tree, with_float0s(flat, results) if flat.float0s else results)

    return mapped


def _empty(shape: Any, dtype: Any, weak: bool, axis: int) -> Any:
    """A mapped result of no elements. Rules of vmap need not know of such: some make groups of them, of which there are
    none."""
    axis %= len(shape) + 1
    whole = (*shape[:axis], 0, *shape[axis:])
    if str(dtype).startswith("key"):
        return _weft.random_wrap(_weft.full((*whole, 2), 0, "uint32"))
    empty = _weft.full(whole, 0, dtype)
    return _weft.weak(empty) if weak else empty


def _all_sizes(flat: Any, axes: list, positional: int) -> str:
    """A line for each mapped argument, those by position first."""
    lines = []
    for i, (leaf, axis, path) in enumerate(zip(flat.leaves, axes, flat.names)):
        shape, _, _, text = _weft.abstract(leaf)
        if axis is not None and -len(shape) <= axis < len(shape):
            named = "" if i < positional else ", given by name"
            lines.append(f"\n  {shape[axis]}: axis {axis % len(shape)} of argument {path}, {text}{named}")
    return "".join(lines)


def _mapped_by(flat: Any, axes: list, cut_by: tuple[str, ...]) -> tuple[str, ...]:
    """The axes of a mesh that cut the mapped dimensions, as types say it. Raises ShardingTypeError where two arguments
    are cut differently, spmd_axis_name says otherwise, or the same axes cut an argument that is not mapped."""
    first: tuple | None = None
    kept: tuple[str, ...] = ()  # the axes that types name
    for leaf, axis, path in zip(flat.leaves, axes, flat.names):
        place = None if axis is None else place_of(leaf)
        if place is None:
            continue
        kept = place.mesh.typed_axes
        names = place._names_of(axis % len(_weft.abstract(leaf)[0]))
        if first is None:
            first = names, path
        elif names != first[0]:
            cut = lambda by: ", ".join(map(repr, by)) or "no axis"
            raise sharding_type_error(
                f"vmap: the mapped dimension of argument {first[1]} of '{flat.name}' is cut by {cut(first[0])}, and "
                f"that of argument {path} by {cut(names)}; weft.reshard makes them lie alike"
            )
    if first is None or not first[0]:
        return ()
    if cut_by and tuple(name for name in cut_by if name in kept) != first[0]:
        raise sharding_type_error(
            f"vmap: spmd_axis_name is {cut_by}, and the mapped dimension of argument {first[1]} of '{flat.name}' is "
            f"cut by {first[0]}; leave spmd_axis_name out, or weft.reshard the argument"
        )
    for leaf, axis, path in zip(flat.leaves, axes, flat.names):
        place = place_of(leaf) if axis is None else None
        twice = [] if place is None else [a for names in spec_axes(place.spec) for a in names if a in first[0]]
        if twice:
            raise sharding_type_error(
                f"vmap: argument {path} of '{flat.name}' is not mapped, and is cut by {', '.join(map(repr, twice))}, "
                f"as the mapped dimension of argument {first[1]} is; weft.reshard one of them"
            )
    return first[0]


def _cut_mapped(leaves: list, axes: list, cut_by: tuple[str, ...], named: Sequence[Mesh] = ()) -> list:
    """The leaves, whose mapped axes these axes of a mesh cut: of the one around, that on which one of them lies, or
    the first of those that the mapped function names."""
    meshes = (
        getattr(x.sharding, "mesh", None) for x in leaves if isinstance(x, _weft.Array) and not _weft.is_traced(x)
    )
    mesh = current_mesh() or next((m for m in [*meshes, *named] if m is not None), None)
    if mesh is None or any(_weft.axis_is_bound(name) for name in mesh.axis_names):
        return leaves
    out = []
    for leaf, axis in zip(leaves, axes):
        if axis is not None:
            rank = len(_weft.abstract(leaf)[0])
            dims = [cut_by if d == axis % rank else PartitionSpec.UNCONSTRAINED for d in range(rank)]
            leaf = constrain(leaf, with_open_dims(mesh, PartitionSpec(*dims)), "vmap: spmd_axis_name")
        out.append(leaf)
    return out


def _hold_unmapped(function: Callable[..., Any], args: tuple, axes: list) -> tuple[Callable[..., Any], tuple, list]:
    """The call with what is fixed held, where no axis is mapped, and the axes of the other leaves."""
    leaves, treedef = _tree.flatten(args)
    held = [axis is None and is_fixed(leaf) for leaf, axis in zip(leaves, axes, strict=True)]
    if not any(held):
        return function, args, axes
    args = _tree.unflatten(treedef, [hold(leaf) if on else leaf for leaf, on in zip(leaves, held)])
    return releasing(function), args, [axis for axis, on in zip(axes, held) if not on]
