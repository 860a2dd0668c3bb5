"""Functions of neural networks: activations, normalisations, softmax, losses' building blocks, initialisers."""

from . import _activations, _attention, _normalisations, _softmax, initializers
from ._activations import *  # noqa: F403
from ._attention import *  # noqa: F403
from ._normalisations import *  # noqa: F403
from ._softmax import *  # noqa: F403

__all__ = ["initializers"]
for _part in (_activations, _attention, _normalisations, _softmax):
    __all__.extend(_part.__all__)
