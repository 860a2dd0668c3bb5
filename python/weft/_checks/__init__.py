"""Errors of programs as values (weft.experimental.checkify)."""
