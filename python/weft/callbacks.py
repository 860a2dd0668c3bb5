"""Calling Python from compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _weft
from ._core import tree as _tree
from ._core.errors import type_error

__all__ = ["io_callback", "pure_callback"]


def pure_callback(callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls a function of Python when the program runs. It must depend on its arguments alone: calls may be dropped.

    Args:
        callback: takes the arguments as arrays and returns arrays of the declared shapes and dtypes. Also taken are
            Python numbers that fit, and NumPy's 64 bits where the same kind of 32 bits is declared.
        result_shape_dtypes: weft.ShapeDtype of its result, or a tree of them.
        *args: arrays, numbers or trees of them.
        **kwargs: keyword arguments; vmap_method is accepted, without effect: under vmap it is called for each lane.

    Returns: what it returns. It has no derivative; weft.custom_jvp gives it one.

    Raises:
        RuntimeError: the function returns something else, or the program came from another process. What the function
            raises passes through, with a note of the line that calls pure_callback.

    Example:
        >>> weft.jit(lambda x: weft.pure_callback(lambda v: v + 1, weft.ShapeDtype((), "float32"), x))(1.0)
        Array(2., dtype=float32)
    """
    return _call("pure_callback", callback, result_shape_dtypes, args, kwargs)


def io_callback(
    callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, ordered: bool = True, **kwargs: Any
) -> Any:
    """Calls a function of Python with side effects when the program runs: every call happens, in order.

    Args:
        callback: takes the arguments as arrays and returns arrays of the declared shapes and dtypes, as for
            pure_callback.
        result_shape_dtypes: weft.ShapeDtype of its result, or a tree of them; None: it returns nothing.
        *args: arrays, numbers or trees of them.
        ordered: accepted: calls are always in order.
        **kwargs: keyword arguments.

    Returns: what it returns. It has no derivative.

    Raises:
        RuntimeError: the function returns something else, or the program came from another process. What the function
            raises passes through, with a note of the line that calls io_callback.

    Example:
        >>> seen = []
        >>> weft.io_callback(lambda v: seen.append(int(v)), None, 3)
        >>> seen
        [3]
    """
    del ordered
    return _call("io_callback", callback, result_shape_dtypes, args, kwargs)


def _call(primitive: str, callback: Callable, specs: Any, args: tuple, kwargs: dict):
    kwargs.pop("vmap_method", None)
    leaves, tree = _tree.flatten((args, kwargs))
    spec_leaves, out_tree = _tree.flatten(specs)

    place = _weft.user_stack()

    def on_leaves(values: list) -> list:
        a, k = _tree.unflatten(tree, values)
        try:
            result = callback(*a, **k)
        except BaseException as error:
            if place and not any(place in note for note in getattr(error, "__notes__", ())):
                error.add_note(f"raised in a callback that {primitive} calls\n{place}")
            raise
        if result is None and not spec_leaves:
            return []  # a function that does something and gives nothing
        out, got = _tree.flatten(result)
        if got != out_tree:
            raise type_error(f"the callback returned {_tree.in_words(got)}, expected {_tree.in_words(out_tree)}")
        # A Python number has all its digits until it gets the dtype that is declared.
        return [v if isinstance(v, (int, float, complex)) else _weft.array(v, None, True) for v in out]

    results = _weft.callback(primitive, on_leaves, leaves, spec_leaves)
    return _tree.unflatten(out_tree, _weft.with_weak(results, [False] * len(results)))
