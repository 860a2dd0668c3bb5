"""jax.experimental.key_reuse: signatures of functions, by Weft's own check (weft.ir.check_key_reuse)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from .. import _key_uses as _uses
from .._core.errors import not_implemented
from ..ir.key_reuse import SIGNATURES, Forward, KeyReuseSignature, Sink, Source, assert_used, check_key_reuse
from .user_primitives import Primitive

__all__ = [
    "Forward",
    "KeyReuseSignature",
    "Sink",
    "Source",
    "assert_consumed",
    "assert_unconsumed",
    "check_key_reuse",
    "check_key_reuse_jaxpr",
    "consume",
    "consume_p",
    "function_type_signature",
    "jaxpr_type_signature",
    "key_reuse_signatures",
]


def consume(key: Any) -> Any:
    """The key, which has been used from now on."""
    _uses.note("consume", key)
    return key


class _Consume(Primitive):
    def bind(self, /, *args: Any, **_: Any) -> Any:
        """Uses the key."""
        return consume(*args)


consume_p = _Consume("consume")


def assert_unconsumed(key: Any) -> None:
    """Where a program is checked: an AssertionError if the key has been used."""
    assert_used(key, False)


def assert_consumed(key: Any, value: Any = True) -> None:
    """Where a program is checked: an AssertionError if other elements of the key have been used than `value` says."""
    assert_used(key, np.asarray(value, bool))


def function_type_signature(fun: Callable[..., Any], *args: Any) -> KeyReuseSignature:
    """What a function does to keys."""
    return check_key_reuse(fun, *args)


def jaxpr_type_signature(jaxpr: Any) -> KeyReuseSignature:
    """What a program that make_jaxpr gave does to keys."""
    if jaxpr.uses_of_keys is None:
        raise not_implemented(
            "weft.as_jax: programs do not say where keys are used, and this one is not what make_jaxpr gave for a "
            "function: give the function to function_type_signature"
        )
    found: KeyReuseSignature = jaxpr.uses_of_keys()
    return found


def check_key_reuse_jaxpr(jaxpr: Any) -> None:
    """An error where a program uses a key twice."""
    jaxpr_type_signature(jaxpr)


# JAX's primitives of keys, none of which is one operation of Weft's.
_OF_KEYS = {
    "consume": KeyReuseSignature(Sink(0), Forward(0, 0)),
    "random_bits": KeyReuseSignature(Sink(0)),
    "random_clone": KeyReuseSignature(Source(0)),
    "random_fold_in": KeyReuseSignature(Source(0)),
    "random_gamma": KeyReuseSignature(Sink(0)),
    "random_seed": KeyReuseSignature(Source(0)),
    "random_split": KeyReuseSignature(Sink(0), Source(0)),
}
_OURS = {"broadcast_in_dim": "broadcast", "convert_element_type": "convert", "copy": "copy", "squeeze": "reshape"}


class _Signatures(Mapping[Any, KeyReuseSignature]):
    """By primitive; of those whose signature depends on their parameters there is none here."""

    def _find(self, primitive: Any) -> KeyReuseSignature | None:
        name = str(getattr(primitive, "name", primitive))
        found = _OF_KEYS.get(name, SIGNATURES.get(_OURS.get(name, name)))
        return found if isinstance(found, KeyReuseSignature) else None

    def __getitem__(self, primitive: Any) -> KeyReuseSignature:
        found = self._find(primitive)
        if found is None:
            raise KeyError(primitive)
        return found

    def __iter__(self) -> Iterator[Any]:
        return iter({**SIGNATURES, **_OF_KEYS})

    def __len__(self) -> int:
        return len({**SIGNATURES, **_OF_KEYS})


key_reuse_signatures = _Signatures()
