"""What programs say of the function that they are of: its place, and the names of its arguments and results."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .._core import tree as _tree


class DebugInfo(NamedTuple):
    """Of a function that was traced: for what, its name and place, and a name for each leaf of its arguments and
    results; None: not known."""

    traced_for: str
    func_src_info: str
    arg_names: tuple[str, ...] | None
    result_paths: tuple[str, ...] | None

    @property
    def func_name(self) -> str:
        return self.func_src_info.split(" ")[0]

    @property
    def func_filename(self) -> str | None:
        place = self.func_src_info.partition(" at ")[2]
        return place.rpartition(":")[0] or None

    @property
    def func_lineno(self) -> int | None:
        line = self.func_src_info.rpartition(":")[2]
        return int(line) if line.isdigit() else None


def source_of(fun: Any) -> str:
    """A function's name and place: "f at program.py:3"."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    name = getattr(fun, "__name__", "<unnamed function>")
    code = getattr(inspect.unwrap(fun), "__code__", None)
    return name if code is None else f"{name} at {code.co_filename}:{code.co_firstlineno}"


def _names(fun: Any, in_tree: Any, static: Sequence[int]) -> tuple[str, ...] | None:
    """A name for each leaf of the arguments; `static`: the positions of those that are no part of the tree."""
    args, kwargs = _tree.unflatten(in_tree, range(in_tree.num_leaves))
    given = list(args)
    for position in sorted(static):
        given.insert(position % (len(given) + 1), None)
    try:
        bound = inspect.signature(fun).bind_partial(*given, **kwargs)
    except (TypeError, ValueError):  # it has none, or the arguments are not known
        return None
    names = dict[int, str]()
    for name, value in bound.arguments.items():
        leaves, tree = _tree.flatten(value)
        names.update((leaf, f"{name}{path}") for leaf, path in zip(leaves, _tree.path_texts(tree)))
    return tuple(names.get(i, "") for i in range(in_tree.num_leaves))


def of_program(fun: Any, in_tree: Any, out_tree: Any, static: Sequence[int] = ()) -> Callable[[], DebugInfo]:
    """What gives that of a traced function."""

    def made() -> DebugInfo:
        arguments = None if in_tree is None else _names(fun, in_tree, static)
        results = None if out_tree is None else tuple(f"result{path}" for path in _tree.path_texts(out_tree))
        return DebugInfo("jit", source_of(fun), arguments, results)

    return made


def debug_info(
    traced_for: str, fun: Any, args: Any, kwargs: Any, *, static_argnums: Sequence[int] = (), **_: Any
) -> DebugInfo:
    """That of a function that is called with these arguments."""
    moving = [x for i, x in enumerate(args) if i not in static_argnums]
    return DebugInfo(
        traced_for, source_of(fun), _names(fun, _tree.structure((tuple(moving), dict(kwargs))), static_argnums), None
    )
