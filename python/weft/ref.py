"""References: arrays whose contents change (weft.new_ref), with the operations on them as functions."""

from __future__ import annotations

from ._core import stateful as _stateful
from ._state import sites as _sites
from ._state.refs import AbstractRef, Ref, addupdate, empty_ref, free_ref, freeze, get, new_ref, set, swap

__all__ = ["AbstractRef", "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set", "swap"]

_stateful.references = _sites
