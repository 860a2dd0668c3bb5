"""Names that programs for JAX import from jax.experimental."""

from . import jet, pjit

__all__ = ["jet", "pjit"]
