"""What converted code calls; it has this module under the name `ag`."""

from __future__ import annotations

from typing import Any

from .aliases import in_place, is_, is_not, is_not_number, is_number, settle
from .branches import (
    and_,
    assert_,
    both,
    compare,
    either,
    if_,
    if_chain,
    if_expression,
    none_of,
    not_,
    or_,
    python_only,
    to_negated_power,
)
from .loops import for_, while_
from .membership import contains, not_contains
from .state import attribute, contents, read, set_attribute, set_contents, undefined
from .texts import percent, text


def callee(function: Any, may_link: bool = False) -> Any:
    """Set by conversion.py, which knows how to convert."""
    raise NotImplementedError


__all__ = [
    "and_",
    "assert_",
    "attribute",
    "both",
    "callee",
    "compare",
    "contains",
    "contents",
    "either",
    "for_",
    "if_",
    "if_chain",
    "if_expression",
    "in_place",
    "is_",
    "is_not",
    "is_not_number",
    "is_number",
    "none_of",
    "not_",
    "not_contains",
    "or_",
    "percent",
    "python_only",
    "read",
    "set_attribute",
    "set_contents",
    "settle",
    "text",
    "to_negated_power",
    "undefined",
    "while_",
]
