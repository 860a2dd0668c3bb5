"""By what a sort of StableHLO compares: the region that says so, taken for keys."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from .. import _weft, lax
from .order import total_order
from .syntax import Dense, Op, Region

__all__ = ["direction_of", "sorting_keys"]


class _Key(NamedTuple):
    """An element of operand `at`: the one that is to come first if `first`. `part`: of a complex number. `canonical`: 1
    if its zeros have been made one, 2 if its NaNs have, 3 if both."""

    at: int
    first: bool
    part: str = ""
    canonical: int = 0


class _Test(NamedTuple):
    """Whether an element is zero, or NaN."""

    key: _Key
    nan: bool


class _Order(NamedTuple):
    """What is compared, one after the other: (operand, part, how, downwards)."""

    by: tuple[tuple[int, str, str, bool], ...]


class _Equal(NamedTuple):
    by: tuple[int, str, str]


class _Tie(NamedTuple):
    """Where the first keys are equal, the order of the others."""

    equal: _Equal
    then: _Order


def sorting_keys(region: Region, values: list) -> list | None:
    """Arrays that, ascending, order elements as the region does. None: it is no such comparison."""
    known: dict[str, Any] = {}
    for i, name in enumerate(region.arguments):
        known[name] = _Key(i // 2, i % 2 == 0)
    for op in region.ops[:-1]:
        found = _meaning(op, known)
        if found is None or len(op.results) != 1:
            return None
        known[op.results[0]] = found
    order = known.get(region.ops[-1].operands[0])
    if not isinstance(order, _Order):
        return None
    keys = []
    for at, part, how, down in order.by:
        x = values[at]
        if part:
            x = lax.real(x) if part == "real" else lax.imag(x)
        if how == "total":
            x = total_order(x)
        if down:
            kind = _weft.dtype_kind(x.dtype)
            x = lax.neg(x) if kind == "float" else lax.bitwise_not(x)
        keys.append(x)
    return keys


def _meaning(op: Op, known: dict[str, Any]) -> Any:
    name = op.name.removeprefix("stablehlo.")
    given = [known.get(o) for o in op.operands]
    if name == "constant":
        value = op.values[0] if op.values else op.attributes.get("value")
        return value.content.strip() if isinstance(value, Dense) else None
    if name in ("real", "imag") and isinstance(given[0], _Key):
        return given[0]._replace(part=name)
    if name == "select":
        test, one, key = given
        if isinstance(test, _Test) and isinstance(key, _Key) and isinstance(one, str) and key[:3] == test.key[:3]:
            return key._replace(canonical=key.canonical | (2 if test.nan else 1))
        return None
    if name == "compare":
        return _comparison(op, *given)
    if name == "and":
        for x, y in (given, given[::-1]):
            if isinstance(x, _Equal) and isinstance(y, _Order):
                return _Tie(x, y)
        return None
    if name == "or":
        for x, y in (given, given[::-1]):
            if isinstance(x, _Order) and isinstance(y, _Tie) and len(x.by) == 1 and x.by[0][:3] == y.equal.by:
                return _Order((*x.by, *y.then.by))
    return None


def direction_of(op: Op) -> str:
    """EQ, LT ... of a comparison."""
    return op.values[0] if op.values else str(op.attributes.get("comparison_direction"))


def _comparison(op: Op, x: Any, y: Any) -> Any:
    direction = direction_of(op)
    kind = op.values[1] if len(op.values) > 1 else str(op.attributes.get("compare_type", ""))
    if not isinstance(x, _Key):
        return None
    if isinstance(y, str) or x == y:  # with zero, or with itself
        if x == y:
            return _Test(x, True) if direction == "NE" else None
        return _Test(x, False) if direction == "EQ" and re.fullmatch(r"[-+]?0*\.?0*(?:e[-+]?\d+)?", y) else None
    if not isinstance(y, _Key) or x.first == y.first or (x.at, x.part, x.canonical) != (y.at, y.part, y.canonical):
        return None
    # The total order of canonical floats is ours of floats.
    how = "total" if kind == "TOTALORDER" and x.canonical != 3 else ""
    if direction == "EQ":
        return _Equal((x.at, x.part, how))
    if direction not in ("LT", "GT"):
        return None
    return _Order(((x.at, x.part, how, (direction == "GT") == x.first),))
