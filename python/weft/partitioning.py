"""One program for arrays that are cut over a mesh: constraints, pjit, and what moves between devices."""

from ._core.names import belong_to as _belong_to
from ._sharding.communication import Communication
from ._sharding.partitioning import reshard, with_sharding_constraint
from .parallel import pjit

__all__ = ["Communication", "pjit", "reshard", "with_sharding_constraint"]

_belong_to(globals(), Communication, pjit, reshard, with_sharding_constraint)
