"""Names that programs for JAX import from jax.experimental."""

from ..callbacks import io_callback
from . import checkify, jet, multihost_utils, ode, pjit

__all__ = ["checkify", "io_callback", "jet", "multihost_utils", "ode", "pjit"]
