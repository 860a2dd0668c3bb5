"""weft.tree under the names of jax.tree_util, for programs that use those."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from ._core import tree as _tree
from ._core.errors import value_error
from ._core.tree import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey, keystr, register_dataclass
from ._core.tree import KeyEntry as KeyEntry
from ._core.tree import KeyPath as KeyPath
from ._core.tree import TreeDef as PyTreeDef
from ._core.tree import all as tree_all
from ._core.tree import broadcast as tree_broadcast
from ._core.tree import flatten as tree_flatten
from ._core.tree import flatten_with_path as tree_flatten_with_path
from ._core.tree import leaves as tree_leaves
from ._core.tree import leaves_with_path as tree_leaves_with_path
from ._core.tree import map as tree_map
from ._core.tree import map_with_path as tree_map_with_path
from ._core.tree import one_level as _one_level
from ._core.tree import reduce as tree_reduce
from ._core.tree import register as _register
from ._core.tree import register_with_keys as _register_with_keys
from ._core.tree import structure as tree_structure
from ._core.tree import transpose as tree_transpose
from ._core.tree import unflatten as tree_unflatten

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "all_leaves",
    "default_registry",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "is_tree_node",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "tree_all",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
]


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable,
    unflatten_func: Callable,
    flatten_with_keys_func: Callable | None = None,
) -> None:
    """Makes a class a container.

    Args:
        nodetype: the class.
        flatten_func: (object) -> (children, static data); the data is part of the structure and must be hashable.
        unflatten_func: (static data, children) -> object.
        flatten_with_keys_func: (object) -> (pairs (key, child), static data), with the same children and data; None:
            in paths the children have numbers (FlattenedIndexKey).

    Returns: None.

    Raises:
        ValueError: it is registered already.

    Example:
        >>> class Pair:
        ...     def __init__(self, a, b):
        ...         self.a, self.b = a, b
        >>> weft.tree_util.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda _, children: Pair(*children))
        >>> weft.tree_util.tree_leaves(Pair(1, 2))
        [1, 2]
    """
    if flatten_with_keys_func is not None:
        register_pytree_with_keys(nodetype, flatten_with_keys_func, unflatten_func, flatten_func)
    else:
        _register(nodetype, flatten_func, unflatten_func)


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable,
    unflatten_func: Callable,
    flatten_func: Callable | None = None,
) -> None:
    """Makes a class a container whose children have keys in paths.

    Args:
        nodetype: the class.
        flatten_with_keys: (object) -> (pairs (key, child), static data); a key is a GetAttrKey, a DictKey or any
            hashable object; the data is part of the structure and must be hashable.
        unflatten_func: (static data, children) -> object.
        flatten_func: (object) -> (children, static data), with the same children and data. It is not called:
            flatten_with_keys says as much.

    Returns: None.

    Raises:
        ValueError: it is registered already.

    Example:
        >>> class Pair:
        ...     def __init__(self, a, b):
        ...         self.a, self.b = a, b
        >>> key = weft.tree_util.GetAttrKey
        >>> weft.tree_util.register_pytree_with_keys(
        ...     Pair, lambda p: (((key("a"), p.a), (key("b"), p.b)), None), lambda _, children: Pair(*children)
        ... )
        >>> [weft.tree_util.keystr(path) for path, _ in weft.tree_util.tree_leaves_with_path(Pair(1, [2]))]
        ['.a', '.b[0]']
    """
    _register_with_keys(nodetype, flatten_with_keys, unflatten_func)


def register_pytree_node_class(cls: type) -> type:
    """A decorator: makes a class a container, whose methods say how.

    Args:
        cls: a class with a method tree_flatten() -> (children, static data) and a class method tree_unflatten(data,
            children) -> object.

    Returns: the class.

    Raises:
        ValueError: it is registered already.

    Example:
        >>> @weft.tree_util.register_pytree_node_class
        ... class Pair:
        ...     def __init__(self, a, b):
        ...         self.a, self.b = a, b
        ...     def tree_flatten(self):
        ...         return (self.a, self.b), None
        ...     @classmethod
        ...     def tree_unflatten(cls, data, children):
        ...         return cls(*children)
        >>> weft.tree_util.tree_leaves(Pair(1, 2))
        [1, 2]
    """
    made: Any = cls
    return _register(cls, lambda obj: obj.tree_flatten(), made.tree_unflatten)


def register_pytree_with_keys_class(cls: type) -> type:
    """A decorator: makes a class a container whose children have keys in paths; its methods say how.

    Args:
        cls: a class with a method tree_flatten_with_keys() -> (pairs (key, child), static data) and a class method
            tree_unflatten(data, children) -> object.

    Returns: the class.

    Raises:
        ValueError: it is registered already.

    Example:
        >>> @weft.tree_util.register_pytree_with_keys_class
        ... class Pair:
        ...     def __init__(self, a, b):
        ...         self.a, self.b = a, b
        ...     def tree_flatten_with_keys(self):
        ...         key = weft.tree_util.GetAttrKey
        ...         return ((key("a"), self.a), (key("b"), self.b)), None
        ...     @classmethod
        ...     def tree_unflatten(cls, data, children):
        ...         return cls(*children)
        >>> weft.tree_util.tree_map_with_path(lambda path, x: path[0].name, Pair(1, 2)).a
        'a'
    """
    made: Any = cls
    return _register_with_keys(cls, lambda obj: obj.tree_flatten_with_keys(), made.tree_unflatten)


def register_static(cls: type) -> type:
    """A decorator: objects of the class are part of the structure, without leaves.

    Args:
        cls: the class; its objects must be hashable.

    Returns: the class.

    Raises:
        ValueError: it is registered already.

    Example:
        >>> @weft.tree_util.register_static
        ... class Mode(str):
        ...     pass
        >>> weft.tree_util.tree_leaves([Mode("train"), 1])
        [1]
    """
    return _register(cls, lambda obj: ((), obj), lambda obj, _: obj)


class Partial(functools.partial):
    """functools.partial as a container: its arguments are leaves, the function is part of the structure.

    Example:
        >>> scaled = weft.tree_util.Partial(lambda scale, x: scale * x, 3.0)
        >>> weft.jit(lambda f, x: f(x))(scaled, 2.0)
        Array(6., dtype=float32, weak_type=True)
    """

    def __new__(cls, func: Callable, /, *args: Any, **keywords: Any) -> Partial:
        # functools.partial joins its arguments with those of another one: these would become leaves.
        return super().__new__(cls, _Whole(func) if isinstance(func, functools.partial) else func, *args, **keywords)


class _Whole:
    """A functools.partial that counts as a function."""

    def __init__(self, func: functools.partial):
        self._func = func
        functools.update_wrapper(self, func)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._func(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return bool(self._func == (other._func if isinstance(other, _Whole) else other))

    def __hash__(self) -> int:
        return hash(self._func)

    def __repr__(self) -> str:
        return repr(self._func)


_tree.register(
    Partial,
    lambda p: ((p.args, p.keywords), p.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
)


def all_leaves(iterable: Iterable[Any], is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether everything in an iterable is a leaf.

    Args:
        iterable: of trees.
        is_leaf: function (node) -> bool: which nodes count as leaves, too; None: none.

    Returns: bool.

    Example:
        >>> weft.tree_util.all_leaves([1, 2]), weft.tree_util.all_leaves([1, [2]])
        (True, False)
    """
    return all(tree_structure(tree, is_leaf).is_leaf() for tree in iterable)


def flatten_one_level(tree: Any) -> tuple[list[Any], Any]:
    """The children of a container, and what else it consists of.

    Args:
        tree: a container.

    Returns: pair of a list and what the container needs besides to be put together; None for lists and tuples.

    Raises:
        ValueError: it is a leaf.

    Example:
        >>> weft.tree_util.flatten_one_level({"w": [1, 2], "b": 3})
        ([3, [1, 2]], ('b', 'w'))
    """
    keys, children, metadata = _one_level(tree)
    del keys
    return children, metadata


def flatten_one_level_with_keys(tree: Any) -> tuple[list[tuple[Any, Any]], Any]:
    """The children of a container with their keys, and what else it consists of.

    Args:
        tree: a container.

    Returns: pair of a list of pairs (key, child) and what the container needs besides.

    Raises:
        ValueError: it is a leaf.

    Example:
        >>> weft.tree_util.flatten_one_level_with_keys([5])
        ([(SequenceKey(idx=0), 5)], None)
    """
    keys, children, metadata = _one_level(tree)
    return list(zip(keys, children)), metadata


def is_tree_node(typ: type) -> bool:
    """Whether objects of a class are containers.

    Args:
        typ: the class.

    Returns: bool.

    Example:
        >>> weft.tree_util.is_tree_node(list), weft.tree_util.is_tree_node(int)
        (True, False)
    """
    return _tree.is_container(typ)


def tree_reduce_associative(
    operation: Callable[[Any, Any], Any],
    tree: Any,
    *,
    identity: Any = ...,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """The leaves of a tree joined by an associative function, in pairs, then pairs of pairs.

    Args:
        operation: function (a, b) -> c.
        tree: a tree.
        identity: what a tree without leaves gives.
        is_leaf: function (node) -> bool: which nodes count as leaves, too; None: none.

    Returns: what is left.

    Raises:
        ValueError: there is no leaf, and no identity.

    Example:
        >>> weft.tree_util.tree_reduce_associative(lambda a, b: a + b, [1, 2, {"x": 3}])
        6
    """
    leaves = tree_leaves(tree, is_leaf)
    if not leaves:
        if identity is ...:
            raise value_error("tree_reduce_associative: the tree has no leaves; give identity")
        return identity
    while len(leaves) > 1:
        pairs = [operation(a, b) for a, b in zip(leaves[::2], leaves[1::2])]
        leaves = pairs + leaves[2 * len(pairs) :]
    return leaves[0]


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of the children of a structure.

    Args:
        treedef: a structure.

    Returns: list of structures.

    Example:
        >>> len(weft.tree_util.treedef_children(weft.tree.structure([1, (2, 3)])))
        2
    """
    return list(treedef.children())


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether a structure is that of a leaf.

    Args:
        treedef: a structure.

    Returns: bool.

    Example:
        >>> weft.tree_util.treedef_is_leaf(weft.tree.structure(1))
        True
    """
    return bool(treedef.is_leaf())


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of trees of given structures.

    Args:
        treedefs: their structures.

    Returns: structure.

    Example:
        >>> one = weft.tree.structure(1)
        >>> weft.tree_util.treedef_tuple([one, one]) == weft.tree.structure((1, 2))
        True
    """
    return _tree.tuple_of(treedefs)


class _Registry:
    """The classes that count as containers: there is one registry."""

    flatten_one_level = staticmethod(flatten_one_level)
    flatten_one_level_with_keys = staticmethod(flatten_one_level_with_keys)
    register_node = staticmethod(register_pytree_node)
    flatten = staticmethod(tree_flatten)


default_registry = _Registry()
