"""Functions of single elements, for arrays: with reductions, running results and tables, as NumPy's."""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable
from typing import Any

from .. import _weft
from .._core import docs as _docs
from .._core.errors import type_error, value_error
from .._weft import Array
from ..control import fori_loop, scan
from ..typing import NDArrayLike, NestedLike
from ._apply import vectorize

__all__ = ["frompyfunc"]


class _IsUfunc(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return super().__instancecheck__(x) or (cls is ufunc and reduces(x))


class ufunc(metaclass=_IsUfunc):
    """A function of single elements, for arrays; made by frompyfunc. isinstance(weft.numpy.add, ufunc) holds, too, and
    for the others that have its methods: subtract, multiply, maximum, minimum, negative, logaddexp, logaddexp2,
    logical_and, logical_or, logical_xor, bitwise_and, bitwise_or and bitwise_xor.

    Args:
        func: function of single elements.
        nin: how many arguments it has.
        nout: how many results.
        identity: what does not change the other argument; None: there is none.

    Example:
        >>> add = wnp.frompyfunc(lambda x, y: x + y, 2, 1, identity=0)
        >>> add.reduce(wnp.arange(4)), add.outer(wnp.arange(2), wnp.arange(2))
        (Array(6, dtype=int32), Array([[0, 1],
               [1, 2]], dtype=int32))
    """

    def __init__(self, func: Callable[..., Any], nin: int, nout: int, identity: Any = None):
        self.__name__ = getattr(func, "__name__", "function")
        self.__doc__ = func.__doc__
        self._original, self._nin, self._nout, self._identity = func, nin, nout, identity
        self._function = func if reduces(func) else vectorize(func)

    _func = property(lambda self: self._original)
    nin = nargs = property(lambda self: self._nin)
    nout = property(lambda self: self._nout)
    identity = property(lambda self: self._identity)

    def __hash__(self) -> int:
        return hash((self._original, self._nin, self._nout))

    def __eq__(self, other: object) -> bool:
        key = lambda x: (x._func, x._nin, x._nout, x._identity)
        return isinstance(type(other), _IsUfunc) and key(self) == key(other)

    def __repr__(self) -> str:
        return f"<weft.numpy.ufunc '{self.__name__}'>"

    def __call__(self, *args: NestedLike, out: None = None, where: None = None) -> Any:
        if out is not None or where is not None:
            raise type_error(f"{self.__name__}: out and where must be None: arrays never change")
        if len(args) != self.nin:
            raise type_error(f"{self.__name__}: {self.nin} arguments are needed, got {len(args)}")
        return self._function(*args)

    def _binary(self, name: str) -> None:
        if self.nin != 2 or self.nout != 1:
            raise value_error(f"{self.__name__}.{name}: a function of two arguments with one result is needed")

    def _as(self, x: Array, dtype: Any) -> Array:
        """In the dtype in which it is done."""
        if dtype is None and self.__name__.startswith("logical") and reduces(self._func):
            dtype = bool
        return x if dtype is None else x.astype(dtype)

    def _moved(self, a: Any, axis: int, name: str) -> Array:
        self._binary(name)
        x = _weft.array(a, None, False)
        axis = _weft.check_axis(axis, x.ndim, name)
        return _front(x, axis)

    def reduce(
        self,
        a: NDArrayLike,
        axis: int | tuple[int, ...] | None = 0,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Array:
        """The elements along an axis joined, one after the other.

        Args:
            a: array.
            axis: the axis, or several; None: all.
            dtype: the dtype in which it is done; None: that of a.
            out: must be None.
            keepdims: whether the axis stays, with size 1.
            initial: what to begin with; None: the identity, or the first element.
            where: booleans: which elements count; None: all.

        Returns: array.
        """
        self._binary("reduce")
        if out is not None:
            raise type_error(f"{self.__name__}.reduce: out must be None: arrays never change")
        x = _weft.array(a, None, False)
        x = self._as(x, dtype)
        shape = x.shape
        mask = None if where is None else _weft.broadcast_to(_weft.array(where, None, False), shape)
        given = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
        axes = tuple(_weft.check_axis(i, x.ndim, "reduce") for i in given)
        kept = tuple(1 if i in axes else n for i, n in enumerate(shape))
        fast = _FAST_REDUCTIONS.get(self.__name__) if reduces(self._func) else None
        logical = self.__name__.startswith("logical")
        needs_start = mask is not None and self.identity is None and initial is None
        if fast is not None and not needs_start and (initial is None or not logical):
            more = {"where": mask, "initial": initial}
            given_more = {name: value for name, value in more.items() if value is not None}
            reduced = fast(x, axes, keepdims=keepdims, **given_more)
            return reduced if dtype is None else reduced.astype(dtype)
        rest = tuple(i for i in range(x.ndim) if i not in axes)
        merged = math.prod(shape[i] for i in axes)
        merge = lambda v: v.transpose((*axes, *rest)).reshape((merged, *(shape[i] for i in rest)))
        rows, mask = merge(x), None if mask is None else merge(mask)
        start = self.identity if initial is None else initial
        if start is None and (mask is not None or not rows.shape[0]):
            raise value_error(f"{self.__name__}.reduce: it has no identity: give initial")
        first = rows[0] if start is None else _filled(rows.shape[1:], start, x.dtype)
        if mask is None:
            step = lambda acc, row: (self._function(acc, row).astype(acc.dtype), None)
            total = scan(step, first, rows[1:] if start is None else rows)[0]
        else:
            step_where = lambda acc, row: (
                _weft.where(row[1], self._function(acc, row[0]).astype(acc.dtype), acc),
                None,
            )
            total = scan(step_where, first, (rows, mask))[0]
        return total.reshape(kept) if keepdims else total

    def accumulate(self, a: NDArrayLike, axis: int = 0, dtype: Any = None, out: None = None) -> Array:
        """What reduce gives of the first one, two ... elements along an axis.

        Args:
            a: array.
            axis: the axis.
            dtype: the dtype in which it is done; None: that of a.
            out: must be None.

        Returns: array of the shape of a.
        """
        if out is not None:
            raise type_error(f"{self.__name__}.accumulate: out must be None: arrays never change")
        rows = self._moved(a, axis, "accumulate")
        if dtype is None and rows.dtype == "bool" and self.__name__ in ("add", "multiply") and reduces(self._func):
            dtype = _weft.default_dtype("int")  # a count
        own = rows.dtype if dtype is None else dtype
        rows = self._as(rows, dtype)
        if not rows.shape[0]:
            return _back(rows, axis).astype(own)

        def step(acc, row):
            new = self._function(acc, row).astype(acc.dtype)
            return new, new

        rest = scan(step, rows[0], rows[1:])[1]
        return _back(_weft.concatenate([rows[:1], rest], 0), axis).astype(own)

    def outer(self, A: NestedLike, B: NestedLike, /) -> Array:
        """The function of all pairs of elements.

        Args:
            A: array.
            B: array.

        Returns: array of the dimensions of A, then those of B.
        """
        self._binary("outer")
        a, b = _weft.array(A, None, False), _weft.array(B, None, False)
        out: Array = self._function(a.reshape(a.shape + (1,) * b.ndim), b.reshape((1,) * a.ndim + b.shape))
        return out

    def at(self, a: NDArrayLike, indices: Any, b: Any = None, /, *, inplace: bool = True) -> Array:
        """A copy in which elements are replaced by the function of them, those that come twice twice.

        Args:
            a: array.
            indices: what stands in brackets.
            b: the second arguments, for a function of two.
            inplace: must be False: arrays never change.

        Returns: array of the shape of a.
        """
        if inplace:
            raise value_error(
                f"{self.__name__}.at: arrays never change; write x = {self.__name__}.at(..., inplace=False)"
            )
        if self.nin > 2 or self.nout != 1:
            raise value_error(f"{self.__name__}.at: a function of one or two arguments with one result is needed")
        x = _weft.array(a, None, False)
        chosen = _weft.iota((x.size,), 0, "int32").reshape(x.shape)[indices]
        places = chosen.reshape(-1)
        others = None if self.nin == 1 else _weft.broadcast_to(_weft.array(b, None, False), chosen.shape).reshape(-1)

        def step(i, flat):
            at = flat[places[i]]
            new = self._function(at) if others is None else self._function(at, others[i])
            return flat.at[places[i]].set(new.astype(flat.dtype))

        out: Array = x
        if places.size:
            out = fori_loop(0, places.size, step, x.reshape(-1)).reshape(x.shape)
        return out

    def reduceat(
        self, a: NDArrayLike, indices: NestedLike, axis: int = 0, dtype: Any = None, out: None = None
    ) -> Array:
        """reduce of the pieces between places, from each place up to the next; a place that is not below the next one
        gives its element.

        Args:
            a: array.
            indices: vector of places.
            axis: the axis.
            dtype: the dtype in which it is done; None: that of a.
            out: must be None.

        Returns: array with as many elements along the axis as there are places.
        """
        if out is not None:
            raise type_error(f"{self.__name__}.reduceat: out must be None: arrays never change")
        rows = self._moved(a, axis, "reduceat")
        own = rows.dtype if dtype is None else dtype
        rows = self._as(rows, dtype)
        starts = _weft.array(indices, None, False)
        last = _weft.full((1,), rows.shape[0], starts.dtype)
        ends = _weft.concatenate([starts[1:], last], 0)

        def step(j, acc):
            inside = (starts < j) & (j < ends)
            new = self._function(acc, rows[j][None]).astype(acc.dtype)
            return _weft.where(inside.reshape(inside.shape + (1,) * (acc.ndim - 1)), new, acc)

        return _back(fori_loop(0, rows.shape[0], step, rows[starts]), axis).astype(own)


# Those of the functions that have ufunc's methods: name -> what they do not change.
_KNOWN: dict[str, Any] = {
    "add": 0,
    "bitwise_and": -1,
    "bitwise_or": 0,
    "bitwise_xor": 0,
    "logaddexp": -math.inf,
    "logaddexp2": -math.inf,
    "logical_and": True,
    "logical_or": False,
    "logical_xor": False,
    "maximum": None,
    "minimum": None,
    "multiply": 1,
    "negative": None,
    "subtract": None,
}


def _own(name: str) -> Any:
    return getattr(importlib.import_module("weft.numpy"), name)


def _reduction(name: str) -> Callable[..., Any]:
    return lambda *args, **kwargs: _own(name)(*args, **kwargs)


_FAST_REDUCTIONS = {
    "add": _reduction("sum"),
    "multiply": _reduction("prod"),
    "maximum": _reduction("max"),
    "minimum": _reduction("min"),
    "logical_and": _reduction("all"),
    "logical_or": _reduction("any"),
}


def _filled(shape: Any, value: Any, dtype: Any) -> Array:
    if isinstance(value, int) and value == -1:  # all bits, of unsigned integers and booleans, too
        return ~_weft.full(shape, 0, dtype)
    return _weft.full(shape, value, dtype)


def reduces(x: Any) -> bool:
    """Whether it is one of the functions of weft.numpy that have ufunc's methods."""
    name = getattr(x, "__name__", None)
    return name in _KNOWN and x is _own(name)


@functools.cache
def methods_of(function: Any) -> ufunc:
    """The ufunc whose methods a function of weft.numpy has; AttributeError: it has none."""
    if not reduces(function):
        raise AttributeError(f"'{function.__name__}' is no ufunc")
    return ufunc(function, 1 if function.__name__ == "negative" else 2, 1, _KNOWN[function.__name__])


def _front(x: Array, axis: int) -> Array:
    order = (axis, *(d for d in range(x.ndim) if d != axis))
    return x.transpose(order)


def _back(x: Array, axis: int) -> Array:
    axis = axis % x.ndim
    return x.transpose((*range(1, axis + 1), 0, *range(axis + 1, x.ndim)))


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """A function of arrays from a function of single elements.

    Args:
        func: function of single elements, which may be traced.
        nin: how many arguments it has.
        nout: how many results.
        identity: what does not change the other argument; None: there is none.

    Returns: ufunc, with the methods reduce, accumulate, outer, at and reduceat.

    Example:
        >>> larger = wnp.frompyfunc(lambda x, y: wnp.where(x > y, x, y), 2, 1)
        >>> larger.accumulate(wnp.array([1, 3, 2]))
        Array([1, 3, 3], dtype=int32)
    """
    return ufunc(func, nin, nout, identity)


_docs.complete(globals(), {})
