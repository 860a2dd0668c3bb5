"""What programs import from jax.experimental.pjit."""

from ..compiled import jit as pjit
from ..partitioning import with_sharding_constraint

__all__ = ["pjit", "with_sharding_constraint"]
