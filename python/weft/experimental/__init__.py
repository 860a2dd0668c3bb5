"""Names that programs for JAX import from jax.experimental."""

from . import jet

__all__ = ["jet"]
