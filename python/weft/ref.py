"""References: arrays whose contents change (weft.new_ref), with the operations on them as functions."""

from __future__ import annotations

from ._core import stateful as _stateful
from ._state import refs as _refs
from ._state import scopes as _scopes
from ._state import sites as _sites
from ._state.refs import AbstractRef, Ref, addupdate, empty_ref, free_ref, freeze, get, new_ref, set, swap

__all__ = ["AbstractRef", "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set", "swap"]


# From the first reference on, transforms ask (libraries name the class, and make none).
def _before_first() -> None:
    _scopes.start()
    _stateful.references = _sites


_refs.before_first = _before_first
