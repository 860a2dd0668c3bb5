"""What each operation of StableHLO is in Weft. A rule takes the reader, the operation, its operands, and what regions of
it see of what is around them; it returns a value, or a list of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _weft, lax
from .._core.errors import not_implemented, value_error
from ..batching import vmap
from ..control import cond, switch, while_loop
from ..program import parse_ir
from .bits import same_bits
from .comparators import sorting_keys
from .complex_numbers import COMPLEX
from .custom_calls import CUSTOM_CALLS
from .operations import COMPARISONS, ELEMENTWISE
from .syntax import Dense, Op, Region
from .total_order import total_order
from .types import TensorType, array_of
from .windows import reduce_window, select_and_scatter

__all__ = ["RULES"]

_Rule = Callable[..., Any]

_BOOLEAN = {"add": "or", "mul": "and", "max": "or", "min": "and"}


def _elementwise(name: str) -> _Rule:
    def rule(r: Any, op: Op, values: list, env: Any) -> Any:
        kind = _weft.dtype_kind(values[0].dtype)
        if kind == "bool" and name in _BOOLEAN:
            return _bind(_BOOLEAN[name], values)
        if kind == "complex" and name in COMPLEX:
            return COMPLEX[name](*values)
        if kind != "complex" and name in ("real", "imag"):
            return values[0] if name == "real" else lax.full(values[0].shape, 0, values[0].dtype)
        return _bind(name, values)

    return rule


def _bind(name: str, values: Sequence[Any], **attributes: Any) -> Any:
    return _weft.bind(name, list(values), attributes)[0]


def _result(op: Op, at: int = 0) -> TensorType:
    found = op.types[at] if at < len(op.types) else None
    if not isinstance(found, TensorType):
        raise value_error(f"its result has no type that is an array's: {found}")
    if None in found.shape:
        raise not_implemented(f"a result of unknown size, {found}")
    return found


def _ints(value: Any) -> list[int]:
    """The value of an attribute that is a list of integers, as `array<i64: 1>`, `[1]` or `dense<1> : tensor<1xi64>`."""
    if isinstance(value, Dense):
        return [int(n) for n in np.asarray(array_of(value.content, value.type, "attribute")).ravel()]
    return [int(n) for n in value]


def _given(op: Op, *names: str, default: Any = None) -> Any:
    for name in names:
        if name in op.attributes:
            return op.attributes[name]
    if default is None:
        raise value_error(f"the attribute '{names[0]}' is missing")
    return default


def _known(value: Any, what: str) -> list[int]:
    if _weft.is_traced(value):
        raise not_implemented(f"{what} must be a constant: sizes of arrays follow from it")
    return [int(n) for n in np.asarray(value).ravel()]


def _word(value: Any) -> str:
    return str(value).split()[-1].strip("<>")


def _constant(r: Any, op: Op, values: list, env: Any) -> Any:
    value = op.values[0] if op.values else _given(op, "value")
    if not isinstance(value, Dense) or not isinstance(value.type, TensorType):
        raise not_implemented("only arrays, dense<...>, are read")
    return array_of(value.content, value.type, "constant")


# Element by element.


def _compare(r: Any, op: Op, values: list, env: Any) -> Any:
    direction = op.values[0] if op.values else _word(_given(op, "comparison_direction"))
    kind = op.values[1] if len(op.values) > 1 else _word(op.attributes.get("compare_type", "FLOAT"))
    if kind == "TOTALORDER":
        values = [total_order(x) for x in values]
    names = {theirs: ours for ours, theirs in COMPARISONS.items()}
    if values[0].dtype == "bool" and direction not in ("EQ", "NE"):
        values = [lax.convert_element_type(x, "uint8") for x in values]
    return _bind(names[direction], values)


def _convert(r: Any, op: Op, values: list, env: Any) -> Any:
    (x,), to = values, _result(op).dtype
    if str(x.dtype).startswith("complex") and not to.startswith("complex"):
        x = lax.real(x)
    return _weft.astype(x, to)


def _clamp(r: Any, op: Op, values: list, env: Any) -> Any:
    low, x, high = values
    wide = [v if v.shape == x.shape else lax.broadcast_in_dim(v, x.shape, ()) for v in (low, high)]
    return _bind("clamp", [wide[0], x, wide[1]])


def _select(r: Any, op: Op, values: list, env: Any) -> Any:
    chosen, yes, no = values
    if chosen.shape != yes.shape:
        chosen = lax.broadcast_in_dim(chosen, yes.shape, ())
    return _bind("select", [chosen, yes, no])


def _precision(r: Any, op: Op, values: list, env: Any) -> Any:
    if "format" in op.attributes:
        exponent, mantissa = (int(n) for n in op.attributes["format"][1:].split("m"))
    else:
        exponent, mantissa = _given(op, "exponent_bits"), _given(op, "mantissa_bits", default=0)
    return lax.reduce_precision(values[0], exponent, mantissa)


def _polygamma(r: Any, op: Op, values: list, env: Any) -> Any:
    order = values[0]
    if not _weft.is_traced(order) and set(np.asarray(order).ravel().tolist()) == {1.0}:
        return lax.trigamma(values[1])
    return lax.polygamma(*values)


# Shapes.


def _iota(r: Any, op: Op, values: list, env: Any) -> Any:
    to, dim = _result(op), int(_given(op, "dim", "iota_dimension", default=0))
    return lax.broadcasted_iota(to.dtype, to.shape, dim)


def _broadcast_in_dim(r: Any, op: Op, values: list, env: Any) -> Any:
    return lax.broadcast_in_dim(values[0], _result(op).shape, _ints(_given(op, "dims", "broadcast_dimensions")))


def _slice(r: Any, op: Op, values: list, env: Any) -> Any:
    (x,) = values
    if op.values:
        parts = [[int(n) for n in part.split(":")] for part in op.values[0].split(",") if part.strip()]
        start, limit = [p[0] for p in parts], [p[1] for p in parts]
        strides = [p[2] if len(p) > 2 else 1 for p in parts]
    else:
        start, limit, strides = (_ints(_given(op, n)) for n in ("start_indices", "limit_indices", "strides"))
    return _bind("slice", [x], start=start, limit=limit, strides=strides)


def _pad(r: Any, op: Op, values: list, env: Any) -> Any:
    low = _ints(_given(op, "low", "edge_padding_low"))
    high = _ints(_given(op, "high", "edge_padding_high"))
    interior = _ints(_given(op, "interior", "interior_padding"))
    return lax.pad(values[0], values[1], list(zip(low, high, interior)))


def _dynamic_pad(r: Any, op: Op, values: list, env: Any) -> Any:
    config = [_known(v, "padding") for v in values[2:]]
    return lax.pad(values[0], values[1], list(zip(*config)))


def _concatenate(r: Any, op: Op, values: list, env: Any) -> Any:
    return lax.concatenate(values, int(_given(op, "dim", "dimension")))


def _dynamic_slice(r: Any, op: Op, values: list, env: Any) -> Any:
    x, *starts = values
    return lax.dynamic_slice(x, starts, _ints(_given(op, "sizes", "slice_sizes")), allow_negative_indices=False)


def _dynamic_update_slice(r: Any, op: Op, values: list, env: Any) -> Any:
    x, update, *starts = values
    return lax.dynamic_update_slice(x, update, starts, allow_negative_indices=False)


def _real_dynamic_slice(r: Any, op: Op, values: list, env: Any) -> Any:
    start, limit, strides = (_known(v, "a slice") for v in values[1:])
    return _bind("slice", [values[0]], start=start, limit=limit, strides=strides)


def _size(r: Any, op: Op, values: list, env: Any) -> Any:
    return lax.full((), values[0].shape[int(_given(op, "dim", "dimension"))], "int32")


# Products, and what moves windows.


def _pair(op: Op, short: str, long: str, numbers: dict) -> list[list[int]]:
    found = op.attributes.get(short)
    if found is not None:
        return [_ints(found[0]), _ints(found[1])]
    return [_ints(numbers.get(f"{side}_{long}", [])) for side in ("lhs", "rhs")]


def _dot_general(r: Any, op: Op, values: list, env: Any) -> Any:
    numbers = op.attributes.get("dot_dimension_numbers", {})
    summed = _pair(op, "contracting_dims", "contracting_dimensions", numbers)
    batch = _pair(op, "batching_dims", "batching_dimensions", numbers)
    to = _result(op).dtype
    x, y = values
    if x.dtype != y.dtype:
        x, y = (_weft.astype(v, to) for v in (x, y))
    if x.dtype == "bool":
        x, y = (_weft.astype(v, "int32") for v in (x, y))
        return _weft.astype(lax.dot_general(x, y, (summed, batch)), to)
    return lax.dot_general(x, y, (summed, batch), preferred_element_type=None if str(x.dtype) == to else to)


def _dot(r: Any, op: Op, values: list, env: Any) -> Any:
    return lax.dot(*values, preferred_element_type=_result(op).dtype)


def _numbers_of_convolution(text: str) -> Any:
    """`[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]`: where the dimensions of x [n, c, ...], w [o, i, ...] and the result
    are."""
    terms = [[p.strip() for p in part.split(",")] for part in text.replace("->", "x").replace("[", "").replace("]", "").split("x")]
    spatial = [str(i) for i in range(len(terms[0]) - 2)]
    return lax.ConvDimensionNumbers(
        tuple(terms[0].index(c) for c in ["b", "f", *spatial]),
        tuple(terms[1].index(c) for c in ["o", "i", *spatial]),
        tuple(terms[2].index(c) for c in ["b", "f", *spatial]),
    )


def _pairs(value: Any, rank: int) -> list[tuple[int, int]]:
    flat = _ints(value) if isinstance(value, Dense) else [int(n) for pair in value for n in pair]
    if len(flat) == 1:
        flat = flat * (2 * rank)
    return list(zip(flat[::2], flat[1::2]))


def _convolution(r: Any, op: Op, values: list, env: Any) -> Any:
    x, w = values[:2]
    numbers = _numbers_of_convolution(_given(op, "dimension_numbers"))
    n = x.ndim - 2
    ones = [1] * n
    if len(values) > 2:  # dynamic_conv
        flat = _known(values[2], "padding")
        padding = list(zip(flat[::2], flat[1::2]))
    else:
        padding = _pairs(_given(op, "padding", default=[(0, 0)] * n), n)
    turned = op.attributes.get("window_reversal", [])
    turned = [int(i) for i in _ints(turned)] if not isinstance(turned, bool) else [turned] * n
    if any(turned):
        w = lax.rev(w, [d for d, yes in zip(numbers.rhs_spec[2:], turned) if yes])
    to = _result(op).dtype
    return lax.conv_general_dilated(
        x,
        w,
        _ints(_given(op, "window_strides", default=ones)),
        padding,
        _ints(_given(op, "lhs_dilation", default=ones)),
        _ints(_given(op, "rhs_dilation", default=ones)),
        numbers,
        int(_given(op, "feature_group_count", default=1)),
        int(_given(op, "batch_group_count", default=1)),
        preferred_element_type=None if str(x.dtype) == to else to,
    )


def _index_vectors(indices: Any, dim: int, batch: Sequence[int]) -> tuple[Any, list[int]]:
    """Indices whose vectors are the last dimension, and where their batch dimensions are then."""
    if dim == indices.ndim:
        return lax.expand_dims(indices, (dim,)), list(batch)
    order = [d for d in range(indices.ndim) if d != dim]
    return lax.transpose(indices, [*order, dim]), [order.index(d) for d in batch]


def _gather(r: Any, op: Op, values: list, env: Any) -> Any:
    x, indices = values[:2]
    numbers = _given(op, "dimension_numbers")
    of = lambda name: [int(n) for n in numbers.get(name, [])]
    indices, batch = _index_vectors(indices, numbers.get("index_vector_dim", 0), of("start_indices_batching_dims"))
    kinds = lax.GatherDimensionNumbers(
        of("offset_dims"), of("collapsed_slice_dims"), of("start_index_map"), of("operand_batching_dims"), batch
    )
    sizes = _ints(_given(op, "slice_sizes")) if len(values) == 2 else _known(values[2], "slice_sizes")
    return lax.gather(x, indices, kinds, sizes, mode="clip")


_SCATTERS: dict[str, Callable[..., Any]] = {
    "add": lax.scatter_add,
    "mul": lax.scatter_mul,
    "max": lax.scatter_max,
    "min": lax.scatter_min,
    "sub": lax.scatter_sub,
    "replace": lax.scatter,
}


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


def _scatter(r: Any, op: Op, values: list, env: Any) -> Any:
    if len(values) != 3:
        raise not_implemented("a scatter of several arrays at once")
    x, indices, updates = values
    name = combination(op.regions[0])
    if x.dtype == "bool":
        name = {"or": "max", "and": "min", "add": "max", "mul": "min"}.get(name or "", name)
    if name not in _SCATTERS:
        raise not_implemented(f"it combines elements by something else than {', '.join(_SCATTERS)}")
    numbers = _given(op, "scatter_dimension_numbers")
    of = lambda key: [int(n) for n in numbers.get(key, [])]
    indices, batch = _index_vectors(indices, numbers.get("index_vector_dim", 0), of("scatter_indices_batching_dims"))
    kinds = lax.ScatterDimensionNumbers(
        of("update_window_dims"),
        of("inserted_window_dims"),
        of("scatter_dims_to_operand_dims"),
        of("input_batching_dims"),
        batch,
    )
    unique = bool(op.attributes.get("unique_indices", False))
    if x.dtype == "bool" and name != "replace":
        x, updates = (_weft.astype(v, "uint8") for v in (x, updates))
        return _weft.astype(_SCATTERS[name](x, indices, updates, kinds, unique_indices=unique), "bool")
    return _SCATTERS[name](x, indices, updates, kinds, unique_indices=unique)


# Regions.


def _reduce(r: Any, op: Op, values: list, env: Any) -> Any:
    n = len(values) // 2
    operands, inits = values[:n], values[n:]
    dims = _ints(_given(op, "dimensions"))
    region = op.regions[0]
    if n == 2 and len(dims) == 1 and (found := _argument_reduced(r, op, operands, dims[0])) is not None:
        return found
    join = _vectorised(lambda x, y: tuple(r.run(region, [*x, *y], env)))
    if not dims:
        return list(join(tuple(inits), tuple(operands)))
    if 0 in (shape := _result(op).shape):
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


def _argument_reduced(r: Any, op: Op, operands: list, dim: int) -> list | None:
    """JAX's argmax and argmin: elements and their places, of which the larger (smaller) element is kept, NaN before all,
    and of equal ones the first."""
    places = r.made_by(operands[1])
    if places is None or places.name != "stablehlo.iota" or int(_given(places, "dim", "iota_dimension", default=-1)) != dim:
        return None
    steps = [(o.name.removeprefix("stablehlo."), *o.values[:1]) for o in op.regions[0].ops[:-1]]
    kinds = {("compare", "GT"): "argmax", ("compare", "LT"): "argmin"}
    floats = [("compare", "NE"), ("or",), ("compare", "EQ"), ("compare", "LT"), ("and",), ("or",), ("select",), ("select",)]
    name = kinds.get(steps[0]) if steps else None
    names = [o.operands for o in op.regions[0].ops[:-1]]
    if name is None or steps[1:] != floats or operands[0].shape[dim] == 0:
        return None
    a, i, b, j = op.regions[0].arguments
    if names[0] != [a, b] or names[1] != [a, a] or names[3] != [a, b] or names[4] != [i, j]:
        return None
    result = (lax.argmax if name == "argmax" else lax.argmin)(operands[0], dim, operands[1].dtype)
    best = (lax.reduce_max if name == "argmax" else lax.reduce_min)(operands[0], (dim,))
    return [best, result]


def _map(r: Any, op: Op, values: list, env: Any) -> Any:
    mapped: Callable[..., Any] = lambda *x: r.run(op.regions[0], list(x), env)[0]
    for _ in range(values[0].ndim):
        mapped = vmap(mapped)
    return mapped(*values)


def _while(r: Any, op: Op, values: list, env: Any) -> Any:
    again, body = op.regions
    return list(
        while_loop(
            lambda c: r.run(again, list(c), env)[0], lambda c: tuple(r.run(body, list(c), env)), tuple(values)
        )
    )


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
    dim = int(_given(op, "dimension", default=-1))
    keys = sorting_keys(op.regions[0], values)
    if keys is None:
        raise not_implemented(
            "its comparison is not one of elements, in their order or the total order of floats, one after the other"
        )
    if all(k is v for k, v in zip(keys, values)) and len(keys) <= len(values):
        return list(lax.sort(tuple(values), dim, True, len(keys)))
    return list(lax.sort((*keys, *values), dim, True, len(keys)))[len(keys) :]


def _call(r: Any, op: Op, values: list, env: Any) -> Any:
    return r.call(_given(op, "callee"), values, op)


def _composite(r: Any, op: Op, values: list, env: Any) -> Any:
    name = op.values[0] if op.values else _given(op, "name")
    program = op.attributes.get("composite_attributes", {}).get("program")
    if name.startswith("weft.") and isinstance(program, str):
        out = parse_ir(program, name)(*values)
        return list(out) if isinstance(out, tuple) else out
    return r.call(_given(op, "decomposition"), values, op)


def _custom_call(r: Any, op: Op, values: list, env: Any) -> Any:
    target = _given(op, "callee", "call_target_name")
    for pattern, rule in CUSTOM_CALLS.items():
        if (found := pattern.fullmatch(target)) is not None:
            return rule(op, found, values)
    raise not_implemented(f"a call of '{target}', a function of another compiler's runtime")


# Linear algebra.


def _cholesky(r: Any, op: Op, values: list, env: Any) -> Any:
    (x,) = values
    if bool(op.attributes.get("lower", False)):
        return _bind("cholesky", [x])
    turn = [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2]
    adjoint = lambda a: lax.transpose(lax.conj(a) if "complex" in str(a.dtype) else a, turn)
    return adjoint(_bind("cholesky", [adjoint(x)]))


def _triangular_solve(r: Any, op: Op, values: list, env: Any) -> Any:
    kind = _word(_given(op, "transpose_a", default="NO_TRANSPOSE"))
    return lax.linalg.triangular_solve(
        *values,
        left_side=bool(_given(op, "left_side")),
        lower=bool(_given(op, "lower")),
        transpose_a=kind != "NO_TRANSPOSE",
        conjugate_a=kind == "ADJOINT",
        unit_diagonal=bool(op.attributes.get("unit_diagonal", False)),
    )


def _fft(r: Any, op: Op, values: list, env: Any) -> Any:
    return lax.fft(values[0], _word(_given(op, "type", "fft_type")), _ints(_given(op, "length", "fft_length")))


def _tuple_element(r: Any, op: Op, values: list, env: Any) -> Any:
    return values[0][int(op.values[0] if op.values else _given(op, "index"))]


def _window_region(r: Any, op: Op, env: Any, at: int) -> Callable[..., Any]:
    region = op.regions[at]
    return lambda *x: tuple(r.run(region, list(x), env))


def _reduce_window(r: Any, op: Op, values: list, env: Any) -> Any:
    rank = values[0].ndim
    ones = [1] * rank
    window = _ints(_given(op, "window_dimensions"))
    return reduce_window(
        values[: len(values) // 2],
        values[len(values) // 2 :],
        _window_region(r, op, env, 0),
        combination(op.regions[0]),
        window,
        _ints(_given(op, "window_strides", default=ones)),
        _pairs(_given(op, "padding", default=[(0, 0)] * rank), rank),
        _ints(_given(op, "base_dilations", default=ones)),
        _ints(_given(op, "window_dilations", default=ones)),
    )


def _select_and_scatter(r: Any, op: Op, values: list, env: Any) -> Any:
    rank = values[0].ndim
    ones = [1] * rank
    return select_and_scatter(
        *values,
        _window_region(r, op, env, 0),
        _window_region(r, op, env, 1),
        _ints(_given(op, "window_dimensions", default=ones)),
        _ints(_given(op, "window_strides", default=ones)),
        _pairs(_given(op, "padding", default=[(0, 0)] * rank), rank),
    )


def _of_infinity(sign: int) -> _Rule:
    """Whether a number is infinite; of one sign, or of either (0)."""

    def rule(r: Any, op: Op, values: list, env: Any) -> Any:
        x = lax.abs(values[0]) if sign == 0 else values[0]
        return lax.eq(x, lax.full(x.shape, float("-inf") if sign < 0 else float("inf"), x.dtype))

    return rule


def _top_k(r: Any, op: Op, values: list, env: Any) -> Any:
    return list(lax.top_k(values[0], int(_given(op, "k"))))


RULES: dict[str, _Rule] = {
    **{theirs: _elementwise(ours) for ours, theirs in ELEMENTWISE.items()},
    "call": _call,
    "chlo.bessel_i1e": lambda r, op, values, env: lax.bessel_i1e(*values),
    "chlo.constant": _constant,
    "chlo.mulhi": lambda r, op, values, env: lax.mulhi(*values),
    "chlo.is_inf": _of_infinity(0),
    "chlo.is_neg_inf": _of_infinity(-1),
    "chlo.is_pos_inf": _of_infinity(1),
    "chlo.polygamma": _polygamma,
    "chlo.top_k": _top_k,
    "chlo.zeta": lambda r, op, values, env: lax.zeta(*values),
    "func.call": _call,
    "stablehlo.bitcast_convert": lambda r, op, values, env: same_bits(values[0], _result(op).dtype),
    "stablehlo.broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.case": _case,
    "stablehlo.cholesky": _cholesky,
    "stablehlo.clamp": _clamp,
    "stablehlo.compare": _compare,
    "stablehlo.composite": _composite,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.constant": _constant,
    "stablehlo.convert": _convert,
    "stablehlo.convolution": _convolution,
    "stablehlo.custom_call": _custom_call,
    "stablehlo.dot": _dot,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.dynamic_broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.dynamic_conv": _convolution,
    "stablehlo.dynamic_gather": _gather,
    "stablehlo.dynamic_iota": _iota,
    "stablehlo.dynamic_pad": _dynamic_pad,
    "stablehlo.dynamic_reshape": lambda r, op, values, env: lax.reshape(values[0], _result(op).shape),
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.fft": _fft,
    "stablehlo.gather": _gather,
    "stablehlo.get_dimension_size": _size,
    "stablehlo.get_tuple_element": _tuple_element,
    "stablehlo.if": _if,
    "stablehlo.iota": _iota,
    "stablehlo.map": _map,
    "stablehlo.optimization_barrier": lambda r, op, values, env: list(lax.optimization_barrier(tuple(values))),
    "stablehlo.pad": _pad,
    "stablehlo.real_dynamic_slice": _real_dynamic_slice,
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_precision": _precision,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.reshape": lambda r, op, values, env: lax.reshape(values[0], _result(op).shape),
    "stablehlo.reverse": lambda r, op, values, env: lax.rev(values[0], _ints(_given(op, "dims", "dimensions"))),
    "stablehlo.round_nearest_afz": lambda r, op, values, env: _bind("round", values, mode="away"),
    "stablehlo.round_nearest_even": lambda r, op, values, env: _bind("round", values, mode="even"),
    "stablehlo.scatter": _scatter,
    "stablehlo.select": _select,
    "stablehlo.select_and_scatter": _select_and_scatter,
    "stablehlo.slice": _slice,
    "stablehlo.sort": _sort,
    "stablehlo.transpose": lambda r, op, values, env: lax.transpose(
        values[0], _ints(_given(op, "dims", "permutation"))
    ),
    "stablehlo.triangular_solve": _triangular_solve,
    "stablehlo.tuple": lambda r, op, values, env: [tuple(values)],
    "stablehlo.while": _while,
}
