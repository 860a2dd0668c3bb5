"""Entries along a dimension at positions of each row's own."""

from __future__ import annotations

from .. import _weft
from .._weft import Array


def along(x: Array, indices: Array, axis: int) -> Array:
    """_weft.take_along_axis. Where types say how values lie, the other dimensions are those that both have in common,
    so that rows on a device are taken there: with positions along every dimension types cannot tell."""
    if x.ndim != indices.ndim or (_weft.typed_layout(x) is None and _weft.typed_layout(indices) is None):
        return _weft.take_along_axis(x, indices, axis)
    axis = _weft.check_axis(axis, x.ndim, "take_along_axis")
    n, taken = x.shape[axis], indices.shape[axis]
    others = [d for d in range(x.ndim) if d != axis]
    joint = _weft.broadcast_shapes([x.shape[d] for d in others], [indices.shape[d] for d in others])
    x = _weft.broadcast_to(x, (*joint[:axis], n, *joint[axis:]))
    indices = _weft.broadcast_to(indices, (*joint[:axis], taken, *joint[axis:]))
    if _weft.dtype_kind(indices.dtype) != "unsigned":
        indices = _weft.where(indices < 0, indices + n, indices)
    attrs = {
        "offset_dims": [],
        "collapsed_dims": [axis],
        "operand_batch_dims": others,
        "indices_batch_dims": others,
        "start_index_map": [axis],
        "slice_sizes": [1] * x.ndim,
        "mode": "clip",
    }
    return _weft.bind("gather", [x, indices[..., None]], attrs)[0]
