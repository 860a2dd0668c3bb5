"""Collectives in two parts, as jax._src.lax.parallel has them: psum_start(x, "i").done(). Weft's compiler puts work
between a collective's parts itself: what is begun is the whole, and done() gives its result."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import weft

from .._core import tree as _tree


class Future:
    """A collective that has begun."""

    def __init__(self, value: Any):
        self._value = value

    def done(self) -> Any:
        """Its result."""
        return self._value


_tree.register(Future, lambda future: ((future._value,), None), lambda _, parts: Future(*parts))


def _started(collective: Callable[..., Any]) -> Callable[..., Future]:
    @functools.wraps(collective)
    def start(*args: Any, **kwargs: Any) -> Future:
        return Future(collective(*args, **kwargs))

    start.__name__ = start.__qualname__ = f"{collective.__name__}_start"
    return start


all_gather_start = _started(weft.lax.all_gather)
all_to_all_start = _started(weft.lax.all_to_all)
ppermute_start = _started(weft.lax.ppermute)
psum_scatter_start = _started(weft.lax.psum_scatter)
psum_start = _started(weft.lax.psum)
