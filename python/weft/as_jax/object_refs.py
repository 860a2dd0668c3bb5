"""References to objects of types of a library's own (hijax): each of the object's arrays has a reference."""

from __future__ import annotations

import types
from typing import Any

import weft

from .._core import tree as _tree
from .._core.errors import index_error, type_error
from .arrays import Slice
from .core import get_aval, own_types
from .hijax import HiType, arrays_of, types_of_arrays, values_of


class RefOfObject:
    """A reference to an object. `_refs` is an object that has references in the place of arrays."""

    def __init__(self, kind: Any, refs: Any):
        self._kind, self._refs = kind, refs

    @property
    def inner_aval(self) -> Any:
        """The type of the object."""
        return self._kind

    @property
    def shape(self) -> Any:
        """That of the object's type."""
        return self._kind.shape

    @property
    def ref(self) -> RefOfObject:
        """Itself: it is no part of another one."""
        return self

    def _each(self) -> list[Any]:
        return arrays_of(self._kind, self._refs)

    def _is_whole(self, index: Any) -> bool:
        every = index if isinstance(index, tuple) else (index,)
        return all(i is Ellipsis or (isinstance(i, slice) and i == slice(None)) for i in every)

    def _indexer(self, index: Any) -> Any:
        """The index as types see it: of each dimension where it starts, and how many elements it takes."""
        every = index if isinstance(index, tuple) else (index,)
        if len(every) > len(self.shape) or not all(isinstance(i, slice) for i in every):
            raise index_error(f"a reference of type {self._kind}: the index {index!r} is no slice of each dimension")
        every = (*every, *[slice(None)] * (len(self.shape) - len(every)))
        return types.SimpleNamespace(indices=tuple(Slice.from_slice(i, n) for i, n in zip(every, self.shape)))

    def __getitem__(self, index: Any) -> Any:
        if hasattr(self._kind, "ref_get_to_lojax") and not _is_all(index):
            return self._kind.ref_get_to_lojax(self, self._indexer(index))
        if not self._is_whole(index):
            raise type_error(f"{self._kind} has no ref_get_to_lojax, which says what a part of it is")
        return values_of(self._kind, [r[...] for r in self._each()])

    def swap(self, value: Any, index: Any = ...) -> Any:
        """Puts another object there, and returns the one before."""
        if hasattr(self._kind, "ref_swap_to_lojax") and not _is_all(index):
            return self._kind.ref_swap_to_lojax(self, value, self._indexer(index))
        if not self._is_whole(index):
            raise type_error(f"{self._kind} has no ref_swap_to_lojax, which says what a part of it is")
        given = get_aval(value)
        if given != self._kind:
            raise type_error(f"a reference of type {self._kind} gets a value of type {given}")
        before = self[...]
        for ref, array in zip(self._each(), arrays_of(self._kind, value), strict=True):
            ref[...] = array
        return before

    def __setitem__(self, index: Any, value: Any) -> None:
        self.swap(value, index)

    def get(self) -> Any:
        """The object."""
        return self[...]

    def set(self, value: Any) -> None:
        """Puts another object there."""
        self[...] = value

    def __repr__(self) -> str:
        return f"Ref{{{self._kind}}}"


def _is_all(index: Any) -> bool:
    return index is Ellipsis


_tree.register(
    RefOfObject,
    lambda ref: (ref._each(), ref._kind),
    lambda kind, refs: RefOfObject(kind, values_of(kind, list(refs))),
)


def new_ref(init_val: Any, **options: Any) -> Any:
    """weft.new_ref; of an object of a registered class a reference to the object."""
    if type(init_val) not in own_types:
        return weft.new_ref(init_val, **options)
    kind = get_aval(init_val)
    return RefOfObject(kind, values_of(kind, [weft.new_ref(x, **options) for x in arrays_of(kind, init_val)]))


def empty_ref(ty: Any, **options: Any) -> Any:
    """weft.empty_ref; of a type of one's own a reference to an object of the type."""
    if not isinstance(ty, HiType):
        return weft.empty_ref(ty, **options)
    return RefOfObject(ty, values_of(ty, [weft.empty_ref(t, **options) for t in types_of_arrays(ty)]))


def freeze(ref: Any) -> Any:
    """weft.freeze."""
    if not isinstance(ref, RefOfObject):
        return weft.freeze(ref)
    return values_of(ref._kind, [weft.freeze(r) for r in ref._each()])
