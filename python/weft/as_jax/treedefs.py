"""Structures of containers as JAX shows them, and the functions of jax.tree and jax.tree_util with them."""

from __future__ import annotations

import collections
import re
from collections.abc import Callable, Iterable
from typing import Any

from .._core import tree as _tree
from .._core.errors import type_error, value_error

# optree's words about a tree of another structure -> JAX's.
_WORDS = [
    (r"Expected an instance of dict, .*?defaultdict, got", "Expected dict, got"),
    (r"Expected an instance of collections\.namedtuple, got", "Expected named tuple, got"),
    (r"Expected an instance of (\w+), got", r"Expected \1, got"),
    (r"(?P<kind>\w)(?P<rest>\w+) arity mismatch; expected: (?P<want>\d+), got: (?P<got>\d+);", None),
    (r"Mismatch custom node data; expected: (.*), got: (.*); value:", r"Mismatch custom node data: \1 != \2; value:"),
    (
        r"dictionary key mismatch; expected key\(s\): (\[.*?\]), got key\(s\): (\[.*?\]).*",
        r"Dict key mismatch; expected keys: \1; present keys: \2.",
    ),
    (
        r"namedtuple type mismatch; expected type: (.*?), got type: .*?; (?:value|tuple|namedtuple):",
        r"Named tuple type mismatch: expected type: \1, tuple:",
    ),
]


def _in_jax_words(message: str) -> str:
    for pattern, words in _WORDS:
        if words is None:
            arity = lambda m: f"{m['kind'].upper()}{m['rest']} arity mismatch: {m['got']} != {m['want']};"
            message, n = re.subn(pattern, arity, message)
        else:
            message, n = re.subn(pattern, words, message, flags=re.DOTALL)
        if n:
            break
    return message


class PyTreeDef:
    """The structure of a tree: comparable, hashable."""

    __slots__ = ("spec",)

    def __init__(self, spec: Any):
        self.spec = spec

    num_leaves = property(lambda self: self.spec.num_leaves)
    num_nodes = property(lambda self: self.spec.num_nodes)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree with given leaves."""
        return _tree.unflatten(self.spec, leaves)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """What stands in a tree at the places of the leaves."""
        try:
            found: list[Any] = self.spec.flatten_up_to(tree)
        except ValueError as error:
            raise value_error(_in_jax_words(str(error))) from None
        return found

    def children(self) -> list[PyTreeDef]:
        """The structures of the parts."""
        return [PyTreeDef(part) for part in self.spec.children()]

    def node_data(self) -> tuple[type, Any] | None:
        """(class of the container, its static data); None for a leaf."""
        if self.spec.is_leaf():
            return None
        found: list[Any] = []
        top = self.spec.one_level()
        top.walk(range(top.num_leaves), lambda cls, data, _: found.append((cls, _static(cls, data))))
        return found[-1]

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """The structure that has another one at the place of each leaf."""
        return PyTreeDef(self.spec.compose(spec_of(inner)))

    def walk(self, f_node: Callable[..., Any], f_leaf: Callable[..., Any] | None, leaves: Iterable[Any]) -> Any:
        """f_leaf(leaf) of every leaf, f_node(results of the parts, static data) of every container, from the inside."""
        return self.spec.walk(leaves, lambda _, data, parts: f_node(parts, data), f_leaf)

    def __repr__(self) -> str:
        return f"PyTreeDef({_text(self.spec)})"

    def __eq__(self, other: object) -> bool:
        return bool(self.spec == spec_of(other))

    def __hash__(self) -> int:
        return hash(self.spec)

    def __reduce__(self) -> Any:
        return PyTreeDef, (self.spec,)


def spec_of(treedef: Any) -> Any:
    """What Weft's own functions take for a structure."""
    return treedef.spec if isinstance(treedef, PyTreeDef) else treedef


def _static(cls: type, data: Any) -> Any:
    """The static data of a container as JAX has them: with a hash, and none of a named tuple, which its class says."""
    if data is cls:
        return None
    if issubclass(cls, collections.OrderedDict):
        return tuple(data)
    return (data[0], tuple(data[1])) if cls is collections.defaultdict else data


def _text(spec: Any) -> str:
    def node(cls: type, data: Any, parts: tuple[str, ...]) -> str:
        inside = ", ".join(parts)
        if cls is type(None):
            return "None"
        if cls is tuple:
            return f"({inside},)" if len(parts) == 1 else f"({inside})"
        if cls is list:
            return f"[{inside}]"
        if cls is dict:
            return "{" + ", ".join(f"{key!r}: {part}" for key, part in zip(data, parts)) + "}"
        known = f"namedtuple[{cls.__name__}]" if data is cls else f"{cls.__name__}[{_static(cls, data)}]"
        return f"CustomNode({known}, [{inside}])"

    text: str = spec.walk(["*"] * spec.num_leaves, node, lambda leaf: leaf)
    return text


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves of a tree, and its structure."""
    leaves, spec = _tree.flatten(tree, is_leaf)
    return leaves, PyTreeDef(spec)


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[Any, Any]], PyTreeDef]:
    """... with the way to each leaf."""
    pairs, spec = _tree.flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    return pairs, PyTreeDef(spec)


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> PyTreeDef:
    """The structure of a tree."""
    return PyTreeDef(_tree.structure(tree, is_leaf))


def tree_unflatten(treedef: Any, leaves: Iterable[Any]) -> Any:
    """The tree of a structure with given leaves."""
    return _tree.unflatten(spec_of(treedef), leaves)


def tree_transpose(outer_treedef: Any, inner_treedef: Any, pytree_to_transpose: Any) -> Any:
    """A tree of trees turned inside out. Static data of containers are not compared."""
    outer = PyTreeDef(spec_of(outer_treedef))
    leaves, treedef = tree_flatten(pytree_to_transpose)
    if inner_treedef is None:
        inner_treedef = tree_structure(next(iter(outer.flatten_up_to(pytree_to_transpose)), None))
    inner = PyTreeDef(spec_of(inner_treedef))
    n = inner.num_leaves
    if len(leaves) != outer.num_leaves * n:
        raise type_error(f"Mismatch\n{treedef}\n != \n{outer.compose(inner)}")
    return inner.unflatten([outer.unflatten(leaves[i::n]) for i in range(n)])


def treedef_children(treedef: Any) -> list[PyTreeDef]:
    """The structures of the parts of a structure."""
    return PyTreeDef(spec_of(treedef)).children()


def treedef_is_leaf(treedef: Any) -> bool:
    """Whether a structure is that of a leaf."""
    return bool(spec_of(treedef).is_leaf())


def treedef_tuple(treedefs: Iterable[Any]) -> PyTreeDef:
    """The structure of a tuple of trees of given structures."""
    return PyTreeDef(_tree.tuple_of(map(spec_of, treedefs)))
