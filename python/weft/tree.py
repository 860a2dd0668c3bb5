"""Containers of arrays as arguments and results ("pytrees"): list, tuple, dict, namedtuple, None, dataclasses and
registered classes. Everything else is a leaf.

    >>> leaves, tree = weft.tree.flatten({"w": 1, "b": [2, 3]})
    >>> leaves
    [2, 3, 1]
    >>> weft.tree.unflatten(tree, leaves) == {"w": 1, "b": [2, 3]}
    True

Dictionaries are flattened in the order of their sorted keys. Built on the library optree, in its namespace "weft".
"""

from __future__ import annotations

import builtins
import dataclasses
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

import optree
from optree import PyTreeSpec as TreeDef

from . import _weft
from ._errors import foreign, recursion_error, type_error, value_error

NAMESPACE = "weft"

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "SequenceKey",
    "TreeDef",
    "all",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "register",
    "register_dataclass",
    "structure",
    "transpose",
    "unflatten",
]


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list, TreeDef]:
    """The leaves of a tree, and its structure.

    Args:
        tree: nested lists, tuples, dicts (in the order of their sorted keys), namedtuples, dataclasses, registered
            classes; None is an empty container, everything else a leaf.
        is_leaf: function (node) -> bool: which nodes count as leaves, too; None: none.

    Returns: pair of a list and a TreeDef.

    Raises:
        RecursionError: a container contains itself, or containers are nested too deeply.

    Example:
        >>> leaves, structure = weft.tree.flatten({"w": 1, "b": [2, 3]})
        >>> leaves
        [2, 3, 1]
    """
    if type(tree) in _ARRAYS and is_leaf is None:
        return [tree], _ARRAY_TREE
    _check_function(is_leaf, "tree: is_leaf", or_none=True)
    try:
        leaves_, treedef = optree.tree_flatten(tree, is_leaf, namespace=NAMESPACE)
    except RecursionError as error:
        place = inside_itself(tree)
        if place is None:
            raise foreign(error)
        raise recursion_error(f"tree: a container contains itself: what is at {place} is around that place") from None
    for cls in {type(leaf) for leaf in leaves_}:  # few, where leaves are many: calls of jitted functions come here
        if dataclasses.is_dataclass(cls) and cls not in _REFUSED:
            # A dataclass is a container; it is registered when it is first met.
            try:
                register_dataclass(cls)
            except ValueError:
                _REFUSED.add(cls)
            return flatten(tree, is_leaf)
    return leaves_, treedef


def assembled(tree: Any, given: Iterator[TreeDef]) -> TreeDef:
    """The structure of a tree, without taking apart what is no list, tuple or dict of texts again: `given` has the
    structures of these, in order."""
    parts = lambda nodes: [assembled(node, given) for node in nodes]
    kind = type(tree)
    if _weft.is_operand(tree):
        return _ARRAY_TREE
    if tree is None:
        return optree.treespec_none(namespace=NAMESPACE)
    if kind is tuple:
        return optree.treespec_tuple(parts(tree), namespace=NAMESPACE)
    if kind is list:
        return optree.treespec_list(parts(tree), namespace=NAMESPACE)
    if kind is dict and builtins.all(type(key) is str for key in tree):
        keys = sorted(tree)
        return optree.treespec_dict(dict(zip(keys, parts(tree[key] for key in keys))), namespace=NAMESPACE)
    return next(given)


_REFUSED: set[type] = set()
# By far the most common trees.
_ARRAYS = (_weft.Array, _weft.Tracer)
_ARRAY_TREE = optree.tree_structure(0, namespace=NAMESPACE)  # type: ignore[arg-type]


def inside_itself(tree: Any) -> str | None:
    """Where a tree has a container that is around that place, too, as [0]['a'] says it; None: it has none."""

    def parts(node: Any):
        if optree.tree_is_leaf(node, namespace=NAMESPACE):
            return iter(())
        children, _, entries, _ = optree.tree_flatten_one_level(node, namespace=NAMESPACE)
        return iter([(f"[{entry!r}]", child) for entry, child in zip(entries, children)])

    # Each list has one entry per container around the place where the walk is.
    around, walks, path = [id(tree)], [parts(tree)], [""]
    done = set[int]()
    while 0 < len(walks) < _MANY:
        for text, part in walks[-1]:
            if id(part) in around:
                return "".join(path) + text
            if id(part) not in done:
                around.append(id(part))
                walks.append(parts(part))
                path.append(text)
                break
        else:
            done.add(around.pop())
            walks.pop()
            path.pop()
    return None


# More containers around each other than optree takes apart.
_MANY = 10000


def _check_function(value: Any, what: str, or_none: bool = False) -> None:
    """Raises TypeError unless the argument `what` can be called: optree's own message names types of C++."""
    if not callable(value) and not (or_none and value is None):
        raise type_error(f"{what} must be a function{' or None' if or_none else ''}, got {value!r}")


def unflatten(treedef: TreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of a structure with given leaves.

    Args:
        treedef: the structure.
        leaves: as many leaves as it has.

    Returns: tree.

    Raises:
        TypeError: leaves is no sequence.
        ValueError: there are more or fewer.

    Example:
        >>> weft.tree.unflatten(weft.tree.structure([0, (0, 0)]), "abc")
        ['a', ('b', 'c')]
    """
    try:
        return treedef.unflatten(leaves)
    except TypeError:
        if isinstance(leaves, Iterable):
            raise
        raise type_error(f"tree.unflatten: leaves must be a sequence of them, got {leaves!r}") from None
    except ValueError as error:
        raise foreign(error)


def leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list:
    """The leaves of a tree.

    Args:
        tree: a tree.
        is_leaf: function (node) -> bool: which nodes count as leaves, too; None: none.

    Returns: list.

    Example:
        >>> weft.tree.leaves({"w": 1, "b": [2, 3]})
        [2, 3, 1]
    """
    return flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeDef:
    """The structure of a tree.

    Args:
        tree: a tree.
        is_leaf: function (node) -> bool: which nodes count as leaves, too; None: none.

    Returns: TreeDef: comparable, hashable.

    Example:
        >>> weft.tree.structure([1, 2]) == weft.tree.structure([3, 4])
        True
    """
    return flatten(tree, is_leaf)[1]


def map(f: Callable, tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """A function applied to each leaf (and to what stands at its place in further trees).

    Args:
        f: takes one leaf of each tree.
        tree: the tree that says what the leaves are.
        *rest: trees with the same structure, or subtrees in place of leaves.
        is_leaf: function (node) -> bool: which nodes count as leaves, too; None: none.

    Returns: tree of the results.

    Raises:
        TypeError: f is no function, or does not take as many arguments as there are trees.
        ValueError: structures differ.

    Example:
        >>> weft.tree.map(lambda x, y: x + y, {"a": 1, "b": 2}, {"a": 10, "b": 20})
        {'a': 11, 'b': 22}
    """
    _check_function(f, "tree.map: f")
    first, treedef = flatten(tree, is_leaf)
    others = [_flatten_up_to(treedef, other) for other in rest]
    try:
        results = [f(*args) for args in zip(first, *others)]
    except TypeError as error:
        raise foreign(error)  # f does not take so many
    return treedef.unflatten(results)


def _flatten_up_to(treedef: TreeDef, tree: Any) -> list:
    """What stands in a tree at the places of a structure's leaves."""
    try:
        return treedef.flatten_up_to(tree)
    except ValueError as error:
        raise foreign(error)


_NOTHING: Any = object()


def reduce(
    function: Callable, tree: Any, initializer: Any = _NOTHING, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """The leaves combined from left to right.

    Args:
        function: (so far, leaf) -> value.
        tree: a tree.
        initializer: what it starts with; not given: the first leaf.
        is_leaf: function (node) -> bool: which nodes count as leaves, too; None: none.

    Returns: value.

    Raises:
        TypeError: there are no leaves and nothing to start with.

    Example:
        >>> weft.tree.reduce(lambda a, b: a + b, [1, (2, 3)])
        6
    """
    import functools

    found = leaves(tree, is_leaf)
    if initializer is _NOTHING and not found:
        raise type_error("reduce: the tree has no leaves; give an initializer")
    return (
        functools.reduce(function, found) if initializer is _NOTHING else functools.reduce(function, found, initializer)
    )


def all(tree: Any, *, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether every leaf is true.

    Args:
        tree: a tree.
        is_leaf: function (node) -> bool: which nodes count as leaves, too; None: none.

    Returns: bool.

    Example:
        >>> weft.tree.all([True, {"a": False}])
        False
    """
    return builtins.all(leaves(tree, is_leaf))


def transpose(outer_treedef: TreeDef, inner_treedef: TreeDef | None, pytree_to_transpose: Any) -> Any:
    """A tree of trees turned inside out.

    Args:
        outer_treedef: the structure of the tree.
        inner_treedef: the structure of each of its leaves; None: that of the first one.
        pytree_to_transpose: the tree.

    Returns: tree of structure inner_treedef with trees of structure outer_treedef as leaves.

    Raises:
        ValueError: the tree has another structure.

    Example:
        >>> outer, inner = weft.tree.structure([0, 0]), weft.tree.structure({"a": 0, "b": 0})
        >>> weft.tree.transpose(outer, inner, [{"a": 1, "b": 2}, {"a": 3, "b": 4}])
        {'a': [1, 3], 'b': [2, 4]}
    """
    parts = _flatten_up_to(outer_treedef, pytree_to_transpose)
    if inner_treedef is None:
        inner_treedef = structure(parts[0] if parts else None)
    for part in parts:
        if structure(part) != inner_treedef:
            raise value_error(
                f"tree.transpose: inner_treedef is {inner_treedef}, but a leaf of the outer tree has the structure "
                f"{structure(part)}"
            )
    return optree.tree_transpose(outer_treedef, inner_treedef, pytree_to_transpose)


@dataclasses.dataclass(frozen=True)
class DictKey:
    """In a path: the value of a dictionary at `key`.

    Args:
        key: the key.

    Example:
        >>> path, leaf = weft.tree.leaves_with_path({"w": 1})[0]
        >>> path, path[0].key, str(path[0])
        ((DictKey(key='w'),), 'w', "['w']")
    """

    key: Hashable

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """In a path: the item `idx` of a list or tuple.

    Args:
        idx: its place.

    Example:
        >>> path, leaf = weft.tree.leaves_with_path([5])[0]
        >>> path, path[0].idx, str(path[0])
        ((SequenceKey(idx=0),), 0, '[0]')
    """

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """In a path: the field `name` of a namedtuple or dataclass.

    Args:
        name: its name.

    Example:
        >>> import collections
        >>> Point = collections.namedtuple("Point", "x y")
        >>> path, leaf = weft.tree.leaves_with_path(Point(1, 2))[0]
        >>> path, path[0].name, str(path[0])
        ((GetAttrKey(name='x'),), 'x', '.x')
    """

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclasses.dataclass(frozen=True)
class FlattenedIndexKey:
    """In a path: the child number `key` of a registered class that gives its children no keys.

    Args:
        key: its number.

    Example:
        >>> path, leaf = weft.tree.leaves_with_path(weft.tree_util.Partial(print, 1))[0]
        >>> path, path[0].key, str(path[0])
        ((FlattenedIndexKey(key=0), SequenceKey(idx=0)), 0, '[<flat index 0>]')
    """

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key!r}>]"


# What leads from a tree to a leaf. A class registered with keys may use any objects as keys.
KeyEntry = Any
KeyPath = tuple[KeyEntry, ...]


class _GivenEntry(optree.PyTreeEntry):
    """The way to a child of a class registered with keys; the entry is the key."""


def _key(entry: optree.PyTreeEntry) -> Any:
    match entry:
        case _GivenEntry():
            return entry.entry
        case optree.NamedTupleEntry() | optree.StructSequenceEntry():
            return GetAttrKey(entry.field)
        case optree.SequenceEntry():
            return SequenceKey(entry.index)
        case optree.MappingEntry():
            return DictKey(entry.key)
        case optree.GetAttrEntry():
            return GetAttrKey(entry.name)
        case _:
            return FlattenedIndexKey(entry.entry)


def flatten_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[tuple[KeyPath, Any]], TreeDef]:
    """The leaves of a tree with their paths, and its structure.

    Args:
        tree: a tree.
        is_leaf: function (node) -> bool: which nodes count as leaves, too; None: none.

    Returns: pair of a list of pairs (path, leaf) and a TreeDef; a path is a tuple of keys (DictKey, SequenceKey,
        GetAttrKey, FlattenedIndexKey, or what a class was registered with), one for each container.

    Example:
        >>> weft.tree.flatten_with_path({"w": [1, 2]})[0]
        [((DictKey(key='w'), SequenceKey(idx=0)), 1), ((DictKey(key='w'), SequenceKey(idx=1)), 2)]
    """
    found, treedef = flatten(tree, is_leaf)
    return list(zip(_paths(treedef), found)), treedef


def _paths(treedef: TreeDef) -> list[KeyPath]:
    return [tuple([_key(entry) for entry in accessor]) for accessor in treedef.accessors()]


def leaves_with_path(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[tuple[KeyPath, Any]]:
    """The leaves of a tree with their paths.

    Args:
        tree: a tree.
        is_leaf: function (node) -> bool: which nodes count as leaves, too; None: none.

    Returns: list of pairs (path, leaf), as of flatten_with_path.

    Example:
        >>> weft.tree.leaves_with_path((1, 2))
        [((SequenceKey(idx=0),), 1), ((SequenceKey(idx=1),), 2)]
    """
    return flatten_with_path(tree, is_leaf)[0]


def map_with_path(f: Callable, tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """A function applied to the path of each leaf and the leaf.

    Args:
        f: takes (path, leaf, ...); a path is a tuple of keys, as of flatten_with_path.
        tree: the tree that says what the leaves are.
        *rest: trees with the same structure.
        is_leaf: function (node) -> bool: which nodes count as leaves, too; None: none.

    Returns: tree of the results.

    Raises:
        ValueError: structures differ.

    Example:
        >>> weft.tree.map_with_path(lambda path, leaf: leaf if path[-1].key == "w" else 0 * leaf, {"b": 1, "w": 2})
        {'b': 0, 'w': 2}
    """
    pairs, treedef = flatten_with_path(tree, is_leaf)
    others = [_flatten_up_to(treedef, other) for other in rest]
    return treedef.unflatten([f(*pair, *more) for pair, *more in zip(pairs, *others)])


def path_texts(treedef: TreeDef) -> list[str]:
    """The path of each leaf as messages write it: "['w'][0]"."""
    return [keystr(path) for path in _paths(treedef)]


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """A path as text.

    Args:
        keys: a path of flatten_with_path, or a part of one.
        simple: whether to write the keys alone, and not how Python gets at what stands there.
        separator: what stands between them.

    Returns: str.

    Example:
        >>> path, leaf = weft.tree.leaves_with_path({"w": [1]})[0]
        >>> weft.tree_util.keystr(path)
        "['w'][0]"
        >>> weft.tree_util.keystr(path, simple=True, separator="/")
        'w/0'
    """
    return separator.join(_bare(key) if simple else str(key) for key in keys)


def _bare(key: Any) -> str:
    match key:
        case SequenceKey(inner) | DictKey(inner) | GetAttrKey(inner) | FlattenedIndexKey(inner):
            return str(inner)
        case _:
            return str(key)


def broadcast(prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """A tree with the structure of another, where a leaf stands for the whole subtree at its place.

    Args:
        prefix_tree: the leaves.
        full_tree: the structure.
        is_leaf: function (node) -> bool: which nodes of prefix_tree count as leaves, too; None: none.

    Returns: tree.

    Raises:
        ValueError: the first tree is no prefix of the second.

    Example:
        >>> weft.tree.broadcast({"a": 0, "b": 1}, {"a": [5, None, 5], "b": 5})
        {'a': [0, None, 0], 'b': 1}
    """
    return structure(full_tree).unflatten(prefix_leaves(prefix_tree, full_tree, "tree.broadcast: the prefix", is_leaf))


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

    _check_function(flatten_function, "register: flatten_function")
    _check_function(unflatten_function, "register: unflatten_function")

    def flatten_(obj):
        children, aux = flatten_function(obj)
        return tuple(children), aux

    try:
        # Without path_entry_type optree would take the number of a child for the key of a mapping or a field.
        optree.register_pytree_node(
            cls, flatten_, unflatten_function, path_entry_type=optree.FlattenedEntry, namespace=NAMESPACE
        )
    except ValueError as error:
        raise value_error(f"register: {error}") from None
    return cls


def register_with_keys(cls: type, flatten_with_keys: Callable, unflatten_function: Callable) -> type:
    """register for a class that says how its children are called: flatten_with_keys is (object) -> (pairs (key, child),
    static data)."""

    _check_function(flatten_with_keys, "register_pytree_with_keys: flatten_with_keys")
    _check_function(unflatten_function, "register_pytree_with_keys: unflatten_function")

    def flatten_(obj):
        pairs, aux = flatten_with_keys(obj)
        keys, children = [], []
        for key, child in pairs:
            keys.append(key)
            children.append(child)
        return tuple(children), aux, tuple(keys)

    try:
        optree.register_pytree_node(cls, flatten_, unflatten_function, path_entry_type=_GivenEntry, namespace=NAMESPACE)
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
        nodetype: the dataclass.
        data_fields: the names of the fields that are children; None: all that are not in meta_fields.
        meta_fields: the names of fields that are part of the structure and must be hashable, besides those declared
            with dataclasses.field(metadata={"static": True}).
        drop_fields: the names of fields that are neither: what an object has there is lost, and one that is made has
            the default of the field, if there is one.

    Returns: the class.

    Raises:
        ValueError: it is registered already.

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
    meta = set(meta_fields or ()) | {f.name for f in dataclasses.fields(cls) if f.metadata.get("static")}
    meta -= dropped
    names = (
        tuple(data_fields)
        if data_fields is not None
        else tuple(f.name for f in dataclasses.fields(cls) if f.name not in meta | dropped)
    )
    static = tuple(f.name for f in dataclasses.fields(cls) if f.name in meta)
    # Plain defaults are attributes of the class.
    made = [
        (f.name, f.default_factory)
        for f in dataclasses.fields(cls)
        if f.name in dropped and f.default_factory is not dataclasses.MISSING
    ]

    def flatten_(obj) -> tuple[tuple, Hashable, tuple]:
        return tuple(getattr(obj, n) for n in names), tuple(getattr(obj, n) for n in static), names

    def unflatten_(aux, children):
        obj: Any = object.__new__(cls)
        for name, value in zip(names, children):
            object.__setattr__(obj, name, value)
        for name, value in zip(static, aux):
            object.__setattr__(obj, name, value)
        for name, make in made:
            object.__setattr__(obj, name, make())
        return obj

    optree.register_pytree_node(cls, flatten_, unflatten_, path_entry_type=optree.GetAttrEntry, namespace=NAMESPACE)
    return cls


def _is_none(x: Any) -> bool:
    return x is None


def prefix_leaves(prefix: Any, tree: Any, what: str, is_leaf: Callable[[Any], bool] | None = _is_none) -> list:
    """One leaf of `prefix` for every leaf of `tree`: a prefix leaf covers the whole subtree at its place.

    What is_leaf accepts in the prefix is a leaf there, None unless told otherwise. In the tree None is always a
    container of no leaves: it takes nothing from the prefix."""
    treedef = structure(tree)
    covers, shape = flatten(prefix, is_leaf)
    try:
        subtrees = shape.flatten_up_to(treedef.unflatten([_LEAF] * treedef.num_leaves))
    except ValueError as error:
        raise value_error(f"{what} is no prefix of the structure of the values: {error}") from None
    return [leaf for leaf, subtree in zip(covers, subtrees) for _ in leaves(subtree)]


class _Leaf:
    def __repr__(self) -> str:  # in optree's words about prefixes
        return "a leaf"


_LEAF = _Leaf()
