"""What a module that is served under one of JAX's names holds, and the module itself.

    Served(everything_of=("weft.numpy",), names={"ndarray": "weft:Array"}, absent={"place": "arrays never change"})

A name is looked up in `names`, then among the modules below, then among what Weft's modules make public. What is found
nowhere is an AttributeError that says so, and is counted (report.py).
"""

from __future__ import annotations

import importlib
import types
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from .._core.errors import not_implemented
from . import report
from .arguments import named, with_more
from .deprecations import warning
from .explicit_rules import with_rules
from .extended_dtypes import moving_elements
from .numpy_errors import noting
from .one_equation import in_one_equation
from .precision import asking_precision
from .strict import strictly
from .strict_numpy import strictly_numpy
from .traceback_util import bounded
from .transfers import guarded
from .weak_types import weakly


class Value(NamedTuple):
    """In a table: the object itself, where a text would be read as the place of one."""

    value: Any


class Refused:
    """What libraries take hold of when they are imported, and few programs ever call: a name that is there, and whose
    call is a NotImplementedError that says why."""

    def __init__(self, name: str, reason: str):
        self.__name__ = self.__qualname__ = name
        self._reason = reason

    def __call__(self, *_: Any, **__: Any) -> Any:
        report.count(f"{self.__name__}()")
        raise not_implemented(f"weft.as_jax: Weft has no counterpart of {self.__name__}: {self._reason}")

    def __repr__(self) -> str:
        return f"<{self.__name__}, which Weft has no counterpart of: {self._reason}>"


class Served(NamedTuple):
    """What a module holds.

    Attributes:
        everything_of: Weft's modules, of which all that is public is in it; the first that has a name counts.
        names: name -> where it is, as "module:name" or "module"; or the object. They count before everything_of.
        absent: name -> why there is none.
        without: names of everything_of that it does not hold.
    """

    everything_of: tuple[str, ...] = ()
    names: Mapping[str, Any] = {}
    absent: Mapping[str, str] = {}
    without: frozenset[str] = frozenset()


def of(module: str, names: str) -> dict[str, str]:
    """Table entries for names that are called the same in a module of Weft's."""
    return {name: f"{module}:{name}" for name in names.split()}


def refused(module: str, names: str, reason: str) -> dict[str, Refused]:
    """Table entries for names that are there, and cannot be called."""
    return {name: Refused(f"{module}.{name}", reason) for name in names.split()}


def because(reason: str, names: str) -> dict[str, str]:
    """Table entries for names that are absent for one reason."""
    return dict.fromkeys(names.split(), reason)


_NOTHING = object()


def _public(module: Any) -> Iterable[str]:
    listed = getattr(module, "__all__", None)
    return listed if listed is not None else [name for name in dir(module) if not name.startswith("_")]


def _those_there(served: Served) -> list[Any]:
    """What everything_of names, as far as Weft has it."""
    found = []
    for place in served.everything_of:
        try:
            found.append(_at(place))
        except (ModuleNotFoundError, AttributeError):
            continue
    return found


def is_there(served: Served) -> bool:
    """Whether Weft has anything of the module of this name: a rule for a module that it does not have holds nothing."""
    return not served.everything_of or bool(served.names) or bool(_those_there(served))


def _at(place: Any) -> Any:
    """The object that an entry of a table names."""
    if isinstance(place, Value):
        return place.value
    if not isinstance(place, str):
        return place
    module, _, name = place.partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split(".") if name else ():
        found = getattr(found, part)
    return found


class ServedModule(types.ModuleType):
    """A module under one of JAX's names. Every module is a package, so that `from jax import nothing` asks the finder,
    which knows why there is no such thing."""

    def __init__(self, name: str, served: Served, below: Iterable[str]):
        super().__init__(name, f"{name}, served by Weft (weft.as_jax).")
        self.__dict__["_weft_served"] = served
        self.__dict__["_weft_below"] = frozenset(below)

    def _weft_find(self, name: str) -> Any:
        served: Served = self.__dict__["_weft_served"]
        if name in served.names:
            try:
                return self._weft_served_as(name, _at(served.names[name]))
            except AttributeError:
                return _NOTHING
        if name in served.absent or name in served.without:
            return _NOTHING
        if name in self.__dict__["_weft_below"]:
            try:
                return importlib.import_module(f"{self.__name__}.{name}")
            except ModuleNotFoundError:
                return _NOTHING
        for module in _those_there(served):
            if not name.startswith("_") and name in _public(module):
                return self._weft_served_as(name, getattr(module, name))
        return _NOTHING

    def _weft_served_as(self, name: str, found: Any) -> Any:
        if self.__name__ == "jax.numpy":
            found = named(name, found)
        found = in_one_equation(self.__name__, name, found)
        found = with_rules(self.__name__, name, with_more(self.__name__, name, found))
        found = moving_elements(self.__name__, name, found)
        found = guarded(self.__name__, name, asking_precision(self.__name__, name, found))
        found = strictly_numpy(self.__name__, name, strictly(self.__name__, name, found))
        found = noting(self.__name__, name, weakly(self.__name__, name, found))
        return bounded(self.__name__, name, warning(self.__name__, name, found))

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return [n for n in dir(self) if not n.startswith("_")]
        # What Python itself asks a module for.
        if name.startswith("__") and name.endswith("__") and name not in self.__dict__["_weft_served"].names:
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        found = self._weft_find(name)
        if found is _NOTHING:
            whole = f"{self.__name__}.{name}"
            report.count(whole, attribute=True)
            error = AttributeError(no_counterpart(whole, self.__dict__["_weft_served"].absent.get(name)))
            error.name, error.obj = name, self
            raise error
        self.__dict__[name] = found
        return found

    def __dir__(self) -> list[str]:
        served: Served = self.__dict__["_weft_served"]
        found = {*self.__dict__, *served.names, *self.__dict__["_weft_below"]}
        for module in _those_there(served):
            found.update(_public(module))
        hidden = {*served.absent, *served.without, "_weft_served", "_weft_below"}
        return sorted(name for name in found - hidden if not name.startswith("_") or name.startswith("__"))


def no_counterpart(whole: str, reason: str | None) -> str:
    """The message about a name that is not served."""
    return f"weft.as_jax: Weft has no counterpart of {whole}{f': {reason}' if reason else ''}"
