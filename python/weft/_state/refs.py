"""The reference itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _weft
from .._core import stateful
from .._core import tree as _tree
from .._core.errors import index_error, runtime_error, type_error, value_error
from .._core.shapes import ShapedArray
from ..arguments import is_integer
from . import scopes
from .abstract import AbstractRef
from .indices import index_apart, index_of

# Set by weft.ref.
before_first: Callable[[], None] = lambda: None

_KINDS = {"bool": 0, "signed": 1, "unsigned": 1, "float": 2, "complex": 3}


class Ref:
    """A reference to an array whose contents change. weft.new_ref makes one.

    `ref[...]` is the array that it holds, `ref[i]` a part of it; `ref[...] = x`, `ref[i] = x` and `ref[i] += x` change
    it. Functions use references as arguments and from outside, in jit, grad, vmap and in loops and branches.

    Args:
        value: the first contents.

    Raises:
        IndexError: when indexed: a known index is out of bounds.
        ValueError: when written: the value is of another shape or dtype than what it replaces.
        weft.errors.UnexpectedTracerError: when used: it was made in a function that has ended.

    Example:
        >>> total = weft.new_ref(0.0)
        >>> @weft.jit
        ... def add(x):
        ...     total[...] += x
        >>> add(1.0), add(2.5)
        (None, None)
        >>> total
        Ref(3.5, dtype=float32, weak_type=True)
    """

    __slots__ = ("__weakref__", "_apart", "_back", "_frozen", "_home", "_line", "_of", "_spec", "_type", "_value")

    def __init__(self, value: Any):
        if isinstance(value, Ref):
            raise type_error("new_ref: got a reference; give what it holds, ref[...]")
        if not _weft.is_operand(value):
            raise type_error(f"new_ref: expected an array or a number, got {value!r} of type '{type(value).__name__}'")
        if stateful.references is None:
            before_first()
        value = _weft.array(value, None, False)
        shape, dtype, weak, text = _weft.abstract(value)
        self._spec = (tuple(shape), dtype, weak)
        self._type = f"Ref{{{text}}}"
        stack = _weft.user_stack()
        self._line = f" ({stack.splitlines()[0].strip()})" if stack else ""
        self._frozen = ""  # what has ended it
        self._apart = False  # whether derivatives leave alone what it holds
        self._back: Any = None
        self._home = scopes.here()
        self._value: Any = None
        if self._home is None:
            self._value = value
        else:
            self._home.bind(self, value)

    @property
    def shape(self) -> tuple:
        """The dimensions.

        Example:
            >>> weft.new_ref(wnp.ones((2, 3))).shape
            (2, 3)
        """
        return self._spec[0]

    @property
    def dtype(self) -> np.dtype:
        """The dtype.

        Example:
            >>> weft.new_ref(wnp.ones(3)).dtype
            dtype('float32')
        """
        return self._spec[1]

    @property
    def weak_type(self) -> bool:
        """Whether it holds what came from Python's numbers alone.

        Example:
            >>> weft.new_ref(1.0).weak_type
            True
        """
        return self._spec[2]

    @property
    def ndim(self) -> int:
        """How many dimensions there are.

        Example:
            >>> weft.new_ref(wnp.ones((2, 3))).ndim
            2
        """
        return len(self._spec[0])

    @property
    def size(self) -> int:
        """How many elements there are.

        Example:
            >>> weft.new_ref(wnp.ones((2, 3))).size
            6
        """
        size = 1
        for n in self._spec[0]:
            size *= n
        return size

    @property
    def aval(self) -> AbstractRef:
        """Its type.

        Example:
            >>> weft.new_ref(wnp.ones(3)).aval
            Ref{float32[3]}
        """
        return AbstractRef(ShapedArray(self._spec[0], self._spec[1], weak_type=self._spec[2]))

    def __getitem__(self, index: Any) -> Any:
        value = self._read("read")
        return value if _is_everything(index) else value[self._checked(index)]

    def __setitem__(self, index: Any, value: Any) -> None:
        _swap(self, index, value, "ref[index] = value")

    def addupdate(self, value: Any, idx: Any = ...) -> None:
        """ref[idx] += value, at an index that occurs several times as often.

        Args:
            value: what is added, of the shape and dtype of what is there.
            idx: as in brackets; all of it if it is not given.

        Returns: None.

        Example:
            >>> ref = weft.new_ref(wnp.zeros(2))
            >>> ref.addupdate(1.0, 0)
            >>> ref
            Ref([1., 0.], dtype=float32)
        """
        addupdate(self, ... if isinstance(idx, tuple) and not idx else idx, value)

    @property
    def at(self) -> _At:
        """Parts: ref.at[i] is read and written as a reference of its own, and what is written is written into this one.

        Example:
            >>> ref = weft.new_ref(wnp.zeros(3))
            >>> ref.at[1:][0] = 2.0
            >>> ref
            Ref([0., 2., 0.], dtype=float32)
        """
        return _At(self)

    @property
    def sharding(self) -> Any:
        """How what it holds lies on devices.

        Example:
            >>> weft.new_ref(wnp.zeros(3)).sharding
            SingleDeviceSharding(device=CpuDevice(id=0))
        """
        return self._read("sharding").sharding

    def unsafe_buffer_pointer(self) -> int:
        """The address of what it holds, which stays there until the reference is written.

        Returns: int.

        Example:
            >>> ref = weft.new_ref(wnp.zeros(3))
            >>> ref.unsafe_buffer_pointer() == ref[...].unsafe_buffer_pointer()
            True
        """
        return self._read("unsafe_buffer_pointer").unsafe_buffer_pointer()

    def _read(self, doing: str) -> Any:
        if self._frozen and (self._frozen == "free_ref" or not _weft.setting(_JAX_SEMANTICS)):
            ended = f"which {self._frozen} has ended"
            raise runtime_error(f"{doing} of a reference of type {self._type}{self._line}, {ended}")
        return scopes.read(self)

    def _checked(self, index: Any) -> Any:
        """The index, of which known integers are in bounds."""
        parts = index if isinstance(index, tuple) else (index,)
        axis = 0
        for i, part in enumerate(parts):
            if part is Ellipsis:
                axis = self.ndim - sum(p is not None and p is not Ellipsis for p in parts[i:])
                continue
            if part is None:
                continue
            number = _known(part)
            if number is not None and axis < self.ndim:
                size = self._spec[0][axis]
                if isinstance(size, int) and not -size <= number < size:
                    message = f"index {number} is out of bounds for axis {axis} of {self._type}, of size {size}"
                    raise value_error(message) if _weft.setting(_JAX_SEMANTICS) else index_error(message)
            axis += 1
        return index

    def _fitting(self, value: Any, place: Any, doing: str) -> Any:
        """A value for a place, in the reference's dtype."""
        if isinstance(value, Ref):
            raise value_error(f"{doing}: got a reference as the value; give what it holds, ref[...]")
        if not _weft.is_operand(value):
            raise type_error(f"{doing}: expected an array or a number, got {value!r} of type '{type(value).__name__}'")
        shape, dtype, weak, text = _weft.abstract(value)
        expected = _weft.abstract(place)
        if tuple(shape) != tuple(expected[0]):
            raise value_error(
                f"{doing}: the value is {text}, of shape {tuple(shape)}; the place in {self._type} has the shape "
                f"{tuple(expected[0])}. Write weft.numpy.broadcast_to(value, ref[index].shape) if you mean that"
            )
        kind, own = (_KINDS.get(_weft.dtype_kind(d)) for d in (dtype, self._spec[1]))
        if dtype != self._spec[1] and not (weak and kind is not None and own is not None and 0 < kind <= own):
            raise value_error(
                f"{doing}: the value is {text}, the reference {self._type}; convert it: value.astype({self._spec[1]})"
            )
        return _weft.astype(value, self._spec[1])

    def _put(self, value: Any) -> None:
        scopes.write(self, _weft.with_weak([value], [self._spec[2]])[0])

    def __len__(self) -> int:
        if not self._spec[0]:
            raise type_error(f"len() of {self._type}, which has no dimensions")
        return self._spec[0][0]

    def __iter__(self) -> Any:
        raise type_error(f"iteration over {self._type}; go over what it holds: for x in ref[...]")

    def __bool__(self) -> bool:
        raise type_error(f"bool() of {self._type}; ask what it holds: ref[...]")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise type_error(f"an array was expected, got a reference of type {self._type}; give what it holds: ref[...]")

    def __repr__(self) -> str:
        if self._home is None:
            return f"Ref{repr(self._value).removeprefix('Array')}"
        return self._type


class _At:
    """Ref.at."""

    def __init__(self, ref: Any):
        self._ref = ref

    def __getitem__(self, index: Any) -> RefPart:
        return RefPart(self._ref, index)


class RefPart:
    """A part of a reference: ref.at[i]."""

    def __init__(self, ref: Any, index: Any):
        self._ref, self._index = ref, index

    @property
    def shape(self) -> tuple:
        """The dimensions."""
        return tuple(self._ref[self._index].shape)

    @property
    def dtype(self) -> np.dtype:
        """The dtype."""
        return self._ref.dtype

    @property
    def at(self) -> _At:
        """Parts of it."""
        return _At(self)

    def __getitem__(self, index: Any) -> Any:
        part = self._ref[self._index]
        return part if _is_everything(index) else part[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._ref[self._index] = value if _is_everything(index) else self._ref[self._index].at[index].set(value)

    def __repr__(self) -> str:
        return f"{self._ref!r}.at[{self._index!r}]"


def base(part: Any) -> Ref:
    """The reference that a part is of."""
    return base(part._ref) if isinstance(part, RefPart) else part


# A part is a container of its reference and of the arrays in its index, so that functions that are traced take it.


def _part_apart(part: RefPart) -> tuple[list[Any], Any]:
    arrays, rest = index_apart(part._index)
    return [part._ref, *arrays], rest


_tree.register(RefPart, _part_apart, lambda rest, held: RefPart(held[0], index_of(rest, list(held)[1:])))


_JAX_SEMANTICS = 3  # as in tracer/context.h


def _is_everything(index: Any) -> bool:
    return index is Ellipsis or (isinstance(index, tuple) and all(part is Ellipsis for part in index))


def _known(part: Any) -> int | None:
    """The integer that an index is, where it is one and known."""
    if isinstance(part, bool):
        return None
    if is_integer(part):
        return int(part)
    one = isinstance(part, (_weft.Array, np.ndarray)) and not _weft.is_traced(part) and part.ndim == 0
    return int(part) if one and np.issubdtype(part.dtype, np.integer) else None


def _checked_ref(ref: Any, what: str) -> Ref:
    if not isinstance(ref, Ref):
        raise value_error(
            f"{what}: expected a reference, which weft.new_ref makes, got {ref!r} of type '{type(ref).__name__}'"
        )
    return ref


def get(ref: Any, idx: Any = ...) -> Any:
    """What a reference holds: ref[idx].

    Args:
        ref: the reference, or a part of one, ref.at[i].
        idx: as in brackets; `...`: all of it.

    Returns: array.

    Raises:
        ValueError: it is no reference.

    Example:
        >>> weft.ref.get(weft.new_ref(wnp.arange(3)), 1)
        Array(1, dtype=int32)
    """
    return (ref if isinstance(ref, RefPart) else _checked_ref(ref, "ref.get"))[idx]


def _held(ref: Any, what: str) -> Any:
    """What a reference, or a part of one, holds."""
    return _held(ref._ref, what)[ref._index] if isinstance(ref, RefPart) else ref._read(what)


def set(ref: Any, idx: Any, value: Any) -> None:
    """Writes into a reference: ref[idx] = value.

    Args:
        ref: the reference, or a part of one, ref.at[i].
        idx: as in brackets; `...`: all of it.
        value: of the shape and dtype of what is there.

    Returns: None.

    Raises:
        ValueError: it is no reference, or the value does not fit.

    Example:
        >>> ref = weft.new_ref(wnp.arange(3))
        >>> weft.ref.set(ref, 1, 7)
        >>> ref
        Ref([0, 7, 2], dtype=int32)
    """
    _swap(ref, idx, value, "ref.set")


def swap(ref: Any, idx: Any, value: Any) -> Any:
    """Writes into a reference, and returns what was there.

    Args:
        ref: the reference, or a part of one, ref.at[i].
        idx: as in brackets; `...`: all of it.
        value: of the shape and dtype of what is there.

    Returns: array.

    Raises:
        ValueError: it is no reference, or the value does not fit.

    Example:
        >>> ref = weft.new_ref(wnp.arange(3))
        >>> weft.ref.swap(ref, 1, 7), ref
        (Array(1, dtype=int32), Ref([0, 7, 2], dtype=int32))
    """
    return _swap(ref, idx, value, "ref.swap")


def _swap(ref: Any, idx: Any, value: Any, what: str) -> Any:
    if isinstance(ref, RefPart):
        held = _held(ref, what)
        before = held if _is_everything(idx) else held[idx]
        value = base(ref)._fitting(value, before, what)
        _swap(ref._ref, ref._index, value if _is_everything(idx) else held.at[idx].set(value), what)
        return before
    ref = _checked_ref(ref, what)
    held = ref._read(what)
    if _is_everything(idx):
        before, value = held, ref._fitting(value, held, what)
    else:
        before = held[ref._checked(idx)]
        value = held.at[idx].set(ref._fitting(value, before, what))
    ref._put(value)
    return before


def addupdate(ref: Any, idx: Any, value: Any) -> None:
    """Adds to what a reference holds, at an index that occurs several times as often.

    Args:
        ref: the reference, or a part of one, ref.at[i].
        idx: as in brackets; `...`: all of it.
        value: of the shape and dtype of what is there.

    Returns: None.

    Raises:
        ValueError: it is no reference, or the value does not fit.

    Example:
        >>> ref = weft.new_ref(wnp.zeros(2))
        >>> weft.ref.addupdate(ref, wnp.array([0, 0, 1]), wnp.ones(3))
        >>> ref
        Ref([2., 1.], dtype=float32)
    """
    what = "ref.addupdate"
    if isinstance(ref, RefPart):
        held = _held(ref, what)
        value = base(ref)._fitting(value, held if _is_everything(idx) else held[idx], what)
        if not _is_everything(idx):
            value = _weft.full(held.shape, 0, held.dtype).at[idx].add(value)
        addupdate(ref._ref, ref._index, value)
        return
    ref = _checked_ref(ref, what)
    held = ref._read(what)
    if _is_everything(idx):
        value = held + ref._fitting(value, held, what)
    else:
        value = held.at[idx].add(ref._fitting(value, held[ref._checked(idx)], what))
    ref._put(value)


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """A reference to an array whose contents change.

    Args:
        init_val: its first contents: an array or a number. (Arrays themselves never change: it is as if copied.)
        memory_space: must be None: there is one memory.
        kind: None or "no_grad_no_remat": what is written into it is no part of derivatives, as after stop_gradient.
            (A rematerialised function changes references once in any case.)

    Returns: weft.Ref.

    Raises:
        TypeError: init_val is no array or number.
        ValueError: there is no such kind or memory.

    Example:
        >>> ref = weft.new_ref(wnp.zeros(3))
        >>> ref[1] = 5.0
        >>> ref[...]
        Array([0., 5., 0.], dtype=float32)
    """
    if memory_space is not None:
        raise value_error(f"new_ref: memory_space must be None, there is one memory; got {memory_space!r}")
    if kind not in (None, "no_grad_no_remat"):
        raise value_error(f"new_ref: kind must be None or 'no_grad_no_remat', got {kind!r}")
    ref = Ref(init_val)
    ref._apart = kind is not None
    return ref


def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """A reference to an array of a type, whose first contents are zeros.

    Args:
        ty: something with a shape and a dtype: weft.ShapeDtype, an array.
        memory_space: must be None: there is one memory.

    Returns: weft.Ref.

    Raises:
        TypeError: ty has no shape and dtype.

    Example:
        >>> weft.empty_ref(weft.ShapeDtype((2,), "float32"))
        Ref([0., 0.], dtype=float32)
    """
    if not hasattr(ty, "shape") or not hasattr(ty, "dtype"):
        raise type_error(f"empty_ref: expected a type, with a shape and a dtype, got {ty!r}")
    return new_ref(_weft.full(tuple(ty.shape), 0, ty.dtype), memory_space=memory_space)


def freeze(ref: Any) -> Any:
    """What a reference holds at the end; it cannot be used after that.

    Args:
        ref: the reference.

    Returns: array.

    Raises:
        ValueError: it is no reference.
        RuntimeError: it has been frozen before.

    Example:
        >>> ref = weft.new_ref(wnp.zeros(2))
        >>> ref[0] = 1.0
        >>> weft.freeze(ref)
        Array([1., 0.], dtype=float32)
    """
    value = _checked_ref(ref, "freeze")._read("freeze")
    ref._frozen = "freeze"
    return value


def free_ref(ref: Any) -> None:
    """Ends a reference without asking what it holds.

    Args:
        ref: the reference.

    Returns: None.

    Raises:
        ValueError: it is no reference.
        RuntimeError: it has been ended before.

    Example:
        >>> weft.free_ref(weft.new_ref(1.0))
    """
    ref = _checked_ref(ref, "free_ref")
    ref._read("free_ref")
    ref._frozen = "free_ref"
