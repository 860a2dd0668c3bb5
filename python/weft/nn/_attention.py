"""Attention."""

from __future__ import annotations

import math
from typing import Any

from .. import numpy as wnp
from .._core import docs as _docs
from .._core.errors import not_implemented, value_error
from ..arguments import is_integer
from ..typing import ArrayLike
from ._softmax import logsumexp, softmax

__all__ = [
    "dot_product_attention",
]


def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any:
    """Attention: softmax(scale query key^T + bias) value, computed in float32.

    Args:
        query: array [batch, queries, heads, features]; the batch may be missing.
        key: array [batch, keys, shared heads, features].
        value: array [batch, keys, shared heads, features]. Keys and values may have fewer heads, a divisor of the
            queries'.
        bias: array that broadcasts to [batch, heads, queries, keys] and is added; None: nothing.
        mask: booleans that broadcast to [batch, heads, queries, keys]: where a key counts; None: everywhere.
        scale: the factor; None: 1 / sqrt(features).
        is_causal: whether a query sees the keys up to its own place only.
        query_seq_lengths: vector [batch] of integers: how many queries of each element count; results of the others
            are 0. None: all.
        key_value_seq_lengths: vector [batch] of integers: how many keys of each element count; None: all.
        local_window_size: how many places to the left and to the right a query sees: a pair, or one integer for both;
            None: all.
        implementation: None or "xla", which are the same here.
        return_residual: whether to return log(sum(exp(logits))) over the keys, too: [batch, queries, heads] of
            the dtype of query.

    Returns: array of the shape and dtype of query; with return_residual a pair of it and the residual.

    Raises:
        NotImplementedError: another implementation is asked for.
        ValueError: shapes do not fit, or heads of keys do not divide those of queries.

    Source: Vaswani et al., "Attention is all you need", 2017; shared heads: Ainslie et al., "GQA", 2023.

    Example:
        >>> x = wnp.ones((1, 4, 2, 8))
        >>> weft.nn.dot_product_attention(x, x, x, is_causal=True).shape
        (1, 4, 2, 8)
    """
    if implementation not in (None, "xla"):
        raise not_implemented(f"dot_product_attention: implementation must be None or 'xla', got {implementation!r}")
    query, key, value = (wnp.asarray(x) for x in (query, key, value))
    single = query.ndim == 3
    if single:
        query, key, value = query[None], key[None], value[None]
    if query.ndim != 4 or key.shape != value.shape[:3] + key.shape[3:] or query.shape[3] != key.shape[3]:
        raise value_error(
            f"dot_product_attention: query, key and value are [batch, length, heads, features], got shapes "
            f"{query.shape}, {key.shape} and {value.shape}"
        )
    heads, shared = query.shape[2], key.shape[2]
    if heads % shared:
        raise value_error(f"dot_product_attention: {shared} heads of keys do not divide {heads} heads of queries")
    if heads != shared:
        key, value = wnp.repeat(key, heads // shared, axis=2), wnp.repeat(value, heads // shared, axis=2)
    scale = 1 / math.sqrt(query.shape[3]) if scale is None else scale
    logits = wnp.einsum("btnh,bsnh->bnts", query, key) * scale
    if bias is not None:
        logits = logits + bias
    allowed = None if mask is None else wnp.asarray(mask, bool)
    t, s = logits.shape[-2:]
    row, column = wnp.arange(t)[:, None], wnp.arange(s)[None, :]
    limits = []
    if is_causal:
        limits.append(column <= row)
    if local_window_size is not None:
        pair = (local_window_size,) * 2 if is_integer(local_window_size) else local_window_size
        limits += [column >= row - pair[0], column <= row + pair[1]]
    if query_seq_lengths is not None:
        counted = row < wnp.asarray(query_seq_lengths)[:, None, None, None]
        limits.append(counted)
    if key_value_seq_lengths is not None:
        limits.append(column < wnp.asarray(key_value_seq_lengths)[:, None, None, None])
    for limit in limits:
        allowed = limit if allowed is None else allowed & limit
    if allowed is not None:
        logits = wnp.where(allowed, logits, -0.7 * float(wnp.finfo(wnp.float32).max))
    logits = logits.astype(wnp.promote_types(logits.dtype, "float32"))
    weights = softmax(logits, axis=-1).astype(query.dtype)
    out = wnp.einsum("bnts,bsnh->btnh", weights, value)
    if query_seq_lengths is not None:
        out = wnp.where(wnp.swapaxes(counted, 1, 2), out, 0)
    if not return_residual:
        return out[0] if single else out
    residual = wnp.moveaxis(logsumexp(logits, axis=-1), 1, 2).astype(query.dtype)
    return (out[0], residual[0]) if single else (out, residual)


_docs.complete(globals())
