"""The operations under weft.numpy: element-wise ones straight from the registry, and structured ones with explicit
shapes."""

from .. import collectives
from .._sharding.partitioning import with_sharding_constraint
from ..api import stop_gradient
from ..collectives import *  # noqa: F403
from ..control import cond, fori_loop, map, scan, switch, while_loop
from ..implicit import custom_linear_solve, custom_root
from . import (
    _convolution,
    _elementwise,
    _fft,
    _gather,
    _patches,
    _primitives,
    _products,
    _programs,
    _reductions,
    _scans,
    _shapes,
    _slicing,
    _sorting,
    _special,
    linalg,
)
from ._convolution import *  # noqa: F403
from ._elementwise import *  # noqa: F403
from ._fft import *  # noqa: F403
from ._gather import *  # noqa: F403
from ._patches import *  # noqa: F403
from ._primitives import *  # noqa: F403
from ._products import *  # noqa: F403
from ._programs import *  # noqa: F403
from ._reductions import *  # noqa: F403
from ._scans import *  # noqa: F403
from ._shapes import *  # noqa: F403
from ._slicing import *  # noqa: F403
from ._sorting import *  # noqa: F403
from ._special import *  # noqa: F403

__all__ = [
    "cond",
    "custom_linear_solve",
    "custom_root",
    "fori_loop",
    "linalg",
    "map",
    "scan",
    "stop_gradient",
    "switch",
    "while_loop",
    "with_sharding_constraint",
]
for _part in (_convolution, _elementwise, _fft, _gather, _primitives, _products, _reductions, _scans):
    __all__.extend(_part.__all__)
for _part in (_shapes, _slicing, _sorting, _patches, _programs, _special, collectives):
    __all__.extend(_part.__all__)
