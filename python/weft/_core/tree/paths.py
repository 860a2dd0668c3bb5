"""Which way leads from a tree to each of its leaves."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Hashable
from typing import Any

import optree

from ..errors import value_error
from .flattening import TreeDef, flatten
from .registration import NAMESPACE, GivenEntry


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

    def __hash__(self) -> int:
        return hash((FlattenedIndexKey, self.key))  # not that of the SequenceKey of this number

    def __str__(self) -> str:
        return f"[<flat index {self.key!r}>]"


# What leads from a tree to a leaf. A class registered with keys may use any objects as keys.
KeyEntry = Any
KeyPath = tuple[KeyEntry, ...]


def _key(entry: optree.PyTreeEntry) -> Any:
    match entry:
        case GivenEntry():
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
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], TreeDef]:
    """The leaves of a tree with their paths, and its structure.

    Args:
        tree: a tree.
        is_leaf: function (node) -> bool: which nodes count as leaves, too; None: none.
        is_leaf_takes_path: whether is_leaf is a function (path, node) -> bool.

    Returns: pair of a list of pairs (path, leaf) and a TreeDef; a path is a tuple of keys (DictKey, SequenceKey,
        GetAttrKey, FlattenedIndexKey, or what a class was registered with), one for each container.

    Example:
        >>> weft.tree.flatten_with_path({"w": [1, 2]})[0]
        [((DictKey(key='w'), SequenceKey(idx=0)), 1), ((DictKey(key='w'), SequenceKey(idx=1)), 2)]
    """
    if is_leaf is not None and is_leaf_takes_path:
        chosen = _leaves_by_path(tree, is_leaf, ())
        is_leaf = lambda node: id(node) in chosen
    found, treedef = flatten(tree, is_leaf)
    return list(zip(_paths(treedef), found)), treedef


def _leaves_by_path(node: Any, is_leaf: Callable[[KeyPath, Any], bool], path: KeyPath) -> set[int]:
    """The ids of the nodes that is_leaf accepts, from the outside to the inside."""
    if is_leaf(path, node):
        return {id(node)}
    found: set[int] = set()
    # What is below a node one level deep are its children.
    children, treedef = flatten(node, lambda below: below is not node)
    if len(children) != 1 or children[0] is not node:
        for key, child in zip(_paths(treedef), children):
            found |= _leaves_by_path(child, is_leaf, (*path, *key))
    return found


def _paths(treedef: TreeDef) -> list[KeyPath]:
    return [tuple([_key(entry) for entry in accessor]) for accessor in treedef.accessors()]


def one_level(tree: Any) -> tuple[list[Any], list[Any], Any]:
    """The keys and children of a container, and what else it consists of."""
    around = flatten(tree)[1].one_level()
    if around is None:
        raise value_error(f"flatten_one_level: a container is needed, got the leaf {tree!r}")
    metadata: Any
    children, metadata, *_ = optree.tree_flatten_one_level(tree, namespace=NAMESPACE)
    keys = [_key(accessor[0]) for accessor in around.accessors()]
    if isinstance(metadata, list):  # the keys of a dictionary
        metadata = tuple(metadata)
    elif type(tree) is collections.defaultdict:  # with what makes its values
        metadata = (metadata[0], tuple(metadata[1]))
    return keys, list(children), None if type(tree) in (list, tuple) else metadata


def leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """The leaves of a tree with their paths.

    Args:
        tree: a tree.
        is_leaf: function (node) -> bool: which nodes count as leaves, too; None: none.
        is_leaf_takes_path: whether is_leaf is a function (path, node) -> bool.

    Returns: list of pairs (path, leaf), as of flatten_with_path.

    Example:
        >>> weft.tree.leaves_with_path((1, 2))
        [((SequenceKey(idx=0),), 1), ((SequenceKey(idx=1),), 2)]
    """
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


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
