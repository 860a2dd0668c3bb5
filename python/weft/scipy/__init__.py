"""The functions of SciPy that programs for JAX use most: special functions, densities, systems of equations."""

from . import linalg, special, stats

__all__ = ["linalg", "special", "stats"]
