"""jit(capture="auto"): compiled recordings of the paths that Python took, used again where it would take them again.

While a function is recorded its arguments are known, and each number that Python asks for (`if x > 0`, `float(x)`) is a
decision. The recording computes the results and, beside them, its decisions; a call runs the one that was right last,
compares its decisions with those on record, and keeps the results if they agree. Otherwise it tries the others, and
then Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from . import _weft
from ._core import tree as _tree
from ._core.errors import value_error
from ._core.names import update_wrapper
from ._core.static import Key
from ._core.tracing import Flat, call_name, flatten_result
from .static_arguments import signature_of

# Of one signature; with more different paths than this, the one that was not right for longest goes.
_MOST = 16


class _Path:
    """One recording: a compiled program and the decisions that it is good for."""

    def __init__(self, traced: Any, decisions: list, out_tree: Any):
        fn, captures, weak = traced.fn, list(traced.captures), traced.weak_results
        self.out_tree, self.reusable = out_tree, not fn.has_effects and not traced.happened
        self.decisions = [np.asarray(d) for d in decisions]
        self.num_eqns = fn.num_eqns
        run = lambda *leaves: tuple(_weft.apply(fn, [*leaves, *captures], weak))
        self._run = _weft.JitFunction(run, frozenset(), frozenset(), frozenset(), frozenset())

    def __call__(self, leaves: list) -> tuple[Any, bool]:
        """The result, and whether it is right: whether Python would have decided the same."""
        out = self._run(*leaves)
        n = len(out) - len(self.decisions)
        same = all(np.array_equal(np.asarray(d), e) for d, e in zip(out[n:], self.decisions))
        return _tree.unflatten(self.out_tree, out[:n]), same


def check_options_of_recordings(given: dict[str, Any], backend: str) -> None:
    """Raises ValueError for options of jit that recordings do not take. `given`: words for them, and whether they were
    given."""
    for words, is_given in given.items():
        if is_given:
            raise value_error(f"jit: capture='auto' takes {words}")
    if backend != "cpu":
        raise value_error(f"jit: capture='auto' is for the backend 'cpu', got backend={backend!r}")


class Recorded:
    """A function compiled path by path."""

    __name__: str

    def __init__(self, function: Callable, static_argnums: Iterable[int], static_argnames: Iterable[str]):
        self._function, self._nums, self._names = function, frozenset(static_argnums), frozenset(static_argnames)
        self._paths: dict[Key, list[_Path]] = {}
        self._runs = 0
        update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _weft.is_tracing() or _weft.disable_jit():
            return self._function(*args, **kwargs)
        flat, key = signature_of(self._function, self._nums, self._names, args, kwargs)
        paths = self._paths.setdefault(key, [])
        for path in paths:
            result, right = path(flat.leaves)
            if right:
                paths.remove(path)
                paths.insert(0, path)
                return result
        path = self._record(flat)
        if path.reusable:
            paths.insert(0, path)
            del paths[_MOST:]
        return path(flat.leaves)[0]

    def _record(self, flat: Flat) -> _Path:
        self._runs += 1

        def run(leaves: list) -> list:
            args, kwargs = _tree.unflatten(flat.in_tree, leaves)
            return flatten_result(flat, flat.function(*args, **kwargs))

        names = [name if name.isidentifier() else "" for name in flat.names]
        traced, decisions = _weft.record(run, flat.leaves, names, flat.name)
        return _Path(traced, decisions, flat.out_tree)

    def explain(self) -> str:
        """How often Python ran, and the paths that are kept."""
        lines = [f"{call_name(self._function)}: Python ran {self._runs} times"]
        for key, paths in self._paths.items():
            types = key.value[2]
            lines.append(f"  for ({', '.join(text for _, text in types)}):")
            for path in paths:
                decided = ", ".join(str(d.tolist()) for d in path.decisions)
                lines.append(f"    {path.num_eqns} equations, good where Python would see: {decided or 'nothing'}")
        return "\n".join(lines)
