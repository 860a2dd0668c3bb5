"""Objects that change, whose structure changes, too (hijax's Box): a box is a container of references."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import weft

from .._core import tree as _tree
from .._core.errors import not_implemented, type_error
from .._state import scopes

# Of the references of a box whose value has another structure by now: functions that used them are traced once more.
_GONE = scopes.Scope("a value that a box no longer has", "hijax")


class BoxTypeState(NamedTuple):
    """What a box holds, as types."""

    leaf_avals: tuple[Any, ...]
    treedef: Any


class Box:
    """An object that holds a tree of arrays, which set() replaces.

    Of a box that was made outside of a traced function the value may change there, not its structure nor the types of
    its arrays.
    """

    def __init__(self, val: Any = None):
        self._home: Any = scopes.here()
        self._hold(val)

    def _hold(self, value: Any) -> None:
        leaves, self._tree = _tree.flatten(value)
        # The first says that there is this structure: it is used by everything that asks for the value.
        self._refs = [weft.new_ref(False), *map(weft.new_ref, leaves)]

    def get(self) -> Any:
        """What it holds."""
        structure, *refs = self._refs
        structure[...]
        return _tree.unflatten(self._tree, [r[...] for r in refs])

    def set(self, val: Any) -> None:
        """From here on it holds this."""
        here = scopes.here()
        if self._fits(val, exactly=here is self._home):
            for ref, leaf in zip(self._refs[1:], _tree.leaves(val)):
                ref[...] = leaf
        elif here is self._home:
            for ref in self._refs:
                ref._home = _GONE
            self._hold(val)
        else:
            where = "a tree's copy" if here is None else f"{here.kind}: '{here.name}'"
            message = (
                f"Box.set: {where} changes the structure or the types of what a box holds that was "
                f"made outside of it: {cur_qdd(self)} to {_state(val)}; make the box inside, or return the new value"
            )
            if here is not None and here.kind != "jit":
                raise type_error(message)
            raise not_implemented(message)

    def _fits(self, value: Any, exactly: bool) -> bool:
        leaves, tree = _tree.flatten(value)
        if tree != self._tree:
            return False
        for ref, leaf in zip(self._refs[1:], leaves):
            new = weft.typeof(leaf)
            # A number without a dtype of its own takes the one that is there.
            weak = exactly and new.weak_type != ref.weak_type
            if new.shape != ref.shape or new.dtype != ref.dtype or weak:
                return False
        return True

    @property
    def _val(self) -> Any:
        return self.get()

    def __repr__(self) -> str:
        return f"Box({cur_qdd(self)})"


# Where a box is from that came as an argument: its structure stays.
_OUTSIDE = scopes.Scope("the caller", "hijax")


def _made_of(tree: Any, refs: Sequence[Any]) -> Box:
    box = object.__new__(Box)
    box._home, box._tree, box._refs = _OUTSIDE, tree, list(refs)
    return box


_tree.register(Box, lambda box: (list(box._refs), box._tree), _made_of)


def _state(value: Any) -> BoxTypeState:
    leaves, tree = _tree.flatten(value)
    return BoxTypeState(tuple(map(weft.typeof, leaves)), tree)


def cur_qdd(box: Any) -> BoxTypeState:
    """The structure and the types of what a box holds here."""
    if not isinstance(box, Box):
        raise type_error(f"weft.as_jax: {box!r} is no object that changes")
    return _state(box.get())


def new_box() -> Box:
    """A box that holds None."""
    return Box()


def box_get(box: Box) -> Any:
    """What a box holds."""
    return box.get()


def box_set(box: Box, val: Any) -> None:
    """From here on the box holds this."""
    box.set(val)
