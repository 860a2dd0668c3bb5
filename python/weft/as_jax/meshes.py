"""jax.sharding beside weft's meshes: the mesh around the code, and what describes meshes without devices."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import weft

from .. import _weft
from .._core import tree as _tree
from .._core.errors import not_implemented, type_error, value_error
from .._sharding import meshes as _meshes
from .._sharding.shardings import cut_by, spec_axes
from .._sharding.typed import by_the_compiler, by_the_program, mesh_of, typed_sharding
from ..mesh import AbstractMesh, AxisType, Mesh, get_abstract_mesh, get_mesh, set_mesh
from ..mesh import make_mesh as _make_mesh
from ..parallel import shard_map as _shard_map
from ..parallel import smap as _smap
from ..partitioning import reshard
from . import eager_shard_map

use_mesh = set_mesh


def _check_sizes(sizes: Sequence[Any], name: str, what: str) -> None:
    for size in sizes:
        if not hasattr(size, "__index__"):
            raise type_error(f"{what}: `{name}` passed to `{what}` should be a sequence of ints, got {sizes}")


def make_mesh(
    axis_shapes: Sequence[int], axis_names: Sequence[str], axis_types: Any = None, *, devices: Any = None
) -> Mesh:
    """A mesh whose axes are of type Explicit unless axis_types say otherwise."""
    _check_sizes(axis_shapes, "axis_shapes", "make_mesh")
    names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
    types = (AxisType.Explicit,) * len(names) if axis_types is None else axis_types
    return _make_mesh(axis_shapes, names, types, devices=devices)


@contextlib.contextmanager
def use_abstract_mesh(mesh: Any) -> Iterator[Any]:
    """Inside, the axes of the mesh around have the types and names of this one. Where no mesh is around, this one is,
    without devices: of types, and of programs that are traced."""
    around = _meshes.current_mesh()
    if mesh is None or mesh.empty or isinstance(around, AbstractMesh):
        yield mesh
        return
    if around is None:
        with _meshes.mesh_around(mesh, True):
            yield mesh
        return
    if mesh.size != around.size:
        raise value_error(
            f"use_abstract_mesh cannot change the size of the mesh around: it has {around.size} devices, and {mesh} "
            f"has {mesh.size}"
        )
    # shard_map says which axes are Manual.
    if mesh.manual_axes or mesh == around.abstract_mesh or mesh == get_abstract_mesh():
        yield mesh
        return
    inside = Mesh(around.devices.reshape(mesh.axis_sizes), mesh.axis_names, mesh.axis_types)
    with _meshes.mesh_around(inside, _meshes.chosen_mesh() is not None):
        _weft.enter_typed_mesh(inside)
        failed = True
        try:
            yield mesh
            failed = False
        finally:
            _weft.leave_typed_mesh(failed)


def _check_mesh(mesh: Any, args: Any) -> None:
    """Raises ValueError for a mesh that is not the one around, and for arrays that do not say which devices a mesh
    without any stands for."""
    if not isinstance(mesh, (Mesh, AbstractMesh)) or mesh.empty:
        return
    around = get_abstract_mesh()
    if not around.empty and (_meshes.chosen_mesh() is not None or around.manual_axes):
        if mesh.abstract_mesh != around:
            raise value_error(f"shard_map: the context mesh {around} should match the mesh passed to shard_map {mesh}")
        return
    if isinstance(mesh, Mesh):
        return
    leaves = _tree.leaves(args)
    if any(_weft.is_traced(x) for x in leaves):
        return
    places = [_weft.sharding_of(x) for x in leaves if isinstance(x, weft.Array)]
    named = [place for place in places if isinstance(place, weft.NamedSharding)]
    if not named:
        raise value_error(
            "Please pass `jax.Array`s with a `NamedSharding` as input to `shard_map` when passing `AbstractMesh` to "
            "the mesh argument."
        )
    for place in named:
        if place.mesh.shape_tuple != mesh.shape_tuple:
            raise value_error(
                f"Mesh shape of the input {place.mesh.shape_tuple} does not match the mesh shape passed to shard_map "
                f"{mesh.shape_tuple}"
            )


def shard_map(
    f: Callable[..., Any] | None = None, mesh: Any = None, in_specs: Any = None, out_specs: Any = None, **options: Any
) -> Callable[..., Any]:
    """weft.shard_map, whose mesh has to be the one around, where jax.set_mesh chose one or another shard_map runs."""
    if f is None:
        return functools.partial(shard_map, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **options)

    def make(function: Callable[..., Any], takes: Any, gives: Any) -> Callable[..., Any]:
        return _shard_map(function, mesh, takes, gives, **options)

    made = eager_shard_map.shard_map(make, f, mesh, in_specs, out_specs)
    sums = [
        spec
        for spec in _tree.leaves((in_specs, out_specs), is_leaf=lambda x: isinstance(x, weft.PartitionSpec))
        if isinstance(spec, weft.PartitionSpec) and (spec.unreduced or spec.reduced)
    ]
    if sums and isinstance(mesh, (Mesh, AbstractMesh)):
        if options.get("axis_names") and set(options["axis_names"]) != set(mesh.axis_names):
            raise not_implemented(
                "unreduced and reduced axes can only be passed to in_specs when shard_map is in full manual mode: "
                f"{sums[0]} with axis_names={options['axis_names']} of {mesh}"
            )
        if not mesh.are_all_axes_explicit:
            raise value_error(
                "unreduced and reduced axes can only be used when the mesh passed to shard_map contains axis names all "
                f"of type `Explicit`: {sums[0]} on {mesh}"
            )
    if mesh is None:
        return made

    @functools.wraps(made)
    def called(*args: Any) -> Any:
        _check_mesh(mesh, args)
        return made(*args)

    return called


_INFERRED = object()


def smap(
    f: Callable[..., Any] | None = None, /, *, in_axes: Any = _INFERRED, out_axes: Any, axis_name: str
) -> Callable[..., Any]:
    """weft.smap, where in_axes may be left out for an axis of type Explicit: arguments are cut as their types say."""
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    if in_axes is not _INFERRED:
        return _smap(f, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    function = f

    @functools.wraps(function)
    def called(*args: Any) -> Any:
        mesh = get_abstract_mesh()
        if axis_name not in mesh.explicit_axes:
            raise type_error(
                f"in_axes was not specified when axis_name={axis_name!r} was of type "
                f"{dict(zip(mesh.axis_names, mesh.axis_types)).get(axis_name)}: only types of Explicit axes say it"
            )
        out_specs = cut_by(axis_name, out_axes, "out_axes")
        return shard_map(function, in_specs=None, out_specs=out_specs, axis_names={axis_name})(*args)

    return called


def host_local_array_to_global_array(
    arrays: Sequence[Any], program: Any, is_whole: bool, donated: Sequence[bool]
) -> list[Any]:
    """The arguments of a pmap, of which one process has all, as they lie on its mesh."""
    del is_whole, donated
    return [weft.device_put(x, place) for x, place in zip(arrays, program.in_global_shardings, strict=True)]


def auto_axes(
    f: Callable[..., Any] | None = None, /, *, axes: Any = None, out_sharding: Any = None, out_shardings: Any = None
) -> Callable[..., Any]:
    """The function, in which the compiler says how values lie along axes of Explicit type; its results lie as
    out_sharding says."""
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding, out_shardings=out_shardings)
    wanted = out_shardings if out_sharding is None else out_sharding

    @functools.wraps(f)
    def called(*args: Any, out_sharding: Any = wanted, **kwargs: Any) -> Any:
        mesh, manual = mesh_of((args, kwargs, out_sharding)), set(get_abstract_mesh().manual_axes)
        names = () if mesh is None else mesh.axis_names if axes is None else (axes,) if isinstance(axes, str) else axes
        if manual & set(names):
            raise not_implemented(
                "Going from `Manual` AxisType to `Auto` or `Explicit` AxisType is not allowed: inside of shard_map "
                f"over {', '.join(sorted(manual))}"
            )
        if mesh is None or not mesh.explicit_axes:
            return f(*args, **kwargs)  # the compiler says it as it is
        result = by_the_compiler(f, args, kwargs, mesh, axes)
        return result if out_sharding is None else reshard(result, out_sharding)

    return called


def explicit_axes(
    f: Callable[..., Any] | None = None, /, *, axes: Any = None, in_sharding: Any = None, in_shardings: Any = None
) -> Callable[..., Any]:
    """The function of arguments that lie as in_sharding says."""
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding, in_shardings=in_shardings)
    wanted = in_shardings if in_sharding is None else in_sharding

    @functools.wraps(f)
    def called(*args: Any, in_sharding: Any = wanted, **kwargs: Any) -> Any:
        mesh = mesh_of((args, kwargs, in_sharding))
        if in_sharding is None or mesh is None:
            return f(*args, **kwargs)
        args = weft.with_sharding_constraint(args, _open_where_unsaid(in_sharding, mesh, axes))
        return by_the_program(f, args, kwargs, mesh, in_sharding, axes)

    return called


def _open_where_unsaid(specs: Any, mesh: Mesh, axes: Any) -> Any:
    """How arguments lie along some axes of a mesh, which leave open how they do along the others."""
    names = mesh.axis_names if axes is None else (axes,) if isinstance(axes, str) else tuple(axes)
    if set(names) == set(mesh.axis_names):
        return specs

    def opened(place: Any) -> Any:
        spec = getattr(place, "spec", place)
        dims = [weft.PartitionSpec.UNCONSTRAINED if dim is None else dim for dim in spec]
        return weft.NamedSharding(mesh, weft.PartitionSpec(*dims))

    return _tree.map(opened, specs, is_leaf=lambda x: isinstance(x, (weft.PartitionSpec, weft.NamedSharding)))


def top_level_all_gather(x: Any, out_spec: Any, multi_dim: bool = False) -> Any:
    """x, which lies as out_spec says, after gathers along axes that cut it: the innermost ones of a dimension, and of
    one dimension unless `multi_dim`."""
    place = typed_sharding(x)
    if place is None and not any(spec_axes(out_spec)):
        return x
    if place is None:
        raise value_error(
            "top_level_all_gather: the types of the axes of the mesh around say nothing of how values lie"
        )
    before = [*spec_axes(place.spec), *[()] * (np.ndim(x) - len(place.spec))]
    after = [*spec_axes(out_spec), *[()] * (np.ndim(x) - len(out_spec))]
    gathered = 0
    for d, (names, kept) in enumerate(zip(before, after)):
        if not names and kept:
            raise value_error(
                f"top_level_all_gather: expected the input of {place.spec} to be unsharded nowhere that the output of "
                f"{out_spec} is cut: dimension {d}"
            )
        if names[: len(kept)] != kept:
            raise value_error(
                f"top_level_all_gather: out_spec {out_spec} maintains not the property that it is a prefix of in_spec "
                f"{place.spec} in dimension {d}"
            )
        gathered += names != kept
    if gathered > 1 and not multi_dim:
        raise value_error(
            f"top_level_all_gather: multiple dimensions cannot be all_gathered unless multi_dim=True: {place.spec} to "
            f"{out_spec}"
        )
    return reshard(x, out_spec)


class PositionalSharding:
    """JAX's older way to cut arrays; no object of this class exists."""


class _Resources:
    @property
    def physical_mesh(self) -> Any:
        return get_mesh()


class _NoResources:
    physical_mesh = AbstractMesh((), ())


class _ThreadResources:
    env = _Resources()


EMPTY_ENV = _NoResources()


thread_resources = _ThreadResources()


class ContextOfMesh:
    """jax._src.config.abstract_mesh_context_manager: tests end by it what set_mesh began."""

    @staticmethod
    def set_local(mesh: Any) -> None:
        """From now on no mesh is around, where the one that is given is empty."""
        if mesh is None or mesh.empty:
            _meshes.leave_all()


class ContextOfDevices:
    """jax._src.config.device_context: that of the mesh around."""

    @staticmethod
    def set_local(mesh: Any) -> None:
        """Nothing: ContextOfMesh says it."""
