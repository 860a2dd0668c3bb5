"""Containers of arrays as arguments and results ("pytrees"): list, tuple, dict, namedtuple, None, dataclasses and
registered classes. Everything else is a leaf.

    >>> leaves, tree = weft.tree.flatten({"w": 1, "b": [2, 3]})
    >>> leaves
    [2, 3, 1]
    >>> weft.tree.unflatten(tree, leaves) == {"w": 1, "b": [2, 3]}
    True

Dictionaries are flattened in the order of their sorted keys. Built on the library optree, in its namespace "weft".
"""

from ._core.names import belong_to as _belong_to
from ._core.tree import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    SequenceKey,
    TreeDef,
    all,
    broadcast,
    flatten,
    flatten_with_path,
    keystr,
    leaves,
    leaves_with_path,
    map,
    map_with_path,
    reduce,
    register,
    register_dataclass,
    register_with_keys,
    structure,
    transpose,
    unflatten,
)
from ._core.tree import KeyEntry as KeyEntry
from ._core.tree import KeyPath as KeyPath

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

_belong_to(globals(), keystr, register_with_keys, *(globals()[name] for name in __all__))
