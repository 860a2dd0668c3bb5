"""jax._src.util.multi_weakref_lru_cache: results of a function, kept as long as those of its arguments live that are of
chosen classes, on their own or in tuples."""

from __future__ import annotations

import collections
import functools
import threading
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import _weft

# The classes whose objects are not kept alive.
weakref_cache_key_types: set[type] = set()
_caches: weakref.WeakSet[Any] = weakref.WeakSet()


class CacheInfo(NamedTuple):
    """What a cache has been asked for, and what it holds."""

    hits: int
    misses: int
    maxsize: int | None
    currsize: int


class _Cached:
    """A function with its results."""

    def __init__(self, function: Callable[..., Any], maxsize: int | None, trace_context_in_key: bool):
        self._function, self._maxsize, self._by_context = function, maxsize, trace_context_in_key
        self._results: collections.OrderedDict[Any, Any] = collections.OrderedDict()
        self._lock = threading.RLock()
        self._hits = self._misses = 0
        functools.update_wrapper(self, function)
        _caches.add(self)

    def _key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The arguments, with weak references in the places of those that are not kept. One that dies takes all results
        with it that it is an argument of."""
        weak: list[Any] = []
        forget = lambda dead: self._forget(dead)

        def held(value: Any) -> Any:
            if type(value) is tuple:
                return tuple(map(held, value))
            if type(value) in weakref_cache_key_types:
                weak.append(weakref.ref(value, forget))
                return weak[-1]
            return value

        named = tuple((name, held(value)) for name, value in sorted(kwargs.items()))
        context: tuple[Any, ...] = ()
        if self._by_context:
            context = (_weft.context_key(),)
        return tuple(map(held, args)), named, context

    def _forget(self, dead: Any) -> None:
        def among(key: Any) -> bool:
            return key is dead or (isinstance(key, tuple) and any(map(among, key)))

        with self._lock:
            for key in [key for key in self._results if among(key)]:
                del self._results[key]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        key = self._key(args, kwargs)
        with self._lock:
            if key in self._results:
                self._hits += 1
                self._results.move_to_end(key)
                return self._results[key]
            self._misses += 1
        result = self._function(*args, **kwargs)
        with self._lock:
            self._results[key] = result
            while self._maxsize is not None and len(self._results) > self._maxsize:
                self._results.popitem(last=False)
        return result

    def cache_info(self) -> CacheInfo:
        """How often a result was there, how often not, and how many are there."""
        return CacheInfo(self._hits, self._misses, self._maxsize, len(self._results))

    def cache_clear(self) -> None:
        """Forgets all results."""
        with self._lock:
            self._results.clear()
            self._hits = self._misses = 0


def multi_weakref_lru_cache(
    call: Callable[..., Any], *, maxsize: int | None = 2048, trace_context_in_key: bool = True
) -> Any:
    """The function with its results kept; of more than `maxsize` those that were used longest ago go."""
    return _Cached(call, maxsize, trace_context_in_key)


def clear_all_caches() -> None:
    """Forgets the results of all such functions."""
    for cached in list(_caches):
        cached.cache_clear()
