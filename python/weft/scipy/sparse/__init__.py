"""Systems of equations that are given by products."""

from . import linalg

__all__ = ["linalg"]
