"""Operations between the lanes of vmap(axis_name=...), and between the devices of pmap and shard_map.

An axis is given by its name, several by a list of names, the first one major. Every function takes trees of arrays.
psum, pmean, pmax and pmin also take integers among the axes: dimensions of the arrays themselves (positional_axes.py).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

from . import _weft
from ._core import tree as _tree
from ._core.errors import name_error, type_error, value_error
from ._core.sums_of_devices import cast_sums
from ._weft import Array
from .arguments import flag, int64
from .index_groups import IndexGroups
from .positional_axes import count, divided, reduced, refuse_groups, summable

__all__ = [
    "all_gather",
    "all_to_all",
    "axis_index",
    "axis_size",
    "pbroadcast",
    "pcast",
    "pmax",
    "pmean",
    "pmin",
    "ppermute",
    "pshuffle",
    "psum",
    "psum_scatter",
    "pswapaxes",
    "pvary",
]

AxisName = Hashable  # a string, or a tuple of them


def check_axis_name(name: Any, what: str) -> str:
    """The name itself. Raises TypeError or ValueError for what cannot name an axis."""
    if not isinstance(name, str):
        raise type_error(f"{what}: the name of an axis is a string, got {name!r} of type '{type(name).__name__}'")
    if not (name.isidentifier() and name.isascii()):
        raise value_error(f"{what}: the name of an axis is a word such as 'batch', got {name!r}")
    return name


def axis_names(axis_name: Any, what: str) -> list[str]:
    """One name or several, as a list."""
    names = list(axis_name) if isinstance(axis_name, (tuple, list)) else [axis_name]
    if not names:
        raise value_error(f"{what}: axis_name is empty; expected at least one name")
    for name in names:
        check_axis_name(name, what)
        if name in _left_alone.axes:
            raise name_error(
                f"{what}: '{name}' is an axis that the shard_map around leaves alone; it runs over those that its "
                "axis_names has"
            )
    if len(set(names)) != len(names):
        raise value_error(f"{what}: an axis is named twice in {tuple(names)}")
    return names


class _LeftAlone(threading.local):
    """Axes of the mesh over which the shard_map around this thread's code does not run (its axis_names)."""

    axes: frozenset[str] = frozenset()


_left_alone = _LeftAlone()


def axes_left_alone() -> frozenset[str]:
    """Axes of the mesh over which the shard_map around does not run: its axis_names has others."""
    return _left_alone.axes


@contextlib.contextmanager
def leaving_alone(names: Iterable[str]) -> Iterator[None]:
    """Inside it these are the axes that are left alone."""
    before = _left_alone.axes
    _left_alone.axes = frozenset(names)
    try:
        yield
    finally:
        _left_alone.axes = before


def _reduce(name: str, x: Any, axis_name: Any, groups: Any) -> Any:
    """pmax and pmin."""
    axes, dims = divided(axis_name)
    refuse_groups(dims, groups, name)
    names = axis_names(axes, name) if axes else []
    within = None if groups is None or not names else IndexGroups(groups, names, name, equal=False)

    def extreme(leaf):
        if dims:
            leaf = reduced(f"reduce_{name[1:]}", leaf, dims, name)
        if not names:
            return _weft.array(leaf, None, False)
        dtype = _weft.abstract(leaf)[1]
        if _weft.dtype_kind(dtype) == "complex" and within is None:
            return reduced(f"reduce_{name[1:]}", all_gather(leaf, tuple(names), to="invarying"), (0,), name)
        out = _weft.reduce_over_devices(name, leaf, names) if within is None else within.reduced(name, leaf)
        return _weft.astype(out, dtype) if _weft.dtype_kind(dtype) == "bool" else out

    return _tree.map(extreme, x)


def psum(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """The sum of x over all lanes or devices along an axis, the same on each. A Python number is multiplied by the size
    of the axis: psum(1, axis_name) is a plain number.

    Args:
        x: array, number or tree of them.
        axis_name: the name of an axis of vmap, shard_map or pmap, a dimension of x as an integer, or a tuple of these.
        axis_index_groups: lists of places along the axis, each in one list: they work within these groups.

    Returns: tree like x; booleans become integers.

    Raises:
        NameError: nothing around binds the axis.
        TypeError, ValueError: axis_index_groups are no such lists, or given together with dimensions.
        IndexError, ValueError: x has no such dimension; one is named twice.

    Example:
        >>> weft.vmap(lambda x: x / weft.lax.psum(x, "i"), axis_name="i")(wnp.array([1.0, 1.0, 2.0]))
        Array([0.25, 0.25, 0.5 ], dtype=float32)
    """
    axes, dims = divided(axis_name)
    refuse_groups(dims, axis_index_groups, "psum")
    names = axis_names(axes, "psum") if axes else []
    grouped = names and axis_index_groups is not None
    within = IndexGroups(axis_index_groups, names, "psum", equal=False) if grouped else None

    def total(leaf):
        if dims:
            leaf = reduced("reduce_sum", leaf, dims, "psum")
        if not names:
            return leaf
        leaf = summable(leaf)
        if within is not None:
            number = type(leaf) in (int, float, complex, bool) and within.equal
            return leaf * within.count if number else within.reduced("psum", leaf)
        if type(leaf) in (int, float, complex, bool):
            size = _weft.axis_size(names, "psum")
            if isinstance(size, int):
                return leaf * size
        return _weft.reduce_over_devices("psum", leaf, names)

    return _tree.map(total, x)


def pmean(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """The mean of x over all lanes or devices along an axis, the same on each.

    Args:
        x: array, number or tree of them.
        axis_name: the name of an axis of vmap, shard_map or pmap, a dimension of x as an integer, or a tuple of these.
        axis_index_groups: lists of places along the axis, each in one list: they work within these groups.

    Returns: tree like x, of inexact dtypes.

    Raises:
        NameError: nothing around binds the axis.
        TypeError, ValueError: axis_index_groups are no such lists, or given together with dimensions.
        IndexError, ValueError: x has no such dimension; one is named twice.

    Example:
        >>> weft.vmap(lambda x: x - weft.lax.pmean(x, "i"), axis_name="i")(wnp.array([1.0, 2.0, 6.0]))
        Array([-2., -1.,  3.], dtype=float32)
    """
    if axis_index_groups is not None:
        refuse_groups(divided(axis_name)[1], axis_index_groups, "pmean")
        every = psum(1, axis_name, axis_index_groups=axis_index_groups)
        return _tree.map(lambda leaf: psum(leaf, axis_name, axis_index_groups=axis_index_groups) / every, x)
    axes, dims = divided(axis_name)
    every = tuple(axis_names(axes, "pmean")) if axes else ()
    size = _weft.axis_size(list(every), "pmean") if axes else 1
    places = size if isinstance(size, int) else psum(_weft.array(1, None, True), every)

    def mean(leaf):
        return psum(leaf, (*dims, *every)) / (places * count(leaf, dims, "pmean") if dims else places)

    return _tree.map(mean, x)


def pmax(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """The largest of x over all lanes or devices along an axis, element by element, the same on each. Cotangents go to
    those that attain it, in equal parts.

    Args:
        x: array, number or tree of them.
        axis_name: the name of an axis of vmap, shard_map or pmap, a dimension of x as an integer, or a tuple of these.
        axis_index_groups: lists of places along the axis, each in one list: they work within these groups.

    Returns: tree like x.

    Raises:
        NameError: nothing around binds the axis.
        TypeError, ValueError: axis_index_groups are no such lists, or given together with dimensions.
        IndexError, ValueError: x has no such dimension; one is named twice.

    Example:
        >>> weft.vmap(lambda x: weft.lax.pmax(x, "i"), axis_name="i")(wnp.array([1, 5, 2]))
        Array([5, 5, 5], dtype=int32)
    """
    return _reduce("pmax", x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """The smallest of x over all lanes or devices along an axis, element by element, the same on each. Cotangents go to
    those that attain it, in equal parts.

    Args:
        x: array, number or tree of them.
        axis_name: the name of an axis of vmap, shard_map or pmap, a dimension of x as an integer, or a tuple of these.
        axis_index_groups: lists of places along the axis, each in one list: they work within these groups.

    Returns: tree like x.

    Raises:
        NameError: nothing around binds the axis.
        TypeError, ValueError: axis_index_groups are no such lists, or given together with dimensions.
        IndexError, ValueError: x has no such dimension; one is named twice.

    Example:
        >>> weft.vmap(lambda x: weft.lax.pmin(x, "i"), axis_name="i")(wnp.array([1, 5, 2]))
        Array([1, 1, 1], dtype=int32)
    """
    return _reduce("pmin", x, axis_name, axis_index_groups)


def pbroadcast(x: Any, axis_name: AxisName, source: int) -> Any:
    """x of one lane or device along an axis, on all of them.

    Args:
        x: array, number or tree of them.
        axis_name: the name of an axis of vmap, shard_map or pmap, or a tuple of names, the first one major.
        source: the place of that lane or device.

    Returns: tree like x.

    Raises:
        NameError: nothing around binds the axis.
        ValueError: there is no such place.

    Example:
        >>> weft.vmap(lambda x: weft.lax.pbroadcast(x, "i", 1), axis_name="i")(wnp.array([7, 8, 9]))
        Array([8, 8, 8], dtype=int32)
    """
    names = axis_names(axis_name, "pbroadcast")
    size = _weft.axis_size(names, "pbroadcast")
    if isinstance(size, int) and not 0 <= source < size:
        raise value_error(f"pbroadcast: source={source!r}; there are {size} places along {axis_name!r}")
    here = _weft.axis_index(names) == source

    def spread(leaf):
        shape, dtype, _, _ = _weft.abstract(leaf)
        total = _weft.reduce_over_devices("psum", _weft.where(here, leaf, _weft.full(shape, 0, dtype)), names)
        return _weft.astype(total, dtype)

    return _tree.map(spread, x)


def all_gather(
    x: Any,
    axis_name: AxisName,
    *,
    axis: int = 0,
    tiled: bool = False,
    axis_index_groups: Any = None,
    to: str = "varying",
) -> Any:
    """x of all lanes or devices along an axis, on each of them.

    Args:
        x: array, number or tree of them.
        axis_name: the name of an axis of vmap, shard_map or pmap, or a tuple of names, the first one major.
        axis: where the values stand: a new dimension, or with `tiled` the one along which they follow each other.
        tiled: whether the values are put one after the other instead of stacked.
        axis_index_groups: lists of places along the axis, each in one list: they work within these groups.
        to: "varying", or "invarying": shard_map knows that the result is the same on all devices, so that out_specs
            need not name the axis; "reduced": as "varying".

    Returns: tree like x, with one dimension more, or a longer one.

    Raises:
        NameError: nothing around binds the axis.
        TypeError, ValueError: axis_index_groups are no such lists.
        ValueError: `to` is something else, or "invarying" of groups.

    Example:
        >>> weft.vmap(lambda x: weft.lax.all_gather(x, "i"), axis_name="i")(wnp.array([1, 2]))
        Array([[1, 2],
               [1, 2]], dtype=int32)
    """
    names, tiled = axis_names(axis_name, "all_gather"), flag(tiled, "all_gather: tiled")
    axis = int64(axis, "all_gather: axis")
    if to not in ("varying", "invarying", "reduced"):
        raise value_error(f"all_gather: to={to!r}; expected 'varying', 'invarying' or 'reduced'")
    if to == "invarying":
        if axis_index_groups is not None:
            raise value_error("all_gather: with axis_index_groups the result differs between groups; to='varying'")
        return _tree.map(lambda leaf: _same_for_all(leaf, names, axis, tiled), x)
    if axis_index_groups is not None:
        within = IndexGroups(axis_index_groups, names, "all_gather", equal=True)
        return _tree.map(lambda leaf: _together(within.gathered(leaf), axis, tiled), x)
    gathered = _tree.map(lambda leaf: _weft.all_gather(leaf, names, axis, tiled), x)
    return gathered if to == "varying" else _tree.map(lambda leaf: cast_sums(leaf, names, to), gathered)


def _same_for_all(x: Any, names: list[str], axis: int, tiled: bool) -> Array:
    if not set(names) & set(_weft.varying(x)):  # of vmap, where nothing is said of devices
        return _weft.all_gather(x, names, axis, tiled)
    x = _weft.array(x, None, False)
    axis = _weft.check_axis(axis, x.ndim + (not tiled), "axis")
    return whole_of_blocks(x if tiled else _weft.expand_dims(x, axis), names, axis)


def _together(stacked: Array, axis: int, tiled: bool) -> Array:
    """What stands along the first dimension, as a dimension of its own, or one after the other."""
    axis = _weft.check_axis(axis, stacked.ndim - tiled, "axis")
    if not tiled:
        return _weft.moveaxis(stacked, 0, axis)
    shape = stacked.shape[1:]
    merged = _weft.moveaxis(stacked, 0, axis)
    return merged.reshape((*shape[:axis], -1, *shape[axis + 1 :]))


def _part(x: Array, place: Any, count: int, axis: int, tiled: bool, what: str) -> Array:
    """The part of a dimension that belongs to a place among `count`: an element, or a block."""
    axis = _weft.check_axis(axis, x.ndim, what)
    size = x.shape[axis]
    if (size % count if tiled else size != count) and isinstance(size, int):
        fits = f"a multiple of {count}" if tiled else str(count)
        raise value_error(f"{what}: dimension {axis} of shape {x.shape} must have size {fits}, as the groups have")
    blocks = x.reshape((*x.shape[:axis], count, -1, *x.shape[axis + 1 :])) if tiled else x
    return _weft.take(blocks, place, axis, "clip")


def block_of_axes(x: Any, names: Sequence[str], axis: int) -> Array:
    """The block of a dimension that belongs to this lane or device along axes."""
    count = _weft.axis_size(list(names), "shard_map")
    return _part(_weft.array(x, None, False), _weft.axis_index(list(names)), count, axis, True, "shard_map")


def whole_of_blocks(x: Any, names: Sequence[str], axis: int) -> Array:
    """What the blocks of a dimension make together, as a value that is the same on all: every place adds its block to
    zeros, which are negative, so that no sign of a zero is lost."""
    x = _weft.array(x, None, False)
    count, dtype = _weft.axis_size(list(names), "shard_map"), x.dtype
    here = _weft.iota((count,), 0, "int32") == _weft.axis_index(list(names))
    here = here.reshape((1,) * axis + (count,) + (1,) * (x.ndim - axis))
    nothing = _weft.full((), -0.0 if _weft.is_inexact(dtype) else 0, dtype)
    blocks = _weft.where(here, _weft.expand_dims(x, axis), nothing)
    total = _weft.astype(_weft.reduce_over_devices("psum", blocks, list(names)), dtype)
    return total.reshape((*x.shape[:axis], -1, *x.shape[axis + 1 :]))


def psum_scatter(
    x: Any, axis_name: AxisName, *, scatter_dimension: int = 0, tiled: bool = False, axis_index_groups: Any = None
) -> Any:
    """The sum of x over an axis, of which each lane or device keeps its part.

    Args:
        x: array, number or tree of them.
        axis_name: the name of an axis of vmap, shard_map or pmap, or a tuple of names, the first one major.
        scatter_dimension: the dimension that is divided: element k, or with `tiled` block k, stays with the k-th.
        tiled: whether the dimension is cut in blocks; otherwise it has the size of the axis and goes away.
        axis_index_groups: lists of places along the axis, each in one list: they work within these groups.

    Returns: tree like x, with one dimension less, or a shorter one.

    Raises:
        NameError: nothing around binds the axis.
        TypeError, ValueError: axis_index_groups are no such lists.
        ValueError, TypeError: the dimension does not have the size of the axis, or no multiple of it.

    Example:
        >>> weft.vmap(lambda x: weft.lax.psum_scatter(x, "i"), axis_name="i")(wnp.array([[1, 2], [10, 20]]))
        Array([11, 22], dtype=int32)
    """
    names, tiled = axis_names(axis_name, "psum_scatter"), flag(tiled, "psum_scatter: tiled")
    scatter_dimension = int64(scatter_dimension, "psum_scatter: scatter_dimension")
    if axis_index_groups is not None:
        within = IndexGroups(axis_index_groups, names, "psum_scatter", equal=True)
        total = psum(x, axis_name, axis_index_groups=axis_index_groups)
        part = lambda leaf: _part(leaf, within.own_place(), within.count, scatter_dimension, tiled, "psum_scatter")
        return _tree.map(part, total)
    return _tree.map(lambda leaf: _weft.psum_scatter(leaf, names, scatter_dimension, tiled), x)


def all_to_all(
    x: Any,
    axis_name: AxisName,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Every lane or device sends part k of x to the k-th, and puts together what it gets.

    Args:
        x: array, number or tree of them.
        axis_name: the name of an axis of vmap, shard_map or pmap, or a tuple of names, the first one major.
        split_axis: the dimension that is cut: of the size of the axis, or with `tiled` of a multiple.
        concat_axis: where the parts are put together.
        axis_index_groups: lists of places along the axis, each in one list: they work within these groups.
        tiled: whether dimensions are cut and grow; otherwise split_axis goes away, and concat_axis is a new one.

    Returns: tree like x.

    Raises:
        NameError: nothing around binds the axis.
        TypeError, ValueError: axis_index_groups are no such lists.
        ValueError, TypeError: split_axis does not have the size of the axis, or no multiple of it.

    Example:
        >>> weft.vmap(lambda x: weft.lax.all_to_all(x, "i", 0, 0), axis_name="i")(wnp.array([[1, 2], [3, 4]]))
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
    names, tiled = axis_names(axis_name, "all_to_all"), flag(tiled, "all_to_all: tiled")
    split_axis = int64(split_axis, "all_to_all: split_axis")
    concat_axis = int64(concat_axis, "all_to_all: concat_axis")
    if axis_index_groups is not None:
        within = IndexGroups(axis_index_groups, names, "all_to_all", equal=True)

        def exchanged(leaf):
            # Of everyone in the group, in front, the part for this one.
            dimension = _weft.check_axis(split_axis, _weft.array(leaf, None, False).ndim, "all_to_all") + 1
            parts = _part(within.gathered(leaf), within.own_place(), within.count, dimension, tiled, "all_to_all")
            return _together(parts, concat_axis, tiled)

        return _tree.map(exchanged, x)
    return _tree.map(lambda leaf: _weft.all_to_all(leaf, names, split_axis, concat_axis, tiled), x)


def ppermute(x: Any, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Any:
    """x of another lane or device; zeros where nothing arrives.

    Args:
        x: array, number or tree of them.
        axis_name: the name of an axis of vmap, shard_map or pmap, or a tuple of names, the first one major.
        perm: pairs (from, to), each place at most once on either side.

    Returns: tree like x.

    Raises:
        NameError: nothing around binds the axis.
        ValueError: a place is out of range, or twice on one side.

    Example:
        >>> weft.vmap(lambda x: weft.lax.ppermute(x, "i", [(0, 1), (1, 2)]), axis_name="i")(wnp.array([7, 8, 9]))
        Array([0, 7, 8], dtype=int32)
    """
    names = axis_names(axis_name, "ppermute")
    pairs = [(int(source), int(target)) for source, target in perm]
    return _tree.map(lambda leaf: _weft.ppermute(leaf, names, pairs), x)


def pshuffle(x: Any, axis_name: AxisName, perm: Sequence[int]) -> Any:
    """x of lane or device perm[k], on the k-th.

    Args:
        x: array, number or tree of them.
        axis_name: the name of an axis of vmap, shard_map or pmap, or a tuple of names, the first one major.
        perm: a permutation of the places along the axis.

    Returns: tree like x.

    Raises:
        NameError: nothing around binds the axis.
        ValueError: perm is no permutation.

    Example:
        >>> weft.vmap(lambda x: weft.lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i")(wnp.array([7, 8, 9]))
        Array([9, 7, 8], dtype=int32)
    """
    names = axis_names(axis_name, "pshuffle")
    size = _weft.axis_size(names, "pshuffle")
    if sorted(perm) != list(range(size)):
        raise value_error(f"pshuffle: perm={list(perm)} is not a permutation of the {size} places along {axis_name!r}")
    return ppermute(x, axis_name, [(source, target) for target, source in enumerate(perm)])


def pswapaxes(x: Any, axis_name: AxisName, axis: int, *, axis_index_groups: Any = None) -> Any:
    """Exchanges a named axis with a dimension of x of the same size: all_to_all(x, axis_name, axis, axis).

    Args:
        x: array, number or tree of them.
        axis_name: the name of an axis of vmap, shard_map or pmap, or a tuple of names, the first one major.
        axis: the dimension.
        axis_index_groups: lists of places along the axis, each in one list: they work within these groups.

    Returns: tree like x.

    Raises:
        NameError: nothing around binds the axis.
        TypeError, ValueError: axis_index_groups are no such lists.
        ValueError: the dimension does not have the size of the axis.

    Example:
        >>> weft.vmap(lambda x: weft.lax.pswapaxes(x, "i", 0), axis_name="i")(wnp.array([[1, 2], [3, 4]]))
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def axis_index(axis_name: AxisName) -> Array:
    """The place of this lane or device along an axis; along several axes, in row-major order.

    Args:
        axis_name: the name of an axis of vmap, shard_map or pmap, or a tuple of names, the first one major.

    Returns: int32 array of no dimensions.

    Raises:
        NameError: nothing around binds the axis.

    Example:
        >>> weft.vmap(lambda x: x + 100 * weft.lax.axis_index("i"), axis_name="i")(wnp.array([1, 1, 1]))
        Array([  1, 101, 201], dtype=int32)
    """
    return _weft.axis_index(axis_names(axis_name, "axis_index"))


def axis_size(axis_name: AxisName) -> int:
    """How many lanes or devices there are along an axis, or along several together.

    Args:
        axis_name: the name of an axis of vmap, shard_map or pmap, or a tuple of names, the first one major.

    Returns: integer (weft.Dim, where vmap maps a symbolic size).

    Raises:
        NameError: nothing around binds the axis.

    Example:
        >>> weft.vmap(lambda x: x / weft.lax.axis_size("i"), axis_name="i")(wnp.array([2.0, 4.0]))
        Array([1., 2.], dtype=float32)
    """
    return _weft.axis_size(axis_names(axis_name, "axis_size"), "axis_size")


def pvary(x: Any, axis_name: AxisName) -> Any:
    """x as a value that may differ between the devices along an axis of a mesh, though it is the same on all.
    Operations do that by themselves where they need it. Along an axis of vmap it is x.

    Args:
        x: array, number or tree of them.
        axis_name: the name of an axis of vmap, shard_map or pmap, or a tuple of names, the first one major.

    Returns: tree like x.

    Raises:
        NameError: nothing around binds the axis.

    Example:
        >>> weft.vmap(lambda x: weft.lax.pvary(x, "i"), axis_name="i")(wnp.array([1, 2]))
        Array([1, 2], dtype=int32)
    """
    names = axis_names(axis_name, "pvary")
    return _tree.map(lambda leaf: _weft.pvary(leaf, names), x)


def pcast(x: Any, axis_name: AxisName, *, to: str) -> Any:
    """x as a value that lies otherwise along an axis of a mesh.

    Args:
        x: array, number or tree of them.
        axis_name: the name of an axis of vmap, shard_map or pmap, or a tuple of names, the first one major.
        to: "varying": as pvary; "reduced": the same, so that the cotangent is what each device finds; "unreduced":
            parts of a sum: what each device has, or where that is the same on all, what the first one has.

    Returns: tree like x.

    Raises:
        NameError: nothing around binds the axis.
        ValueError: `to` is something else.

    Example:
        >>> weft.vmap(lambda x: weft.lax.pcast(x, "i", to="varying"), axis_name="i")(wnp.array([1, 2]))
        Array([1, 2], dtype=int32)
    """
    if to not in ("varying", "reduced", "unreduced"):
        raise value_error(f"pcast: to={to!r}; expected 'varying', 'reduced' or 'unreduced'")
    names = axis_names(axis_name, "pcast")
    return _tree.map(lambda leaf: cast_sums(leaf, names, to), x)
