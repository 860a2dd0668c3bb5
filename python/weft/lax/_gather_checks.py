"""Whether the dimension numbers of gather and scatter fit each other and their operands. Messages have the names of the
arguments, and XLA's words for what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core.errors import type_error as _type_error

__all__: list[str] = []


def _misfit(op: str, problem: str) -> TypeError:
    return _type_error(f"{op}: {problem}")


def _in_range(name: str, dims: Sequence[int], rank: int, op: str) -> None:
    for d in dims:
        if not 0 <= d < rank:
            raise _misfit(op, f"Invalid {name} set in {op} op; valid range is [0, {rank}); got: {d}.")


def _ascending(name: str, dims: Sequence[int], op: str) -> None:
    if list(dims) != sorted(dims):
        raise _misfit(op, f"{name} in {op} op must be sorted; got {tuple(dims)}")
    _different(name, dims, op)


def _different(name: str, dims: Sequence[int], op: str) -> None:
    if len(set(dims)) < len(dims):
        raise _misfit(op, f"{name} in {op} op must not repeat; got: {tuple(dims)}.")


def _disjoint(one: str, dims: Sequence[int], other: str, others: Sequence[int], op: str) -> None:
    both = set(dims) & set(others)
    if both:
        raise _misfit(op, f"{one} and {other} in {op} op must be disjoint; got: {both}.")


def _index_map(name: str, dims: Sequence[int], length: Any, rank: int, place: int, op: str, invalid: str) -> None:
    if len(dims) != length:
        raise _misfit(
            op,
            f"{op.capitalize()} op has {len(dims)} elements in {name} and the bound of dimension "
            f"index_vector_dim={place} of indices is {length}. These two numbers must be equal.",
        )
    for i, d in enumerate(dims):
        if not 0 <= d < rank:
            raise _misfit(op, f"Invalid {invalid}; domain is [0, {rank}), got: {i}->{d}.")
    _different(name, dims, op)


def _batching(
    operand: Sequence[Any], dims: Sequence[int], indices: Sequence[Any], along: Sequence[int], name: str, op: str
):
    _different(name, along, op)
    _in_range(name, along, len(indices), op)
    if len(indices) - 1 in along:
        raise _misfit(
            op,
            f"{op.capitalize()} op cannot have the index vector dimension as a batching dimension; got {tuple(along)}.",
        )
    if len(dims) != len(along):
        raise _misfit(
            op,
            f"{op.capitalize()} op requires equal numbers of operand_batching_dims and {name}, got {tuple(dims)} and "
            f"{tuple(along)}.",
        )
    sizes, others = [operand[d] for d in dims], [indices[d] for d in along]
    if any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(sizes, others)):
        raise _misfit(
            op,
            f"{op.capitalize()} op requires operand batching dimensions and indices batching dimensions to have the "
            f"same shape, got {sizes} and {others}.",
        )


def check_gather(operand: Sequence[Any], indices: Sequence[Any], numbers: Any, slice_sizes: Sequence[Any]) -> None:
    """Raises a TypeError where gather's arguments, of which the first two are shapes, do not fit."""
    rank, op = len(operand), "gather"
    if not indices:
        raise _misfit(op, "Gather op: indices must have one dimension or more, got a single number")
    offsets, collapsed, batching = (
        tuple(d) for d in (numbers.offset_dims, numbers.collapsed_slice_dims, numbers.operand_batching_dims)
    )
    _ascending("offset_dims", offsets, op)
    out_rank = len(offsets) + len(indices) - 1
    for i, d in enumerate(offsets):
        if not 0 <= d < out_rank:
            raise _misfit(
                op, f"Offset dimension {i} in gather op is out of bounds; got {d}, but must be in [0, {out_rank})"
            )
    _index_map("start_index_map", numbers.start_index_map, indices[-1], rank, len(indices) - 1, op, "start_index_map")
    for name, dims in (("collapsed_slice_dims", collapsed), ("operand_batching_dims", batching)):
        _ascending(name, dims, op)
        _in_range(name, dims, rank, op)
    _disjoint("collapsed_slice_dims", collapsed, "operand_batching_dims", batching, op)
    _disjoint("start_index_map", numbers.start_index_map, "operand_batching_dims", batching, op)
    _batching(operand, batching, indices, tuple(numbers.start_indices_batching_dims), "start_indices_batching_dims", op)
    if len(slice_sizes) != rank:
        raise _misfit(
            op,
            f"Gather op must have one slice size for every input dimension; got {len(slice_sizes)} slice sizes for an "
            f"operand of shape {tuple(operand)}",
        )
    if len(slice_sizes) != len(offsets) + len(collapsed) + len(batching):
        raise _misfit(
            op,
            "All components of the offset index in a gather op must either be a offset dimension or explicitly "
            f"collapsed/batching; got slice_sizes {tuple(slice_sizes)}, offset_dims {offsets}, collapsed_slice_dims "
            f"{collapsed} and operand_batching_dims {batching}.",
        )
    for i, (size, whole) in enumerate(zip(slice_sizes, operand)):
        if isinstance(size, int) and isinstance(whole, int) and not 0 <= size <= whole:
            raise _misfit(
                op, f"Slice size at index {i} in gather op is out of range, must be within [0, {whole}], got {size}."
            )
    for what, dims, most, bound in (
        ("collapse slice dims", collapsed, 1, "1"),
        ("have operand batching dims", batching, 1, "0/1"),
    ):
        for position, d in enumerate(dims):
            size = slice_sizes[d]
            if isinstance(size, int) and (size > most or (bound == "1" and size != 1)):
                raise _misfit(
                    op,
                    f"Gather op can only {what} with bound {bound}, but bound is {size} for index {d} "
                    f"at position {position}.",
                )


def check_scatter(operand: Sequence[Any], indices: Sequence[Any], updates: Sequence[Any], numbers: Any) -> None:
    """Raises a TypeError where scatter's arguments, of which the first three are shapes, do not fit."""
    rank, op = len(operand), "scatter"
    if not indices:
        raise _misfit(op, "Scatter op: indices must have one dimension or more, got a single number")
    window, inserted, batching = (
        tuple(d) for d in (numbers.update_window_dims, numbers.inserted_window_dims, numbers.operand_batching_dims)
    )
    wanted = len(indices) - 1 + len(window)
    if len(updates) != wanted:
        raise _misfit(op, f"Updates tensor must be of rank {wanted}; got {len(updates)}.")
    for name, dims, most in (
        ("update_window_dims", window, len(updates)),
        ("inserted_window_dims", inserted, rank),
        ("operand_batching_dims", batching, rank),
    ):
        _ascending(name, dims, op)
        _in_range(name, dims, most, op)
    _disjoint("inserted_window_dims", inserted, "operand_batching_dims", batching, op)
    to_operand = tuple(numbers.scatter_dims_to_operand_dims)
    _disjoint("scatter_dims_to_operand_dims", to_operand, "operand_batching_dims", batching, op)
    _batching(
        operand, batching, indices, tuple(numbers.scatter_indices_batching_dims), "scatter_indices_batching_dims", op
    )
    size = len(window) + len(inserted) + len(batching)
    if size != rank:
        raise _misfit(op, f"Scatter op has window of size {size}; doesn't match operand of rank {rank}.")
    _index_map(
        "scatter_dims_to_operand_dims",
        to_operand,
        indices[-1],
        rank,
        len(indices) - 1,
        op,
        "scatter_dims_to_operand_dims mapping",
    )
    bounds = [n for d, n in enumerate(operand) if d not in inserted and d not in batching]
    given = [updates[d] for d in window]
    if any(isinstance(a, int) and isinstance(b, int) and a > b for a, b in zip(given, bounds)):
        raise _misfit(
            op,
            "Bounds of the window dimensions of updates must not exceed the bounds of the corresponding dimensions of "
            f"operand. For updates of shape {tuple(updates)}, window {given} > {bounds}.",
        )
    places = [n for d, n in enumerate(updates) if d not in window]
    if any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(places, indices)):
        raise _misfit(
            op,
            "Bounds of the scatter dimensions of updates must be the same as the bounds of the corresponding "
            f"dimensions of scatter indices. For updates of shape {tuple(updates)}, got {places}, expected "
            f"{list(indices[:-1])}.",
        )
