"""What may differ between devices inside shard_map has to agree, where somebody asks for it: the carry of a loop before
and after a trip, and the results of branches. Weft's own rule joins what their types say."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

# (what is called, the carry, the traced body): looks at the carry of a loop; None: nobody asks.
check_carry: Callable[[str, list, Any], None] | None = None
# (what is called, the traced branches, axes along which the choice differs): looks at what branches give.
check_branches: Callable[[str, list, list[str]], None] | None = None
# (what is called, the traced function of one device): looks at the operands of its operations.
check_operands: Callable[[str, Any], None] | None = None


class _Here(threading.local):
    followed = False  # inside a shard_map that follows what may differ
    asked = False  # the next loop or branch is the user's own


_here = _Here()


@contextlib.contextmanager
def following(on: bool) -> Iterator[None]:
    """Inside it shard_map follows what may differ between devices, or does not."""
    before = _here.followed
    _here.followed = on
    try:
        yield
    finally:
        _here.followed = before


@contextlib.contextmanager
def of_user() -> Iterator[None]:
    """What is called inside is a loop or a branch of the user's own: those of Weft's functions are not looked at."""
    _here.asked = _here.followed
    try:
        yield
    finally:
        _here.asked = False


def is_asked() -> bool:
    """Whether the loop or branch that begins is to be looked at."""
    asked = _here.asked
    _here.asked = False
    return asked
