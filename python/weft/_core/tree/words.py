"""Structures of containers as messages say them."""

from __future__ import annotations

from typing import Any

_MOST = 4


def in_words(treedef: Any, depth: int = 0) -> str:
    """A structure in words: "an array", "a tuple of length 2: (an array, a dict with the keys 'a', 'b')"."""
    if treedef.is_leaf():
        return "an array"
    children, kind = treedef.children(), treedef.type
    if kind in (None, type(None)):
        return "None"
    name = kind.__name__
    article = "an" if name[:1].lower() in "aeiou" else "a"
    if issubclass(kind, dict):
        keys = [repr(key) for key in treedef.entries()]
        more = ", ..." if len(keys) > _MOST else ""
        known = f"key{'s' * (len(keys) > 1)} {', '.join(keys[:_MOST])}{more}"
        what = f"{article} {name} with the {known}" if keys else f"an empty {name}"
        labels = [f"{key}: " for key in keys]
    elif issubclass(kind, (tuple, list)):
        what = f"{article} {name} of length {len(children)}" if children else f"an empty {name}"
        labels = [f"{field}=" for field in kind._fields] if hasattr(kind, "_fields") else [""] * len(children)
    else:
        what = f"{article} {name}" + (f" with {len(children)} part{'s' * (len(children) != 1)}" if children else "")
        labels = [""] * len(children)
    if not children or depth >= 3 or (depth > 0 and all(c.is_leaf() for c in children)):
        return what
    inside = [label + in_words(child, depth + 1) for label, child in zip(labels, children)]
    if len(inside) > _MOST:
        inside = [*inside[:_MOST], "..."]
    return f"{what}: ({', '.join(inside)})"


def arguments_in_words(treedef: Any) -> str:
    """The structure of (args, kwargs) in words: "2 arguments (an array, a tuple of length 2)"."""
    positional, named = (child.children() for child in treedef.children())
    words = [in_words(child, 1) for child in positional]
    words += [f"{name}={in_words(child, 1)}" for name, child in zip(treedef.child(1).entries(), named)]
    return f"{len(words)} argument{'s' * (len(words) != 1)} ({', '.join(words)})"
