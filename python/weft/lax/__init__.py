"""The operations under weft.numpy: element-wise ones straight from the registry, and structured ones with explicit
shapes."""

import importlib as _importlib
import typing as _typing

from .. import collectives as _collectives
from .._sharding.partitioning import with_sharding_constraint
from ..api import stop_gradient
from ..collectives import *  # noqa: F403
from ..control import cond, fori_loop, map, scan, switch, while_loop
from ..implicit import custom_linear_solve, custom_root
from ..ragged_exchange import ragged_all_to_all
from ._names import PARTS as _PARTS

if _typing.TYPE_CHECKING:
    from . import linalg
    from ._convolution import *  # noqa: F403
    from ._elementwise import *  # noqa: F403
    from ._fft import *  # noqa: F403
    from ._gather import *  # noqa: F403
    from ._gather_uses import *  # noqa: F403
    from ._patches import *  # noqa: F403
    from ._primitives import *  # noqa: F403
    from ._products import *  # noqa: F403
    from ._programs import *  # noqa: F403
    from ._reductions import *  # noqa: F403
    from ._scaled import *  # noqa: F403
    from ._scans import *  # noqa: F403
    from ._shape_tuples import *  # noqa: F403
    from ._shapes import *  # noqa: F403
    from ._slicing import *  # noqa: F403
    from ._sorting import *  # noqa: F403
    from ._special import *  # noqa: F403
    from ._uniform import *  # noqa: F403

__all__ = [
    "cond",
    "custom_linear_solve",
    "custom_root",
    "fori_loop",
    "linalg",
    "map",
    "ragged_all_to_all",
    "scan",
    "stop_gradient",
    "switch",
    "while_loop",
    "with_sharding_constraint",
]
__all__.extend(_collectives.__all__)
__all__.extend(_PARTS)


# A program uses a few of these, and to read all of them takes a quarter of the time in which a small one is compiled.
if not _typing.TYPE_CHECKING:  # for which a name that is not there is a mistake

    def __getattr__(name: str) -> _typing.Any:
        if name == "linalg":
            return _importlib.import_module("weft.lax.linalg")
        if name not in _PARTS:
            raise AttributeError(f"module 'weft.lax' has no attribute '{name}'")
        globals()[name] = found = getattr(_importlib.import_module(f"weft.lax.{_PARTS[name]}"), name)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
