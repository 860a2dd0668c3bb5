"""Names that programs for JAX import from jax.experimental."""

from ..callbacks import io_callback
from . import jet, multihost_utils, pjit

__all__ = ["io_callback", "jet", "multihost_utils", "pjit"]
