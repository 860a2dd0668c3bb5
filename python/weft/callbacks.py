"""Calling Python from compiled code."""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

from . import _weft
from ._core import tree as _tree
from ._core import watching
from ._core.errors import type_error, value_error
from ._core.shapes import ShapeDtype
from .custom_batching import custom_vmap

__all__ = ["io_callback", "pure_callback"]


def pure_callback(callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls a function of Python when the program runs. It must depend on its arguments alone: calls may be dropped.

    Args:
        callback: takes the arguments as arrays and returns arrays of the declared shapes and dtypes. Also taken are
            Python numbers that fit, and NumPy's 64 bits where the same kind of 32 bits is declared.
        result_shape_dtypes: weft.ShapeDtype of its result, or a tree of them.
        *args: arrays, numbers or trees of them.
        **kwargs: keyword arguments; vmap_method says how it is called under vmap: "expand_dims" and "broadcast_all"
            once, with the mapped axis in front (of size 1 where an argument is not mapped, or of the whole size);
            everything else for each batch element.

    Returns: what it returns. It has no derivative; weft.custom_jvp gives it one.

    Raises:
        ValueError: there is no such vmap_method.
        RuntimeError: the function returns something else, or the program came from another process. What the function
            raises passes through, with a note of the line that calls pure_callback.

    Example:
        >>> weft.jit(lambda x: weft.pure_callback(lambda v: v + 1, weft.ShapeDtype((), "float32"), x))(1.0)
        Array(2., dtype=float32)
    """
    method = kwargs.pop("vmap_method", None)
    kwargs.pop("sharding", None)
    if method not in (None, *_METHODS):
        raise value_error(f"pure_callback: vmap_method must be one of {', '.join(map(repr, _METHODS))}, got {method!r}")
    call = functools.partial(_call, "pure_callback", callback)
    if method in ("expand_dims", "broadcast_all"):
        return _batched(call, method == "broadcast_all", result_shape_dtypes, (args, kwargs))
    return call(result_shape_dtypes, args, kwargs)


_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")


def _batched(call: Callable[..., Any], whole: bool, specs: Any, arguments: Any) -> Any:
    """A callback that vmap calls once, with the mapped axis in front of the arguments and results; `whole`: also of
    those arguments that are not mapped, in its whole size."""
    leaves, tree = _tree.flatten(arguments)

    @custom_vmap
    def called(*values: Any) -> Any:
        return call(specs, *_tree.unflatten(tree, values))

    @called.def_vmap
    def rule(size: Any, batched: Any, *values: Any) -> Any:
        def in_front(x: Any, on: bool) -> Any:
            if on:
                return x
            x = _weft.expand_dims(_weft.array(x, None, False), 0)
            return _weft.broadcast_to(x, (size, *x.shape[1:])) if whole else x

        arrays = [in_front(x, on) for x, on in zip(values, batched)]
        longer = _tree.map(lambda spec: ShapeDtype((size, *spec.shape), spec.dtype), specs)
        result = _batched(call, whole, longer, _tree.unflatten(tree, arrays))
        return result, _tree.map(lambda _: True, result)

    return called(*leaves)


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
        **kwargs: keyword arguments; `sharding`, JAX's, is accepted, without effect: Python runs where the program does.

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


class _Callers(threading.local):
    """Whether each device of a mesh calls the functions that are traced now."""

    are_all_devices = False


_callers = _Callers()


@contextlib.contextmanager
def on_each_device() -> Iterator[None]:
    """Inside it, an io_callback without results is one that each device of the mesh that a program runs on calls with
    what it holds of the arguments; else the first one calls it with all of them."""
    before, _callers.are_all_devices = _callers.are_all_devices, True
    try:
        yield
    finally:
        _callers.are_all_devices = before


class _AsksHowItLies:
    """A function that is called with how a value of a program lies: as who cut the program over a mesh has said."""

    numbers = itertools.count()

    def __init__(self, callback: Callable[[Any], None]):
        self._callback, self.sharding, self.number = callback, None, next(self.numbers)
        watching.asking_how_it_lies[self.number] = self

    def __call__(self, part: Any) -> None:
        self._callback(self.sharding or part.sharding)


def call_with_sharding(callback: Callable[[Any], None], x: Any) -> None:
    """Calls a function with how a traced array lies where the program runs."""
    asking = _AsksHowItLies(callback)
    _call("io_callback", asking, None, (x,), {}, asking.number)


def _call(primitive: str, callback: Callable, specs: Any, args: tuple, kwargs: dict, told: int | None = None):
    kwargs.pop("vmap_method", None)
    kwargs.pop("sharding", None)
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
        # JAX counts the arrays alone.
        if got != out_tree and not (_tree.jax_semantics() and len(out) == len(spec_leaves)):
            raise type_error(f"the callback returned {_tree.in_words(got)}, expected {_tree.in_words(out_tree)}")
        # A Python number has all its digits until it gets the dtype that is declared.
        return [v if isinstance(v, (int, float, complex)) else _weft.array(v, None, True) for v in out]

    each_device = _callers.are_all_devices and not spec_leaves and primitive == "io_callback"
    results = _weft.callback(primitive, on_leaves, leaves, spec_leaves, each_device, told)
    return _tree.unflatten(out_tree, _weft.with_weak(results, [False] * len(results)))
