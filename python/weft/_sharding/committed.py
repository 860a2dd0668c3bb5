"""Arrays that somebody has put elsewhere than where a program wants them: in JAX's meaning an error."""

from __future__ import annotations

import math
import threading
from typing import Any

from .. import _weft
from .._core import tree as _tree
from .._core.errors import value_error


def _elsewhere(places: list, leaves: list) -> list[tuple[int, Any, Any, Any]]:
    """Where JAX's meaning is asked for: arrays that somebody has put elsewhere than where they are to lie; their
    numbers, they, how they lie, and how they are to."""
    found: list[tuple[int, Any, Any, Any]] = []
    if not _tree.jax_semantics():
        return found
    for i, (leaf, place) in enumerate(zip(leaves, places)):
        if place is None or not place._has_devices() or not isinstance(leaf, _weft.Array) or _weft.is_traced(leaf):
            continue
        own = _weft.sharding_of(leaf)
        if own is not None and not own.is_equivalent_to(place, leaf.ndim):
            found.append((i, leaf, own, place))
    return found


class _Moved(threading.local):
    """The arguments, by number, that the in_shardings of the function that was traced last move to other devices; and
    the names of all of its arguments."""

    arguments: frozenset[int] = frozenset()
    function = ""
    all_of_next = False
    names: tuple[str, ...] = ()
    traced = ""
    inner_says = False  # a jitted function inside of the one that was traced last has shardings of its own


_moved = _Moved()


def cut_alike(a: Any, b: Any, rank: int) -> bool:
    """Whether both have the same blocks in the same order, on whatever devices."""
    shape = (math.lcm(a.num_devices, b.num_devices),) * rank
    alike = list(a._parts(shape).values()) == list(b._parts(shape).values())
    return alike or (a.is_fully_replicated and b.is_fully_replicated)


def check_cut(places: list, leaves: list, names: list[str], function: str) -> None:
    """Raises ValueError, where JAX's meaning is asked for, for arrays that somebody has cut otherwise than in_shardings
    of a function says. Those that only lie on other devices are moved."""
    moved = set()
    for i, x, own, place in _elsewhere(places, leaves):
        if cut_alike(own, place, x.ndim):
            moved.add(i)
            continue
        raise value_error(
            f"jit: in_shardings, argument {names[i]}, {x.dtype}[{','.join(map(str, x.shape))}], lies as {own}, and is "
            f"asked for as {place}; weft.device_put moves it"
        )
    _moved.arguments, _moved.function = frozenset(moved), function


def moved_arguments(function: str) -> frozenset[int]:
    """The arguments of a function, by number, that its in_shardings move, if it was the one that was traced last."""
    moved = _moved.arguments if _moved.function == function else frozenset()
    _moved.arguments = frozenset()
    return moved


def begins(has_shardings: bool, is_inside: bool) -> None:
    """The trace of a jitted function begins, with in_shardings or out_shardings or without, maybe inside of another
    one."""
    _moved.inner_says = is_inside and (has_shardings or _moved.inner_says)


def inner_says() -> bool:
    """Whether a jitted function inside of the one that was traced last has shardings of its own."""
    return _moved.inner_says


def traced_last(function: str, names: list[str]) -> None:
    """Notes the names of the arguments of the function that was traced last."""
    _moved.traced, _moved.names = function, tuple(names)
    if _moved.all_of_next:
        _moved.arguments, _moved.function, _moved.all_of_next = frozenset(range(len(names))), function, False


def moves_all() -> None:
    """The function that is being traced moves all its arguments to its own devices."""
    _moved.all_of_next = True


def names_of_arguments(function: str) -> tuple[str, ...]:
    """The names of the arguments of a function, if it was the one that was traced last, where they are no identifiers,
    too: x[0] of a tuple x."""
    return _moved.names if _moved.traced == function else ()


def check_compiled_for(places: list, leaves: list, names: list[str]) -> None:
    """Raises ValueError, where JAX's meaning is asked for, for arrays that somebody has put elsewhere than where the
    arguments lay that a program was compiled for."""
    wrong = [f"argument {names[i]} as {place}, got {own}" for i, _, own, place in _elsewhere(places, leaves)]
    if wrong:
        raise value_error(f"the program was compiled for {'; for '.join(wrong)}; weft.device_put moves an array")
