"""weft.tree under the names of jax.tree_util, for programs that use those."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from . import tree as _tree
from ._errors import not_implemented
from .tree import TreeDef as PyTreeDef
from .tree import all as tree_all
from .tree import broadcast as tree_broadcast
from .tree import flatten as tree_flatten
from .tree import leaves as tree_leaves
from .tree import leaves_with_path as tree_leaves_with_path
from .tree import map as tree_map
from .tree import map_with_path as tree_map_with_path
from .tree import reduce as tree_reduce
from .tree import register as _register
from .tree import register_dataclass
from .tree import structure as tree_structure
from .tree import transpose as tree_transpose
from .tree import unflatten as tree_unflatten

__all__ = [
    "Partial",
    "keystr",
    "PyTreeDef",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
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
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
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
        flatten_with_keys_func: must be None: in paths children of such classes have numbers.

    Returns: None.

    Raises:
        NotImplementedError: flatten_with_keys_func is given.
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
        raise not_implemented("register_pytree_node: flatten_with_keys_func must be None: paths have numbers here")
    _register(nodetype, flatten_func, unflatten_func)


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


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[tuple[str, Any]], PyTreeDef]:
    """The leaves of a tree with their paths, and its structure.

    Args:
        tree: a tree.
        is_leaf: function (node) -> bool: which nodes count as leaves, too; None: none.

    Returns: pair of a list of pairs (path, leaf) and a PyTreeDef; a path is a string such as "['w'][0]".

    Example:
        >>> weft.tree_util.tree_flatten_with_path({"w": [1, 2]})[0]
        [("['w'][0]", 1), ("['w'][1]", 2)]
    """
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def keystr(keys: str, *, simple: bool = False, separator: str = "") -> str:
    """A path as text, which it is here.

    Args:
        keys: a path of tree_flatten_with_path.
        simple: must be False: keys are written as Python writes access to them.
        separator: must be "": nothing stands between them.

    Returns: str.

    Raises:
        NotImplementedError: simple or separator is given.

    Example:
        >>> weft.tree_util.keystr("['w'][0]")
        "['w'][0]"
    """
    if simple or separator:
        raise not_implemented(
            f"keystr: paths are texts such as \"['w'][0]\" here: simple must be False and separator '', "
            f"got {simple} and {separator!r}"
        )
    return keys


class Partial(functools.partial):
    """functools.partial as a container: its arguments are leaves, the function is part of the structure.

    Example:
        >>> scaled = weft.tree_util.Partial(lambda scale, x: scale * x, 3.0)
        >>> weft.jit(lambda f, x: f(x))(scaled, 2.0)
        Array(6., dtype=float32, weak_type=True)
    """


_tree.register(
    Partial,
    lambda p: ((p.args, p.keywords), p.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
)
