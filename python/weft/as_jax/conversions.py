"""Conversions of dtypes in programs: their parameters under JAX's names, and those that JAX alone writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import _weft
from .equation_params import AskedParams

_GIVEN = {"weak_type": False, "sharding": None}


class ConvertParams(AskedParams):
    """Parameters of a conversion, which has JAX's besides Weft's."""

    def __init__(self, given: Mapping[str, Any]):
        super().__init__(given)

    @classmethod
    def to(cls, dtype: str) -> ConvertParams:
        """Of a conversion to a dtype."""
        return cls({"dtype": [dtype]})

    @property
    def shown(self) -> dict[str, Any]:
        """Those that a text has, as JAX writes them."""
        return {"new_dtype": self["new_dtype"].name, "weak_type": False}

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name == "new_dtype" or name in _GIVEN

    def __missing__(self, name: str) -> Any:
        if name == "new_dtype":
            (dtype,) = self["dtype"]
            return _weft.dtype(dtype)
        if name in _GIVEN:
            return _GIVEN[name]
        return super().__missing__(name)


def chooses_by_bool(name: str, atoms: list[Any]) -> bool:
    """Whether it is a choice between two branches by a boolean: JAX's are by a number, which it converts first."""
    return name == "cond" and not hasattr(atoms[0], "val") and atoms[0].aval.dtype == np.bool_
