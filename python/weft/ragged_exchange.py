"""Rows of arrays, as many as numbers say, sent between the lanes or devices along an axis.

Everybody gets the rows of all and takes what was sent to it: sizes that only the running program knows need no buffer
for the largest, every derivative follows, and more is sent than a ragged exchange needs.
"""

from __future__ import annotations

from typing import Any

from . import _weft
from ._core.errors import not_implemented, type_error, value_error
from ._weft import Array
from .collectives import AxisName, all_to_all, axis_names
from .index_groups import IndexGroups
from .typing import NestedLike

__all__ = ["ragged_all_to_all"]

_WHAT = "ragged_all_to_all"


def ragged_all_to_all(
    operand: NestedLike,
    output: NestedLike,
    input_offsets: NestedLike,
    send_sizes: NestedLike,
    output_offsets: NestedLike,
    recv_sizes: NestedLike,
    *,
    axis_name: AxisName,
    axis_index_groups: Any = None,
) -> Array:
    """Every lane or device sends slices of rows to the others, each as long as send_sizes says.

    Of k slices, a multiple of the size n of the axis, the first k / n go to the first place along it, the next to the
    second, and so on. Slice i has the rows of operand from input_offsets[i] on, and stands in the receiver's result
    from output_offsets[i] on: the sender says where. recv_sizes says how many rows come, in the order of the senders.

    Args:
        operand: array [m, ...]: the rows to send.
        output: array [l, ...] of the same dtype: what the result has where nothing comes.
        input_offsets: integers [k]: where slices begin in operand.
        send_sizes: integers [k]: how many rows they have.
        output_offsets: integers [k]: where they begin in the results of those who get them.
        recv_sizes: integers [k]: how many rows come, all_to_all of send_sizes.
        axis_name: the name of an axis of vmap, shard_map or pmap, or a tuple of names, the first one major.
        axis_index_groups: lists of places along the axis, each in one list: they work within these groups.

    Returns: array [l, ...] of that dtype. Of slices that overlap the last one counts; rows that operand does not have
        stay as output has them. Where send_sizes and recv_sizes disagree, recv_sizes counts.

    Raises:
        NameError: nothing around binds the axis.
        TypeError: dtypes of operand and output differ, or axis_index_groups are no lists of integers.
        ValueError: offsets and sizes are no integers [k], k is no multiple of the size of the axis or of the groups,
            rows differ in shape, or groups do not have each place once and one size.
        NotImplementedError: the size of the axis is symbolic.

    Example:
        >>> x = wnp.array([[1, 2, 2], [3, 4, 0]])
        >>> sizes, come = wnp.array([[1, 2], [1, 1]]), wnp.array([[1, 1], [2, 1]])
        >>> start, to = wnp.array([[0, 1], [0, 1]]), wnp.array([[0, 0], [1, 2]])
        >>> def exchange(x, start, sizes, to, come):
        ...     zeros = wnp.zeros(4, x.dtype)
        ...     return weft.lax.ragged_all_to_all(x, zeros, start, sizes, to, come, axis_name="i")
        >>> weft.vmap(exchange, axis_name="i")(x, start, sizes, to, come)
        Array([[1, 3, 0, 0],
               [2, 2, 4, 0]], dtype=int32)
    """
    names = axis_names(axis_name, _WHAT)
    operand, output = (_weft.array(x, None, False) for x in (operand, output))
    numbers = {
        "input_offsets": _weft.array(input_offsets, None, False),
        "send_sizes": _weft.array(send_sizes, None, False),
        "output_offsets": _weft.array(output_offsets, None, False),
        "recv_sizes": _weft.array(recv_sizes, None, False),
    }
    _check(operand, output, numbers)
    size = _weft.axis_size(names, _WHAT)
    if not isinstance(size, int):
        raise not_implemented(f"{_WHAT}: the axes {tuple(names)}, whose size is not known")
    groups = IndexGroups(axis_index_groups, names, _WHAT, equal=True) if axis_index_groups is not None else None
    count = groups.count if groups else size
    slices = numbers["send_sizes"].shape[0]
    if slices % count:
        raise value_error(
            f"{_WHAT}: the number of slices must be a multiple of {count}, which get equally many, got {slices}"
        )
    # What the senders say of the slices for this one, in the order of the senders.
    said = _weft.stack([_weft.astype(numbers[name], "int32") for name in ("input_offsets", "output_offsets")], 0)
    starts, targets = all_to_all(said, axis_name, 1, 1, tiled=True, axis_index_groups=axis_index_groups)
    rows = _weft.iota((output.shape[0], 1), 0, "int32")
    within = (rows >= targets) & (rows < targets + _weft.astype(numbers["recv_sizes"], "int32"))
    # Of each row of the result: the last slice that has it, -1 where none does.
    which = _weft.where(within, _weft.iota((1, slices), 1, "int32"), _weft.full((), -1, "int32"))
    which = _weft.reduce("reduce_max", which, 1, False)
    chosen = lambda values: _weft.take(values, which, 0, "clip")
    source = chosen(starts) + _weft.iota((output.shape[0],), 0, "int32") - chosen(targets)
    comes = (which >= 0) & (source >= 0) & (source < operand.shape[0])
    everything = groups.gathered(operand) if groups else _weft.all_gather(operand, names, 0, False)
    everything = everything.reshape((-1, *operand.shape[1:]))
    sent = _weft.take(everything, which // (slices // count) * operand.shape[0] + source, 0, "clip")
    return _weft.where(comes.reshape((-1,) + (1,) * (output.ndim - 1)), sent, output)


def _check(operand: Array, output: Array, numbers: dict[str, Array]) -> None:
    """Raises TypeError or ValueError unless these fit each other."""
    for name, x in numbers.items():
        if _weft.dtype_kind(x.dtype) not in ("signed", "unsigned"):
            raise value_error(f"{_WHAT}: {name} must be of an integer dtype, got {x.dtype}")
    for name, x in numbers.items():
        if x.ndim != 1 or x.shape[0] == 0:
            raise value_error(f"{_WHAT}: {name} must have one dimension, of size 1 or more, got shape {x.shape}")
    lengths = {name: x.shape[0] for name, x in numbers.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{length} {name}" for name, length in lengths.items())
        raise value_error(f"{_WHAT}: there must be as many offsets as sizes, got {shown}")
    if operand.dtype != output.dtype:
        raise type_error(f"{_WHAT}: operand and output must have one dtype, got {operand.dtype} and {output.dtype}")
    if operand.ndim == 0 or operand.ndim != output.ndim or operand.shape[1:] != output.shape[1:]:
        raise value_error(
            f"{_WHAT}: operand and output must be of rows of one shape, got shapes {operand.shape} and {output.shape}"
        )
