"""Lists that traced functions write (hijax's Log): what one appends is a result of its program."""

from __future__ import annotations

from typing import Any

import weft

from .._core import tree as _tree
from .._core.errors import type_error
from .._state import scopes

# Functions that return what is appended in them: jitted ones as it is, scan stacked.
_LEAVING = ("jit", "scan")


class Log:
    """Named lists that grow. Jitted functions and the bodies of scan may append, and do not read."""

    def __init__(self) -> None:
        self._dct: dict[str, list[Any]] = {}
        # By the id of a function's scope: the scope, and what the function has appended.
        self._inside: dict[int, tuple[Any, dict[str, list[Any]]]] = {}
        # Jitted functions take it, so that they are known to change what is outside of them.
        self._used = weft.new_ref(False)

    def append(self, name: str, value: Any) -> None:
        """Appends an array to the list of this name."""
        here: Any = scopes.here()
        if here is None:
            self._dct.setdefault(name, []).append(value)
            return
        if here.kind not in _LEAVING:
            raise type_error(
                f"Log.append: {here.kind}: '{here.name}' returns nothing beside its results; return the value, or "
                "append in a jitted function or in the body of scan"
            )
        self._used[...]
        if self._inside.get(id(here), (None,))[0] is not here:
            self._inside[id(here)] = (here, {})
        here.left[id(self)] = self
        self._inside[id(here)][1].setdefault(name, []).append(weft.numpy.asarray(value))

    def read(self) -> dict[str, list[Any]]:
        """The lists, outside of traced functions."""
        if scopes.here() is not None:
            raise type_error("Log.read: traced functions append to a log, and do not read it")
        return {name: list(values) for name, values in self._dct.items()}

    # As scopes.Changed asks for.

    def _place(self) -> Any:
        return None

    def _leave(self) -> Any:
        return self._inside.pop(id(scopes.here()))[1]

    def _take(self, lists: dict[str, list[Any]]) -> None:
        for name, values in lists.items():
            for value in values:
                self.append(name, value)


_tree.register(Log, lambda log: ((), log), lambda log, _: log)
