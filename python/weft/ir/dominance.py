"""Which nodes of a graph every way to another one leads through (Cooper, Harvey, Kennedy: A simple, fast dominance
algorithm, 2001)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

__all__ = ["dominates", "immediate_dominators", "reverse_postorder"]

_T = TypeVar("_T", bound=Hashable)


def immediate_dominators(root: _T, successors: Callable[[_T], Iterable[_T]]) -> dict[_T, _T]:
    """For each node that can be reached from the root, the nearest other one through which every way to it leads; the
    root's is itself."""
    order = reverse_postorder(root, successors)
    place = {node: i for i, node in enumerate(order)}
    before: dict[_T, list[_T]] = {node: [] for node in order}
    for node in order:
        for to in successors(node):
            before[to].append(node)
    above = {root: root}
    changed = True
    while changed:
        changed = False
        for node in order[1:]:
            known = [p for p in before[node] if p in above]
            nearest = known[0]
            for other in known[1:]:
                nearest = _common(above, place, nearest, other)
            if above.get(node) is not nearest:
                above[node] = nearest
                changed = True
    return above


def dominates(above: Mapping[_T, _T], first: _T, second: _T) -> bool:
    """Whether every way to the second leads through the first. A node dominates itself."""
    while second is not first:
        if second not in above or above[second] is second:
            return False
        second = above[second]
    return True


def _common(above: Mapping[_T, _T], place: Mapping[_T, int], x: _T, y: _T) -> _T:
    while x is not y:
        while place[x] > place[y]:
            x = above[x]
        while place[y] > place[x]:
            y = above[y]
    return x


def reverse_postorder(root: _T, successors: Callable[[_T], Iterable[_T]]) -> list[_T]:
    """What can be reached from the root: each node before those that it leads to, but for edges that close circles."""
    seen, order = {root}, []
    stack = [(root, iter(successors(root)))]
    while stack:
        node, rest = stack[-1]
        for to in rest:
            if to not in seen:
                seen.add(to)
                stack.append((to, iter(successors(to))))
                break
        else:
            order.append(node)
            stack.pop()
    return order[::-1]
