"""jax._src.deprecations: uses that JAX warns of (DeprecationWarning), and that become errors once somebody says so."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

import weft

from .. import _weft
from .._core.errors import type_error, value_error


def deprecation_getattr(module: str, deprecations: dict[str, Any]) -> Callable[[str], Any]:
    """The __getattr__ of a module that warns of some names: name -> (message, object; None: there is none any more)."""

    @functools.cache
    def getattr_(name: str) -> Any:
        if name not in deprecations:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        message, found = deprecations[name]
        if found is None:
            raise AttributeError(message)
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return found

    return getattr_


def accelerate_getattr_deprecation(module: ModuleType, name: str) -> None:
    """From now on the name is an error."""
    module._deprecations[name] = (module._deprecations[name][0], None)


def is_accelerated_attribute(module: ModuleType, name: str) -> bool:
    """Whether the name is an error."""
    return module._deprecations[name][1] is None


# The uses that JAX warns of, and whether they are errors.
_registered: dict[str, bool] = {}


def register(deprecation_id: str) -> None:
    """Says that there is such a use."""
    _registered[deprecation_id] = False


def _known(deprecation_id: str) -> str:
    if deprecation_id not in _registered:
        raise value_error(f"{deprecation_id=} not registered.")
    return deprecation_id


def unregister(deprecation_id: str) -> None:
    """Forgets it."""
    del _registered[_known(deprecation_id)]


def accelerate(deprecation_id: str) -> None:
    """From now on it is an error."""
    _registered[_known(deprecation_id)] = True


def is_accelerated(deprecation_id: str) -> bool:
    """Whether it is an error."""
    return _registered[_known(deprecation_id)]


def warn(deprecation_id: str, message: str, stacklevel: int, *, error_class: type[Exception] = ValueError) -> None:
    """Warns of a use, or raises the error that it has become."""
    if is_accelerated(deprecation_id):
        raise error_class(message)
    warnings.warn(message, DeprecationWarning, stacklevel=stacklevel + 1)


_POSITIONS, _TO_REAL = "jax-array-positional-args", "jax-numpy-astype-complex-to-real"
_FLOAT_CLASSES, _AS_DTYPE = "jax-nn-one-hot-float-input", "jax-array-numpy-dtype"
for _each in (_AS_DTYPE, _FLOAT_CLASSES, _TO_REAL, _POSITIONS):
    register(_each)


def _of_array(args: tuple[Any, ...]) -> None:
    if len(args) > 5:
        raise type_error(f"array() takes at most 5 positional arguments, got {len(args)}")
    if len(args) > 2:
        warn(
            _POSITIONS,
            "Passing the copy, order, and ndmin arguments to jnp.array positionally is deprecated. Use keyword "
            "arguments instead.",
            4,
        )


def _of_astype(args: tuple[Any, ...]) -> None:
    if len(args) > 1 and isinstance(args[0], weft.Array):
        of_conversion(args[0], args[1])


def of_conversion(x: weft.Array, dtype: Any) -> None:
    """Warns where complex numbers are to become real ones."""
    if dtype is None or _weft.dtype_kind(x.dtype) != "complex":
        return
    if _weft.dtype_kind(_weft.dtype(dtype)) not in ("complex", "bool"):
        warn(
            _TO_REAL,
            "Casting from complex to real dtypes will soon raise a ValueError. Please first use jnp.real or jnp.imag "
            "to take the real/imaginary component of your input.",
            4,
        )


def _of_one_hot(args: tuple[Any, ...]) -> None:
    dtype = getattr(args[0], "dtype", None) if args else None
    if dtype is not None and _weft.is_operand(args[0]) and _weft.dtype_kind(dtype) in ("float", "complex"):
        warn(_FLOAT_CLASSES, f"jax.nn.one_hot input should be integer-typed; got dtype={dtype}", 4)


def dtype_of_array(x: weft.Array) -> np.dtype:
    """Array.__numpy_dtype__, for which numpy.dtype(x) asks: the array's, with a warning."""
    warn(
        _AS_DTYPE,
        "Implicit conversion of an array to a dtype is deprecated; rather than dtype=arr use dtype=arr.dtype. In the "
        "future this will result in an error.",
        2,
        error_class=TypeError,
    )
    return np.dtype(x.dtype)


_IN_FRONT = ("object", "dtype")  # what array takes by place
# Module -> function -> what looks at its arguments before it is called.
_WATCHED: dict[str, dict[str, Callable[[tuple[Any, ...]], None]]] = {
    "jax.numpy": {"array": _of_array, "astype": _of_astype},
    "jax.nn": {"one_hot": _of_one_hot},
}


def _of_lists(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """ndim, shape or size, which warn of what is no array and no number, and take it."""

    @functools.wraps(function)
    def called(a: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(a, (list, tuple)):
            message = f"jnp.{name} requires ndarray or scalar arguments, got {type(a)}. In a future JAX release this "
            warnings.warn(
                f"{name} requires ndarray or scalar arguments: {message}will be an error.", DeprecationWarning, 2
            )
            a = np.asarray(a)
        return function(a, *args, **kwargs)

    return called


def warning(module: str, name: str, function: Any) -> Any:
    """What a module serves under a name, which warns where JAX's does."""
    if module == "jax.numpy" and name in ("ndim", "shape", "size"):
        return _of_lists(name, function)
    watch = _WATCHED.get(module, {}).get(name)
    if watch is None:
        return function

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        watch(args)
        return function(*args, **kwargs)

    if name == "array":
        known = inspect.signature(function)
        by_name = [p.replace(kind=p.KEYWORD_ONLY) for p in known.parameters.values() if p.name not in _IN_FRONT]
        more = inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)
        in_front = [known.parameters[name] for name in _IN_FRONT]
        called.__signature__ = known.replace(parameters=[*in_front, more, *by_name])  # type: ignore[attr-defined]
    return called
