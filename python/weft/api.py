"""Small functions that a program written for JAX expects beside its transforms."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

import numpy as np

from . import _weft
from ._core import stateful
from ._core import tree as _tree
from ._core.errors import type_error
from ._core.shapes import ShapedArray, ShapeDtype

__all__ = [
    "block_until_ready",
    "device_get",
    "effects_barrier",
    "ensure_compile_time_eval",
    "named_call",
    "named_scope",
    "stop_gradient",
    "typeof",
]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def named_call(fun: Callable[_P, _R], *, name: str | None = None) -> Callable[_P, _R]:
    """The function, whose operations have its name in their locations, as inside of weft.named_scope.

    Args:
        fun: the function.
        name: another name.

    Returns: the function.

    Example:
        >>> weft.named_call(abs, name="size")(-3)
        3
    """
    scoped: Callable[_P, _R] = named_scope(getattr(fun, "__name__", "call") if name is None else name)(fun)
    return scoped


def stop_gradient(x: _R) -> _R:
    """x, which derivatives treat as a constant.

    Args:
        x: array, number or tree of them.

    Returns: tree like x.

    Example:
        >>> weft.grad(lambda x: x * weft.stop_gradient(x))(3.0)
        Array(3., dtype=float32, weak_type=True)
    """
    return _tree.map(_stopped, x)


def _stopped(leaf: Any) -> Any:
    # Integers and random keys have no derivative, and stay what they are.
    return _weft.bind_elementwise("stop_gradient", (leaf,), {}) if _weft.is_inexact(_weft.abstract(leaf)[1]) else leaf


def effects_barrier() -> None:
    """Waits until the effects of all calls, such as prints, have happened. Calls return when theirs have, so there is
    nothing to wait for.

    Returns: None.

    Example:
        >>> weft.debug.print("{}", 1)
        1
        >>> weft.effects_barrier()
    """


def typeof(x: Any) -> ShapedArray:
    """The type of an array, number or traced value.

    Args:
        x: the value.

    Returns: weft.ShapedArray.

    Raises:
        TypeError: x is no array or number.

    Example:
        >>> weft.typeof(wnp.ones((2, 3)))
        ShapeDtype((2, 3), float32)
    """
    if not _weft.is_operand(x):
        if stateful.is_reference(x):
            return x.aval
        if isinstance(x, ShapeDtype):
            return ShapedArray.like(x)
        raise type_error(f"typeof: x must be an array or a number, got {x!r} of type '{type(x).__name__}'")
    return ShapedArray.like(x)


class _NamedScope(contextlib.ContextDecorator):
    def __init__(self, name: str):
        self._name = name

    def __enter__(self) -> None:
        _weft.open_named_scope(self._name)

    def __exit__(self, *_: object) -> None:
        _weft.close_named_scope()


def named_scope(name: str) -> _NamedScope:
    """A context manager, or decorator, that names a part of a program for readers: the locations of its operations say
    it, before the transforms that they have been through.

    Args:
        name: the name; inside of another scope it follows that one's, after a slash.

    Returns: context manager and decorator.

    Raises:
        TypeError: name is no string.

    Example:
        >>> @weft.named_scope("norm")
        ... def f(x):
        ...     return wnp.sin(x)
        >>> weft.make_ir(weft.vmap(f))(wnp.ones(3)).walk()[0].location.scope
        'vmap(norm)'
    """
    if not isinstance(name, str):
        raise type_error(f"named_scope: name must be a string, got {name!r} of type '{type(name).__name__}'")
    return _NamedScope(name)


@contextlib.contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """A context manager: what is computed of known values inside is computed at once, and is no part of a function that
    is being traced around it. What is computed of that function's own values is recorded, as everywhere.

    Returns: context manager.

    Example:
        >>> @weft.jit
        ... def f(x):
        ...     with weft.ensure_compile_time_eval():
        ...         n = int(wnp.arange(4).sum())
        ...     return x + n
        >>> f(1)
        Array(7, dtype=int32, weak_type=True)
    """
    hidden = [_weft.eager_scope()]
    try:
        yield
    finally:
        hidden.clear()


def device_get(x: Any) -> Any:
    """The arrays of a tree as NumPy arrays.

    Args:
        x: array, number or tree of them.

    Returns: tree of numpy.ndarray, read-only views without copies. Python's numbers are as they were given, and random
    keys, which are no numbers, stay as they are.

    Raises:
        weft.TracerError: a leaf is traced; under jax_semantics it stays as it is.

    Example:
        >>> weft.device_get([wnp.ones(2)])
        [array([1., 1.], dtype=float32)]
    """
    keys = lambda leaf: str(getattr(leaf, "dtype", "")).startswith("key")
    number = lambda leaf: isinstance(leaf, (bool, int, float, complex))
    stays = lambda leaf: number(leaf) or keys(leaf) or (_tree.jax_semantics() and _weft.is_traced(leaf))
    return _tree.map(lambda leaf: leaf if stays(leaf) else np.asarray(leaf), x, is_leaf=keys)


def block_until_ready(x: _R) -> _R:
    """Waits until the arrays of a tree are computed. Calls return when their work is done, so there is nothing to wait
    for.

    Args:
        x: array, number or tree of them.

    Returns: x.

    Example:
        >>> weft.block_until_ready(wnp.ones(2))
        Array([1., 1.], dtype=float32)
    """
    return x
