"""Whether a program has references (weft.new_ref), and what transforms do about them.

Most programs have none, and pay a look at one name for it. The first reference that a program makes says so here; from
then on transforms hand their calls to weft._state.
"""

from __future__ import annotations

from typing import Any

# weft._state.sites, from the first reference on.
references: Any = None


def is_reference(x: Any) -> bool:
    """Whether it is a reference to an array."""
    return references is not None and isinstance(x, references.Ref)
