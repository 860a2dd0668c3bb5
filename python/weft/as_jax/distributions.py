"""The distributions `jax` and `jaxlib`, for programs that look at the versions of installed packages."""

from __future__ import annotations

import importlib.metadata
from typing import Any

from .table import VERSION


class Distribution(importlib.metadata.Distribution):
    """What programs that look at installed packages find."""

    def __init__(self, name: str):
        self._name = name

    def read_text(self, filename: str) -> str | None:
        if filename == "METADATA":
            return f"Metadata-Version: 2.1\nName: {self._name}\nVersion: {VERSION}\nSummary: served by Weft\n"
        return None

    def locate_file(self, path: Any) -> Any:
        raise FileNotFoundError(f"{path}: {self._name} is served by Weft (weft.as_jax) and has no files")
