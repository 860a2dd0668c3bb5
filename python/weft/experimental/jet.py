"""Taylor mode, as jax.experimental.jet: see weft.jet."""

from ..taylor import jet

__all__ = ["jet"]
