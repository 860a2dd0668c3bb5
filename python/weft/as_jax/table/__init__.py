"""What is served: the name of a module of JAX's -> what it holds (served.py says how to read an entry).

A rule says "everything public of weft.numpy, and besides"; only what is called otherwise in Weft, or is not there for a
reason, is listed by name."""

from __future__ import annotations

from ..served import Served
from .experimental import EXPERIMENTAL, KERNELS
from .extend import EXTEND
from .private import PRIVATE
from .public import PUBLIC
from .version import VERSION

__all__ = ["TABLE", "VERSION", "absent_modules"]

TABLE: dict[str, Served] = {**PUBLIC, **EXTEND, **EXPERIMENTAL, **PRIVATE}

# Modules that are absent for a reason of their own, with all that is below them.
_ABSENT_MODULES = {
    "jax.experimental.pallas": KERNELS,
    "jax.experimental.mosaic": KERNELS,
    "jax.experimental.jax2tf": "TensorFlow is not a target; programs are exported by weft.aot",
    "jax.experimental.transfer": "arrays move between processes by collectives",
    "jax.experimental.topologies": "programs are compiled for the devices that are there",
    "jax.experimental.serialize_executable": "weft.aot writes compiled programs",
    "jaxlib.mlir": "programs are Weft's own IR; weft.make_ir shows it",
}


def absent_modules(name: str) -> str | None:
    """Why a module is not there, if there is a reason."""
    return next((why for other, why in _ABSENT_MODULES.items() if f"{name}.".startswith(f"{other}.")), None)
