"""The import hook: modules under JAX's names, and the distributions `jax` and `jaxlib` for checks of versions."""

from __future__ import annotations

import importlib.machinery
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

from . import report
from .served import ServedModule, is_there, no_counterpart
from .table import TABLE, absent_modules

_PACKAGES = ("jax", "jaxlib")


class _Loader(importlib.machinery.SourceFileLoader):
    """Makes the module; there is no source to run."""

    def __init__(self, name: str):
        self.name, self.path = name, f"<weft.as_jax: {name}>"

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        start = f"{spec.name}."
        below = {name[len(start) :] for name in TABLE if name.startswith(start) and "." not in name[len(start) :]}
        return ServedModule(spec.name, TABLE[spec.name], below)

    def exec_module(self, module: ModuleType) -> None:
        pass

    def is_package(self, fullname: str) -> bool:
        return True

    def get_code(self, fullname: str) -> Any:
        return None

    def get_source(self, fullname: str) -> str:
        return ""


class Finder:
    """Finds what is in the table, and refuses every other module of JAX's."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        if name.split(".")[0] not in _PACKAGES:
            return None
        served = TABLE.get(name)
        if served is None or not is_there(served):
            return _refuse(name)
        spec = importlib.machinery.ModuleSpec(name, _Loader(name), is_package=True)
        spec.origin = f"<weft.as_jax: {name}>"
        return spec

    @staticmethod
    def find_distributions(context: Any = None) -> Iterator[Any]:
        from .distributions import Distribution  # importlib.metadata asks: it is loaded, and costs much otherwise

        wanted = getattr(context, "name", None)
        return iter([Distribution(name) for name in _PACKAGES if wanted is None or wanted.lower() == name])


def _refuse(name: str) -> None:
    parent, _, last = name.rpartition(".")
    served = TABLE.get(parent)
    reason = (served.absent.get(last) if served else None) or absent_modules(name)
    if report.was_last(name):
        # Python would put a message of its own in the place of a ModuleNotFoundError.
        raise ImportError(no_counterpart(name, reason), name=parent)
    report.count(name)
    raise ModuleNotFoundError(no_counterpart(name, reason), name=name)
