"""One program for many devices: shard_map, pmap and pjit."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from . import _weft
from ._core import stateful
from ._core import tree as _tree
from ._core.errors import not_implemented, type_error, value_error
from ._core.facts import no_prefix
from ._core.names import wraps
from ._core.shapes import ShapeDtype
from ._core.tracing import Flat, call_name, flat_function, is_float0, trace_flat
from ._sharding import agreement, committed
from ._sharding.arrays import put
from ._sharding.devices import Device, first_devices, process_count
from ._sharding.meshes import AbstractMesh, Mesh, check_mesh, mesh_around, mesh_axes, mesh_devices
from ._sharding.partitioning import axes_of_mapped, constrain, on_mesh_of, over_processes, typed_axes_of_mapped
from ._sharding.shardings import (
    NamedSharding,
    PartitionSpec,
    check_entries,
    cut_by,
    cuts_of,
    is_spec,
    prefix_specs,
    spec_axes,
)
from ._sharding.sums import axes_beside, beside, with_sums
from ._sharding.typed import place_inside, place_of, with_the_rest
from ._sharding.typing_rules import typing_rules
from .arguments import check_axes, ints
from .collectives import (
    axes_left_alone,
    block_of_axes,
    check_axis_name,
    leaving_alone,
    pbroadcast,
    whole_of_blocks,
)
from .compiled import jit

__all__ = ["pjit", "pmap", "shard_map", "smap"]


def shard_map(
    f: Callable | None = None,
    mesh: Mesh | None = None,
    in_specs: Any = None,
    out_specs: Any = None,
    *,
    axis_names: Iterable[str] | None = None,
    check_vma: bool | None = None,
    check_rep: bool | None = None,
) -> Callable:
    """A function that runs `f` on every device of a mesh, each with its part of the arguments. Collectives over the
    axes of the mesh (weft.lax.psum ...) work between the devices; what `f` closes over is the same on all of them.

    A result that may differ between the devices along an axis (it depends on an argument that is cut along it, and no
    psum or other reduction made it the same) has to name that axis in its spec.

    Args:
        f: the function of one device; None: shard_map is used as a decorator with arguments.
        mesh: the mesh; None: that of the `with mesh:` around the call.
        in_specs: how arguments are cut: a PartitionSpec for each, or a tree of them (a prefix suffices). Along axes
            that a spec does not name all devices get the same. None: the function gets what is no array as it is.
        out_specs: likewise how the parts of the results are put together.
        axis_names: the axes of the mesh over which it runs; None: all. Along the others, which specs may not name, all
            devices compute the same, and collectives are refused. Inside, another shard_map may run over them.
        check_vma: False: of results that differ along an axis that their spec leaves out, the first device's are taken.
        check_rep: an older spelling of check_vma.

    Returns: function of whole arrays.

    Raises:
        ValueError: when called: specs do not fit the mesh or the shapes, devices cannot share a size evenly, or a
            result may differ along an axis that its spec leaves out; axis_names or a spec names an axis that it may
            not.
        NameError: when called: a collective names an axis that nothing binds.
        NotImplementedError: when called: a spec is of sums (unreduced=).

    Example:
        >>> mesh = weft.make_mesh((1,), ("x",))
        >>> total = weft.shard_map(lambda x: weft.lax.psum(x.sum(), "x"), mesh, weft.P("x"), weft.P())
        >>> total(wnp.arange(4.0))
        Array(6., dtype=float32)
    """
    if f is None:
        return functools.partial(
            shard_map,
            mesh=mesh,
            in_specs=in_specs,
            out_specs=out_specs,
            axis_names=axis_names,
            check_vma=check_vma,
            check_rep=check_rep,
        )
    given_specs = in_specs
    chosen = None if axis_names is None else frozenset([axis_names] if isinstance(axis_names, str) else axis_names)
    check = check_vma is not False and check_rep is not False

    given = f

    @wraps(f)
    def sharded(*args):
        where = _mesh_for(mesh, args)
        manual = _manual_axes(where, chosen)
        in_specs = _as_they_lie(args, manual) if given_specs is None else given_specs
        called_with = args
        f, args, in_specs = _with_constants(given, args, in_specs)
        if chosen and _tree.jax_semantics() and (taken := chosen & typed_axes_of_mapped()):
            raise value_error(
                f"jax.shard_map requires axis_names={set(chosen)} to be a subset of the axes of the mesh that cut no "
                f"dimension that a vmap around maps: {sorted(taken)} cut one"
            )
        if manual <= axes_left_alone():
            return _over_axes_left_alone(f, where, manual, args, in_specs, out_specs, check)
        if over_processes(where) and not _weft.is_tracing():
            return over_all_processes(*called_with)
        specs = prefix_specs(in_specs, args, "shard_map: in_specs")
        run = lambda f, args, specs, out_specs: _run(f, where, args, specs, out_specs, check, "shard_map", manual)
        if stateful.references is not None:
            return stateful.references.shard_map(run, f, args, specs, out_specs)
        return run(f, args, specs, out_specs)

    over_all_processes = jit(sharded)
    return sharded


def _with_constants(f: Callable, args: tuple, in_specs: Any) -> tuple[Callable, tuple, Any]:
    """The function of those arguments that are arrays or have a spec: the others, which have None, reach it as they
    are."""
    leaves, tree = _tree.flatten(args)
    if all(isinstance(leaf, (_weft.Array, np.ndarray)) for leaf in leaves):
        return f, args, in_specs
    specs = prefix_specs(in_specs, args, "shard_map: in_specs")
    cut = [
        i
        for i, (leaf, spec) in enumerate(zip(leaves, specs))
        if spec is not None or isinstance(leaf, (_weft.Array, np.ndarray))
    ]
    if len(cut) == len(leaves):
        return f, args, in_specs

    @wraps(f)
    def of_arrays(*given):
        filled = list(leaves)
        for i, x in zip(cut, given):
            filled[i] = x
        return f(*_tree.unflatten(tree, filled))

    return of_arrays, tuple(leaves[i] for i in cut), tuple(specs[i] for i in cut)


def _mesh_for(mesh: Any, args: tuple) -> Mesh:
    """The mesh that is given; where it has no devices, that of an argument of these axes, or the one around."""
    if isinstance(mesh, AbstractMesh) and not mesh.empty:
        for leaf in _tree.leaves(args):
            if isinstance(leaf, _weft.Array):
                try:
                    return on_mesh_of(leaf, NamedSharding(mesh, PartitionSpec()), "shard_map").mesh
                except ValueError:
                    continue
    return check_mesh(mesh, "shard_map")


def _manual_axes(mesh: Mesh, chosen: frozenset[str] | None) -> frozenset[str]:
    if chosen is None:
        # Inside of a shard_map over some axes: those that it leaves alone.
        return frozenset(mesh.axis_names) & axes_left_alone() or frozenset(mesh.axis_names)
    if missing := chosen - set(mesh.axis_names):
        raise value_error(f"shard_map: axis_names has {sorted(missing)}, which are no axes of {mesh}")
    return chosen or frozenset(mesh.axis_names)


def _as_they_lie(args: tuple, manual: frozenset[str]) -> Any:
    """Specs of arguments of which none are given: as their types say that they lie, along these axes."""
    leaves, tree = _tree.flatten(args)
    specs = []
    for leaf in leaves:
        place = place_of(leaf[...] if stateful.is_reference(leaf) else leaf)
        axes = [] if place is None else spec_axes(place.spec)
        sums = {} if place is None else {"unreduced": place.spec.unreduced, "reduced": place.spec.reduced}
        sums = {what: axes_of_sum & manual for what, axes_of_sum in sums.items()}
        specs.append(PartitionSpec(*[tuple(name for name in names if name in manual) for names in axes], **sums))
    return _tree.unflatten(tree, specs)


def _spec(spec: PartitionSpec | None) -> PartitionSpec:
    return PartitionSpec() if spec is None else spec


def _check_named(specs: Sequence[Any], manual: frozenset[str], what: str) -> None:
    for spec in specs:
        of_sums = [] if spec is None else [tuple(sorted(spec.unreduced | spec.reduced))]
        for names in [*spec_axes(_spec(spec)), *of_sums]:
            for name in names:
                if name not in manual:
                    raise value_error(
                        f"{what}: {spec} names '{name}', over which the function does not run: axis_names has "
                        f"{', '.join(map(repr, sorted(manual)))}"
                    )


def _check_not_mapped(specs: Sequence[Any], what: str) -> None:
    """Raises ValueError, where JAX's meaning is asked for, for axes that cut what a vmap around maps."""
    if not _tree.jax_semantics() or typing_rules.cuts_mapped():
        return
    for spec in specs:
        named = {name for names in spec_axes(_spec(spec)) for name in names}
        if twice := named & axes_of_mapped():
            raise value_error(
                f"{what}: {spec} names {', '.join(map(repr, sorted(twice)))}: vmap spmd_axis_name cannot appear in "
                "shard_map in_specs or out_specs"
            )


def _over_axes_left_alone(
    f: Callable, mesh: Mesh, manual: frozenset[str], args: tuple, in_specs: Any, out_specs: Any, check: bool
) -> Any:
    """shard_map inside of another one that leaves these axes alone: all devices along them have the same values here,
    of which each takes its part."""
    what = "shard_map: in_specs"
    leaves, tree = _tree.flatten(args)
    specs = prefix_specs(in_specs, args, what)
    _check_named(specs, manual, what)
    alone = axes_left_alone()
    with leaving_alone(alone - manual):
        parts = []
        for leaf, spec in zip(leaves, specs):
            axes = cuts_of(mesh, _spec(spec), _weft.abstract(leaf)[0], what)
            for d, names in enumerate(axes):
                if names:
                    leaf = block_of_axes(leaf, names, d)
            parts.append(leaf)
        results = f(*_tree.unflatten(tree, parts))
        found, out_tree = _tree.flatten(results)
        places = prefix_specs(out_specs, results, "shard_map: out_specs")
        _check_named(places, manual, "shard_map: out_specs")
        wholes = []
        for i, (leaf, spec) in enumerate(zip(found, places)):
            axes = cuts_of(mesh, _spec(spec), [0] * len(_weft.abstract(leaf)[0]), "shard_map: out_specs")
            differ = set(_weft.varying(leaf)) & manual - {name for names in axes for name in names}
            if differ and check:
                raise value_error(
                    f"shard_map: result {i} of '{call_name(f)}' may differ between the devices along "
                    f"{', '.join(map(repr, sorted(differ)))}, which its out_specs entry, {spec}, does not name"
                )
            if differ:
                leaf = pbroadcast(leaf, tuple(sorted(differ)), 0)
            for d, names in enumerate(axes):
                if names:
                    leaf = whole_of_blocks(leaf, names, d)
            wholes.append(leaf)
    return _tree.unflatten(out_tree, wholes)


def _run(
    f: Callable,
    mesh: Mesh,
    args: tuple,
    in_specs: list,
    out_specs: Any,
    check: bool,
    what: str,
    manual: frozenset[str],
) -> Any:
    _check_named(in_specs, manual, f"{what}: in_specs")
    _check_not_mapped([*in_specs, *_tree.leaves(out_specs, is_leaf=lambda x: isinstance(x, PartitionSpec))], what)

    inside: list[tuple | None] = []
    summed: list[list[str]] = []
    leaves, tree = _tree.flatten(args)
    args = _tree.unflatten(tree, [beside(leaf, mesh, spec) for leaf, spec in zip(leaves, in_specs)])

    @functools.wraps(f, updated=())
    def on_these(*given):
        with mesh_around(mesh), agreement.following(check):
            result = with_sums(f, given, in_specs, out_specs, f"{what}: out_specs", check, summed)
            inside[:] = map(_weft.typed_layout, _tree.leaves(result))
            return result

    flat = flat_function(on_these, args, {}, original=f)
    cuts = []
    for leaf, spec, name in zip(flat.leaves, in_specs, flat.names):
        where = f"{what}: argument {name} of '{flat.name}'"
        in_front = axes_beside(mesh, spec)
        own = cuts_of(mesh, _spec(spec), _weft.abstract(leaf)[0][len(in_front) :], where)
        cuts.append([*in_front, *own])
    outs: list = []

    def cut_results(t: Any) -> tuple[list, list, list]:
        made = flat.out_tree.unflatten([_tree.LEAF] * flat.out_tree.num_leaves)
        outs[:] = prefix_specs(out_specs, made, f"{what}: out_specs")
        _check_named(outs, manual, f"{what}: out_specs")
        paths = _tree.path_texts(flat.out_tree)
        out_cuts, unchecked = [], []
        for i, (shape, _, _) in enumerate(_weft.result_specs(t)):
            which = f"result{paths[i]}" if paths[i] else "the result"
            outs[i] = spec = _spec(outs[i])
            axes = cuts_of(mesh, spec, [0] * len(shape), f"{what}: {which} of '{flat.name}'")
            differ, because = _weft.result_varying(t, i)
            named = {a for names in axes for a in names} | spec.reduced | set(summed[i])
            missing = [a for a in differ if a in mesh.shape and a not in named]
            if check and any(typing_rules.keeps_axis(mesh.shape[a]) for a in missing):
                raise value_error(
                    f"{what}: {which} of '{flat.name}' may differ between the devices along "
                    f"{', '.join(map(repr, missing))}, but its out_specs entry, {spec}, does not name "
                    f"{'that axis' if len(missing) == 1 else 'these axes'}: it is {because}. Name the axis in "
                    "out_specs, make the value the same on all devices (lax.psum, lax.pmean, lax.pmax ...), or take "
                    "the first device's with check_vma=False"
                )
            out_cuts.append(axes)
            unchecked.append(missing + [a for a in differ if a in spec.reduced])
        return out_cuts, unchecked, summed

    with leaving_alone(set(mesh.axis_names) - manual), mesh_around(mesh):
        results = _on_devices(flat, mesh, cuts, cut_results, what)
    for i, (result, spec) in enumerate(zip(results, outs)):
        if not _weft.is_traced(result):
            results[i] = put(result, NamedSharding(mesh, spec))
        place = with_the_rest(spec, inside[i], set(mesh.axis_names) - manual)
        if place != spec or (_weft.is_traced(result) and (spec.unreduced or spec.reduced)):
            results[i] = constrain(results[i], NamedSharding(mesh, place), what)
    return _tree.unflatten(flat.out_tree, results)


def _on_devices(flat: Flat, mesh: Mesh, cuts: list, cut_results: Callable, what: str, lanes: bool = False) -> list:
    """Traces the function for one device, whose arguments are cut over the mesh as `cuts` says, and applies it to the
    leaves of the call. cut_results(traced) gives for each result the axes that cut its dimensions, those along which
    the first device's is taken, and those along which it is the sum of what devices have. `lanes`: derivatives inside
    are those of one device (derivatives.lanes_apart)."""
    specs = []
    for leaf, axes in zip(flat.leaves, cuts):
        shape, dtype, weak, _ = _weft.abstract(leaf)
        place = place_inside(place_of(leaf))
        local = tuple(
            n // count if (count := math.prod(mesh.shape[a] for a in names)) > 1 else n for n, names in zip(shape, axes)
        )
        varying = sorted({*_weft.varying(leaf), *(a for names in axes for a in names)})
        specs.append(ShapeDtype(local, dtype, weak_type=weak, varying=varying, sharding=place))
    flat.specs = specs
    t = trace_flat(flat, what, known=False, axes=[(name, size, True, lanes) for name, size in mesh_axes(mesh)])
    if agreement.check_operands is not None:
        agreement.check_operands(what, t)
    alone = [name for name in mesh.axis_names if name in axes_left_alone()]
    return _weft.spmd(t, mesh_axes(mesh), mesh_devices(mesh), cuts, *cut_results(t), flat.leaves, alone)


def smap(
    f: Callable | None = None, /, *, in_axes: Any = 0, out_axes: Any = 0, axis_name: str | None = None
) -> Callable:
    """shard_map over one axis of the mesh around the call, with vmap's way to say which dimensions are cut.

    Args:
        f: the function of one device; None: smap is used as a decorator with arguments.
        in_axes: for each argument the dimension that the axis cuts, None for one that all devices get whole, or a tree
            of them (a prefix suffices).
        out_axes: likewise for the results.
        axis_name: the axis of the mesh.

    Returns: function of whole arrays.

    Raises:
        TypeError: in_axes or out_axes holds something else.
        ValueError: what shard_map refuses; there is no mesh around the call.

    Example:
        >>> with weft.set_mesh(weft.make_mesh((1,), ("x",))):
        ...     weft.smap(lambda x: x * 2, in_axes=0, out_axes=0, axis_name="x")(wnp.arange(3))
        Array([0, 2, 4], dtype=int32)
    """
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    name = check_axis_name(axis_name, "smap")

    in_specs, out_specs = cut_by(name, in_axes, "in_axes"), cut_by(name, out_axes, "out_axes")
    return shard_map(f, in_specs=in_specs, out_specs=out_specs, axis_names={name})


# --- pmap -------------------------------------------------------------------------------------------------------------


def pmap(
    fun: Callable | None = None,
    axis_name: str | None = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Iterable[int] = (),
    devices: Sequence[Device] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Iterable[int] = (),
) -> Callable:
    """Like weft.vmap, with one device for each lane, and compiled. Collectives over axis_name work between the devices;
    derivatives that are taken inside are those of one lane.

    Args:
        fun: the function of one lane; None: pmap is used as a decorator with arguments.
        axis_name: the name of the mapped axis.
        in_axes: the axis per argument, as in vmap. Keyword arguments are mapped over their first axis.
        out_axes: where the new axis is in each result; None: the first device's result is taken.
        static_broadcasted_argnums: positions of arguments that are passed to Python as they are.
        devices: the devices to use, in order; None: the first ones there are.
        backend: whose devices: "cpu" or None.
        axis_size: the number of lanes, where no argument says.
        donate_argnums: positions of arguments that are given away, as in weft.jit.

    Returns: function of the same arguments, with one more dimension each.

    Raises:
        ValueError: there is no such backend; when called: there are fewer devices than lanes; what vmap refuses.
        NotImplementedError: when called: inside of another pmap, or over the devices of several processes.

    Example:
        >>> weft.pmap(lambda x: x / weft.lax.psum(x, "i"), axis_name="i")(wnp.array([3.0]))
        Array([1.], dtype=float32)
    """
    static = ints(static_broadcasted_argnums, "pmap: static_broadcasted_argnums")
    donated = ints(donate_argnums, "pmap: donate_argnums")
    where = None if devices is None else tuple(devices)
    if fun is None:
        return functools.partial(
            pmap,
            axis_name=axis_name,
            in_axes=in_axes,
            out_axes=out_axes,
            static_broadcasted_argnums=static,
            devices=where,
            backend=backend,
            axis_size=axis_size,
            donate_argnums=donated,
        )
    if where == ():
        raise value_error("pmap: 'devices' argument to pmap must be non-empty, or None.")
    if backend not in (None, "cpu"):
        raise value_error(f"pmap: there is no backend {backend!r}; there is 'cpu'")
    check_axes(in_axes, "pmap: in_axes")
    check_axes(out_axes, "pmap: out_axes")
    name = "devices" if axis_name is None else check_axis_name(axis_name, "pmap")
    if where is None and process_count() > 1:
        raise not_implemented(
            "pmap: over several processes use weft.jit or weft.shard_map with a mesh of weft.devices(); "
            "devices=weft.local_devices() maps over those of this process"
        )

    @wraps(fun)
    def one_program(*args, **kwargs):
        return _pmap(fun, name, in_axes, out_axes, static, where, axis_size, args, kwargs)

    made = jit(one_program, static_argnums=static, donate_argnums=donated)
    made.__dict__["__wrapped__"] = fun
    return made


def _pmap(
    fun: Callable,
    name: str,
    in_axes: Any,
    out_axes: Any,
    static: tuple[int, ...],
    devices: Sequence[Device] | None,
    axis_size: int | None,
    args: tuple,
    kwargs: dict[str, Any],
) -> Any:
    if static and max(static) >= len(args):
        raise value_error(
            f"pmap: static_broadcasted_argnums has {max(static)}, but '{call_name(fun)}' was called with {len(args)} "
            f"positional arguments; what is static is given by position"
        )
    fixed = {i % len(args): args[i] for i in static} if static else {}
    dynamic = tuple(a for i, a in enumerate(args) if i not in fixed)
    axes = in_axes
    if isinstance(in_axes, (tuple, list)):
        if len(in_axes) != len(args):
            called = f"'{call_name(fun)}' was called with {len(args)} arguments"
            message = f"pmap: in_axes has {len(in_axes)} entries, but {called}"
            raise no_prefix(message, "pmap: in_axes", tuple(in_axes), args)
        axes = tuple(a for i, a in enumerate(in_axes) if i not in fixed)
    places = _tree.prefix_leaves(axes, dynamic, "pmap: in_axes") if dynamic else []
    places += [0] * len(_tree.leaves(kwargs))
    flat = flat_function(fun, dynamic, kwargs, positions=[i for i in range(len(args)) if i not in fixed])
    size, first, specs = axis_size, "axis_size", []
    for i, (leaf, axis, path) in enumerate(zip(flat.leaves, places, flat.names)):
        shape = _weft.abstract(leaf)[0]
        if axis is None:
            specs.append(PartitionSpec())
            continue
        if not -len(shape) <= axis < len(shape):
            raise value_error(f"pmap: in_axes maps axis {axis} of argument {path}, which has {len(shape)} dimensions")
        places[i] = axis = axis % len(shape)
        if size is None:
            size, first = shape[axis], f"axis {axis} of argument {path}"
        elif size != shape[axis]:
            raise value_error(
                f"pmap: mapped sizes of '{flat.name}' differ: {size} ({first}) and {shape[axis]} (axis {axis} of "
                f"argument {path})"
            )
        specs.append(PartitionSpec(*[name if d == axis else None for d in range(len(shape))]))
    if size is None:
        raise value_error(f"pmap: no argument of '{flat.name}' is mapped")
    if outer := _weft.axes_of_lanes():
        first_devices(size * math.prod(_weft.axis_size([axis], "pmap") for axis in outer), devices, "pmap")
        raise not_implemented(
            f"pmap: '{call_name(fun)}' is mapped inside of another pmap, over '{outer[-1]}'; one of the two can be "
            "weft.vmap, or both one weft.shard_map over a mesh of two axes"
        )
    mesh = Mesh(np.array(first_devices(size, devices, "pmap"), dtype=object), (name,))
    if devices is not None:
        committed.moves_all()
    outs: list = []

    def on_one_device(*given, **named):
        leaves, tree = _tree.flatten((given, named))
        lanes = [leaf if axis is None else _weft.squeeze(leaf, axis) for leaf, axis in zip(leaves, places)]
        given, named = _tree.unflatten(tree, lanes)
        rest = iter(given)
        results = fun(*[fixed[i] if i in fixed else next(rest) for i in range(len(args))], **named)
        found, out_tree = _tree.flatten(results)
        outs[:] = _tree.prefix_leaves(out_axes, results, "pmap: out_axes")
        wide = []
        for leaf, axis in zip(found, outs):
            if is_float0(leaf):
                leaf = _weft.full(leaf.shape, 0, "bool")
            rank = len(_weft.abstract(leaf)[0])
            if axis is not None and not -rank - 1 <= axis <= rank:
                raise value_error(
                    f"pmap: out_axes has {axis} for a result of {rank} dimensions (without the mapped one)"
                )
            wide.append(leaf if axis is None else _weft.expand_dims(leaf, axis))
        return _tree.unflatten(out_tree, wide)

    def cut_results(t: Any) -> tuple[list, list, list]:
        out_cuts, unchecked = [], []
        for i, ((shape, _, _), axis) in enumerate(zip(_weft.result_specs(t), outs)):
            out_cuts.append([(name,) if axis is not None and d == axis % len(shape) else () for d in range(len(shape))])
            unchecked.append([name] if axis is None and name in _weft.result_varying(t, i)[0] else [])
        return out_cuts, unchecked, [[]] * len(out_cuts)

    flat.function = on_one_device
    cuts = [cuts_of(mesh, spec, _weft.abstract(leaf)[0], "pmap") for leaf, spec in zip(flat.leaves, specs)]
    results = _on_devices(flat, mesh, cuts, cut_results, "pmap", lanes=True)
    for i, (result, axis) in enumerate(zip(results, outs)):
        if not _weft.is_traced(result):
            rank = len(result.shape)
            spec = PartitionSpec(*[name if axis is not None and d == axis % rank else None for d in range(rank)])
            results[i] = put(result, NamedSharding(mesh, spec))
    return _tree.unflatten(flat.out_tree, results)


def pjit(
    f: Callable | None = None, mesh: Mesh | None = None, in_specs: Any = None, out_specs: Any = None, **options: Any
) -> Callable:
    """weft.jit for arrays that are cut over a mesh: the function is written for whole arrays, and compiled for what
    each device holds.

    Args:
        f: the function; None: pjit is used as a decorator with arguments.
        mesh: the mesh; None: that of the `with mesh:` around the call.
        in_specs: a PartitionSpec for each argument, or a tree of them (a prefix suffices); None: nothing is said.
        out_specs: likewise for the results.
        options: those of weft.jit.

    Returns: function of whole arrays; its lower(*args).comms() says what moves between devices.

    Raises:
        TypeError: shardings are given instead of specs.
        ValueError: when called: specs do not fit the mesh or the shapes, or devices cannot share a size evenly.

    Example:
        >>> mesh = weft.make_mesh((1,), ("x",))
        >>> f = weft.pjit(lambda x: x * 2, mesh, weft.P("x"), weft.P("x"))
        >>> f(wnp.arange(3.0)).sharding.spec
        PartitionSpec('x')
    """
    options = {name: tuple(given) if isinstance(given, Iterator) else given for name, given in options.items()}
    if f is None:
        return functools.partial(pjit, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **options)
    for theirs, ours in (("in_shardings", "in_specs"), ("out_shardings", "out_specs")):
        if theirs in options:
            raise type_error(
                f"pjit: got {theirs}={options[theirs]!r}; weft.pjit takes {ours}, PartitionSpecs of its mesh; "
                "weft.jit and weft.experimental.pjit.pjit take shardings"
            )
    where = check_mesh(mesh, "pjit")

    def named(specs: Any, what: str) -> Any:
        entries = check_entries(specs, is_spec, f"pjit: {what}", "PartitionSpecs")
        return _tree.map(lambda entry: None if entry.value is None else NamedSharding(where, entry.value), entries)

    return jit(f, in_shardings=named(in_specs, "in_specs"), out_shardings=named(out_specs, "out_specs"), **options)
