"""Functions of neural networks: activations, normalisations, softmax, losses' building blocks, initialisers."""

import importlib as _importlib
import typing as _typing

from . import _activations, _attention, _block_scales, _normalisations, _softmax
from ._activations import *  # noqa: F403
from ._attention import *  # noqa: F403
from ._block_scales import *  # noqa: F403
from ._normalisations import *  # noqa: F403
from ._softmax import *  # noqa: F403

if _typing.TYPE_CHECKING:
    from . import initializers

__all__ = ["initializers"]
for _part in (_activations, _attention, _block_scales, _normalisations, _softmax):
    __all__.extend(_part.__all__)


# Weights are made once: a program that is compiled reads neither this nor random numbers.
if not _typing.TYPE_CHECKING:  # for which a name that is not there is a mistake

    def __getattr__(name: str) -> _typing.Any:
        if name == "initializers":
            return _importlib.import_module("weft.nn.initializers")
        raise AttributeError(f"module 'weft.nn' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), "initializers"})
