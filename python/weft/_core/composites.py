"""Functions under names that other compilers may know: programs call them by a number, which this module gives."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from .. import _weft
from .errors import type_error, unexpected_tracer


class Composite(NamedTuple):
    """What a program says of a function that other compilers may have themselves: its name and version, and its
    attributes, by name in alphabetical order."""

    name: str
    version: int
    attributes: tuple[tuple[str, Any], ...]


_known: list[Composite] = []
_numbers: dict[Any, int] = {}
_NAMED = re.compile(r"composite_(\d+)(?:_|$)")


def _key(value: Any) -> Any:
    return (value.tobytes(), value.shape, str(value.dtype)) if isinstance(value, np.ndarray) else (type(value), value)


def function_name(name: str, version: int, attributes: dict[str, Any]) -> str:
    """What the function is called in programs: one name for all that are alike. Raises TypeError for attributes that
    are no numbers, texts, dtypes or arrays of NumPy's."""
    given = []
    for which, value in sorted(attributes.items()):
        if value is None:
            continue
        if _weft.is_traced(value):
            raise unexpected_tracer(
                f"composite: the attribute {which!r} of {name!r} is a traced array, but attributes are known when the "
                "program is written. Note: If you are passing jax arrays as attributes, use numpy arrays instead."
            )
        if not isinstance(value, (bool, int, float, str, np.dtype, np.ndarray, np.generic)):
            raise type_error(
                f"composite: the attribute {which!r} of {name!r} is of type '{type(value).__name__}'; expected a "
                "number, a text, a dtype or an array of NumPy's"
            )
        given.append((which, value))
    key = name, version, tuple((which, _key(value)) for which, value in given)
    if key not in _numbers:
        _known.append(Composite(name, version, tuple(given)))
        _numbers[key] = len(_known) - 1
    return f"composite_{_numbers[key]}_" + re.sub(r"\W", "_", name, flags=re.ASCII)


def of_function(name: str) -> Composite | None:
    """What a function of a program stands for."""
    found = _NAMED.match(name)
    return _known[int(found[1])] if found and int(found[1]) < len(_known) else None
