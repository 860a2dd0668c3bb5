"""Operations of StableHLO with regions, and calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import lax
from .._core.errors import not_implemented
from .._weft import is_traced
from ..api import ensure_compile_time_eval
from ..batching import vmap
from ..control import cond, fori_loop, switch, while_loop
from ..program import parse_ir
from .comparators import direction_of, sorting_keys
from .custom_calls import CUSTOM_CALLS
from .given import constant_of, given, ints, pairs, shape_of_result
from .operations import ELEMENTWISE
from .order import greatest, least
from .syntax import Op, Region
from .windows import reduce_window, select_and_scatter

__all__ = ["REGIONS", "combination"]

_Rule = Callable[..., Any]


def combination(region: Region) -> str | None:
    """What a region does with two elements, if it is one operation: its name here, or that the second one replaces the
    first."""
    last = region.ops[-1]
    if len(last.operands) != 1 or len(region.arguments) != 2:
        return None
    if len(region.ops) == 1:
        return "replace" if last.operands[0] == region.arguments[1] else None
    first = region.ops[0]
    if len(region.ops) != 2 or first.results != last.operands:
        return None
    ours = {theirs: name for name, theirs in ELEMENTWISE.items()}.get(first.name)
    if first.operands == region.arguments or (ours != "sub" and first.operands == region.arguments[::-1]):
        return ours
    return None


def _reduce(r: Any, op: Op, values: list, env: Any) -> Any:
    n = len(values) // 2
    operands, inits = values[:n], values[n:]
    dims = ints(given(op, "dimensions"))
    region = op.regions[0]
    if n == 2 and len(dims) == 1 and (found := _argument_reduced(r, op, operands, inits, dims[0])) is not None:
        return found
    join = _vectorised(lambda x, y: tuple(r.run(region, [*x, *y], env)))
    if not dims:
        return list(join(tuple(inits), tuple(operands)))
    if 0 in (shape := shape_of_result(op)):
        return [lax.broadcast_in_dim(init, shape, ()) for init in inits]
    if n == 1:
        return lax.reduce(operands[0], inits[0], lambda x, y: join((x,), (y,))[0], dims)
    return list(lax.reduce(tuple(operands), tuple(inits), join, dims))


def _vectorised(join: Callable[..., tuple]) -> Callable[..., tuple]:
    """A function of two tuples of numbers as one of arrays of them; numbers among these stand for arrays."""

    def on_arrays(x: tuple, y: tuple) -> tuple:
        shape = max((v.shape for v in (*x, *y)), key=len)
        wide = lambda v: v if v.shape == shape else lax.broadcast_in_dim(v, shape, ())
        mapped = join
        for _ in shape:
            mapped = vmap(mapped)
        return mapped(tuple(map(wide, x)), tuple(map(wide, y)))

    return on_arrays


def _argument_reduced(r: Any, op: Op, operands: list, inits: list, dim: int) -> list | None:
    """JAX's argmax and argmin: elements and their places, of which the larger (smaller) element is kept, NaN before
    all, and of equal ones the first."""
    x, places = operands
    made = r.made_by(places)
    is_iota = made is not None and made.name == "stablehlo.iota"
    if not is_iota or int(given(made, "dim", "iota_dimension", default=-1)) != dim or x.shape[dim] == 0:
        return None
    a, i, b, j = op.regions[0].arguments
    *ops, last = op.regions[0].ops
    number: dict[str, int] = {}
    steps: list[tuple] = []
    for step in ops:
        how = [direction_of(step)] if step.name == "stablehlo.compare" else []
        steps.append((step.name.removeprefix("stablehlo."), *how, *(number.get(o, o) for o in step.operands)))
        number.update(dict.fromkeys(step.results, len(steps) - 1))
    expected = [
        ("compare", "NE", a, a),
        ("or", 0, 1),
        ("compare", "EQ", a, b),
        ("compare", "LT", i, j),
        ("and", 3, 4),
        ("or", 2, 5),
        ("select", 2, a, b),
        ("select", 6, i, j),
    ]
    kinds = {("compare", "GT", a, b): ("max", least), ("compare", "LT", a, b): ("min", greatest)}
    if not steps or steps[0] not in kinds or steps[1:] != expected or [number.get(o) for o in last.operands] != [7, 8]:
        return None
    name, first = kinds[steps[0]]
    with ensure_compile_time_eval():
        begins = [first(x.dtype), lax.full((), 0, places.dtype)]
        if any(is_traced(init) or not bool(lax.eq(init, begin)) for init, begin in zip(inits, begins)):
            return None
    best = getattr(lax, f"reduce_{name}")(x, (dim,))
    return [best, getattr(lax, f"arg{name}")(x, dim, places.dtype)]


def _map(r: Any, op: Op, values: list, env: Any) -> Any:
    mapped: Callable[..., Any] = lambda *x: r.run(op.regions[0], list(x), env)[0]
    for _ in range(values[0].ndim):
        mapped = vmap(mapped)
    return mapped(*values)


def _while(r: Any, op: Op, values: list, env: Any) -> Any:
    again, body = op.regions
    counted = _counter(op, values, env)
    if counted is not None:
        return _counted_loop(r, op, values, env, *counted)
    return list(
        while_loop(lambda c: r.run(again, list(c), env)[0], lambda c: tuple(r.run(body, list(c), env)), tuple(values))
    )


def _counter(op: Op, values: list, env: Any) -> tuple[int, int, int] | None:
    """Which carry counts the trips of a loop, from and to which number, where the text says it: scan and fori_loop as
    JAX writes them. Such a loop has a derivative that keeps as much as there are trips."""

    def number(region: Region, name: str) -> int | None:
        for step in region.ops:
            if name in step.results:
                found = constant_of(step)
                return None if found is None else int(found)
        value: Any = None if name in region.arguments else env.get(name)
        if value is None or is_traced(value) or value.shape or "int" not in str(value.dtype):
            return None
        return int(value)

    again, body = op.regions
    *steps, last = again.ops
    if not steps or steps[-1].name != "stablehlo.compare" or last.operands != steps[-1].results:
        return None
    if any(constant_of(step) is None for step in steps[:-1]):
        return None
    (counter, limit), direction = steps[-1].operands, direction_of(steps[-1])
    if direction == "GT":
        counter, limit, direction = limit, counter, "LT"
    if direction != "LT" or counter not in again.arguments:
        return None
    at, end = again.arguments.index(counter), number(again, limit)
    if end is None or is_traced(values[at]):
        return None
    *steps, last = body.ops
    for step in steps:
        if step.results == [last.operands[at]] and step.name == "stablehlo.add":
            mine = body.arguments[at]
            others = [o for o in step.operands if o != mine]
            if len(others) == 1 and number(body, others[0]) == 1:
                return at, int(values[at]), end
    return None


def _counted_loop(r: Any, op: Op, values: list, env: Any, at: int, start: int, end: int) -> list:
    dtype = values[at].dtype
    number = lambda n: lax.convert_element_type(n, dtype)

    def trip(k: Any, carry: tuple) -> tuple:
        i = lax.add(number(k), lax.full((), start, dtype))
        out = r.run(op.regions[1], [*carry[:at], i, *carry[at:]], env)
        return (*out[:at], *out[at + 1 :])

    out = fori_loop(0, max(end - start, 0), trip, (*values[:at], *values[at + 1 :]))
    return [*out[:at], lax.full((), max(start, end), dtype), *out[at:]]


def _if(r: Any, op: Op, values: list, env: Any) -> Any:
    yes, no = (lambda region=region: tuple(r.run(region, [], env)) for region in op.regions)
    return list(cond(values[0], yes, no))


def _case(r: Any, op: Op, values: list, env: Any) -> Any:
    branches = [lambda region=region: tuple(r.run(region, [], env)) for region in op.regions]
    (index,), last = values, len(branches) - 1
    if not last:
        return list(branches[0]())
    # An index out of bounds means the last branch.
    inside = lax.bitwise_and(lax.ge(index, lax.full((), 0, "int32")), lax.le(index, lax.full((), last, "int32")))
    return list(switch(lax.select(inside, index, lax.full((), last, "int32")), branches))


def _sort(r: Any, op: Op, values: list, env: Any) -> Any:
    dim = int(given(op, "dimension", default=-1))
    keys = sorting_keys(op.regions[0], values)
    if keys is None:
        raise not_implemented(
            "its comparison is not one of elements, in their order or the total order of floats, one after the other"
        )
    if all(k is v for k, v in zip(keys, values)) and len(keys) <= len(values):
        return list(lax.sort(tuple(values), dim, True, len(keys)))
    return list(lax.sort((*keys, *values), dim, True, len(keys)))[len(keys) :]


def _call(r: Any, op: Op, values: list, env: Any) -> Any:
    return r.call(given(op, "callee"), values, op)


def _composite(r: Any, op: Op, values: list, env: Any) -> Any:
    name = op.values[0] if op.values else given(op, "name")
    program = op.attributes.get("composite_attributes", {}).get("program")
    if name.startswith("weft.") and isinstance(program, str):
        out = parse_ir(program, name)(*values)
        return list(out) if isinstance(out, tuple) else out
    return r.call(given(op, "decomposition"), values, op)


def _custom_call(r: Any, op: Op, values: list, env: Any) -> Any:
    target = given(op, "callee", "call_target_name")
    for pattern, rule in CUSTOM_CALLS.items():
        if (found := pattern.fullmatch(target)) is not None:
            return rule(op, found, values)
    raise not_implemented(f"a call of '{target}', a function of another compiler's runtime")


def _window_region(r: Any, op: Op, env: Any, at: int) -> Callable[..., Any]:
    region = op.regions[at]
    return lambda *x: tuple(r.run(region, list(x), env))


def _reduce_window(r: Any, op: Op, values: list, env: Any) -> Any:
    rank = values[0].ndim
    ones = [1] * rank
    window = ints(given(op, "window_dimensions"))
    return reduce_window(
        values[: len(values) // 2],
        values[len(values) // 2 :],
        _window_region(r, op, env, 0),
        combination(op.regions[0]),
        window,
        ints(given(op, "window_strides", default=ones)),
        pairs(given(op, "padding", default=[(0, 0)] * rank), rank),
        ints(given(op, "base_dilations", default=ones)),
        ints(given(op, "window_dilations", default=ones)),
    )


def _select_and_scatter(r: Any, op: Op, values: list, env: Any) -> Any:
    x, source, init = values
    rank = x.ndim
    ones = [1] * rank
    return select_and_scatter(
        x,
        source,
        init,
        _window_region(r, op, env, 0),
        _window_region(r, op, env, 1),
        ints(given(op, "window_dimensions", default=ones)),
        ints(given(op, "window_strides", default=ones)),
        pairs(given(op, "padding", default=[(0, 0)] * rank), rank),
    )


REGIONS: dict[str, _Rule] = {
    "func.call": _call,
    "call": _call,
    "stablehlo.reduce": _reduce,
    "stablehlo.map": _map,
    "stablehlo.while": _while,
    "stablehlo.if": _if,
    "stablehlo.case": _case,
    "stablehlo.sort": _sort,
    "stablehlo.composite": _composite,
    "stablehlo.custom_call": _custom_call,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.select_and_scatter": _select_and_scatter,
}
