"""What vjp gives: a function of cotangents, which can add gradients into references."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _weft
from ._core import stateful
from ._core import tree as _tree
from ._core.errors import type_error, value_error
from .tree_util import Partial, register_static

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue"]


class _Word:
    """One of the words of with_refs: all objects of a class are the same."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class GradValue(_Word):
    """In with_refs: the gradient is returned."""


class DontWant(_Word):
    """In with_refs: there is to be no gradient."""


@register_static
class DidntWant(_Word):
    """In the place of a gradient that was not wanted."""


@register_static
class GradRef(_Word):
    """In the place of a gradient that was added into a reference."""


class Pullback(Partial):
    """The function of cotangents that weft.vjp gives: a container of what it has kept.

    Example:
        >>> value, pullback = weft.vjp(lambda x: x * x, 3.0)
        >>> pullback(1.0)
        (Array(6., dtype=float32, weak_type=True),)
    """

    def with_refs(self, *maybe_refs: Any) -> Callable[[Any], Any]:
        """The same function, which adds gradients into references.

        Args:
            *maybe_refs: for each argument of the function a reference, GradValue() (its gradient is returned),
                DontWant() (it is not), or a tree of them like the argument.

        Returns: function of the cotangent; its result has GradRef() and DidntWant() in the places of the others.

        Raises:
            ValueError: when called: there are more or fewer than arguments.
            TypeError: when called: something is no reference, and none of these words.

        Example:
            >>> total = weft.new_ref(wnp.zeros(2))
            >>> value, pullback = weft.vjp(lambda x: (x * x).sum(), wnp.array([1.0, 2.0]))
            >>> pullback.with_refs(total)(1.0)
            (GradRef(),)
            >>> total[...]
            Array([2., 4.], dtype=float32)
        """

        def added(cotangent: Any) -> Any:
            gradients = self(cotangent)
            if len(maybe_refs) != len(gradients):
                raise value_error(
                    f"vjp: with_refs got {len(maybe_refs)} arguments for the {len(gradients)} of the function"
                )
            found = []
            for gradient, given in zip(gradients, maybe_refs):
                targets = _tree.prefix_leaves(given, gradient, "vjp: with_refs", _is_target)
                leaves, tree = _tree.flatten(gradient)
                found.append(_tree.unflatten(tree, [_into(g, target) for g, target in zip(leaves, targets)]))
            return tuple(found)

        return added


class OfReferences:
    """What is known of a vjp with respect to references: the structure of the arguments, and for each leaf the type of
    what its reference holds, None if it is none."""

    def __init__(self, tree: Any, types: list):
        self.tree, self.types = tree, types

    def __call__(self, pull: Pullback, cotangent: Any) -> Any:
        raise value_error(
            "vjp: an argument is a reference; its gradient must be accumulated into a ref that with_refs binds: "
            "pullback.with_refs(weft.new_ref(zeros))(cotangent)"
        )

    def pullback(self, pull: Pullback) -> Pullback:
        """The function of cotangents, from that of the cotangents of the value and of what references hold at last."""
        return _PullbackOfReferences(self, pull)


class _PullbackOfReferences(Pullback):
    """The function of cotangents of a vjp with respect to references."""

    def with_refs(self, *maybe_refs: Any) -> Callable[[Any], Any]:
        of: Any = self.func
        pull = self.args[0]

        def added(cotangent: Any) -> Any:
            places = _tree.unflatten(of.tree, list(range(len(of.types))))
            if len(maybe_refs) != len(places):
                raise value_error(
                    f"vjp: with_refs got {len(maybe_refs)} arguments for the {len(places)} of the function"
                )
            targets = [
                target
                for given, place in zip(maybe_refs, places)
                for target in _tree.prefix_leaves(given, place, "vjp: with_refs", _is_target)
            ]
            last = []
            for target, kind in zip(targets, of.types):
                if kind is None:
                    continue
                if not (isinstance(target, DontWant) or stateful.is_reference(target)):
                    raise type_error(
                        f"vjp: with_refs got {target!r} of type '{type(target).__name__}' for an argument that is a "
                        "reference; its gradient is accumulated into a reference, or DontWant()"
                    )
                last.append(_weft.zeros(kind) if isinstance(target, DontWant) else target[...])
            gradients = _tree.leaves(pull((cotangent, last)))
            found = []
            for gradient, target, kind in zip(gradients, targets, of.types, strict=True):
                if kind is None or isinstance(target, DontWant):
                    found.append(_into(gradient, target))
                else:
                    target[...] = gradient  # what it held went in as the cotangent
                    found.append(GradRef())
            return _tree.unflatten(of.tree, found)

        return added


def _is_target(x: Any) -> bool:
    return isinstance(x, _Word) or stateful.is_reference(x)


def _into(gradient: Any, target: Any) -> Any:
    if isinstance(target, GradValue):
        return gradient
    if isinstance(target, DontWant):
        return DidntWant()
    if not stateful.is_reference(target):
        raise type_error(
            f"vjp: with_refs got {target!r} of type '{type(target).__name__}'; expected a reference, GradValue() or "
            "DontWant()"
        )
    target[...] = target[...] + gradient
    return GradRef()


_tree.register(
    Pullback,
    lambda p: ((p.args, p.keywords), p.func),
    lambda func, children: Pullback(func, *children[0], **children[1]),
)
_tree.register(
    _PullbackOfReferences,
    lambda p: ((p.args, p.keywords), p.func),
    lambda func, children: _PullbackOfReferences(func, *children[0], **children[1]),
)
