"""Products of vectors and matrices."""

from __future__ import annotations

from .. import _weft
from .._weft import Array

__all__ = [
    "cross",
    "dot",
    "einsum",
    "inner",
    "matmul",
    "matvec",
    "outer",
    "tensordot",
    "trace",
    "vdot",
    "vecdot",
    "vecmat",
    "convolve",
    "correlate",
]


def _array(x) -> Array:
    return _weft.array(x, None, False)


def matmul(a, b) -> Array:
    """The matrix product of the last two dimensions; the others broadcast. Vectors count as a row or a column.
    Raises TypeError when the inner sizes differ."""
    return _weft.matmul(_array(a), _array(b))


def dot(a, b) -> Array:
    """The sum over the last axis of a and the second to last of b (vectors: the only one)."""
    return _weft.dot(_array(a), _array(b))


def vdot(a, b) -> Array:
    """The dot product of flattened arrays, the first conjugated."""
    from ._elementwise import conjugate

    return _weft.dot(conjugate(a).reshape(-1), _array(b).reshape(-1))


def inner(a, b) -> Array:
    """The sum over the last axes of both."""
    a, b = _array(a), _array(b)
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    return _weft.tensordot(a, b, [a.ndim - 1], [b.ndim - 1])


def outer(a, b) -> Array:
    """Products of all pairs of elements."""
    return _array(a).reshape(-1)[:, None] * _array(b).reshape(-1)[None, :]


def tensordot(a, b, axes=2) -> Array:
    """The sum over pairs of axes: the last n of a with the first n of b, or two lists."""
    a, b = _array(a), _array(b)
    if isinstance(axes, int):
        return _weft.tensordot(a, b, list(range(a.ndim - axes, a.ndim)), list(range(axes)))
    x, y = axes
    return _weft.tensordot(a, b, [x] if isinstance(x, int) else list(x), [y] if isinstance(y, int) else list(y))


def einsum(subscripts, /, *operands, optimize="optimal", precision=None, preferred_element_type=None) -> Array:
    """Einstein's summation: einsum("ij,jk->ik", a, b), or with lists of numbers for indices:
    einsum(a, [0, 1], b, [1, 2], [0, 2]). Repeated indices take diagonals; "..." stands for the rest.

    Raises TypeError where sizes of an index differ, ValueError for a malformed string. optimize and precision are
    accepted and have no effect.
    """
    del optimize, precision
    if not isinstance(subscripts, str):
        subscripts, arrays = _spelled([subscripts, *operands])
    else:
        arrays = list(operands)
    out = _weft.einsum(subscripts, [_array(x) for x in arrays])
    return out if preferred_element_type is None else out.astype(preferred_element_type)


def _spelled(parts: list) -> tuple[str, list]:
    """einsum's operands and lists of indices as a string and operands."""
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

    def word(indices) -> str:
        try:
            return "".join("..." if i is Ellipsis else letters[int(i)] for i in indices)
        except (TypeError, IndexError):
            raise ValueError(f"einsum: an operand is followed by its indices, got {indices!r}") from None

    operands, words = parts[0 : len(parts) // 2 * 2 : 2], [word(w) for w in parts[1::2]]
    return ",".join(words) + ("->" + word(parts[-1]) if len(parts) % 2 else ""), operands


def vecdot(x1, x2, axis: int = -1) -> Array:
    """Dot products along an axis, the first conjugated."""
    from ._elementwise import conjugate

    x1, x2 = _weft.moveaxis(conjugate(x1), axis, -1), _weft.moveaxis(_array(x2), axis, -1)
    return _weft.einsum("...i,...i->...", [x1, x2])


def matvec(x1, x2) -> Array:
    """Matrix times vector."""
    return _weft.einsum("...ij,...j->...i", [_array(x1), _array(x2)])


def vecmat(x1, x2) -> Array:
    """Vector times matrix, the vector conjugated."""
    from ._elementwise import conjugate

    return _weft.einsum("...i,...ij->...j", [conjugate(x1), _array(x2)])


def trace(a, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The sum of a diagonal."""
    from ._creation import diagonal

    return _weft.reduce("reduce_sum", diagonal(_array(a), offset, axis1, axis2), -1, False)


def cross(a, b, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Array:
    """The cross product of vectors of three elements (of two: the third component alone)."""
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = _weft.moveaxis(_array(a), axisa, -1), _weft.moveaxis(_array(b), axisb, -1)
    if a.shape[-1] not in (2, 3) or b.shape[-1] not in (2, 3):
        raise ValueError(f"cross: vectors of 2 or 3 elements are needed, got shapes {a.shape} and {b.shape}")
    parts_a, parts_b = ([v[..., i] for i in range(v.shape[-1])] for v in (a, b))
    if len(parts_a) == len(parts_b) == 2:
        return parts_a[0] * parts_b[1] - parts_a[1] * parts_b[0]
    (x1, y1, z1), (x2, y2, z2) = (p if len(p) == 3 else [*p, _weft.full((), 0, int)] for p in (parts_a, parts_b))
    return _weft.moveaxis(_weft.stack([y1 * z2 - z1 * y2, z1 * x2 - x1 * z2, x1 * y2 - y1 * x2], -1), -1, axisc)


def convolve(a, v, mode: str = "full") -> Array:
    """The discrete convolution of two vectors. mode: "full", "same" or "valid"."""
    a, v = _array(a), _array(v)
    if a.shape[0] < v.shape[0]:
        a, v = v, a
    n, k = a.shape[0], v.shape[0]
    padded = _weft.pad_constant(a, [k - 1], [k - 1], 0)
    windows = padded[_weft.iota((n + k - 1, k), 0, "int32") + _weft.iota((n + k - 1, k), 1, "int32")]
    full = _weft.matmul(windows, _weft.flip(v, 0))
    if mode == "full":
        return full
    if mode == "same":
        return full[(k - 1) // 2 : (k - 1) // 2 + n]
    if mode == "valid":
        return full[k - 1 : n]
    raise ValueError(f"convolve: there is no mode {mode!r}")


def correlate(a, v, mode: str = "valid") -> Array:
    """The cross-correlation of two vectors."""
    from ._elementwise import conjugate

    a, v = _array(a), _array(v)
    return convolve(a, _weft.flip(conjugate(v), 0), mode)
