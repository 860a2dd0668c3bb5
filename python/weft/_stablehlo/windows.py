"""Windows that move over arrays: reduce_window and select_and_scatter of any function of elements."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from .. import _weft, lax
from ..api import ensure_compile_time_eval
from ..batching import vmap
from .order import greatest, least

__all__ = ["reduce_window", "select_and_scatter"]

_Numbers = Sequence[int]
_Pairs = Sequence[tuple[int, int]]
# What combines elements -> the operations over windows and over all elements so far, and what changes nothing.
_KNOWN: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "add": ("reduce_window_sum", "cumsum", lambda dtype: lax.full((), 0, dtype)),
    "mul": ("", "cumprod", lambda dtype: lax.full((), 1, dtype)),
    "max": ("reduce_window_max", "cummax", least),
    "min": ("reduce_window_min", "cummin", greatest),
}


def _mapped(join: Callable[..., Any], rank: int) -> Callable[..., Any]:
    for _ in range(rank):
        join = vmap(join)
    return join


def reduce_window(
    operands: list,
    inits: list,
    join: Callable[..., tuple],
    name: str | None,
    window: _Numbers,
    strides: _Numbers,
    padding: _Pairs,
    base_dilation: _Numbers,
    window_dilation: _Numbers,
) -> list:
    """The elements of every window combined; `name`: by which operation, where it is one."""
    if name in _KNOWN and len(operands) == 1 and not _weft.is_traced(inits[0]):
        windows, so_far, first = _KNOWN[name]
        x = operands[0]
        numbers = _weft.dtype_kind(x.dtype) in ("float", "signed", "unsigned")
        with ensure_compile_time_eval():
            neutral = numbers and bool(lax.eq(first(x.dtype), inits[0]))
        if neutral:
            if (along := _along(x.shape, window, strides, padding, base_dilation, window_dilation)) is not None:
                return [getattr(lax, so_far)(x, along[0], along[1])]
            if windows:
                attributes = {
                    "window": list(window),
                    "strides": list(strides),
                    "lo": [lo for lo, _ in padding],
                    "hi": [hi for _, hi in padding],
                    "base_dilation": list(base_dilation),
                    "window_dilation": list(window_dilation),
                }
                return _weft.bind(windows, [x], attributes)
    wide = [_spread(x, init, padding, base_dilation) for x, init in zip(operands, inits)]
    counts = _counts(wide[0].shape, window, strides, window_dilation)
    out = [lax.broadcast_in_dim(init, counts, ()) for init in inits]
    if 0 in counts:
        return out
    on_arrays = _mapped(join, len(window))
    for place in itertools.product(*map(range, window)):
        parts = [_part(x, place, counts, strides, window_dilation) for x in wide]
        out = list(on_arrays(*out, *parts))
    return out


def _along(shape: Any, window: _Numbers, strides: _Numbers, padding: _Pairs, *dilations: _Numbers) -> Any:
    """The dimension along which a window has all elements up to its place, and whether from the end."""
    dims = [d for d, w in enumerate(window) if w != 1]
    if len(dims) != 1 or any(n != 1 for numbers in (strides, *dilations) for n in numbers):
        return None
    d = dims[0]
    n = shape[d]
    if window[d] != n or any(pair != (0, 0) for k, pair in enumerate(padding) if k != d):
        return None
    low, high = padding[d]
    return {(n - 1, 0): (d, False), (0, n - 1): (d, True)}.get((low, high))


def _spread(x: Any, init: Any, padding: _Pairs, dilation: _Numbers) -> Any:
    return lax.pad(x, init, [(lo, hi, b - 1) for (lo, hi), b in zip(padding, dilation)])


def _counts(shape: Any, window: _Numbers, strides: _Numbers, dilation: _Numbers) -> list[int]:
    sizes = [(w - 1) * d + 1 if w else 0 for w, d in zip(window, dilation)]
    return [0 if n < w or n == 0 else (n - w) // s + 1 for n, w, s in zip(shape, sizes, strides)]


def _part(x: Any, place: _Numbers, counts: _Numbers, strides: _Numbers, dilation: _Numbers) -> Any:
    start = [p * d for p, d in zip(place, dilation)]
    limit = [a + (c - 1) * s + 1 for a, c, s in zip(start, counts, strides)]
    return lax.slice(x, start, limit, strides)


def select_and_scatter(
    x: Any,
    source: Any,
    init: Any,
    select: Callable[..., tuple],
    scatter: Callable[..., tuple],
    window: _Numbers,
    strides: _Numbers,
    padding: _Pairs,
) -> Any:
    """In every window one element is selected, and the source's element of that window joined to what is there."""
    rank = x.ndim
    ones = [1] * rank
    zero = lax.full((), 0, x.dtype)
    wide = _spread(x, zero, padding, ones)
    inside = _spread(lax.full(x.shape, True, "bool"), lax.full((), False, "bool"), padding, ones)
    counts = _counts(wide.shape, window, strides, ones)
    if 0 in counts or 0 in x.shape:
        return lax.broadcast_in_dim(init, x.shape, ())
    selects = _mapped(lambda a, b: select(a, b)[0], rank)
    scatters = _mapped(lambda a, b: scatter(a, b)[0], rank)
    places = list(itertools.product(*map(range, window)))
    best: Any = None
    chosen: Any = None
    valid: Any = None
    for k, place in enumerate(places):
        value, there = (_part(a, place, counts, strides, ones) for a in (wide, inside))
        here = lax.full(counts, k, "int32")
        if best is None:
            best, chosen, valid = value, here, there
            continue
        # What is outside of the array is not selected.
        keep = lax.bitwise_or(lax.bitwise_not(there), lax.bitwise_and(valid, selects(best, value)))
        best, chosen = lax.select(keep, best, value), lax.select(keep, chosen, here)
        valid = lax.bitwise_or(valid, there)
    out = lax.broadcast_in_dim(init, wide.shape, ())
    for k, place in enumerate(places):
        taken = lax.eq(chosen, lax.full(counts, k, "int32"))
        config = [(p, n - p - (c - 1) * s - 1, s - 1) for p, n, c, s in zip(place, wide.shape, counts, strides)]
        spread = lax.pad(source, lax.full((), 0, source.dtype), config)
        where = lax.pad(taken, lax.full((), False, "bool"), config)
        out = lax.select(where, scatters(out, spread), out)
    return lax.slice(out, [lo for lo, _ in padding], [lo + n for (lo, _), n in zip(padding, x.shape)])
