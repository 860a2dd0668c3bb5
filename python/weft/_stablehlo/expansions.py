"""What stands for an operation that StableHLO lacks: a function of arrays. In the text it is the decomposition of a
composite, which says which operation it is, so that reading gives that operation again."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import _weft, lax
from .._core.ir_view import Operation
from .order import greatest, least

__all__ = ["EXPANSIONS"]

_Expansion = Callable[..., Any]


def _with(op: Operation, *operands: Any, **changed: Any) -> Any:
    """The operation with other attributes."""
    found = _weft.bind(op.name, list(operands), {**op.attributes, **changed})
    return found[0] if len(found) == 1 else tuple(found)


def _number(x: Any, like: Any) -> Any:
    return lax.full(like.shape, x, like.dtype)


def _argmax(op: Operation, x: Any) -> Any:
    dim, dtype = op.attributes["dim"], op.results[0].type.dtype
    if _weft.dtype_kind(x.dtype) == "bool":
        x = lax.convert_element_type(x, "uint8")
    best = lax.reduce_max(x, (dim,)) if op.name == "argmax" else lax.reduce_min(x, (dim,))
    wide = lax.broadcast_in_dim(best, x.shape, [d for d in range(x.ndim) if d != dim])
    chosen = lax.eq(x, wide)
    if "float" in str(x.dtype):  # of a NaN the first one
        chosen = lax.bitwise_or(chosen, lax.ne(x, x))
    places = lax.broadcasted_iota(dtype, x.shape, dim)
    none = lax.full(x.shape, x.shape[dim] - 1, dtype)
    return lax.reduce_min(lax.select(chosen, places, none), (dim,))


def _so_far(join: Callable[[Any, Any], Any], first: Any) -> _Expansion:
    """Every element joined with those before it: with the one before, then the two before, four, eight ..."""

    def expansion(op: Operation, x: Any) -> Any:
        dim, size = op.attributes["dim"], x.shape[op.attributes["dim"]]
        start = first(x.dtype) if callable(first) else lax.full((), first, x.dtype)
        step = 1
        while step < size:
            config = [(0, 0, 0)] * x.ndim
            config[dim] = (-step, step, 0) if op.attributes["reverse"] else (step, -step, 0)
            x = join(x, lax.pad(x, start, config))
            step *= 2
        return x

    return expansion


def _logaddexp(x: Any, y: Any) -> Any:
    largest = lax.max(x, y)
    finite = lax.select(lax.is_finite(largest), largest, _number(0, largest))
    return lax.add(finite, lax.log(lax.add(lax.exp(lax.sub(x, finite)), lax.exp(lax.sub(y, finite)))))


def _gather(op: Operation, x: Any, indices: Any) -> Any:
    """A window that is out of bounds is filled."""
    out = _with(op, x, indices, mode="clip")
    starts, map_ = indices, op.attributes["start_index_map"]
    sizes = op.attributes["slice_sizes"]
    last = lax.convert_element_type(_weft.array([x.shape[d] - sizes[d] for d in map_], None, False), indices.dtype)
    wide = lax.broadcast_in_dim(last, starts.shape, [starts.ndim - 1])
    inside = lax.bitwise_and(lax.ge(starts, _number(0, starts)), lax.le(starts, wide))
    inside = lax.reduce_and(inside, (starts.ndim - 1,))
    offsets = op.attributes["offset_dims"]
    inside = lax.broadcast_in_dim(inside, out.shape, [d for d in range(out.ndim) if d not in offsets])
    kind = _weft.dtype_kind(out.dtype)
    fill: Any = 0
    if op.attributes["mode"] == "fill" and kind != "bool":
        fill = {"signed": least, "unsigned": greatest}.get(kind, lambda dtype: lax.full((), float("nan"), dtype))(
            out.dtype
        )
    return lax.select(inside, out, _number(fill, out))


def _scatter(op: Operation, x: Any, indices: Any, updates: Any) -> Any:
    """Windows that are out of bounds are moved inside."""
    window = list(op.attributes["update_window_dims"])
    outer = {*op.attributes["inserted_dims"], *op.attributes["operand_batch_dims"]}
    sizes = dict(zip([d for d in range(x.ndim) if d not in outer], [updates.shape[d] for d in window]))
    places = _weft.array([x.shape[d] - sizes.get(d, 1) for d in op.attributes["scatter_dims"]], None, False)
    last = lax.convert_element_type(places, indices.dtype)
    wide = lax.broadcast_in_dim(last, indices.shape, [indices.ndim - 1])
    return _with(op, x, lax.clamp(_number(0, indices), indices, wide), updates, mode="drop")


def _integer_pow(op: Operation, x: Any) -> Any:
    exponent = abs(op.attributes["y"])
    power: Any = None
    square = x
    while exponent:
        if exponent % 2:
            power = square if power is None else lax.mul(power, square)
        exponent //= 2
        square = lax.mul(square, square) if exponent else square
    power = _number(1, x) if power is None else power
    return lax.div(_number(1, x), power) if op.attributes["y"] < 0 else power


def _logarithm(base: float) -> _Expansion:
    return lambda op, x: lax.div(lax.log(x), lax.log(_number(base, x)))


def _softplus(op: Operation, x: Any) -> Any:
    return lax.add(lax.max(x, _number(0, x)), lax.log1p(lax.exp(lax.neg(lax.abs(x)))))


def _logistic_density(op: Operation, x: Any) -> Any:
    e = lax.exp(lax.neg(lax.abs(x)))
    below = lax.add(_number(1, x), e)
    return lax.div(lax.div(e, below), below)


def _sech_squared(op: Operation, x: Any) -> Any:
    e = lax.exp(lax.mul(_number(-2, x), lax.abs(x)))
    below = lax.add(_number(1, x), e)
    return lax.div(lax.div(lax.mul(_number(4, x), e), below), below)


def _normal_cdf(op: Operation, x: Any) -> Any:
    return lax.mul(_number(0.5, x), lax.erfc(lax.mul(_number(-math.sqrt(0.5), x), x)))


def _normal_density(op: Operation, x: Any) -> Any:
    return lax.mul(_number(1 / math.sqrt(2 * math.pi), x), lax.exp(lax.mul(_number(-0.5, x), lax.mul(x, x))))


def _log_where(x: Any, y: Any, joined: Any, join: Callable[[Any, Any], Any]) -> Any:
    """log(joined), by the logarithms of x and y where it is out of range."""
    inside = lax.bitwise_and(lax.is_finite(joined), lax.ne(joined, _number(0, joined)))
    return lax.select(inside, lax.log(joined), join(lax.log(lax.abs(x)), lax.log(lax.abs(y))))


def _log_product(op: Operation, x: Any, y: Any) -> Any:
    return _log_where(x, y, lax.mul(x, y), lax.add)


def _log_quotient(op: Operation, x: Any, y: Any) -> Any:
    return _log_where(x, y, lax.div(x, y), lax.sub)


def _trunc(op: Operation, x: Any) -> Any:
    return lax.select(lax.lt(x, _number(0, x)), lax.ceil(x), lax.floor(x))


def _threefry(op: Operation, *operands: Any) -> Any:
    """Threefry-2x32 with 20 rounds (Salmon et al. 2011)."""
    k0, k1, x0, x1 = operands
    keys = [k0, k1, lax.bitwise_xor(lax.bitwise_xor(k0, k1), _number(0x1BD11BDA, k0))]
    turns = [(13, 15, 26, 6), (17, 29, 16, 24)]
    x0, x1 = lax.add(x0, k0), lax.add(x1, k1)
    for i in range(5):
        for turn in turns[i % 2]:
            x0 = lax.add(x0, x1)
            left = lax.shift_left(x1, _number(turn, x1))
            x1 = lax.bitwise_xor(lax.bitwise_or(left, lax.shift_right_logical(x1, _number(32 - turn, x1))), x0)
        x0 = lax.add(x0, keys[(i + 1) % 3])
        x1 = lax.add(x1, lax.add(keys[(i + 2) % 3], _number(i + 1, x1)))
    return x0, x1


EXPANSIONS: dict[str, _Expansion] = {
    "argmax": _argmax,
    "argmin": _argmax,
    "cumlogsumexp": _so_far(_logaddexp, least),
    "cummax": _so_far(lax.max, least),
    "cummin": _so_far(lax.min, greatest),
    "cumprod": _so_far(lax.mul, 1),
    "cumsum": _so_far(lax.add, 0),
    "exp2": lambda op, x: lax.pow(_number(2, x), x),
    "gather": _gather,
    "integer_pow": _integer_pow,
    "log10": _logarithm(10),
    "log2": _logarithm(2),
    "log_product": _log_product,
    "log_quotient": _log_quotient,
    "logistic_density": _logistic_density,
    "normal_cdf": _normal_cdf,
    "normal_density": _normal_density,
    "scatter": _scatter,
    "scatter_add": _scatter,
    "scatter_max": _scatter,
    "scatter_min": _scatter,
    "scatter_mul": _scatter,
    "sech_squared": _sech_squared,
    "softplus": _softplus,
    "threefry2x32": _threefry,
    "trunc": _trunc,
}
