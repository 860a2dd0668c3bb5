"""How arguments and results of exported programs lie on devices, and these programs on the devices of a call: those of
its arguments, or of the mesh around it, under the names of the axes that the program was exported with."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import weft

from .. import _weft
from .._core import tree as _tree
from .._core.errors import value_error
from .._sharding.meshes import current_mesh
from .._sharding.program_meshes import meshes_of
from .._sharding.signatures import Signature, signature_of
from ..program import IR
from . import jaxprs


class Places(NamedTuple):
    """Where a program is exported for.

    Attributes:
        devices: how many.
        arguments, results: how each lies, on a mesh without devices; None where nobody has said it.
    """

    devices: int
    arguments: tuple[weft.NamedSharding | None, ...]
    results: tuple[weft.NamedSharding | None, ...]

    @classmethod
    def of_one_device(cls, arguments: int, results: int) -> Places:
        """Those of a program that no mesh is mentioned in."""
        return cls(1, (None,) * arguments, (None,) * results)

    @property
    def said(self) -> list[weft.NamedSharding]:
        """Those that have been said."""
        return [place for place in (*self.arguments, *self.results) if place is not None]


def _on_no_devices(place: Any) -> weft.NamedSharding | None:
    if not isinstance(place, weft.NamedSharding):
        return None
    return weft.NamedSharding(place.mesh.abstract_mesh, place.spec)


def places_of(jitted: Any, args: Sequence[Any], kwargs: dict[str, Any], counts: tuple[int, int]) -> Places:
    """Where a jitted function runs that is given such arguments; `counts`: of its arguments and results."""
    lie = [getattr(leaf, "sharding", None) for leaf in _tree.leaves((tuple(args), kwargs))]
    around = current_mesh()
    lowered = jitted.lower(*args, **kwargs) if hasattr(jitted, "lower") else None
    if lowered is None or not hasattr(lowered, "_traced"):
        return Places.of_one_device(*counts)
    meshes = [place.mesh for place in lie if isinstance(place, weft.NamedSharding)] + meshes_of(lowered._traced)
    said = signature_of(lowered, lowered._jitted)
    meshes += [place.mesh for place in (*said.arguments, *said.results) if isinstance(place, weft.NamedSharding)]
    meshes += [around] if around is not None else []
    devices = max((mesh.size for mesh in meshes), default=1)
    arguments, results = (tuple(map(_on_no_devices, places)) for places in (said.arguments, said.results))
    if (len(arguments), len(results)) != counts:
        return Places.of_one_device(*counts)._replace(devices=devices)
    return Places(devices, arguments, results)


def around_types(args: Any) -> contextlib.AbstractContextManager[Any]:
    """A mesh around the trace of a function that is given types on a mesh without devices: of the first devices."""
    for leaf in _tree.leaves(args):
        place = getattr(leaf, "sharding", None)
        if isinstance(place, weft.NamedSharding) and isinstance(place.mesh, weft.AbstractMesh) and place.mesh.size > 1:
            return weft.set_mesh(mesh_for(place.mesh, weft.devices())) if current_mesh() is None else _nothing
    return _nothing


_nothing = contextlib.nullcontext()


def mesh_for(mesh: Any, devices: Sequence[Any]) -> weft.Mesh:
    """A mesh of the same axes that has these devices."""
    shape = tuple(mesh.shape.values())
    array = np.array(list(devices)[: math.prod(shape)], dtype=object).reshape(shape)
    return weft.Mesh(array, mesh.axis_names, axis_types=mesh.axis_types)


def devices_of_call(leaves: Sequence[Any]) -> list[Any] | None:
    """The devices on which arguments lie, or those of the mesh around; None where nobody has said it."""
    for leaf in leaves:
        place = None if _weft.is_traced(leaf) else getattr(leaf, "sharding", None)
        if isinstance(place, weft.NamedSharding) and isinstance(place.mesh, weft.Mesh):
            return list(place.mesh.devices.flat)
    around = current_mesh()
    return list(around.devices.flat) if isinstance(around, weft.Mesh) else None


def check_devices(name: str, exported_for: int, leaves: Sequence[Any]) -> list[Any] | None:
    """The devices that a program runs on; None where it is traced, and nobody has said it: then those that it was
    exported on. Raises ValueError where they are not as many as it was exported for; one for one device runs on any
    number."""
    found = devices_of_call(leaves)
    if found is None and _weft.is_tracing():
        return None  # a jitted function says by itself where it does not fit
    count = 1 if found is None else len(found)
    if exported_for not in (1, count):
        raise value_error(
            f"Function '{name}' was exported for {exported_for} devices and is called in a context with {count} "
            f"devices; jax.device_put an argument on a mesh of {exported_for} devices"
        )
    return found or list(weft.devices()[:1])


def _elsewhere(place: weft.NamedSharding, devices: Sequence[Any]) -> weft.NamedSharding:
    """The same on other devices, if the mesh is one of as many."""
    mesh = mesh_for(place.mesh, devices) if place.mesh.size == len(devices) else place.mesh
    return weft.NamedSharding(mesh, place.spec)


def _evaluated(jaxpr: Any, consts: Sequence[Any], args: Sequence[Any], devices: Sequence[Any] | None) -> list[Any]:
    """The results of a program whose constraints are of other devices; for None they go."""
    values: dict[Any, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *args), strict=True))
    for eqn in jaxpr.eqns:
        operands = [jaxprs.value_of(atom, values) for atom in eqn.invars]
        inner = eqn.params["jaxpr"].jaxpr if eqn.primitive.name == "jit" and "jaxpr" in eqn.params else None
        results: Any
        if eqn.primitive.name == "sharding_constraint":
            (x,) = operands
            place = eqn.params["sharding"]
            results = [x if devices is None else weft.with_sharding_constraint(x, _elsewhere(place, devices))]
        elif inner is not None and len(inner.invars) == len(operands):
            results = _evaluated(inner, [], operands, devices)
        else:
            found = eqn.primitive.bind(*operands, **eqn.primitive.get_bind_params(eqn.params))
            results = found if isinstance(found, (list, tuple)) else [found]
        values.update(zip(eqn.outvars, results, strict=True))
    return [jaxprs.value_of(atom, values) for atom in jaxpr.outvars]


def _gives(ir: IR, attribute: str) -> bool:
    """Whether an equation of the program, or of one inside it, has the attribute."""
    return any(attribute in eqn.attributes for eqn in ir.walk())


def names_a_mesh(ir: IR) -> bool:
    """Whether an equation of the program is for the devices of a mesh."""
    return _gives(ir, "mesh")


def on_devices(ir: IR, places: Places, devices: Sequence[Any]) -> Callable[..., Any]:
    """The program as a jitted function of its arguments on these devices."""
    program = jaxprs.closed(ir)
    there = devices if places.devices > 1 else None
    as_it_is = there is not None and [d.id for d in there] == list(range(len(there))) and not _gives(ir, "devices")

    def run(*leaves: Any) -> tuple[Any, ...]:
        if as_it_is:
            return tuple(_weft.apply(ir._fn, list(leaves) + ir.constants, ir._weak))
        return tuple(_weft.with_weak(_evaluated(program.jaxpr, program.consts, leaves, there), ir._weak))

    run.__name__ = ir.__name__
    if there is None:
        return weft.jit(run)
    whole = weft.NamedSharding(weft.Mesh(np.array(devices, dtype=object), ("devices",)), weft.PartitionSpec())
    moved = lambda place: None if place is None else _elsewhere(place, devices)
    put = lambda leaf, place: leaf if _weft.is_traced(leaf) else weft.device_put(leaf, moved(place) or whole)
    jitted = weft.jit(run, out_shardings=tuple(map(moved, places.results)))

    @functools.wraps(run)
    def called(*leaves: Any) -> Any:
        return jitted(*map(put, leaves, places.arguments))

    return called


def typed(types: Sequence[Sequence[Any]], places: Places) -> tuple[list[Any], list[Any]]:
    """Types of arguments and results, which say how values lie along Explicit axes."""
    pairs = [list(zip(part, of)) for part, of in zip(types, (places.arguments, places.results))]
    says = lambda place: place is not None and place.mesh.explicit_axes
    first, second = ([aval.update(sharding=p) if says(p) else aval for aval, p in part] for part in pairs)
    return first, second


def module_text(ir: IR, places: Places, arguments: Sequence[str], results: Sequence[str]) -> str:
    """StableHLO, whose parameters and results have names: paths in the arguments and in the result."""
    from ..ir.stablehlo import text_for

    signature = Signature(list(places.arguments), list(places.results), [False] * len(places.arguments))
    text = text_for(ir, places.devices, signature if places.devices > 1 else None, as_printed=True)
    start = text.index("@main(") + len("@main(")
    end = text.index(" {\n", start)
    given, _, made = text[start:end].rpartition(") -> ")
    made = made.removeprefix("(").removesuffix(")")
    named = [f'{part} loc("{path}")' for part, path in zip(_parts(given), arguments)]
    called = [_with_attribute(part, f'jax.result_info = "result{p}"') for p, part in zip(results, _parts(made))]
    return f"{text[:start]}{', '.join(named)}) -> ({', '.join(called)}){text[end:]}"


def _parts(text: str) -> list[str]:
    """The parts between commas that stand in no brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "[{<(") - (letter in "]}>)")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def _with_attribute(text: str, attribute: str) -> str:
    return f"{text[:-1]}, {attribute}}}" if text.endswith("}") else f"{text} {{{attribute}}}"


# --- As JSON ----------------------------------------------------------------------------------------------------------


def written(place: weft.NamedSharding | None) -> Any:
    """How a value lies."""
    if place is None:
        return None
    axes = [[name, size, kind.name] for (name, size), kind in zip(place.mesh.shape.items(), place.mesh.axis_types)]
    spec = [list(dim) if isinstance(dim, tuple) else dim if isinstance(dim, str) else None for dim in place.spec]
    return {"axes": axes, "spec": spec}


def read(text: Any) -> weft.NamedSharding | None:
    """... of what `written` gives."""
    if text is None:
        return None
    names, sizes, kinds = zip(*text["axes"]) if text["axes"] else ((), (), ())
    mesh = weft.AbstractMesh(sizes, names, axis_types=tuple(weft.AxisType[kind] for kind in kinds))
    spec = weft.PartitionSpec(*(tuple(dim) if isinstance(dim, list) else dim for dim in text["spec"]))
    return weft.NamedSharding(mesh, spec)
