"""Factorisations and functions of matrices that are loops of other operations, which weft.lax.linalg and
weft.scipy.linalg name."""
