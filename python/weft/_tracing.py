"""Pickles of weft.ShapeDtype that were written before there was weft._core name this module."""

from ._core.shapes import ShapeDtype  # noqa: F401
