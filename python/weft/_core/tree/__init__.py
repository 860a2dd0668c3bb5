"""Containers of arrays as arguments and results; weft.tree says what they are. Built on the library optree, in its
namespace "weft"."""

from .flattening import (
    TreeDef,
    assembled,
    broadcast,
    flatten,
    inside_itself,
    jax_semantics,
    leaves,
    prefix_leaves,
    structure,
    unflatten,
)
from .mapping import all, map, reduce, transpose
from .paths import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    SequenceKey,
    flatten_with_path,
    keystr,
    leaves_with_path,
    map_with_path,
    path_texts,
)
from .registration import NAMESPACE, register, register_dataclass, register_with_keys

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "NAMESPACE",
    "SequenceKey",
    "TreeDef",
    "all",
    "assembled",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "inside_itself",
    "jax_semantics",
    "keystr",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "path_texts",
    "prefix_leaves",
    "reduce",
    "register",
    "register_dataclass",
    "register_with_keys",
    "structure",
    "transpose",
    "unflatten",
]
