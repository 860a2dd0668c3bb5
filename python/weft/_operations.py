"""Pickles of operations (weft.numpy.exp ...) that were written before there was weft._core name this module."""

from ._pickled import operation as _restored  # noqa: F401
