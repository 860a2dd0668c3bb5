"""Geometry."""

from . import transform

__all__ = ["transform"]
