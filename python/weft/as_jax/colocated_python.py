"""jax.experimental.colocated_python: functions and objects of Python that run where devices are, which is here."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import weft

from .._core import tree as _tree
from .._core.errors import type_error, value_error

__all__ = ["colocated_cpu_devices", "colocated_python", "colocated_python_class"]


def colocated_cpu_devices(devices_or_mesh: Any) -> Any:
    """The devices, or the mesh, of the CPU beside devices; here they are the devices themselves."""
    if isinstance(devices_or_mesh, weft.Mesh):
        return devices_or_mesh
    return tuple(devices_or_mesh)


def _spec(x: Any) -> Any:
    return weft.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding) if isinstance(x, weft.Array) else x


def _type(x: Any) -> tuple[Any, str]:
    x = x if hasattr(x, "dtype") else weft.numpy.asarray(x)
    return tuple(x.shape), str(x.dtype)


class _Function:
    """A function that runs beside devices."""

    def __init__(self, fun: Callable[..., Any], in_specs: Any = None, out_specs_fn: Any = None, devices: Any = None):
        functools.update_wrapper(self, fun)
        self._fun, self._in_specs, self._out_specs_fn, self._devices = fun, in_specs, out_specs_fn, devices

    def specialize(
        self, in_specs: Any = None, out_specs_fn: Callable[..., Any] | None = None, devices: Any = None
    ) -> _Function:
        """The function for arguments of types (args, kwargs), with results of the types that out_specs_fn gives for
        those of arguments, beside devices."""
        for said, own, name in (
            (in_specs, self._in_specs, "in_specs"),
            (out_specs_fn, self._out_specs_fn, "out_specs_fn"),
            (devices, self._devices, "devices"),
        ):
            if said is not None and own is not None:
                raise value_error(f"{name} already specified")
        return _Function(
            self._fun,
            self._in_specs if in_specs is None else in_specs,
            self._out_specs_fn if out_specs_fn is None else out_specs_fn,
            self._devices if devices is None else devices,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        said = self._in_specs
        if said is not None and _tree.structure((args, kwargs)) != _tree.structure(tuple(said)):
            raise value_error(f"colocated_python: the arguments must be those of specialize(in_specs={said})")
        arrays = [x for x in _tree.leaves((args, kwargs)) if isinstance(x, weft.Array)]
        if not arrays and self._devices is None:
            raise value_error(
                "No devices found. colocated_python function without input arguments must be first specialized with "
                "devices."
            )
        out = self._fun(*args, **kwargs)
        if self._out_specs_fn is None:
            place = arrays[0].sharding if arrays else None
            return _tree.map(lambda x: _put(x, place), out)
        specs = self._out_specs_fn(*_tree.map(_spec, args), **_tree.map(_spec, kwargs))
        return _tree.map(_checked, out, specs)


def _put(x: Any, place: Any) -> Any:
    if isinstance(x, weft.Array) and (place is None or x.sharding == place):
        return x
    fits = isinstance(place, weft.NamedSharding) and len(place.spec) <= np.ndim(x)
    return weft.device_put(x, place if fits else None)


def _checked(x: Any, spec: Any) -> Any:
    if _type(x) != _type(spec):
        raise type_error(f"colocated_python: a result is {_type(x)}, out_specs_fn says {_type(spec)}")
    return _put(x, getattr(spec, "sharding", None))


def colocated_python(fun: Callable[..., Any]) -> _Function:
    """The function, run beside the devices of its arguments or of specialize(devices=). Its results lie as the first
    argument does."""
    return _Function(fun)


def colocated_python_class(cls: type) -> type:
    """The class, whose objects are made when a method is first called, and end with the one that holds them."""

    class Colocated:
        def __init__(self, *args: Any, **kwargs: Any):
            self._make: Callable[[], Any] | None = functools.partial(cls, *args, **kwargs)
            self._made: Any = None

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or not callable(getattr(cls, name)):
                raise AttributeError(f"'{cls.__name__}' object has no attribute '{name}' that is a method")

            def method(*args: Any, **kwargs: Any) -> Any:
                if self._make is not None:
                    self._made, self._make = self._make(), None
                return getattr(self._made, name)(*args, **kwargs)

            return _Function(method)

    Colocated.__name__, Colocated.__qualname__, Colocated.__doc__ = cls.__name__, cls.__qualname__, cls.__doc__
    return Colocated
