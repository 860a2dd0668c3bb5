"""SciPy's functions under its names: special functions, distributions, systems of equations, signals, optimisation.

The parts are imported when one first asks for them.
"""

from __future__ import annotations

import importlib
import typing

if typing.TYPE_CHECKING:
    from . import (
        cluster,
        fft,
        integrate,
        interpolate,
        linalg,
        ndimage,
        optimize,
        signal,
        sparse,
        spatial,
        special,
        stats,
    )

__all__ = [
    "cluster",
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "spatial",
    "special",
    "stats",
]


if not typing.TYPE_CHECKING:  # for which a name that is not there is a mistake

    def __getattr__(name: str) -> typing.Any:
        if name in __all__:
            return importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
