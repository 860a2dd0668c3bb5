"""Calling Python from compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _weft
from . import tree as _tree

__all__ = ["io_callback", "pure_callback"]


def pure_callback(callback: Callable, result_shape_dtypes: Any, *args, **kwargs):
    """callback(*args), called in Python with arrays when the compiled code runs. result_shape_dtypes, a tree of
    ShapeDtype,
    says what it returns. It must depend on its arguments alone: calls may be dropped. Has no derivative; give it one
    with
    custom_jvp. Raises RuntimeError when the callback fails or returns something else."""
    return _call("pure_callback", callback, result_shape_dtypes, args, kwargs)


def io_callback(callback: Callable, result_shape_dtypes: Any, *args, ordered: bool = True, **kwargs):
    """Like pure_callback, but with side effects: every call happens, in order."""
    del ordered
    return _call("io_callback", callback, result_shape_dtypes, args, kwargs)


def _call(primitive: str, callback: Callable, specs: Any, args: tuple, kwargs: dict):
    kwargs.pop("vmap_method", None)
    leaves, tree = _tree.flatten((args, kwargs))
    spec_leaves, out_tree = _tree.flatten(specs)

    def on_leaves(values: list) -> list:
        a, k = _tree.unflatten(tree, values)
        out, got = _tree.flatten(callback(*a, **k))
        if got != out_tree:
            raise TypeError(f"the callback returned the structure {got}, expected {out_tree}")
        return [_weft.array(v, None, True) for v in out]

    return _tree.unflatten(out_tree, _weft.callback(primitive, on_leaves, leaves, spec_leaves))
