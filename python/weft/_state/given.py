"""References among arguments and results."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .. import _weft
from .._core import closures
from .._core import tree as _tree
from .._core.errors import value_error
from .._core.tracing import call_name, leaf_names
from . import scopes
from .refs import Ref, RefPart, base


class Given:
    """A reference among arguments: a container without leaves."""

    __slots__ = ("ref",)

    def __init__(self, ref: Any):
        self.ref = ref


_tree.register(Given, lambda given: ((), given.ref), lambda ref, _: Given(ref))


def refs_among(tree: Any) -> list[Ref]:
    """The references that are leaves of a tree."""
    return [leaf for leaf in _tree.leaves(tree) if isinstance(leaf, Ref)]


def parts_as_references(
    tree: Any, is_mapped: Callable[[int], bool], what: str, name: str
) -> tuple[Any, Callable[[], None], list[Ref]]:
    """The tree with references of their own in the places of parts of references, what writes into the parts what these
    hold in the end, and the references that the parts are of. `is_mapped`: of the number of a leaf of the tree."""
    nodes, structure = _tree.flatten(tree, is_leaf=lambda x: isinstance(x, RefPart))
    if not any(isinstance(node, RefPart) for node in nodes):
        return tree, lambda: None, []
    made: list[tuple[RefPart, Ref]] = []
    number, new = 0, []
    for node in nodes:
        if isinstance(node, RefPart) and is_mapped(number):
            made.append((node, Ref(node[...])))
            new.append(made[-1][1])
        else:
            new.append(node)
        number += len(_tree.leaves(node))
    bases = [base(part) for part, _ in made]
    others = [r for r in refs_among(new) if all(r is not own for _, own in made)]
    refuse_aliases([*bases, *others] if made else [], [], what, name, lambda i: f"mapped reference {i}")

    def write() -> None:
        for part, ref in made:
            part[...] = ref[...]

    return _tree.unflatten(structure, new), write, bases


def released(tree: Any) -> Any:
    is_given = lambda x: isinstance(x, Given)
    return _tree.map(lambda x: x.ref if is_given(x) else x, tree, is_leaf=is_given)


def held(tree: Any) -> Any:
    return _tree.map(lambda x: Given(x) if isinstance(x, Ref) else x, tree)


def naming(wrapper: Callable, function: Callable) -> Callable:
    """The wrapper, called as the function is in messages."""
    functools.update_wrapper(wrapper, function, updated=())
    if not hasattr(wrapper, "__name__") or not hasattr(function, "__name__"):
        wrapper.__name__ = wrapper.__qualname__ = call_name(function)
    return wrapper


def called_as(wrapper: Callable, function: Callable) -> Callable:
    """The wrapper, which takes other arguments than the function, under its name in messages."""
    wrapper.__name__ = wrapper.__qualname__ = call_name(function)
    return wrapper


def reachable(*roots: Any) -> list[Ref]:
    """The references that functions can reach, and that may be used here."""
    return [r for r in closures.reachable(Ref, *roots) if scopes.usable(r) and not r._frozen]


def refuse_references_in(
    function: Callable, out: Any, kind: str, given_as: Callable[[Ref], str] = lambda _: ""
) -> None:
    """Raises ValueError for a reference that a traced function returns; given_as: which argument one is."""
    if not any(isinstance(leaf, Ref) for leaf in _tree.leaves(out)):
        return
    leaves, tree = _tree.flatten(out)
    for leaf, path in zip(leaves, _tree.path_texts(tree)):
        refuse_result(call_name(function), leaf, path, kind, given_as(leaf) if isinstance(leaf, Ref) else "")


def refuse_result(name: str, leaf: Any, path: str, kind: str, argument: str = "") -> None:
    """Raises ValueError for a reference that a traced function returns, which may be its argument."""
    if isinstance(leaf, Ref):
        where = f"the result{' ' + path if path else ''} of '{name}'"
        origin = f"the argument {argument}" if argument else f"made{leaf._line or ' outside'}"
        raise value_error(
            f"{kind}: {where} is a reference of type {leaf._type}, {origin}; functions that are "
            f"traced return arrays. Return what it holds, ref[...], or make it outside of '{name}'"
        )


def settled(ref: Ref, value: Any) -> Any:
    return _weft.with_weak([_weft.astype(value, ref.dtype)], [ref.weak_type])[0]


def refuse_aliases(
    given: Sequence[Ref], used: Sequence[Ref], what: str, name: str, where: Callable[[int], str]
) -> None:
    """Raises ValueError for a reference that a function gets twice."""
    for i, ref in enumerate(given):
        for j in range(i):
            if given[j] is ref:
                raise value_error(
                    f"{what}: {where(j)} and {where(i)} of '{name}' are the same reference, of type {ref._type}, made"
                    f"{ref._line or ' here'}; give it once"
                )
        if any(u is ref for u in used):
            raise value_error(
                f"{what}: {where(i)} of '{name}' is a reference of type {ref._type}, made{ref._line or ' here'}, which "
                f"'{name}' also uses from outside; do one of the two"
            )


def refuse_given_twice(what: str, function: Callable, args: Sequence[Any], used: Sequence[Ref] = ()) -> None:
    """Raises ValueError for a reference that is two arguments of a function, or one that it uses from outside, too."""
    leaves, tree = _tree.flatten((tuple(args), {}))
    given = [leaf for leaf in leaves if isinstance(leaf, Ref)]
    if not given:
        return
    every = leaf_names(function, tuple(args), {}, tree=tree)
    names = [name for leaf, name in zip(leaves, every) if isinstance(leaf, Ref)]
    refuse_aliases(given, used, what, call_name(function), lambda i: f"argument {names[i]}")
