"""Functions that apply functions, and arrays from subscripts: vectorize, apply_along_axis, r_, mgrid ..."""

from __future__ import annotations

import builtins
import functools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .. import _weft
from .._core import docs as _docs
from .._core import watching
from .._core.errors import type_error, value_error
from .._weft import Array
from ..arguments import concrete, is_integer
from ..batching import vmap
from ..typing import NestedLike
from ._creation import arange, linspace
from ._grids import meshgrid
from ._shape import _together

__all__ = ["apply_along_axis", "apply_over_axes", "c_", "index_exp", "mgrid", "ogrid", "r_", "s_", "vectorize"]


def _array(x) -> Array:
    return _weft.array(x, None, False)


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: NestedLike, *args: Any, **kwargs: Any) -> Array:
    """A function of vectors, applied to every vector along an axis.

    Args:
        func1d: takes a vector and returns an array; it is vectorised (weft.vmap).
        *args: further arguments of the function.
        **kwargs: further arguments of the function.

    Returns: array with the axis replaced by the dimensions of what the function returns.

    Example:
        >>> wnp.apply_along_axis(wnp.sum, 1, wnp.array([[1, 2], [3, 4]]))
        Array([3, 7], dtype=int32)
    """
    arr = _array(arr)
    axis = _weft.check_axis(axis, arr.ndim, "apply_along_axis")
    arr = _weft.moveaxis(arr, axis, -1)
    function = lambda v: func1d(v, *args, **kwargs)
    for _ in range(arr.ndim - 1):
        function = vmap(function)
    out = _array(function(arr))
    extra = out.ndim - (arr.ndim - 1)
    if not extra:
        return out
    return _weft.moveaxis(out, list(range(out.ndim - extra, out.ndim)), list(range(axis, axis + extra)))


def apply_over_axes(func: Callable[..., Any], a: NestedLike, axes: int | Sequence[int]) -> Array:
    """A function such as sum, applied over one axis after another.

    Args:
        func: takes (array, axis) and returns an array that keeps or drops the axis.
        axes: the axis or axes, negative from the end.

    Returns: array; dimensions that the function drops come back with size 1.

    Example:
        >>> wnp.apply_over_axes(wnp.sum, wnp.ones((2, 3, 4)), [0, 2])
        Array([[[8.],
                [8.],
                [8.]]], dtype=float32)
    """
    a = _array(a)
    for axis in [axes] if is_integer(axes) else axes:
        axis = _weft.check_axis(axis, a.ndim, "apply_over_axes")
        out = func(a, axis)
        a = _weft.expand_dims(out, axis) if out.ndim == a.ndim - 1 else out
    return a


_CORE = r"\(\s*(?:\w+(?:\s*,\s*\w+)*)?\s*\)"


def _shape(result: Any) -> tuple[Any, ...]:
    """Of an array, or of a container of arrays that has a shape."""
    shape = getattr(result, "shape", None)
    return _array(result).shape if shape is None else tuple(shape)


def _parse(signature: str):
    if not re.fullmatch(rf"\s*{_CORE}(?:\s*,\s*{_CORE})*\s*->\s*{_CORE}(?:\s*,\s*{_CORE})*\s*", signature):
        raise value_error(f"vectorize: {signature!r} is no signature; expected one such as '(n,m),(m)->(n)'")
    sides = [[re.findall(r"\w+", core) for core in re.findall(_CORE, side)] for side in signature.split("->")]
    return sides[0], sides[1]


def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Iterable[int | str] = frozenset(), signature: str | None = None
) -> Callable[..., Any]:
    """A function of numbers made a function of arrays; with a signature, one of vectors and matrices made one of arrays
    of them. It is traced once and vectorised (weft.vmap), not called in a loop.

    Args:
        pyfunc: the function; an argument that is None reaches it as it is.
        excluded: positions or names of arguments that are passed as they are.
        signature: such as "(n,m),(m)->(n)": the dimensions that the function takes and gives; None: numbers.

    Returns: function of arrays, which broadcast against each other in their other dimensions.

    Raises:
        ValueError: the signature is malformed, or excluded has negative numbers; when called, shapes do not fit it, or
            an argument is None beside a signature.
        TypeError: excluded holds other things; when called with another number of arguments.

    Example:
        >>> wnp.vectorize(wnp.dot, signature="(n),(n)->()")(wnp.ones((2, 3)), wnp.arange(3.0))
        Array([3., 3.], dtype=float32)
    """
    inputs, outputs = _parse(signature) if signature is not None else (None, None)
    fixed = frozenset(excluded)
    if not all(isinstance(i, (int, str)) for i in fixed):
        raise type_error(f"vectorize: excluded= may hold positions and names, got {excluded!r}")
    if any(isinstance(i, int) and i < 0 for i in fixed):
        raise value_error(f"vectorize: excluded={excluded!r} contains negative numbers")

    @functools.wraps(pyfunc, updated=())
    def vectorized(*args, **kwargs):
        absent = {i for i, a in enumerate(args) if a is None and i not in fixed}
        if absent and signature is not None:
            raise value_error(f"vectorize: arguments {absent} are None, which has no dimensions for {signature!r}")
        kept = absent | {i for i in range(len(args)) if i in fixed}
        for name in kwargs:
            if name not in fixed:
                raise type_error(f"vectorize: pass '{name}' by position, or name it in excluded=")
        arrays = [_array(a) for i, a in enumerate(args) if i not in kept]
        cores = inputs if inputs is not None else [[] for _ in arrays]
        if len(cores) != len(arrays):
            raise type_error(f"vectorize: the signature {signature!r} has {len(cores)} arguments, got {len(arrays)}")
        sizes: dict[str, Any] = {}

        def fit(core: list[str], shape: Any) -> None:
            for name, size in zip(core, shape):
                wanted = sizes.setdefault(name, size)  # a number is a name, too, as in JAX
                if wanted != size:
                    raise value_error(f"vectorize: '{name}' of {signature!r} is both {wanted} and {size}")

        for n, (a, core) in enumerate(zip(arrays, cores)):
            if a.ndim < len(core):
                raise value_error(
                    f"vectorize: argument {n} has shape {a.shape}, but {signature!r} needs {len(core)} axes"
                )
            fit(core, a.shape[a.ndim - len(core) :])
        loops = [a.shape[: a.ndim - len(core)] for a, core in zip(arrays, cores)]
        joint = _weft.broadcast_shapes(*loops) if loops else ()
        if len({len(shape) for a, shape in zip(arrays, loops) if a.ndim}) > 1:
            watching.ranks_differ("vectorize", [str(tuple(shape)) for shape in loops])

        def on_cores(*values):
            rest = iter(values)
            out = pyfunc(*[a if i in kept else next(rest) for i, a in enumerate(args)], **kwargs)
            if outputs is not None:
                results = out if isinstance(out, tuple) else (out,)
                if len(results) != len(outputs):
                    raise type_error(
                        f"vectorize: {signature!r} has {len(outputs)} results, the function {len(results)}"
                    )
                for result, core in zip(results, outputs):
                    shape = _shape(result)
                    if len(shape) != len(core):
                        raise value_error(
                            f"vectorize: a result has shape {shape}, but {signature!r} says {len(core)} axes"
                        )
                    fit(core, shape)
            return out

        # Arguments that do not have an axis are shared along it; nothing is stretched before it must be.
        function: Any = on_cores
        padded = [(1,) * (len(joint) - len(shape)) + tuple(shape) for shape in loops]
        for d in reversed(range(len(joint))):
            axes = tuple(0 if shape[d] != 1 or joint[d] == 1 else None for shape in padded)
            function = vmap(function, in_axes=axes) if any(x is not None for x in axes) else function
        squeezed = []
        for a, shape, core in zip(arrays, padded, cores):
            dims = tuple(n for d, n in enumerate(shape) if n != 1 or joint[d] == 1)
            squeezed.append(a.reshape(dims + a.shape[a.ndim - len(core) :]))
        return function(*squeezed)

    return vectorized


# --- Arrays from subscripts -------------------------------------------------------------------------------------------


def _range(s: slice, name: str) -> Array:
    start, step = 0 if s.start is None else s.start, 1 if s.step is None else s.step
    for part, given in (("start", start), ("stop", s.stop), ("step", step)):
        if _weft.is_traced(given):
            concrete(int, given, f"{name}: the {part} of a slice")
    if isinstance(step, complex):
        return linspace(start, s.stop, int(abs(step)))
    return arange(start, s.stop, step)


class _Grid:
    """mgrid[0:3, 0:1:5j]: the coordinates of a grid, as numpy.mgrid and numpy.ogrid."""

    def __init__(self, name: str, sparse: bool):
        self._name, self._sparse = name, sparse

    def __getitem__(self, key):
        if isinstance(key, slice):
            return _range(key, self._name)
        axes = [_range(s, self._name) for s in key]
        if not axes:
            return [] if self._sparse else _weft.full((0,), 0, int)
        kind = _weft.result_type(*axes)
        grids = meshgrid(*(a.astype(kind) for a in axes), indexing="ij", sparse=self._sparse)
        return grids if self._sparse else _weft.stack(grids, 0)


class _Joined:
    """r_[a, 0:3, 5]: arrays, ranges and numbers joined, as numpy.r_ (along the first axis) and c_ (as columns)."""

    def __init__(self, name: str, columns: bool):
        self._name, self._columns = name, columns

    def _arrays(self, keys: tuple) -> tuple[Array, ...]:
        return _together(*[_range(part, self._name) if isinstance(part, slice) else part for part in keys])

    def __getitem__(self, key) -> Array:
        keys = key if isinstance(key, tuple) else (key,)
        if keys and isinstance(keys[0], str):
            return self._directed(keys[0], keys[1:])
        parts = []
        for a in self._arrays(keys):
            if self._columns:
                a = a.reshape(a.shape + (1,) * (2 - a.ndim)) if a.ndim < 2 else a
            else:
                a = a.reshape(-1) if a.ndim == 0 else a
            parts.append(a)
        return _weft.concatenate(parts, -1 if self._columns else 0)

    def _directed(self, directive: str, keys: tuple) -> Array:
        """With "axis", "axis,dimensions" or "axis,dimensions,where the old ones go" in front; "r" and "c": a matrix."""
        arrays = self._arrays(keys)
        matrix = directive in ("r", "c")
        defaults = (-1, 2, 0) if self._columns else (0, 1, -1)
        try:
            given = [] if matrix else [int(word) for word in directive.split(",")]
            axis, dims, start = (*given, *defaults[len(given) :])
        except ValueError:
            raise value_error(
                f"{self._name}: could not understand directive {directive!r}; expected 'axis', "
                "'axis,dimensions', 'axis,dimensions,start', 'r' or 'c'"
            ) from None
        parts = []
        for a in arrays:
            missing = dims - a.ndim
            if missing > 0:
                front = start if start >= 0 else missing + start + 1
                if a.ndim == 0:
                    front = 0
                front = builtins.min(front, missing)
                a = a.reshape((1,) * front + a.shape + (1,) * (missing - front))
            parts.append(a)
        out = _weft.concatenate(parts, axis)
        return out.reshape((1, -1) if directive == "r" else (-1, 1)) if matrix and out.ndim == 1 else out


class _Index:
    """s_[1:3, ...]: the subscript itself, as numpy.s_."""

    def __init__(self, as_tuple: bool):
        self._as_tuple = as_tuple

    def __getitem__(self, key):
        return (key,) if self._as_tuple and not isinstance(key, tuple) else key


mgrid, ogrid = _Grid("mgrid", False), _Grid("ogrid", True)
r_, c_ = _Joined("r_", False), _Joined("c_", True)
s_, index_exp = _Index(False), _Index(True)

_docs.complete(globals(), arrays=True)
