"""What programs import from jax.experimental.pjit."""

from .._sharding.partitioning import with_sharding_constraint
from ..compiled import jit as pjit

__all__ = ["pjit", "with_sharding_constraint"]
