"""Classes that are containers."""

from __future__ import annotations

import dataclasses
import threading
import warnings
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import optree

from ... import _weft
from ..errors import type_error, value_error

NAMESPACE = "weft"


class _Dictionaries(threading.local):
    """What a thread has met of dictionaries in trees, as _weft.dictionaries_in counts them."""

    unordered = 0  # how often one whose keys may stand in another order than their sorted one
    of_other_classes = False  # whether any OrderedDict or defaultdict

    def meet(self, tree: Any) -> None:
        """Looks at a tree, or at what an object of a registered class was taken apart into."""
        found = _weft.dictionaries_in(tree)
        if found:
            self.unordered += found & 1
            self.of_other_classes |= found > 1


dictionaries = _Dictionaries()


def _register(cls: type, *functions: Callable, **options: Any) -> None:
    with warnings.catch_warnings():
        # That a named tuple is a container without being registered, which is why a program registers it otherwise.
        warnings.simplefilter("ignore", UserWarning)
        optree.register_pytree_node(cls, *functions, **options)


def check_function(value: Any, what: str, or_none: bool = False) -> None:
    """Raises TypeError unless the argument `what` can be called: optree's own message names types of C++."""
    if not callable(value) and not (or_none and value is None):
        raise type_error(f"{what} must be a function{' or None' if or_none else ''}, got {value!r}")


class GivenEntry(optree.PyTreeEntry):
    """The way to a child of a class registered with keys; the entry is the key."""


def register(cls: type, flatten_function: Callable, unflatten_function: Callable) -> type:
    """Makes a class a container.

    Args:
        cls: the class.
        flatten_function: (object) -> (children, static data); the data is part of the structure and must be hashable.
        unflatten_function: (static data, children) -> object.

    Returns: the class.

    Raises:
        ValueError: it is registered already.

    Example:
        >>> class Pair:
        ...     def __init__(self, a, b):
        ...         self.a, self.b = a, b
        >>> _ = weft.tree.register(Pair, lambda p: ((p.a, p.b), None), lambda _, children: Pair(*children))
        >>> weft.tree.leaves(Pair(1, [2, 3]))
        [1, 2, 3]
    """

    check_function(flatten_function, "register: flatten_function")
    check_function(unflatten_function, "register: unflatten_function")

    def flatten_(obj):
        given = flatten_function(obj)
        try:
            children, aux = given
            children = tuple(children)
        except (TypeError, ValueError):
            raise value_error(
                f"register: what takes a '{cls.__name__}' apart returned {given!r}; expected a pair (children, static "
                "data), where children can be iterated over"
            ) from None
        dictionaries.meet(children)
        return children, aux

    try:
        # Without path_entry_type optree would take the number of a child for the key of a mapping or a field.
        _register(cls, flatten_, unflatten_function, path_entry_type=optree.FlattenedEntry, namespace=NAMESPACE)
    except ValueError as error:
        raise value_error(f"register: {error}") from None
    return cls


def register_with_keys(cls: type, flatten_with_keys: Callable, unflatten_function: Callable) -> type:
    """register for a class that says how its children are called: flatten_with_keys is (object) -> (pairs (key, child),
    static data)."""

    check_function(flatten_with_keys, "register_pytree_with_keys: flatten_with_keys")
    check_function(unflatten_function, "register_pytree_with_keys: unflatten_function")

    def flatten_(obj):
        pairs, aux = flatten_with_keys(obj)
        keys, children = [], []
        for key, child in pairs:
            keys.append(key)
            children.append(child)
        dictionaries.meet(children)
        return tuple(children), aux, tuple(keys)

    try:
        _register(cls, flatten_, unflatten_function, path_entry_type=GivenEntry, namespace=NAMESPACE)
    except ValueError as error:
        raise value_error(f"register_pytree_with_keys: {error}") from None
    return cls


def register_dataclass(
    nodetype: type,
    data_fields: Iterable[str] | None = None,
    meta_fields: Iterable[str] | None = None,
    drop_fields: Iterable[str] = (),
) -> type:
    """Makes a dataclass a container of its fields. A dataclass that is met without being registered is registered like
    this.

    Args:
        nodetype: the dataclass, or another class, of which data_fields and meta_fields name the attributes.
        data_fields: the names of the fields that are children; None: all that are not in meta_fields.
        meta_fields: the names of fields that are part of the structure and must be hashable, besides those declared
            with dataclasses.field(metadata={"static": True}).
        drop_fields: the names of fields that are neither: what an object has there is lost, and one that is made has
            the default of the field, if there is one.

    Returns: the class.

    Raises:
        TypeError: it is no dataclass, and data_fields and meta_fields do not both say what it consists of.
        ValueError: it is registered already; a field is of no kind, or of two; a name is no field.

    Example:
        >>> import dataclasses
        >>> @dataclasses.dataclass
        ... class Layer:
        ...     w: float
        ...     name: str = dataclasses.field(default="dense", metadata={"static": True})
        >>> _ = weft.tree.register_dataclass(Layer)
        >>> weft.tree.leaves(Layer(2.0))
        [2.0]
    """
    cls, dropped = nodetype, set(drop_fields)
    if not dataclasses.is_dataclass(cls) and (data_fields is None or meta_fields is None):
        if data_fields is None and meta_fields is None:
            problem = f"are required when nodetype is not a dataclass. Got nodetype={cls}"
        else:
            problem = f"must both be specified when either is specified. Got {data_fields=} {meta_fields=}."
        raise type_error(f"register_dataclass: data_fields and meta_fields {problem}")
    fields = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()
    declared = {f.name for f in fields if f.metadata.get("static") and data_fields is None}
    static = tuple(dict.fromkeys([*(meta_fields or ()), *(f.name for f in fields if f.name in declared)]))
    static = tuple(name for name in static if name not in dropped)
    names = (
        tuple(data_fields)
        if data_fields is not None
        else tuple(f.name for f in fields if f.name not in dropped and f.name not in static)
    )
    _check_fields(cls, fields, names, static, dropped)
    # Plain defaults are attributes of the class.
    made = [
        (f.name, f.default_factory)
        for f in fields
        if f.name in dropped and f.default_factory is not dataclasses.MISSING
    ]

    def flatten_(obj) -> tuple[tuple, Hashable, tuple]:
        children = tuple(getattr(obj, n) for n in names)
        dictionaries.meet(children)
        return children, tuple(getattr(obj, n) for n in static), names

    def unflatten_(aux, children):
        obj: Any = object.__new__(cls)
        for name, value in zip(names, children):
            object.__setattr__(obj, name, value)
        for name, value in zip(static, aux):
            object.__setattr__(obj, name, value)
        for name, make in made:
            object.__setattr__(obj, name, make())
        return obj

    _register(cls, flatten_, unflatten_, path_entry_type=optree.GetAttrEntry, namespace=NAMESPACE)
    return cls


def _check_fields(
    cls: type, fields: Iterable[Any], data: tuple[str, ...], static: tuple[str, ...], dropped: set[str]
) -> None:
    """Raises ValueError unless each field of a dataclass is of one kind."""
    braces = lambda names: "{" + ", ".join(map(repr, sorted(names))) + "}"
    twice = {name for name in data if name in static} | {*data, *static} & dropped
    if twice:
        raise value_error(
            f"register_dataclass: data_fields and meta_fields must not overlap. Overlapping fields: {braces(twice)}"
        )
    if not dataclasses.is_dataclass(cls):
        return
    named = {*data, *static, *dropped}
    missing, unexpected = {f.name for f in fields if f.init} - named, named - {f.name for f in fields}
    if missing or unexpected:
        found = f" Missing fields: {braces(missing)}." if missing else ""
        found += f" Unexpected fields: {braces(unexpected)}." if unexpected else ""
        raise value_error(
            f"register_dataclass: data_fields and meta_fields must include all dataclass fields of '{cls.__name__}' "
            f"with ``init=True`` and only them.{found} What is no part of it goes into drop_fields"
        )


def is_container(cls: type) -> bool:
    """Whether objects of a class are containers."""
    if dataclasses.is_dataclass(cls) or optree.is_namedtuple_class(cls):
        return True
    return optree.register_pytree_node.get(cls, namespace=NAMESPACE) is not None
