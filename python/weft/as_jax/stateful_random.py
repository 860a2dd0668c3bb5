"""jax.experimental.random: generators of random numbers whose state is in a reference."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

import weft

from .. import _weft
from .._core import stateful
from .._core.errors import type_error, value_error
from .random_keys import PRNGKeyArray

Size = int | Sequence[int] | None


def _shape(size: Size, *parameters: Any) -> tuple[int, ...]:
    """The shape that is asked for; None: that of the parameters."""
    if size is None:
        return np.broadcast_shapes(*map(np.shape, parameters))
    return tuple(map(operator.index, size)) if isinstance(size, Sequence) else (operator.index(size),)


@weft.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class StatefulPRNG:
    """A generator: each number that is drawn has a key of its own, made of the base key and of how many were drawn
    before. stateful_rng makes one.

    Attributes:
        _base_key: a key.
        _counter: a reference to a number.
    """

    _base_key: Any
    _counter: Any

    def __post_init__(self) -> None:
        if type(self._base_key) is object:
            return  # what trees put in place of arrays
        if not isinstance(self._base_key, PRNGKeyArray):
            raise value_error(f"Expected base_key to be a typed PRNG key; got {self._base_key}")
        if not stateful.is_reference(self._counter):
            raise value_error(f"Expected counter to be a scalar integer ref; got {self._counter}")

    def key(self, shape: int | Sequence[int] = ()) -> Any:
        """A new key, or an array of them."""
        if self._base_key.shape:
            raise value_error(
                f"StatefulPRNG: this is {self._base_key.shape} generators, made by split(); draw inside of jax.vmap"
            )
        drawn = weft.random.fold_in(self._base_key, self._counter[...])
        self._counter.addupdate(1)
        wanted = _shape(shape)
        return weft.random.split(drawn, wanted) if wanted else drawn

    def random(self, size: Size = None, dtype: Any = float) -> Any:
        """Numbers from 0 to 1, 1 excluded."""
        return weft.random.uniform(self.key(), _shape(size), dtype=dtype)

    def uniform(self, low: Any = 0, high: Any = 1, size: Size = None, *, dtype: Any = float) -> Any:
        """Numbers from low to high, high excluded."""
        return weft.random.uniform(self.key(), _shape(size, low, high), dtype=dtype, minval=low, maxval=high)

    def normal(self, loc: Any = 0, scale: Any = 1, size: Size = None, *, dtype: Any = float) -> Any:
        """Normally distributed numbers of this mean and standard deviation."""
        drawn = weft.random.normal(self.key(), _shape(size, loc, scale), dtype)
        return (weft.numpy.asarray(loc) + weft.numpy.asarray(scale) * drawn).astype(dtype)

    def integers(self, low: Any, high: Any = None, size: Size = None, *, dtype: Any = int) -> Any:
        """Integers from low to high, high excluded; of one bound, from 0 to it."""
        if high is None:
            low, high = 0, low
        return weft.random.randint(self.key(), _shape(size, low, high), low, high, dtype=dtype)

    def split(self, num: int | Sequence[int]) -> StatefulPRNG:
        """So many independent generators as one, for jax.vmap."""
        return StatefulPRNG(self.key(num), weft.new_ref(weft.numpy.zeros(_shape(num), dtype=int)))

    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """So many independent generators."""
        return [StatefulPRNG(key, weft.new_ref(0)) for key in self.key(n_children)]


def stateful_rng(seed: Any = None, *, impl: Any = None) -> StatefulPRNG:
    """A generator; without a seed, one that differs from run to run.

    Raises:
        TypeError: no seed inside of a function that is being traced.
    """
    if seed is None:
        if _weft.is_tracing():
            raise type_error(
                "When used within transformed code, jax.experimental.random.stateful_rng() requires an explicit seed "
                "to be set."
            )
        entropy = np.random.SeedSequence().entropy
        assert isinstance(entropy, int)
        seed = np.int64(entropy & np.iinfo(np.int64).max)
    return StatefulPRNG(weft.random.key(seed, impl=impl), weft.new_ref(0))
