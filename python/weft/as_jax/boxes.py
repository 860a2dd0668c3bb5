"""Objects that change, whose structure changes, too (hijax's Box): a box is a container of references."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import weft

from .._core import tree as _tree
from .._core.errors import type_error
from .._state import scopes

# Of the references of a box whose value has another structure by now: functions that used them are traced once more.
_REMEMBERED = 8  # structures
_GONE = scopes.Scope("a value that a box no longer has", "hijax")


class BoxTypeState(NamedTuple):
    """What a box holds, as types."""

    leaf_avals: tuple[Any, ...]
    treedef: Any


class _Version:
    """What a box holds in a function: its structure, and a reference for each array. The first reference says that
    there is this structure: it is used by everything that asks for the value.

    Attributes:
        scope: of the function, None outside of all.
    """

    def __init__(self, scope: Any, tree: Any, refs: Sequence[Any]):
        self.scope, self.tree, self.refs = scope, tree, list(refs)
        self._homes: list[Any] = []

    @classmethod
    def holding(cls, of: Box, value: Any) -> _Version:
        """One of the function that is traced here."""
        leaves, tree = _tree.flatten(value)
        version = cls(scopes.here(), tree, [weft.new_ref(False), *map(weft.new_ref, leaves)])
        version.refs[0]._of = of
        return version

    def hide(self) -> None:
        """From here on it is not what the box holds: programs that use its references are for another structure."""
        self._homes = [ref._home for ref in self.refs]
        for ref in self.refs:
            ref._home = _GONE

    def show(self) -> None:
        """Ends hide()."""
        for ref, home in zip(self.refs, self._homes):
            ref._home = home

    def fits(self, value: Any, exactly: bool) -> bool:
        """Whether a value has this structure and these types."""
        leaves, tree = _tree.flatten(value)
        if tree != self.tree:
            return False
        for ref, leaf in zip(self.refs[1:], leaves):
            new = weft.typeof(leaf)
            # A number without a dtype of its own takes the one that is there.
            weak = exactly and new.weak_type != ref.weak_type
            if new.shape != ref.shape or new.dtype != ref.dtype or weak:
                return False
        return True

    def write(self, value: Any) -> None:
        """From here on the references hold this."""
        for ref, leaf in zip(self.refs[1:], _tree.leaves(value)):
            ref[...] = leaf


class Box:
    """An object that holds a tree of arrays, which set() replaces.

    Of a box that was made outside of a traced function the value may change there; its structure and the types of its
    arrays where that function is jitted: what it leaves in the box is a result of its program (scopes.Changed).
    """

    def __init__(self, val: Any = None):
        self._versions = [_Version.holding(self, val)]
        self._earlier: list[_Version] = []  # that it had where it was made

    def _now(self) -> _Version:
        """The version of the innermost function that has one."""
        while len(self._versions) > 1 and not self._versions[-1].scope.open:
            self._end()
        return self._versions[-1]

    def _end(self) -> None:
        self._versions.pop()
        self._versions[-1].show()

    def get(self) -> Any:
        """What it holds."""
        version = self._now()
        structure, *refs = version.refs
        structure[...]
        return _tree.unflatten(version.tree, [r[...] for r in refs])

    def set(self, val: Any) -> None:
        """From here on it holds this."""
        here, version = scopes.here(), self._now()
        own = here is version.scope
        if version.fits(val, exactly=own):
            version.write(val)
        elif own:
            self._replace(val)
        elif here is not None and here.kind == "jit":
            version.refs[0][...]
            version.hide()
            self._versions.append(_Version.holding(self, val))
            here.left[id(self)] = self
        else:
            where = "a tree's copy" if here is None else f"{here.kind}: '{here.name}'"
            raise type_error(
                f"Box.set: {where} changes the structure or the types of what a box holds that was "
                f"made outside of it: {cur_qdd(self)} to {_state(val)}; make the box inside, or return the new value"
            )

    def _replace(self, value: Any) -> None:
        """Another structure where the version was made; programs of one that it had before are found again."""
        self._versions[-1].hide()
        known = next((v for v in self._earlier if v.scope is scopes.here() and v.fits(value, exactly=True)), None)
        if known is not None:
            self._earlier.remove(known)
            known.show()
            known.write(value)
        self._earlier = [*self._earlier[-_REMEMBERED:], self._versions.pop()]
        self._versions.append(known or _Version.holding(self, value))

    # As scopes.Changed asks for.

    def _place(self) -> Any:
        return self._versions[0].refs[0]

    def _leave(self) -> Any:
        value = self.get()
        self._end()
        return value

    def _take(self, value: Any) -> None:
        self.set(value)

    @property
    def _val(self) -> Any:
        return self.get()

    def __repr__(self) -> str:
        return f"Box({cur_qdd(self)})"


# Where a box is from that came as an argument.
_OUTSIDE = scopes.Scope("the caller", "hijax")


def _made_of(tree: Any, refs: Sequence[Any]) -> Box:
    box = object.__new__(Box)
    box._versions, box._earlier = [_Version(_OUTSIDE, tree, refs)], []
    return box


_tree.register(Box, lambda box: (list(box._now().refs), box._now().tree), _made_of)


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
