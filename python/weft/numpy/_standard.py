"""What the Python array API standard asks of a namespace: which version it has, and what it can do.

Source: data-apis.org/array-api, version 2024.12, "Inspection" and "Array object".
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from .. import _weft
from .._core.errors import type_error, value_error
from .._sharding.devices import Device, devices
from .._weft import Array
from . import _dtypes

__array_api_version__ = "2024.12"

# The module that arrays say they belong to; another one that serves the same functions sets its own name.
namespace = __name__.rpartition(".")[0]

# What programs, files and DLPack carry.
_MAX_RANK = 64

# Kinds of dtypes that the standard has, and the dtypes of each.
_KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]


class _NamespaceInfo:
    """What weft.numpy can do, as the standard's inspection functions say it."""

    def capabilities(self) -> dict[str, Any]:
        """Whether booleans may be indices and sizes may depend on values (outside of jit; inside they take size=), and
        how many dimensions an array may have."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": _MAX_RANK}

    def default_device(self) -> Device:
        """The device on which new arrays lie."""
        return devices()[0]

    def devices(self) -> list[Device]:
        """All devices."""
        return devices()

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtypes of arrays made from Python numbers, and of indices."""
        _check_device(device, "default_dtypes")
        return {
            "real floating": _weft.dtype(float),
            "complex floating": _weft.dtype(complex),
            "integral": _weft.dtype(int),
            "indexing": _weft.dtype(int),
        }

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, Any]:
        """The standard's dtypes that arrays may have, by name: all, those of a kind, or of one of several kinds."""
        _check_device(device, "dtypes")
        kinds = ("bool", "numeric") if kind is None else (kind,) if isinstance(kind, str) else kind
        for k in kinds:
            if k not in _KINDS:
                raise value_error(f"dtypes: there is no kind {k!r}; the kinds are {', '.join(map(repr, _KINDS))}")
        # In JAX's mode arrays of 64 bits have 32 instead, unless x64 is on.
        there = lambda name: _weft.array(np.zeros(0, name), None, False).dtype == name
        names = [name for k in kinds for name in _KINDS[k] if there(name)]
        return {name: getattr(_dtypes, "bool_" if name == "bool" else name).dtype for name in names}


def _check_device(device: Any, name: str) -> None:
    if device is not None and not isinstance(device, Device):
        raise type_error(f"{name}: device is {device!r} of type '{type(device).__name__}'; expected a weft.Device")


def __array_namespace_info__() -> _NamespaceInfo:
    """What weft.numpy can do, for programs that are written for the array API standard.

    Returns: an object with the methods capabilities, default_device, default_dtypes, devices and dtypes.

    Source: data-apis.org/array-api, version 2024.12, "Inspection".

    Example:
        >>> list(wnp.__array_namespace_info__().dtypes(kind="real floating"))
        ['float32', 'float64']
    """
    return _NamespaceInfo()


def array_namespace(self: Array, *, api_version: str | None = None) -> Any:
    """The module whose functions take this array: weft.numpy.

    Args:
        api_version: the version of the array API standard; None: the newest that is there.

    Returns: module.

    Raises:
        ValueError: there is no such version.

    Source: data-apis.org/array-api, version 2024.12, "Array object".

    Example:
        >>> wnp.ones(2).__array_namespace__() is wnp
        True
    """
    if api_version is not None and api_version not in _VERSIONS:
        raise value_error(
            f"__array_namespace__: api_version is {api_version!r}; expected one of {', '.join(map(repr, _VERSIONS))}"
        )
    return importlib.import_module(namespace)


# Each of these has what the one before it had.
_VERSIONS = ("2021.12", "2022.12", "2023.12", __array_api_version__)
