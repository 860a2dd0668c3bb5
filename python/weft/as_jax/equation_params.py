"""Parameters of equations: Weft's, and those of JAX's names that are read off them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.errors import key_error

# JAX's names of parameters that are functions inside of an equation -> which of its regions it is; None: all.
_REGIONS = {"jaxpr": 0, "call_jaxpr": 0, "fun_jaxpr": 0, "cond_jaxpr": 0, "body_jaxpr": 1, "branches": None}


def _is_call(params: dict[str, Any]) -> bool:
    """Whether an equation of these parameters only calls the function inside."""
    return params.keys() == {"regions"} and len(params["regions"]) == 1


class Params(dict[str, Any]):
    """Parameters of an equation with functions inside, which have JAX's names, too."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in _REGIONS or (name == "name" and _is_call(self))

    def get(self, name: str, default: Any = None) -> Any:
        """Of functions inside, too."""
        try:
            return self[name]
        except KeyError:
            return default

    def __missing__(self, name: str) -> Any:
        if name == "name" and _is_call(self):
            called: str = self["regions"][0]._fn.name
            return "<lambda>" if called == "_lambda_" else called
        if name not in _REGIONS or "regions" not in self:
            raise key_error(f"the equation has no parameter {name!r}")
        place = _REGIONS[name]
        return tuple(self["regions"]) if place is None else self["regions"][place]


class ProductParams(dict[str, Any]):
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
        raise key_error(f"the equation has no parameter {name!r}")


def _dimension_numbers(spec: str) -> Any:
    """((contracted on the left, on the right), (batched on the left, on the right)) of a spec, as "ab,bc->ac"."""
    operands, result = spec.split("->")
    left, right = operands.split(",")
    shared = [x for x in left if x in right]
    batch = sorted((x for x in shared if x in result), key=result.index)
    summed = [x for x in shared if x not in result]
    place = lambda which: (tuple(map(left.index, which)), tuple(map(right.index, which)))
    return place(summed), place(batch)
