"""Random keys as JAX has them: the option that says which generator they are of, and the class of their arrays."""

from __future__ import annotations

from typing import Any

from ..random import _keys
from .settings import config


def install() -> None:
    """From now on jax_default_prng_impl says which generator keys are of where a call does not."""
    _keys.default_implementation = lambda: config.read("jax_default_prng_impl")


class _Keys(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return str(getattr(x, "dtype", "")).startswith("key")


class PRNGKeyArray(metaclass=_Keys):
    """What arrays of keys are instances of."""
