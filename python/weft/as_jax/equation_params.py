"""Parameters of equations under the names that JAX has for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import weft

from .. import _weft
from .._core.errors import key_error
from .._sharding.meshes import chosen_mesh, mesh_of
from .._sharding.shardings import with_open_dims

# JAX's names of parameters that are functions inside of an equation -> which of its regions it is; None: all.
_REGIONS = {"jaxpr": 0, "call_jaxpr": 0, "fun_jaxpr": 0, "cond_jaxpr": 0, "body_jaxpr": 1, "branches": None}


def _is_call(params: dict[str, Any]) -> bool:
    """Whether an equation of these parameters only calls the function inside."""
    return params.keys() == {"regions"} and len(params["regions"]) == 1


# Of spmd (shard_map) and of constraints: JAX's name -> Weft's.
_PLACES = {"in_specs": "in_shardings", "out_specs": "out_shardings"}


def specs_in(text: str) -> tuple[weft.PartitionSpec, ...]:
    """shardings((x,-),(-)): how each of some arrays is cut."""
    found = []
    for cuts in re.findall(r"\(([^()]*)\)", text.partition("shardings")[2]):
        dims = [tuple(re.findall(r"[A-Za-z_]\w*", names)) for names in cuts.split(",")]
        while dims and not dims[-1]:
            dims.pop()
        found.append(weft.PartitionSpec(*dims))
    return tuple(found)


class AskedParams(dict[str, Any]):
    """Parameters of an equation, which can be asked for under more names than they have."""

    def get(self, name: str, default: Any = None) -> Any:
        """The value under any of these names."""
        try:
            return self[name]
        except KeyError:
            return default

    def __missing__(self, name: str) -> Any:
        raise key_error(f"the equation has no parameter {name!r}")


class Params(AskedParams):
    """Parameters of an equation under Weft's names, which can be asked for under JAX's: functions inside, meshes and
    how values lie. Taken one by one (items, **) they are Weft's."""

    def __contains__(self, name: object) -> bool:
        if super().__contains__(name) or (name == "name" and _is_call(self)):
            return True
        if name in _REGIONS:
            return super().__contains__("regions")
        if name == "unroll":
            return super().__contains__("length")
        return name in _PLACES and super().__contains__(_PLACES[str(name)])

    def __getitem__(self, name: str) -> Any:
        if name == "length" and super().__contains__("length"):
            (length,) = super().__getitem__("length")
            return int(length) if str(length).isdigit() else _weft.Dim(str(length))
        if name == "mesh" and super().__contains__("mesh"):
            return self._mesh()
        if name == "sharding" and super().__contains__("open"):
            return self._sharding()
        return super().__getitem__(name)

    def _mesh(self) -> Any:
        axes = [(name, int(size)) for name, size in re.findall(r"(\w+)=(\d+)", str(super().__getitem__("mesh")))]
        return mesh_of(axes, super().get("devices", ()))

    def _sharding(self) -> weft.NamedSharding:
        """Of a constraint; the mesh has no devices where set_mesh has put it around."""
        mesh, around = self._mesh(), chosen_mesh()
        (spec,) = specs_in(str(super().__getitem__("sharding")))
        dims = [*spec, *[None] * (max(self["unconstrained_dims"], default=-1) + 1 - len(spec))]
        for d in self["unconstrained_dims"]:
            dims[d] = weft.PartitionSpec.UNCONSTRAINED
        return with_open_dims(mesh if around is None else mesh.abstract_mesh, weft.PartitionSpec(*dims))

    def __missing__(self, name: str) -> Any:
        if name == "name" and _is_call(self):
            called: str = self["regions"][0]._fn.name
            return "<lambda>" if called == "_lambda_" else called
        if name in _PLACES and super().__contains__(_PLACES[name]):
            return specs_in(str(super().__getitem__(_PLACES[name])))
        if name == "unconstrained_dims" and super().__contains__("open"):
            return frozenset(super().__getitem__("open"))
        if name == "unroll" and super().__contains__("length"):
            return 1
        if name not in _REGIONS or not super().__contains__("regions"):
            raise key_error(f"the equation has no parameter {name!r}")
        place = _REGIONS[name]
        return tuple(self["regions"]) if place is None else self["regions"][place]


class ProductParams(AskedParams):
    """Parameters of a dot_general, which has JAX's besides Weft's."""

    def __init__(self, given: Mapping[str, Any], dtype: Any, precision: Any):
        super().__init__(given)
        self._dtype = dtype
        if precision is not None:
            self["precision"] = precision

    def __missing__(self, name: str) -> Any:
        if name == "precision":
            return None
        if name == "preferred_element_type":
            return self._dtype
        if name == "dimension_numbers":
            return _dimension_numbers(self["spec"])
        return super().__missing__(name)


def _dimension_numbers(spec: str) -> Any:
    """((contracted on the left, on the right), (batched on the left, on the right)) of a spec, as "ab,bc->ac"."""
    operands, result = spec.split("->")
    left, right = operands.split(",")
    shared = [x for x in left if x in right]
    batch = sorted((x for x in shared if x in result), key=result.index)
    summed = [x for x in shared if x not in result]
    place = lambda which: (tuple(map(left.index, which)), tuple(map(right.index, which)))
    return place(summed), place(batch)
