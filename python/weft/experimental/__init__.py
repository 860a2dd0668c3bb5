"""Names that programs for JAX import from jax.experimental."""

from . import jet, multihost_utils, pjit

__all__ = ["jet", "multihost_utils", "pjit"]
