"""One program for arrays that are cut over a mesh: constraints, and what moves between devices."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .. import _weft
from .._core import tree as _tree
from .._core import watching
from .._core.errors import not_implemented, runtime_error, value_error
from .._core.names import wraps
from .._core.tracing import flat_function, is_float0, trace_flat
from ..collectives import axes_left_alone
from . import committed
from .arrays import put
from .meshes import (
    AbstractMesh,
    AxisType,
    Mesh,
    check_mesh,
    chosen_mesh,
    current_mesh,
    get_abstract_mesh,
    mesh_axes,
    mesh_devices,
    mesh_of,
)
from .program_meshes import lies_on, meshes_of, on_one_mesh
from .results import as_said, given_through, spec_of, sums_in_parts, with_single_axes
from .shardings import (
    NamedSharding,
    PartitionSpec,
    check_entries,
    cuts_of,
    prefix_entries,
    processes_of,
    spans_processes,
    spec_axes,
    with_open_dims,
)


class _Mapped(threading.local):
    """The axes of a mesh that cut what the vmaps around map."""

    axes: frozenset[str] = frozenset()
    typed: frozenset[str] = frozenset()  # those of which types say it


_mapped = _Mapped()


@contextlib.contextmanager
def mapped_over(names: Iterable[str], typed: Iterable[str] = ()) -> Iterator[None]:
    """Inside it a vmap maps an axis that these axes of a mesh cut; types say it of the last ones."""
    before = _mapped.axes, _mapped.typed
    _mapped.axes, _mapped.typed = before[0] | frozenset(names), before[1] | frozenset(typed)
    try:
        yield
    finally:
        _mapped.axes, _mapped.typed = before


def axes_of_mapped() -> frozenset[str]:
    """The axes of a mesh that cut what the vmaps around map."""
    return _mapped.axes


def typed_axes_of_mapped() -> frozenset[str]:
    """The axes of a mesh that cut what the vmaps around map, as types say it."""
    return _mapped.typed


def over_processes(mesh: Mesh) -> bool:
    """Whether some devices of the mesh belong to other processes."""
    own, *of_devices = processes_of(mesh)
    return any(process != own for process in of_devices)


class OnAllDevices:
    """In the place of a sharding: all of it on every device of the mesh around the call; nothing is said where there is
    none. JAX's None."""


def _is_sharding(node: Any) -> bool:
    return node is None or isinstance(node, (NamedSharding, PartitionSpec, OnAllDevices))


_EXPECTED = "weft.NamedSharding, or PartitionSpecs where a mesh is around the call"


def shardings_of(shardings: Any, tree: Any, what: str) -> list[NamedSharding | None]:
    """A sharding, or None where nothing is said, for every leaf of `tree`; a prefix suffices."""
    found: list[NamedSharding | None] = []
    for sharding in prefix_entries(shardings, _is_sharding, tree, what, _EXPECTED):
        if isinstance(sharding, PartitionSpec):
            if current_mesh() is None and _tree.jax_semantics() and what.startswith(("jit", "with_sharding")):
                raise runtime_error(f"{what}: {sharding} needs a mesh, and there is none around the call")
            here = check_mesh(None, what)
            cuts_of(here, sharding, [0] * len(sharding), what, may_be_open=True)
            sharding = NamedSharding(here, sharding)
        elif isinstance(sharding, NamedSharding):
            around = current_mesh()
            if isinstance(sharding.mesh, Mesh) or (around and around.shape_tuple == sharding.mesh.shape_tuple):
                sharding = sharding.on_devices(what)
        elif isinstance(sharding, OnAllDevices):
            mesh = current_mesh()
            sharding = None if mesh is None else NamedSharding(mesh, PartitionSpec())
        found.append(sharding)
    return found


def check_shardings(shardings: Any, what: str) -> None:
    """Raises TypeError for what is no sharding."""
    check_entries(shardings, _is_sharding, what, _EXPECTED)


def constrain(x: Any, sharding: NamedSharding | None, what: str) -> Any:
    """One array that lies as the sharding says."""
    if sharding is None:
        return x
    if isinstance(sharding.mesh, AbstractMesh):  # that of the value, or of what is around the call
        sharding = on_mesh_of(x, sharding, what)
    mesh = sharding.mesh
    alone = axes_left_alone()
    if alone and all(name in alone for names in spec_axes(sharding.spec) for name in names):
        # Every device along these axes has all of it here: where types say how values lie, they say it.
        return x if _weft.typed_layout(x) is None else _said(x, sharding, what)
    for name in mesh.axis_names:
        if _weft.axis_is_bound(name):
            raise value_error(
                f"{what}: '{name}' is bound around the call (by shard_map, pmap or vmap): inside, arrays are what one "
                "device holds, and there is nothing to cut"
            )
    if what == "reshard" and not mesh.explicit_axes and _tree.jax_semantics() and lies_on(x, mesh):
        # Types say nothing, and it is they that reshard changes: what they said before is over.
        rank = len(_weft.abstract(x)[0])
        open_everywhere = with_open_dims(mesh, PartitionSpec(*[PartitionSpec.UNCONSTRAINED] * rank))
        return _said(x, open_everywhere, what) if _weft.is_traced(x) else x
    if _weft.is_traced(x) and _tree.jax_semantics():
        if what == "with_sharding_constraint":
            sharding = _where_even(sharding, _weft.abstract(x)[0])
        elif mesh.explicit_axes and mesh.auto_axes and (what == "reshard" or "out_sharding" in what):
            sharding = _of_types_alone(sharding, len(_weft.abstract(x)[0]))
    spec = sharding.spec
    cuts = cuts_of(mesh, spec, _weft.abstract(x)[0], what, may_be_open=True)
    if twice := {name for names in cuts for name in names} & _mapped.axes:
        raise value_error(
            f"{what}: {spec} names {', '.join(map(repr, sorted(twice)))}, which cuts the mapped axis of the vmap "
            "around (its spmd_axis_name): one axis of a mesh cuts one dimension"
        )
    if isinstance(x, _weft.Array) and _weft.spans(x):
        return put(x, sharding)
    open_dims = [d for d, dim in enumerate(spec) if dim is PartitionSpec.UNCONSTRAINED]
    y = _said(x, sharding, what)
    if _weft.is_traced(y):
        return y
    # Outside of a program nobody else says how the open dimensions lie: as they do.
    dims = [None if d in open_dims else dim for d, dim in enumerate(sharding.spec)]
    own = y.sharding
    if isinstance(own, NamedSharding) and own.mesh.same_place(mesh):
        taken = {name for names in cuts for name in names}
        for d in open_dims:
            names = own._names_of(d)
            if not taken & set(names):
                dims[d] = names
    if _says_each(mesh):
        dims += [None] * (y.ndim - len(dims))
    return put(y, NamedSharding(mesh, PartitionSpec(*dims, unreduced=spec.unreduced, reduced=spec.reduced)))


def _where_even(sharding: NamedSharding, shape: Iterable[Any]) -> NamedSharding:
    """The same, which says nothing of dimensions that devices cannot share evenly: JAX gives the last device less."""
    sizes = sharding.mesh.shape
    counts = [math.prod(sizes[name] for name in names) for names in spec_axes(sharding.spec)]
    odd = [isinstance(n, int) and n % count != 0 for n, count in zip(shape, counts)]
    if not any(odd) or len(counts) != len(odd):
        return sharding
    dims = [PartitionSpec.UNCONSTRAINED if is_odd else dim for is_odd, dim in zip(odd, sharding.spec)]
    sums = {"unreduced": sharding.spec.unreduced, "reduced": sharding.spec.reduced}
    return with_open_dims(sharding.mesh, PartitionSpec(*dims, **sums))


def _of_types_alone(sharding: NamedSharding, rank: int) -> NamedSharding:
    """The same, which says nothing of dimensions that no axis of type Explicit cuts: the compiler may cut them along
    the others."""
    each = sharding.with_each_dim(rank)
    dims = [PartitionSpec.UNCONSTRAINED if dim is None else dim for dim in each.spec]
    return with_open_dims(sharding.mesh, PartitionSpec(*dims, unreduced=each.spec.unreduced, reduced=each.spec.reduced))


def _said(x: Any, sharding: NamedSharding, what: str) -> Any:
    """x, whose type says that it lies so."""
    mesh, spec = sharding.mesh, sharding.spec
    cuts = cuts_of(mesh, spec, _weft.abstract(x)[0], what, may_be_open=True)
    open_dims = [d for d, dim in enumerate(spec) if dim is PartitionSpec.UNCONSTRAINED]
    sums = sorted(spec.unreduced), sorted(spec.reduced)
    return _weft.sharding_constraint(x, mesh_axes(mesh), mesh_devices(mesh), cuts, open_dims, *sums)


def on_mesh_of(x: Any, sharding: NamedSharding, what: str) -> NamedSharding:
    """A sharding on a mesh without devices on those of the value, of what is traced, or of the mesh around the call."""
    around = current_mesh()
    if isinstance(around, AbstractMesh) and around == sharding.mesh and _weft.is_tracing():
        return sharding  # a program of types alone
    typed = _weft.typed_layout(x)
    own = None if _weft.is_traced(x) else getattr(getattr(x, "sharding", None), "mesh", None)
    for mesh in (around, typed and typed[0], own, _weft.mesh_of_trace()):
        if isinstance(mesh, Mesh) and mesh.shape_tuple == sharding.mesh.shape_tuple:
            return NamedSharding(mesh, sharding.spec)
    return sharding.on_devices(what)  # raises


def _says_each(mesh: Mesh) -> bool:
    """Whether specs have an entry for each dimension: in JAX, where the types of axes say how values lie."""
    return bool(mesh.explicit_axes) and _tree.jax_semantics()


def check_said_by_types(sharding: NamedSharding | None, what: str) -> None:
    """Raises ValueError, where JAX's meaning is asked for, for a sharding that names axes of a type that says nothing
    of how values lie."""
    if sharding is None or not _tree.jax_semantics():
        return
    if sharding.__dict__.get("_memory_kind") not in (None, "device"):
        raise value_error(f"{what}: a sharding with memory_kind is not allowed here: {sharding}")
    around = get_abstract_mesh()
    if isinstance(sharding.mesh, AbstractMesh) and around.shape == sharding.mesh.shape and around != sharding.mesh:
        raise value_error(f"{what}: Context mesh {around} should match the mesh of sharding {sharding.mesh}")
    types = dict(zip(sharding.mesh.axis_names, sharding.mesh.axis_types))
    types.update(zip(around.axis_names, around.axis_types) if around.shape == sharding.mesh.shape else ())
    named = [*(name for names in spec_axes(sharding.spec) for name in names), *sharding.spec.unreduced]
    for name in [*named, *sharding.spec.reduced]:
        if types[name] is not AxisType.Explicit:
            raise value_error(
                f"{what}: PartitionSpec passed to {what.split(':')[0]} cannot contain axis names that are of type "
                f"Auto or Manual. Got {sharding.spec} with '{name}' of type {types[name]}; with_sharding_constraint "
                "says how values lie along axes of type Auto"
            )


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """x, which is to lie on a mesh as the shardings say. Inside a jitted function it decides how the program is cut
    over devices; outside it puts arrays there. It is x itself for all derivatives and for vmap, which says nothing
    about the dimension that it maps.

    Args:
        x: array, number or tree of them.
        shardings: a weft.NamedSharding, a PartitionSpec for the mesh of the `with mesh:` around the call, None (nothing
            is said), or a tree of them (a prefix of x suffices).

    Returns: tree like x.

    Raises:
        TypeError: something is no sharding.
        ValueError: a sharding does not fit an array, or devices cannot share a size evenly.

    Example:
        >>> rows = weft.NamedSharding(weft.make_mesh((1,), ("x",)), weft.P("x"))
        >>> f = weft.jit(lambda x: weft.with_sharding_constraint(x * 2, rows).sum())
        >>> f(wnp.arange(3.0))
        Array(6., dtype=float32)
    """
    leaves, tree = _tree.flatten(x)
    what = "with_sharding_constraint"
    places = shardings_of(shardings, x, what)
    return _tree.unflatten(tree, [constrain(leaf, place, what) for leaf, place in zip(leaves, places)])


def reshard(x: Any, out_shardings: Any) -> Any:
    """x, which lies as the shardings say: with_sharding_constraint under the name that it has where types say how
    values lie (weft.AxisType.Explicit).

    Args:
        x: array, number or tree of them.
        out_shardings: a weft.NamedSharding, a PartitionSpec for the mesh around the call, or a tree of them (a prefix
            of x suffices).

    Returns: tree like x.

    Raises:
        TypeError: something is no sharding.
        ValueError: a sharding does not fit an array, or devices cannot share a size evenly.

    Example:
        >>> with weft.set_mesh(weft.make_mesh((1,), ("x",))):
        ...     weft.reshard(wnp.arange(4), weft.P("x")).sharding.spec
        PartitionSpec('x')
    """
    leaves, tree = _tree.flatten(x)
    places = shardings_of(out_shardings, x, "reshard")
    for place in places:
        check_said_by_types(place, "reshard")
    return _tree.unflatten(tree, [constrain(leaf, place, "reshard") for leaf, place in zip(leaves, places)])


def with_shardings(function: Callable, in_shardings: Any, out_shardings: Any, names: list[str]) -> Callable:
    """The function with constraints on its arguments and results. `names` are those of its arguments' leaves once it is
    called."""

    @wraps(function)
    def constrained(*args, **kwargs):
        if in_shardings is not None:
            if kwargs:
                raise value_error(
                    f"jit: in_shardings says nothing of arguments by keyword; '{function.__name__}' got "
                    + ", ".join(map(repr, kwargs))
                )
            leaves, tree = _tree.flatten(args)
            places = shardings_of(in_shardings, args, "jit: in_shardings")
            args = _tree.unflatten(
                tree,
                [
                    constrain(leaf, place, f"jit: in_shardings, argument {name}")
                    for leaf, place, name in zip(leaves, places, names)
                ],
            )
        out = function(*args, **kwargs)
        if out_shardings is not None:
            leaves, tree = _tree.flatten(out)
            places = shardings_of(out_shardings, out, "jit: out_shardings")
            out = _tree.unflatten(
                tree,
                [
                    leaf if is_float0(leaf) else constrain(leaf, place, f"jit: out_shardings, result{path}")
                    for leaf, place, path in zip(leaves, places, _tree.path_texts(tree))
                ],
            )
        return out

    return constrained


def _read(traced: Any, shardings: list) -> list:
    """The shardings of arguments that decide where the program runs: not of those that nobody reads, or that a
    constraint moves (which JAX's do not), unless this process has only a part of them."""
    stay = _weft.stays(traced, _tree.jax_semantics())
    return [s if stays or spans_processes(s) else None for s, stays in zip(shardings, stay)]


def _mesh_around_programs() -> Mesh | None:
    """The mesh that set_mesh put around the call, for which a program is in JAX, whatever is in it; outside of JAX's
    meaning None."""
    around = chosen_mesh()
    return around if _tree.jax_semantics() and isinstance(around, Mesh) and not around.empty else None


def _check_places(traced: Any, shardings: list, named: list[Mesh]) -> None:
    """Raises ValueError where the program and its arguments lie on different devices, or on the same ones in another
    order."""
    places = []
    if named:
        own = "its mesh" if _weft.has_constraint(traced) else "its functions' mesh"
        what = "the mesh of a call inside" if committed.inner_says() else own
        places.append((what, [d.id for d in named[0].devices.flat]))
    moved = committed.moved_arguments(traced.fn.name)
    names = committed.names_of_arguments(traced.fn.name)
    for i, (sharding, (shape, dtype, name)) in enumerate(zip(_read(traced, shardings), _weft.param_specs(traced))):
        if sharding is not None and i not in moved:
            where = [d.id for d in sharding._device_list()]
            kind = f"{dtype}[{','.join(map(str, shape))}]"
            name = name or (names[i] if i < len(names) else f"number {i + 1}")
            places.append((f"argument {name}, {kind},", where))
    if places and (around := _mesh_around_programs()) is not None:
        places.append(("the mesh around the call", [d.id for d in around.devices.flat]))
    for what, where in places[1:]:
        first, there = places[0]
        if there != where:
            raise value_error(
                f"jit: '{traced.fn.name}' is for several sets of devices, or for one in different orders: "
                f"{first} on {there}, {what} on {where}; weft.device_put moves an array"
            )


def check_one_device(target: str, shardings: list, names: list[str]) -> None:
    """Raises NotImplementedError where an argument lies on several devices: programs for GPUs are for one."""
    for name, sharding in zip(names, shardings):
        if sharding is not None and sharding.num_devices > 1:
            raise not_implemented(
                f"lower: argument {name} lies on {sharding.num_devices} devices as {sharding!r}; a program for "
                f"{target} is for one, programs over meshes have no GPU code yet (weft.ShapeDtype(shape, dtype) stands "
                "for the whole array)"
            )


def _check_typed_meshes(traced: Any, meshes: list) -> None:
    """Raises ValueError, where JAX's meaning is asked for, for arguments whose types name axes that the mesh that
    set_mesh chose does not have."""
    around = _mesh_around_programs()
    for mesh in meshes:
        if around is None or _weft.has_constraint(traced):  # which may move it
            return
        if mesh.explicit_axes and mesh.shape != around.shape and traced.fn.eqns:
            raise value_error(
                f"jit: '{traced.fn.name}' computes with an argument that lies on {mesh.abstract_mesh}, whose axes "
                f"types name, under the mesh {around.abstract_mesh}; weft.reshard moves it"
            )


def program_mesh(traced: Any, shardings: list) -> Mesh | None:
    """The mesh that a program is for: the one that it names, or else that of the first argument that is cut. Arguments
    on another mesh of the same devices are taken as they are, whole."""
    named = meshes_of(traced)
    if len(named) > 1:
        if not _weft.has_constraint(traced) and not any(map(over_processes, named)):
            return None  # functions for several meshes: each cuts its own arguments
        raise value_error(
            f"jit: '{traced.fn.name}' has constraints or functions for several meshes: "
            + ", ".join(f"{mesh} of devices {[d.id for d in mesh.devices.flat]}" for mesh in named)
        )
    _check_places(traced, shardings, named)
    meshes = [s.mesh for s in _read(traced, shardings) if isinstance(s, NamedSharding)]
    _check_typed_meshes(traced, meshes)
    if named:  # with the types of its axes that an argument knows
        return next((mesh for mesh in meshes if mesh.same_place(named[0])), named[0])
    return next(iter(meshes), _mesh_around_programs())


def _is_same_place(one: Mesh | AbstractMesh, other: Mesh | AbstractMesh) -> bool:
    """Whether shardings on one mesh say how values lie on the other one; of types alone, if one has no devices."""
    if isinstance(one, Mesh) and isinstance(other, Mesh):
        return one.same_place(other)
    return isinstance(other, AbstractMesh) and one.shape_tuple == other.shape_tuple


def cuts_of_arguments(traced: Any, mesh: Mesh | AbstractMesh, shardings: list) -> list:
    cuts = []
    for sharding, (shape, _, _) in zip(shardings, _weft.param_specs(traced)):
        same = isinstance(sharding, NamedSharding) and _is_same_place(sharding.mesh, mesh)
        cuts.append(cuts_of(mesh, sharding.spec, shape, "jit") if same else None)
    return cuts + [None] * (len(_weft.param_specs(traced)) - len(cuts))


def given_layouts(cuts: list, shardings: list) -> list:
    """How parameters lie, as the native module takes it: axes of each dimension, those of sums in parts, and those
    along which they are reduced."""
    specs = [getattr(sharding, "spec", PartitionSpec()) for sharding in shardings]
    specs += [PartitionSpec()] * (len(cuts) - len(specs))
    return [
        None if cut is None else (cut, sorted(spec.unreduced), sorted(spec.reduced)) for cut, spec in zip(cuts, specs)
    ]


def with_what_types_say(traced: Any, shardings: list, around: Any) -> tuple[Any, int]:
    """The function, with constraints for what the types of its values say of where they lie, None where they say
    nothing; and for how many devices it is. The meshes may have none. `around`: the mesh where it was traced."""
    meshes = [sharding.mesh for sharding in shardings if isinstance(sharding, NamedSharding)] + meshes_of(traced)
    counted = [*meshes, around] if around is not None and _tree.jax_semantics() else meshes
    devices = max((mesh.size for mesh in counted), default=1)
    mesh = next((mesh for mesh in meshes if mesh.explicit_axes), None)
    if mesh is None:
        return None, devices
    specs = _weft.param_specs(traced)
    cuts = [
        cuts_of(mesh, sharding.spec, shape, "lower")
        if isinstance(sharding, NamedSharding) and sharding.mesh.shape == mesh.shape
        else None
        for sharding, (shape, _, _) in zip(shardings, specs)
    ]
    given = given_layouts(cuts + [None] * (len(specs) - len(cuts)), shardings)
    return _weft.with_typed_constraints(traced, mesh_axes(mesh), list(mesh.typed_axes), given), devices


def said_by_types(traced: Any, mesh: Mesh | AbstractMesh, cuts: list, shardings: list) -> list:
    """How the results lie where the types of the mesh's axes say it: for each the axes of its dimensions, and those
    along which it is unreduced and reduced. Raises ShardingTypeError where operands do not fit."""
    if not mesh.explicit_axes:
        return []
    specs, captures = _weft.param_specs(traced), traced.captures
    own = len(specs) - len(captures)
    held = [_weft.sharding_of(x) if isinstance(x, _weft.Array) and not _weft.is_traced(x) else None for x in captures]
    shardings = [*shardings[:own], *[None] * (own - len(shardings)), *held]
    given = given_layouts([*cuts[:own], *cuts_of_arguments(traced, mesh, shardings)[own:]], shardings)
    return _weft.explicit_cuts(traced, mesh_axes(mesh), list(mesh.typed_axes), given)


def _asked_for(traced: Any) -> list[NamedSharding | None]:
    """How each result lies where it comes right out of a constraint or shard_map."""
    return [
        None if asked is None else NamedSharding(mesh_of(asked[0], asked[1]), spec_of(asked[2]))
        for asked in _weft.asked_for(traced)
    ]


def _partition(traced: Any, shardings: list, fixed_order: bool = False, stacks: bool = False) -> tuple | None:
    """Called from C++ when a program that names a mesh, or arguments of which somebody said where they lie, is
    compiled: the program of the devices of the mesh (None where it runs as it is) and how its results lie, or None
    where nothing is said of them. With `stacks` it takes and gives the blocks that this process holds."""
    asked = _asked_for(traced)
    traced = on_one_mesh(traced)
    mesh = program_mesh(traced, shardings)
    if mesh is None:
        if any(asked):
            return None, asked
        place = next((s for s in _read(traced, shardings) if s is not None), None)
        return None if place is None else (None, [place] * len(_weft.result_specs(traced)))
    for sharding in shardings:
        if spans_processes(sharding) and not sharding.mesh.same_place(mesh):
            raise value_error(
                f"jit: an argument of '{traced.fn.name}' spans several processes on {sharding.mesh}, and the program "
                f"is for {mesh}, which is another mesh or has its devices in another order"
            )
    cuts = cuts_of_arguments(traced, mesh, shardings)
    try:
        typed = said_by_types(traced, mesh, cuts, shardings)
        said = typed if mesh.are_all_axes_explicit else []  # along the other axes the compiler decides
        parts = sums_in_parts(mesh, cuts, shardings, said) if stacks else ([], [])
        fn, _, results, _, _, told = _weft.partition(
            traced, mesh_axes(mesh), cuts, False, fixed_order, [dims for dims, _, _ in said], *parts
        )
    except NotImplementedError as error:
        if isinstance(error, _weft.ShardingTypeError):
            raise
        if any(cut is not None for cut in cuts) or _weft.has_constraint(traced) or over_processes(mesh):
            raise
        return None, asked  # functions for devices where nothing else can be cut: each cuts its own arguments
    for number, dims in told:
        if asking := watching.asking_how_it_lies.get(number):
            asking.sharding = NamedSharding(mesh, spec_of(dims, _says_each(mesh)))
    if not _weft.result_specs(traced) and not fn.eqns:
        return None, asked  # nothing comes out of it, and it does nothing
    if over_processes(mesh) or (stacks and mesh.size > 1):  # for one device there is nothing to cut
        fn = _weft.for_process(fn, processes_of(mesh))
    each = _says_each(mesh)
    if said:
        asked = [None if place is None or place.mesh.same_place(mesh) else place for place in asked]
    if typed:
        results = [with_single_axes(dims, typed[i][0], mesh) for i, dims in enumerate(results)]
    # A result that lies as its type says has an entry for each dimension, one that the compiler cut further has not.
    whole = [each and (not typed or dims == typed[i][0]) for i, dims in enumerate(results)]
    specs = [spec_of(dims, each, *sums) for dims, *sums in said] or [
        spec_of(dims, each_dim) for dims, each_dim in zip(results, whole)
    ]
    if each:
        ranks = [len(shape) for shape, _, _ in _weft.result_specs(traced)]
        asked = [
            place and (place.with_each_dim(rank) if said or each_dim else place)
            for place, rank, each_dim in zip(asked, ranks, whole)
        ]
    own = [s for s in shardings if isinstance(s, NamedSharding) and s.mesh.same_place(mesh)]
    if typed or not _tree.jax_semantics():
        own = []
    shapes = [shape for shape, _, _ in _weft.result_specs(traced)]
    return fn, [
        place or as_said(NamedSharding(mesh, spec), len(shape), given + own)
        for place, spec, shape, given in zip(asked, specs, shapes, given_through(traced, shardings, mesh))
    ]


def _placed_program(traced: Any, shardings: list, fixed_order: bool = False, stacks: bool = False) -> tuple | None:
    """_partition, of which those are told who listen."""
    pair = _partition(traced, shardings, fixed_order, stacks)
    for listener in watching.placed_listeners:
        listener(traced.fn if pair is None or pair[0] is None else pair[0], [] if pair is None else pair[1])
    return pair


def places_of_results(traced: Any, shardings: list, fixed_order: bool) -> list:
    """How the results of a program lie whose arguments lie so; None where nothing is said of one."""
    meshes = [getattr(sharding, "mesh", None) for sharding in shardings] + [current_mesh()]
    if of_types := [mesh for mesh in meshes if isinstance(mesh, AbstractMesh)]:
        return _places_on_types(traced, shardings, of_types[0])
    pair = _partition(traced, shardings, fixed_order)
    return [None] * len(_weft.result_specs(traced)) if pair is None else pair[1]


def _places_on_types(traced: Any, shardings: list, mesh: AbstractMesh) -> list:
    """How the results of a program lie on a mesh without devices, where types say it."""
    if not mesh.explicit_axes or not _tree.jax_semantics():
        return [None] * len(_weft.result_specs(traced))
    typed = said_by_types(traced, mesh, cuts_of_arguments(traced, mesh, shardings), shardings)
    return [NamedSharding(mesh, spec_of(dims, True, *sums)) for dims, *sums in typed]


def lying_as_in_program(fn: Any, operands: list, results: list) -> list:
    """The results of a program that ran operation by operation, put where they would lie if it were compiled."""
    if any(map(_weft.is_traced, [*operands, *results])):
        return results
    traced = trace_flat(flat_function(lambda *xs: _weft.apply(fn, list(xs), []), tuple(operands), {}), "vmap", False)
    own = [_weft.sharding_of(x) if isinstance(x, _weft.Array) else None for x in operands]
    places = places_of_results(traced, own, False)
    return [x if place is None else put(x, place) for x, place in zip(results, places)]


def partitioned_text(traced: Any, shardings: list, fixed_order: bool = False) -> str:
    """The program of the devices as text."""
    pair = _partition(traced, shardings, fixed_order)
    if pair is None or pair[0] is None:
        raise value_error(
            "stage: the program is for one device: no argument is cut over a mesh, and no constraint names one"
        )
    return pair[0].text()


_weft.set_partition_hook(_placed_program)
