"""Random keys as JAX has them: generators as objects, the options about keys, and the class of their arrays."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import weft
import weft.numpy as wnp

from .. import _key_uses as _uses
from .. import _weft
from .._core.errors import type_error, value_error
from ..random import _generators, _keys
from .settings import config
from .user_primitives import Primitive

KeyTy = _generators.KeyDtype


class PRNGImpl(NamedTuple):
    """A generator: the shape of a key's words, and functions of them."""

    key_shape: tuple[int, ...]
    seed: Callable[[Any], Any]
    split: Callable[[Any, tuple[int, ...]], Any]
    random_bits: Callable[[Any, int, tuple[int, ...]], Any]
    fold_in: Callable[[Any, Any], Any]
    name: str = "<unnamed>"
    tag: str = "?"

    def __hash__(self) -> int:
        return hash(self.tag)

    def __str__(self) -> str:
        return self.tag

    def __repr__(self) -> str:
        return f"PRNGSpec({self.name!r})"

    @property
    def _impl(self) -> PRNGImpl:
        return self  # a generator is what says which one it is

    @property
    def generator(self) -> Any:
        """Weft's own of this name; what is none is made one of Weft's."""
        own = _GENERATORS.get(self.name)
        return own if own is not None and prngs[self.name] == self else _made_of(self)


_GENERATORS = {_generators.THREEFRY.name: _generators.THREEFRY, **_generators.GENERATORS}


@functools.cache
def _made_of(impl: PRNGImpl) -> Any:
    """A generator of a program's own functions, whose keys have their words in one dimension."""
    count = math.prod(impl.key_shape)
    name = f"{impl.name} {impl.tag} {len(_generators.GENERATORS)}"

    def flat(words: Any) -> Any:
        words = wnp.asarray(words)
        return words.reshape(*words.shape[: words.ndim - len(impl.key_shape)], count)

    shaped = lambda words: words.reshape(impl.key_shape)
    made = _generators.Generator(
        name,
        impl.tag,
        count,
        lambda halves: flat(impl.seed(halves[1].astype("int32"))),
        lambda words, shape: flat(impl.split(shaped(words), shape)),
        lambda words, data: flat(impl.fold_in(shaped(words), data)),
        lambda words, width, shape: impl.random_bits(shaped(words), width, shape),
    )
    _generators.GENERATORS[name] = made
    _IMPLS[name] = impl
    return made


_IMPLS: dict[str, PRNGImpl] = {}


def _impl_of(made: Any) -> PRNGImpl:
    seed = lambda number: made.seed(_weft.random_key(number, False))
    return PRNGImpl((made.words,), seed, made.split, made.bits, made.fold_in, made.name, made.tag)


prngs = {name: _impl_of(made) for name, made in _GENERATORS.items()}
_IMPLS.update(prngs)
_WEFTS_OWN = frozenset(_IMPLS)
threefry_prng_impl, rbg_prng_impl = prngs["threefry2x32"], prngs["rbg"]
unsafe_rbg_prng_impl = prngs["unsafe_rbg"]


def default_prng_impl() -> PRNGImpl:
    """The generator of keys where a call does not say it."""
    return prngs[_keys.default_implementation()]


def resolve_prng_impl(spec: Any = None) -> PRNGImpl:
    """The generator that a name, a dtype of keys or the generator itself says."""
    return prngs[_keys._implementation("key", spec)]


def define_prng_impl(
    *,
    key_shape: tuple[int, ...],
    seed: Callable[[Any], Any],
    split: Callable[[Any, tuple[int, ...]], Any],
    random_bits: Callable[[Any, int, tuple[int, ...]], Any],
    fold_in: Callable[[Any, Any], Any],
    name: str = "<unnamed>",
    tag: str = "?",
) -> PRNGImpl:
    """A generator of a program's own functions."""
    return PRNGImpl(tuple(key_shape), seed, split, random_bits, fold_in, name, tag)


def key_impl(keys: Any) -> Any:
    """The name of the generator of keys; one of a program's own is itself."""
    name = weft.random.key_impl(keys)
    own = _IMPLS.get(name)
    return own if own is not None and name not in _WEFTS_OWN else name


def _own_impl(said: Any) -> PRNGImpl | None:
    """The generator that an argument names, if it is one of a program's own."""
    generator = getattr(said, "generator", None)
    return None if generator is None or generator.name in _WEFTS_OWN else _IMPLS.get(generator.name)


def wrap_key_data(key_bits_array: Any, *, impl: Any = None, dtype: Any = None) -> Any:
    """weft.random.wrap_key_data; words of a generator of a program's own have its shape."""
    own = _own_impl(impl if dtype is None else dtype)
    if own is not None:
        words = wnp.asarray(key_bits_array)
        before = words.ndim - len(own.key_shape)
        if before < 0 or words.shape[before:] != own.key_shape:
            raise value_error(f"wrap_key_data: words of shape {words.shape} do not end with {own.key_shape}")
        key_bits_array = words.reshape(*words.shape[:before], math.prod(own.key_shape))
    return weft.random.wrap_key_data(key_bits_array, impl=impl, dtype=dtype)


def key_data(keys: Any) -> Any:
    """weft.random.key_data; words of a generator of a program's own have its shape."""
    words = weft.random.key_data(keys)
    own = key_impl(keys) if _has_keys(keys) else None
    return words.reshape(*words.shape[:-1], *own.key_shape) if isinstance(own, PRNGImpl) else words


def seed_with_impl(impl: PRNGImpl, seeds: Any) -> Any:
    """A key of a generator of each seed."""
    return random_seed(seeds, impl)


def _has_keys(x: Any) -> bool:
    return str(getattr(x, "dtype", "")).startswith("key")


class _IsKeys(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return _has_keys(x)


class PRNGKeyArray(metaclass=_IsKeys):
    """What arrays of keys are instances of."""


def PRNGKey(seed: Any, *, impl: Any = None) -> Any:
    """A key as words, or where the option jax_enable_custom_prng is on as key() makes it."""
    if _has_keys(seed):
        raise type_error("PRNGKey accepts a scalar seed, but was given a PRNG key; split or fold_in make others of it")
    make = weft.random.key if config.read("jax_enable_custom_prng") else weft.random.PRNGKey
    return make(seed) if impl is None else make(seed, impl=impl)


def _check_words(key: Any) -> None:
    """Says that words are given as a key, as the option jax_legacy_prng_key asks."""
    mode = config.read("jax_legacy_prng_key")
    if mode == "allow" or str(getattr(key, "dtype", "")) != "uint32":
        return
    message = (
        "Legacy uint32 key array passed as key to jax.random function. Use jax.random.key(seed) rather than "
        "jax.random.PRNGKey(seed) to make keys"
    )
    if mode == "error":
        raise value_error(message)
    warnings.warn(message, UserWarning, stacklevel=4)


def _only_of_keys(name: str, of: Callable[[Any], Any]) -> property:
    def found(self: Any) -> Any:
        if not _has_keys(self):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return of(self)

    return property(found)


def _showing_keys(show: Callable[..., str]) -> Callable[..., str]:
    """The text of an array; of keys with JAX's words."""

    @functools.wraps(show)
    def text(self: Any, *spec: str) -> str:
        if isinstance(self.dtype, np.dtype) or any(spec) or not _has_keys(self) or self.is_deleted():
            return show(self, *spec)
        return f"Array({tuple(self.shape)}, dtype={self.dtype}) overlaying:\n{weft.random.key_data(self)}"

    return text


def random_seed(seeds: Any, impl: Any = None) -> Any:
    """A key of each seed."""
    given = wnp.asarray(seeds)
    make = lambda seed: weft.random.key(seed, impl=impl)
    for _ in range(given.ndim):  # no reshape: keys lie on devices as their seeds do
        make = weft.vmap(make)
    return make(given)


def random_wrap(base_arr: Any, *, impl: Any = None) -> Any:
    """Keys of their words, which the last dimension has."""
    return weft.random.wrap_key_data(base_arr, impl=impl)


def random_unwrap(keys: Any) -> Any:
    """The words of keys."""
    if not _has_keys(keys):
        raise type_error(f"random_unwrap takes key array operand, got keys.dtype={keys.dtype!r}")
    return weft.random.key_data(keys)


def random_bits(keys: Any, bit_width: int, shape: Any) -> Any:
    """Random bits of each key."""
    draw = lambda key: weft.random.bits(key, tuple(shape), f"uint{bit_width}")
    for _ in range(keys.ndim):
        draw = weft.vmap(draw)
    return draw(keys)


def random_split(keys: Any, *, shape: Any) -> Any:
    """New keys of each key."""
    draw = lambda key: weft.random.split(key, tuple(shape))
    for _ in range(keys.ndim):
        draw = weft.vmap(draw)
    return draw(keys)


def _gamma(keys: Any, a: Any, *, log_space: bool = False) -> Any:
    draw = weft.random.loggamma if log_space else weft.random.gamma
    for _ in range(keys.ndim):
        draw = weft.vmap(draw)
    return draw(keys, a)


class _OfKeys(Primitive):
    """A function of keys, as a primitive."""

    def __init__(self, name: str, function: Callable[..., Any]):
        super().__init__(name)
        self._function = function

    def bind(self, /, *args: Any, **params: Any) -> Any:
        """What the function gives."""
        return self._function(*args, **params)


random_bits_p, random_clone_p = _OfKeys("random_bits", random_bits), _OfKeys("random_clone", weft.random.clone)
random_fold_in_p = _OfKeys("random_fold_in", lambda keys, msgs: wnp.vectorize(weft.random.fold_in)(keys, msgs))
random_gamma_p, random_seed_p = _OfKeys("random_gamma", _gamma), _OfKeys("random_seed", random_seed)
random_split_p, random_wrap_p = _OfKeys("random_split", random_split), _OfKeys("random_wrap", random_wrap)
random_unwrap_p = _OfKeys("random_unwrap", random_unwrap)


def threefry_random_bits(key: Any, bit_width: int, shape: Any) -> Any:
    """Random bits of a key's words."""
    return weft.random.bits(random_wrap(key, impl="threefry2x32"), tuple(shape), f"uint{bit_width}")


def threefry_seed(seed: Any) -> Any:
    """The words of the key of a seed."""
    return weft.random.key_data(weft.random.key(seed, impl="threefry2x32"))


def threefry_split(key: Any, shape: Any) -> Any:
    """The words of new keys."""
    return weft.random.key_data(weft.random.split(random_wrap(key, impl="threefry2x32"), shape))


def threefry_fold_in(key: Any, data: Any) -> Any:
    """The words of a new key."""
    return weft.random.key_data(weft.random.fold_in(random_wrap(key, impl="threefry2x32"), data))


def _words_of(keys: Any) -> Any:
    """The words of keys; those of keys that were deleted are, too."""
    if not (isinstance(keys, weft.Array) and keys.is_deleted()):
        return weft.random.key_data(keys)
    words = wnp.zeros((*keys.shape, *_IMPLS[_generators.THREEFRY.name].key_shape), "uint32")
    words.delete()
    return words


def _refusing(name: str) -> Callable[..., Any]:
    """An operator of numbers, which keys of generators other than the default one do not have."""

    def operator(self: Any, *others: Any) -> Any:
        given = [f"{self.dtype}", *(str(_weft.abstract(x)[1]) if _weft.is_operand(x) else f"{x.dtype}" for x in others)]
        raise type_error(
            f"{name}: random keys are no numbers; {name} does not accept dtype{'s' if others else ''} "
            f"{', '.join(given)}"
        )

    return operator


def install() -> None:
    """From now on JAX's options say which generator keys are of where a call does not, what is added to seeds and what
    happens where words are given as a key; keys have a dtype that knows its name and size, and JAX's attributes."""
    _keys.default_implementation = lambda: config.read("jax_default_prng_impl")
    _keys.seed_offset = lambda: config.read("jax_random_seed_offset")
    _keys.words_are_given = _check_words
    _weft.set_key_dtype(_generators.threefry_dtype())
    for operator in ("add", "sub", "mul", "neg"):
        setattr(_generators.KeyArray, f"__{operator}__", _refusing(operator))
    classes: list[Any] = [weft.Array, _generators.KeyArray]
    for cls in classes:
        cls._impl = _only_of_keys("_impl", lambda keys: _IMPLS[weft.random.key_impl(keys)])
        cls._consumed = _only_of_keys("_consumed", _uses.is_used)
        cls._base_array = _only_of_keys("_base_array", _words_of)
    array: Any = weft.Array
    array.__repr__, array.__str__ = _showing_keys(array.__repr__), _showing_keys(array.__str__)
    array.__format__ = _showing_keys(array.__format__)
