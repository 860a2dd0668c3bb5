"""Transforms whose results JAX gives in another form."""

from __future__ import annotations

import functools
import inspect
import types
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import weft

from .. import _weft
from .._core import tree as _tree
from .._core.errors import runtime_error, type_error, value_error
from .._core.options import keeps_calls
from .._core.shapes import FLOAT0
from .._core.tracing import is_float0
from .._sharding.meshes import chosen_mesh, current_mesh, get_abstract_mesh
from .._sharding.partitioning import OnAllDevices, axes_of_mapped, shardings_of
from .._sharding.shardings import spec_axes
from .._sharding.typed import typed_sharding
from ..pullbacks import Pullback
from . import debug_infos, jaxprs, ref_programs
from .core import get_aval, lies_on
from .device_assignment import where_types_lie
from .devices import check_platform, is_platform
from .layouts import check_has_layouts, checking_layouts, leaves_open, without_layouts
from .prefixes import check_prefix
from .stages import check_options, lying_as_asked, with_trace
from .transfers import are_guarded, between_devices


def jit(fun: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """weft.jit with JAX's options: what says how XLA compiles (compiler_options) has no effect. With device= arguments
    go there first, and results are there; a call with a backend= that is not there is an error."""
    if fun is None:
        _check_places(options)
        return functools.partial(jit, **options)
    if inspect.isgeneratorfunction(fun):
        raise type_error(f"Expected a function, got a generator function: {fun}")
    if isinstance(fun, staticmethod):
        raise type_error(f"staticmethod arguments are not supported, got {fun}")
    if isinstance(fun, types.FunctionType) and _names_axes_alone(options):
        known = _jitted(fun)
        fun = known.get(_under_set_mesh) or known.setdefault(_under_set_mesh, _under_set_mesh(fun))
    return _made(fun, options)


def _names_axes_alone(options: dict[str, Any]) -> bool:
    """Whether in_shardings or out_shardings are of the mesh around."""
    given = (options.get("in_shardings"), options.get("out_shardings"))
    is_spec = lambda x: isinstance(x, weft.PartitionSpec)
    return any(map(is_spec, _tree.leaves(given, is_leaf=is_spec)))


def _under_set_mesh(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which refuses a `with mesh:` around it: its shardings are of the mesh that set_mesh chose."""

    @functools.wraps(fun, updated=())
    def called(*args: Any, **kwargs: Any) -> Any:
        if current_mesh() is not None and chosen_mesh() is None and not get_abstract_mesh().manual_axes:
            raise runtime_error(
                "jit requires a non-empty mesh in context if you are passing `PartitionSpec`s to in_shardings or "
                "out_shardings: that of jax.set_mesh(mesh), not of `with mesh:`"
            )
        return fun(*args, **kwargs)

    return called


def _made(fun: Callable[..., Any], options: dict[str, Any]) -> Any:
    if given := options.pop("compiler_options", None):
        return _with_compiler_options(_made(fun, options), given)
    _check_places(options)
    options.pop("abstracted_axes", None)
    if (backend := options.pop("backend", None)) is not None:
        return _on_backend(_made(fun, options), backend)
    if (device := options.pop("device", None)) is not None:
        return _on_device(_made(fun, options), device, still=_static(options))
    if isinstance(options.get("in_shardings"), list):
        options["in_shardings"] = tuple(options["in_shardings"])  # one for each argument
    given = options.get("in_shardings"), options.get("out_shardings")
    by_position, puts = (places is not None for places in given)
    if (device := _one_device(options)) is not None:
        return _on_device(_made(fun, options), device, by_position, _static(options), puts, given)
    if leaves_open(options):
        donated = options.get("donate_argnums")
        numbers = (donated,) if isinstance(donated, int) else tuple(donated or ())
        return _asking(fun, options, lambda args: check_has_layouts([x for n, x in enumerate(args) if n in numbers]))
    return _jitted_with(fun, options)


def _on_backend(jitted: Any, backend: Any) -> Any:
    """What jit makes of a function, which refuses calls where its backend is not there."""
    if is_platform(backend):
        return jitted

    @functools.wraps(jitted)
    def called(*args: Any, **kwargs: Any) -> Any:
        check_platform(backend)
        return jitted(*args, **kwargs)

    return _with_programs(called, jitted)


def _asking(fun: Callable[..., Any], options: dict[str, Any], check: Callable[[tuple], None]) -> Any:
    """What jit makes of a function, which looks at its arguments before."""
    jitted = _jitted_with(fun, options)

    @functools.wraps(jitted)
    def called(*args: Any, **kwargs: Any) -> Any:
        check(args)
        return jitted(*args, **kwargs)

    return _with_programs(called, jitted)


def _with_programs(called: Any, jitted: Any, **others: Any) -> Any:
    """A function around a jitted one, that gives its programs, too."""
    for name in ("lower", "trace", "eval_shape", "clear_cache"):
        if hasattr(jitted, name):
            called.__dict__[name] = others.get(name, getattr(jitted, name))
    return called


def _jitted_with(fun: Callable[..., Any], options: dict[str, Any]) -> Any:
    fun = checking_layouts(fun, options)
    for name in ("in_shardings", "out_shardings"):
        if name in options:
            options[name] = without_layouts(options[name])
    known = _jitted(fun)
    key = tuple((name, type(value), value) for name, value in sorted(options.items()))
    try:
        found = known.get(key)
    except TypeError:  # an option without a hash
        return with_trace(weft.jit(fun, **options))
    if found is None:
        found = known[key] = with_trace(weft.jit(fun, **options))
    return found


def _static(options: dict[str, Any]) -> frozenset[Any]:
    """The numbers and names of static arguments that the options of jit name."""
    numbers, names = options.get("static_argnums"), options.get("static_argnames")
    numbers = () if numbers is None else (numbers,) if isinstance(numbers, int) else tuple(numbers)
    return frozenset([*numbers, *((names,) if isinstance(names, str) else names or ())])


def _check_places(options: dict[str, Any]) -> None:
    """Raises ValueError for options that do not go together, and for shardings that leave a dimension open."""
    device, backend = options.get("device"), options.get("backend")
    if device is not None and backend is not None:
        raise value_error(f"can't specify both a device and a backend for jit, got device={device} and {backend=}")
    for name in ("in_shardings", "out_shardings"):
        given = options.get(name)
        if given is not None and (device is not None or backend is not None):
            raise value_error(f"If backend or device is specified on jit, then {name} should not be specified.")
        for place in _tree.leaves(given, is_leaf=lambda x: isinstance(x, (weft.PartitionSpec, OnAllDevices))):
            spec = getattr(place, "spec", place)
            if isinstance(spec, weft.PartitionSpec) and weft.PartitionSpec.UNCONSTRAINED in tuple(spec):
                raise value_error(
                    f"Unconstrained dims are not allowed when passed as arguments to jit: {name} has {spec}"
                )


def _one_device(options: dict[str, Any]) -> Any:
    """The device that in_shardings and out_shardings name for all; the options then say nothing of it."""
    given = {name: options[name] for name in ("in_shardings", "out_shardings") if options.get(name) is not None}
    whole = (weft.PartitionSpec, OnAllDevices)
    places = [p for tree in given.values() for p in _tree.leaves(tree, is_leaf=lambda x: isinstance(x, whole))]
    if not places or not all(isinstance(p, weft.SingleDeviceSharding) for p in places):
        return None
    devices = {p._device for p in places}
    if len(devices) != 1:
        return None
    for name in given:
        options.pop(name)
    return devices.pop()


def _on_device(
    jitted: Any,
    device: Any,
    by_position: bool = False,
    still: Any = frozenset(),
    puts: bool = False,
    shardings: tuple[Any, Any] = (None, None),
) -> Any:
    """The function, whose arguments go to a device first, and whose results are there. `by_position`: it takes none by
    keyword. `still`: its static arguments, by number and name. `puts`: its types say where results are. `shardings`: of
    arguments and results, which are all of that device."""

    @functools.wraps(jitted)
    def called(*args: Any, **kwargs: Any) -> Any:
        if kwargs and by_position:
            raise value_error("pjit does not support kwargs when in_shardings is specified.")
        if current_mesh() is not None:
            raise value_error(
                "Mesh context manager should not be used with jit when backend or device is also specified as an "
                "argument to jit."
            )
        place = lambda x: weft.device_put(x, device) if _weft.is_operand(x) else x
        if are_guarded():
            for x in _tree.leaves((args, kwargs)):
                between_devices(x, device, explicit=False)
        check_prefix(shardings[0], tuple(x for n, x in enumerate(args) if n not in still), "jit: in_shardings")
        given = [x if n in still else _tree.map(place, x) for n, x in enumerate(args)]
        named = {name: x if name in still else _tree.map(place, x) for name, x in kwargs.items()}
        results = jitted(*given, **named)
        check_prefix(shardings[1], results, "jit: out_shardings")
        for x in _tree.leaves(results):
            own = _weft.sharding_of(x) if isinstance(x, _weft.Array) and not _weft.is_traced(x) else None
            if own is not None and own.num_devices > 1:
                raise value_error(
                    "Received incompatible devices for jitted computation. Got explicit output sharding with device "
                    f"ids [{device.id}] of jit's device=, and sharding_constraint inside jit with device ids "
                    f"{[d.id for d in own._device_list()]}"
                )
        return _tree.map(place, results)

    def lower(*args: Any, **kwargs: Any) -> Any:
        made = jitted.lower(*args, **kwargs)
        made.__dict__["_to_device"] = device
        return made

    def eval_shape(*args: Any, **kwargs: Any) -> Any:
        found = jitted.eval_shape(*args, **kwargs)
        place = weft.SingleDeviceSharding(device)
        return _tree.map(lambda x: x.update(sharding=place), found) if puts else found

    return _with_programs(called, jitted, lower=lower, eval_shape=eval_shape)


class _Jitted(dict[Any, Any]):
    """What jit has made of a function, by options."""

    def __init__(self, owner: Any = None):
        super().__init__()
        self.owner = owner

    def __reduce__(self) -> Any:
        return _Jitted, ()  # nothing of it is pickled with the function


def _jitted(fun: Any) -> dict[Any, Any]:
    """... of this function: its programs belong to it, so that jit(f)(x) in a loop traces and compiles once. It is an
    attribute of the function, and lives as long."""
    if not isinstance(fun, types.FunctionType):
        return {}
    found = fun.__dict__.get("_weft_jitted")
    if found is None or found.owner is None or found.owner() is not fun:  # functools.wraps copies attributes
        found = fun.__dict__["_weft_jitted"] = _Jitted(weakref.ref(fun))
    return found


def _with_compiler_options(jitted: Any, given: Any) -> Any:
    """The function with options of XLA's compiler, which have no effect: those that there are not are refused when it
    is compiled, and all of them inside of another function that is traced."""

    @functools.wraps(jitted)
    def called(*args: Any, **kwargs: Any) -> Any:
        if _weft.is_tracing():
            raise value_error(
                f"`compiler_options` can only be passed to top-level `jax.jit`. Got compiler_options={given} for "
                f"{getattr(jitted, '__name__', jitted)}"
            )
        check_options(given)
        return jitted(*args, **kwargs)

    def lower(*args: Any, **kwargs: Any) -> Any:
        made = jitted.lower(*args, **kwargs)
        made.__dict__["_compiler_options"] = given
        return made

    return _with_programs(called, jitted, lower=lower)


_ON_ALL_DEVICES = OnAllDevices()  # one object, so that the same options give the same function


def pjit(fun: Callable[..., Any] | None = None, /, *shardings: Any, **options: Any) -> Any:
    """jit, where out_shardings=None says that results lie on every device of the mesh around the call; in_shardings and
    out_shardings may be given by position."""
    options.update(zip(("in_shardings", "out_shardings"), shardings))
    if fun is None:
        return functools.partial(pjit, **options)
    if options.get("out_shardings", 0) is None:
        options["out_shardings"] = _ON_ALL_DEVICES
    if isinstance(fun, types.FunctionType):
        known = _jitted(fun)
        fun = known.get(_on_mesh_around) or known.setdefault(_on_mesh_around, _on_mesh_around(fun))
    return _made(fun, options)


def _on_mesh_around(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose results lie on the mesh of a `with mesh:` around the call, in whatever way: a program of
    pjit's is for its devices, as one of jit's is for those of the mesh that set_mesh chose."""

    @functools.wraps(fun, updated=())
    def called(*args: Any, **kwargs: Any) -> Any:
        results = fun(*args, **kwargs)
        mesh = current_mesh()
        if not isinstance(mesh, weft.Mesh) or chosen_mesh() is not None or mesh.explicit_axes:
            return results
        if any(_weft.axis_is_bound(axis) for axis in mesh.axis_names):
            return results

        def somewhere(x: Any) -> Any:
            if not _weft.is_operand(x):
                return x
            open_dims = [weft.PartitionSpec.UNCONSTRAINED] * weft.numpy.ndim(x)
            return weft.with_sharding_constraint(x, weft.NamedSharding(mesh, weft.PartitionSpec(*open_dims)))

        return _tree.map(somewhere, results)

    return called


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The types of a function's result: a tree of ShapeDtypeStruct. Arguments that are no arrays, as dtypes and
    functions are, are refused, as JAX does."""
    with where_types_lie((args, kwargs)):
        return lying_as_asked(fun, weft.eval_shape(fun, *args, **kwargs))


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Iterable[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
    **_: Any,
) -> Callable[..., Any]:
    """A function that traces: make_jaxpr(f)(*args) is a ClosedJaxpr, a view of Weft's program, in which each jitted
    function is an equation."""
    make = weft.make_ir(fun, static_argnums=static_argnums, axis_env=axis_env, return_shape=True)
    static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    def whole(pure: Callable[..., Any], *args: Any) -> jaxprs.ClosedJaxpr:
        with keeps_calls(True):
            return jaxprs.closed(weft.make_ir(pure, axis_env=axis_env)(*args))

    @functools.wraps(fun)
    def made(*args: Any, **kwargs: Any) -> Any:
        if not static_argnums and not return_shape and ref_programs.has_references((args, kwargs)):
            return ref_programs.traced(functools.partial(make_jaxpr, axis_env=axis_env), fun, args, kwargs)
        with keeps_calls(True):
            ir, shapes = make(*args, **kwargs)
        refs = [] if static_argnums else ref_programs.captured()
        closed = ref_programs.with_captured(whole, fun, args, kwargs, refs) if refs else jaxprs.closed(ir)
        closed.jaxpr._debug_info = debug_infos.of_program(fun, ir._in_tree, ir._out_tree, static)
        if not static_argnums:
            types = _tree.map(
                lambda x: weft.ShapeDtype(x.shape, x.dtype) if getattr(x, "ndim", 0) else x, (args, kwargs)
            )
            closed.jaxpr.uses_of_keys = lambda: weft.ir.check_key_reuse(fun, *types[0], **types[1])
        return (closed, shapes) if return_shape else closed

    for name in ("__name__", "__qualname__"):
        setattr(made, name, f"make_jaxpr({getattr(fun, name, fun)})")
    made.__module__ = "jax"
    return made


def _jaxpr_of_pullback(pullback: Any) -> Any:
    """The program of what vjp gave, of cotangents."""
    takes = getattr(getattr(pullback, "func", None), "takes", None)
    if takes is None:
        raise AttributeError("jaxpr")
    return make_jaxpr(pullback)(takes()).jaxpr


Pullback.jaxpr = property(_jaxpr_of_pullback)  # type: ignore[attr-defined]


@functools.cache
def _let_through() -> Any:
    @weft.rewrite("stop_gradient(x)")
    def let_through(x: Any) -> Any:
        return x

    return let_through


def linear_transpose(fun: Callable[..., Any], *primals: Any, reduce_axes: Sequence[Any] = ()) -> Callable[[Any], Any]:
    """weft.linear_transpose, where stop_gradient is the linear function that it computes: the identity. lineax gives
    JAX this rule."""
    del reduce_axes
    # It goes in and out of jitted functions.
    return weft.tree_util.Partial(weft.linear_transpose(_let_through()(fun), *primals))


def fwd_and_bwd(
    fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The two halves of vjp: fwd(*args) is (result, residuals), bwd(residuals, cotangent) the gradients."""
    chosen = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def fwd(*args: Any) -> Any:
        def of_chosen(*values: Any) -> Any:
            full = list(args)
            for n, value in zip(chosen, values, strict=True):
                full[n] = value
            return fun(*full)

        out = weft.vjp(of_chosen, *(args[n] for n in chosen), has_aux=has_aux)
        return (out[0], out[1], out[2]) if has_aux else out

    def bwd(pull: Any, cotangent: Any) -> Any:
        found = pull(cotangent)
        return found[0] if isinstance(argnums, int) else found

    return (weft.jit(fwd), weft.jit(bwd)) if jitted else (fwd, bwd)


def _stacked(shards: Sequence[Any], devices: Sequence[Any]) -> Any:
    """One array of what each device is to hold; those that are there already stay."""
    if len(shards) != len(devices):
        raise value_error(f"len(shards) = {len(shards)} must equal len(devices) = {len(devices)}.")
    place = weft.NamedSharding(weft.Mesh(list(devices), ("devices",)), weft.P("devices"))

    def together(*parts: Any) -> Any:
        if any(_weft.is_traced(part) for part in parts):
            return weft.device_put(weft.numpy.stack(parts), place)
        kinds = {(weft.numpy.shape(part), weft.numpy.asarray(part).dtype) for part in parts}
        if len(kinds) > 1:
            raise value_error(
                f"the shards passed to device_put_sharded must have consistent shape and dtype, got {kinds}"
            )
        there = [weft.device_put(weft.numpy.expand_dims(part, 0), device) for part, device in zip(parts, devices)]
        return weft.make_array_from_single_device_arrays((len(parts), *there[0].shape[1:]), place, there)

    return _tree.map(together, *shards)


def device_put_sharded(shards: Sequence[Any], devices: Sequence[Any]) -> Any:
    """Trees on several devices as one, whose arrays have a first axis over them."""
    return _stacked(shards, devices)


def device_put_replicated(x: Any, devices: Sequence[Any]) -> Any:
    """A tree on each of several devices, as one whose arrays have a first axis over them."""
    return _stacked([x] * len(devices), devices)


def _shape_and_dtype(aval: Any) -> tuple[Any, Any]:
    return aval.shape, aval.dtype


def _std_basis(x: Any) -> Any:
    """The rows of the identity, each as a tree like x."""
    leaves, tree = _tree.flatten(x)
    sizes = [weft.numpy.size(leaf) for leaf in leaves]
    identity = weft.numpy.eye(sum(sizes), dtype=weft.numpy.result_type(*leaves))
    parts = weft.numpy.split(identity, np.cumsum(sizes[:-1]).tolist(), axis=1)
    rows = [part.reshape(sum(sizes), *weft.numpy.shape(leaf)) for part, leaf in zip(parts, leaves)]
    return _tree.unflatten(tree, rows)


class _LinearFunction:
    """What linearize's function calls, with its program where JAX's has it: f_jvp.func.args[0]."""

    def __init__(self, function: Any, types_of_tangents: tuple[Any, ...]):
        self._function, self._tangents = function, types_of_tangents

    @property
    def fun(self) -> _LinearFunction:
        return self

    @property
    def args(self) -> tuple[Any, ...]:
        return (jaxprs.Region(self._function._fn),)

    def __call__(self, *args: Any) -> Any:
        tangents = args[len(args) - len(self._tangents) :]
        wanted, got = _tree.leaves(self._tangents), _tree.leaves(tangents)
        for aval, tangent in zip(wanted, got) if len(wanted) == len(got) else ():
            shape, dtype = (tangent.shape, FLOAT0) if is_float0(tangent) else _shape_and_dtype(get_aval(tangent))
            if tuple(shape) != tuple(aval.shape) or dtype != aval.dtype:
                raise value_error(
                    "linearized function called on tangent values inconsistent with the original primal values: a "
                    f"tangent is {dtype}{list(shape)}, expected {aval}"
                )
        return self._function(*args)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _LinearFunction) and self._function == other._function

    def __hash__(self) -> int:
        return hash(self._function)


def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """weft.linearize, whose function shows its program, and refuses tangents of other types than the primals'."""
    run: Callable[..., Any] = weft.linearize
    value, applied, *aux = run(fun, *primals, has_aux=has_aux)
    if hasattr(applied.func, "_fn"):
        types_of_tangents = tuple(_tree.map(lambda p: get_aval(p).to_tangent_aval(), p) for p in primals)
        applied = weft.tree_util.Partial(_LinearFunction(applied.func, types_of_tangents), *applied.args)
    return (value, applied, *aux)


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """weft.with_sharding_constraint, which also takes Formats, whose layouts have no effect."""
    if shardings is None:
        raise value_error("One of with_sharding_constraint arguments got sharding None which is not allowed")
    if isinstance(shardings, weft.SingleDeviceSharding) and axes_of_mapped():
        raise value_error(
            "If you are using spmd_axis_name parameter of jax.vmap, please make sure to run your jitted function "
            "inside the mesh context manager. Only NamedSharding can be used with it, got "
            f"{shardings} of type {type(shardings).__name__}"
        )
    if isinstance(shardings, weft.SingleDeviceSharding) and not _weft.is_tracing():
        return weft.device_put(x, shardings)
    if isinstance(shardings, weft.SingleDeviceSharding):  # on no mesh, as the value says from now on
        leaves, tree = _tree.flatten(x)
        lying = [_weft.with_weak([leaf], [leaf.weak_type])[0] if _weft.is_traced(leaf) else leaf for leaf in leaves]
        for leaf in filter(_weft.is_traced, lying):
            lies_on(leaf, weft.AbstractMesh((), ()))
        x = _tree.unflatten(tree, lying)
    places = without_layouts(shardings)
    _check_whose_devices(x, places)
    if _check_said(x, places):
        return x
    if _weft.is_tracing() and any(typed_sharding(leaf) for leaf in _tree.leaves(x) if _weft.is_traced(leaf)):
        leaves, tree = _tree.flatten(x)
        each = shardings_of(places, x, "with_sharding_constraint")
        places = _tree.unflatten(tree, [_besides_types(leaf, place) for leaf, place in zip(leaves, each)])
    lying = weft.with_sharding_constraint(x, places)
    if _weft.is_tracing() and isinstance(places, weft.NamedSharding):
        for leaf in _tree.leaves(lying):
            if _weft.is_traced(leaf):
                lies_on(leaf, places.mesh)
    return lying


def _check_whose_devices(x: Any, places: Any) -> None:
    """Raises TypeError or ValueError for arrays on devices that a mesh without any cannot stand for."""
    if not isinstance(places, weft.NamedSharding) or isinstance(places.mesh, weft.Mesh) or places.mesh.empty:
        return
    for leaf in _tree.leaves(x):
        if not isinstance(leaf, weft.Array) or _weft.is_traced(leaf):
            continue
        if not isinstance(leaf.sharding, weft.NamedSharding):
            raise type_error(
                "with_sharding_constraint: The sharding on the input must be a `NamedSharding` where the mesh has no "
                f"devices, got {leaf.sharding}"
            )
        if leaf.sharding.mesh.shape_tuple != places.mesh.shape_tuple:
            raise value_error(
                f"with_sharding_constraint: Mesh shape of the input {leaf.sharding.mesh.shape_tuple} does not match "
                f"the mesh shape of the target sharding {places.mesh.shape_tuple}"
            )


def _besides_types(x: Any, place: Any) -> Any:
    """How a value is to lie of which a constraint says it along axes of type Auto: along the others as its type
    says."""
    said = typed_sharding(x) if _weft.is_traced(x) else None
    if place is None or said is None or said.mesh.axis_names != place.mesh.axis_names:
        return place
    if said.mesh.are_all_axes_explicit or any(dim is weft.PartitionSpec.UNCONSTRAINED for dim in place.spec):
        return place
    auto, rank = set(said.mesh.auto_axes), len(said.spec)
    dims = [
        (*names, *(name for name in wanted if name in auto))
        for names, wanted in zip(spec_axes(said.spec), spec_axes(place.with_each_dim(rank).spec))
    ]
    return weft.NamedSharding(
        place.mesh, weft.PartitionSpec(*dims, unreduced=said.spec.unreduced, reduced=said.spec.reduced)
    )


def _check_said(x: Any, places: Any) -> bool:
    """Whether types say of all values that they lie so: where all axes of a mesh are of type Explicit, a constraint
    only looks. Raises AssertionError where they say that one lies another way."""
    values, looks = _tree.leaves(x), True
    for value, place in zip(values, shardings_of(places, x, "with_sharding_constraint")):
        said = typed_sharding(value) if _weft.is_traced(value) else None
        if place is None or said is None or not said.mesh.are_all_axes_explicit:
            looks = False
            continue
        wanted = place.with_each_dim(len(said.spec)).spec
        named = [tuple(name for name in names if name in place.mesh.typed_axes) for names in spec_axes(wanted)]
        looks = looks and said.mesh.axis_names == place.mesh.axis_names
        if said.mesh.axis_names == place.mesh.axis_names and named != spec_axes(said.spec):
            raise AssertionError(
                "`with_sharding_constraint` acts as an assert when all axes of mesh are of type `Explicit`. The array "
                f"sharding: {said.spec} did not match the sharding provided: {wanted}. Please use "
                "`jax.sharding.reshard`"
            )
    return looks
