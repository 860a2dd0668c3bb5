"""Special functions that are programs of several operations, which both weft.lax and weft.scipy.special name."""
