"""Attention."""

from __future__ import annotations

import math

from .. import _docs
from .. import numpy as wnp
from .._weft import Array
from ..typing import ArrayLike
from ._softmax import softmax

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
) -> Array:
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

    Returns: array of the shape and dtype of query.

    Raises:
        ValueError: shapes do not fit, or heads of keys do not divide those of queries.

    Source: Vaswani et al., "Attention is all you need", 2017; shared heads: Ainslie et al., "GQA", 2023.

    Example:
        >>> x = wnp.ones((1, 4, 2, 8))
        >>> weft.nn.dot_product_attention(x, x, x, is_causal=True).shape
        (1, 4, 2, 8)
    """
    query, key, value = (wnp.asarray(x) for x in (query, key, value))
    single = query.ndim == 3
    if single:
        query, key, value = query[None], key[None], value[None]
    if query.ndim != 4 or key.shape != value.shape[:3] + key.shape[3:] or query.shape[3] != key.shape[3]:
        raise ValueError(
            f"dot_product_attention: query, key and value are [batch, length, heads, features], got shapes "
            f"{query.shape}, {key.shape} and {value.shape}"
        )
    heads, shared = query.shape[2], key.shape[2]
    if heads % shared:
        raise ValueError(f"dot_product_attention: {shared} heads of keys do not divide {heads} heads of queries")
    if heads != shared:
        key, value = wnp.repeat(key, heads // shared, axis=2), wnp.repeat(value, heads // shared, axis=2)
    scale = 1 / math.sqrt(query.shape[3]) if scale is None else scale
    logits = wnp.einsum("btnh,bsnh->bnts", query, key) * scale
    if bias is not None:
        logits = logits + bias
    allowed = None if mask is None else wnp.asarray(mask, bool)
    if is_causal:
        t, s = logits.shape[-2:]
        below = wnp.arange(s)[None, :] <= wnp.arange(t)[:, None]
        allowed = below if allowed is None else allowed & below
    if allowed is not None:
        logits = wnp.where(allowed, logits, -0.7 * float(wnp.finfo(wnp.float32).max))
    weights = softmax(logits.astype("float32"), axis=-1).astype(query.dtype)
    out = wnp.einsum("bnts,bsnh->btnh", weights, value)
    return out[0] if single else out


_docs.complete(globals())
