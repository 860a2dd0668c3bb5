"""Smallest values of functions."""

from ._minimize import OptimizeResults, minimize

__all__ = ["OptimizeResults", "minimize"]
