"""What derivatives give, and what vjp does: a function of cotangents, which can add gradients into references."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from . import _weft
from ._core import stateful
from ._core import tree as _tree
from ._core.errors import type_error, value_error
from .tree_util import Partial, register_static

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue", "NotNeeded"]


def apply_derivative(derivative: Any, args: Sequence) -> list:
    """What a derivative gives. Numbers among its arguments (a tangent of 1) are worked out in it first, but not where
    known arrays are computed at once: these are others in each call, and there is one program for all."""
    at_once = _weft.is_tracing() and _weft.computes_known()
    return _weft.apply(derivative, args) if at_once else _weft.apply_derivative(derivative, args)


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


@register_static
class NotNeeded(_Word):
    """In args_res: the derivative does not need this argument."""


class Residuals:
    """What is known of what a pullback has kept.

    Args:
        tree: the structure of (arguments, keywords) of the function.
        forward: the program that gives the value and the residuals.
        count: how many results it has before them.
    """

    def __init__(self, tree: Any, forward: Any, count: int):
        self._tree, self._forward, self._count = tree, forward, count

    @functools.cached_property
    def _types(self) -> list[Any]:
        return [_weft.abstract(kind) for kind in self._forward.result_specs[self._count :]]

    @functools.cached_property
    def places(self) -> list[int | None]:
        """For each residual the number of the leaf of the arguments that it is, a parameter of the program; None: it
        is none of them."""
        numbers = {f"%{i}": i for i in range(self._tree.num_leaves)}
        return [numbers.get(result.partition(":")[0]) for result in self._forward.results[self._count :]]

    def arguments(self, residuals: Sequence[Any]) -> list[Any]:
        """The arguments, with NotNeeded() in the places of others."""
        leaves: list[Any] = [NotNeeded()] * self._tree.num_leaves
        for residual, place in zip(residuals, self.places):
            if place is not None:
                leaves[place] = residual
        return list(_tree.unflatten(self._tree, leaves)[0])

    def with_arguments(self, residuals: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
        """The residuals, with these arguments in the places of those that are arguments; None: there is none."""
        every = _tree.unflatten(self._tree, list(range(self._tree.num_leaves)))[0]
        given: dict[int, Any] = {}
        for places, argument in zip(every, arguments, strict=True):
            numbers = _tree.leaves(places)
            leaves = [None] * len(numbers) if argument is None else _tree.leaves(argument)
            if len(leaves) != len(numbers):
                raise value_error(f"vjp: args_res has {argument!r} for an argument of {len(numbers)} arrays")
            given.update(zip(numbers, leaves))
        found = []
        for residual, place, (shape, dtype, *_) in zip(residuals, self.places, self._types):
            if place is not None:
                residual = given[place]
                if residual is not None and not isinstance(residual, _weft.Array):
                    residual = _weft.array(residual, dtype, False)
                if residual is not None and tuple(residual.shape) != tuple(shape):
                    raise value_error(
                        f"vjp: args_res has an array of shape {residual.shape} for an argument of shape {shape}"
                    )
            found.append(residual)
        return found


class Pullback(Partial):
    """The function of cotangents that weft.vjp gives: a container of what it has kept.

    Attributes:
        args_res: a list with what it has kept of each argument of the function, NotNeeded() where that is nothing. It
            may be changed: None lets go of an argument, which has to be there again when the pullback is called.
        opaque_residuals: the arrays that it has kept besides.

    Example:
        >>> value, pullback = weft.vjp(lambda x: x * x, 3.0)
        >>> pullback(1.0)
        (Array(6., dtype=float32, weak_type=True),)
    """

    _arguments: list[Any] | None = None

    @property
    def args_res(self) -> list[Any]:
        if self._arguments is None:
            self._arguments = self.func.kept.arguments(self.args[0])  # type: ignore[attr-defined]
        return self._arguments

    @args_res.setter
    def args_res(self, arguments: Sequence[Any]) -> None:
        self._arguments = list(arguments)

    @property
    def opaque_residuals(self) -> list[Any]:
        places = self.func.kept.places  # type: ignore[attr-defined]
        return [residual for residual, place in zip(self.args[0], places) if place is None]

    def _given(self) -> tuple[Any, ...]:
        """What the function gets before the cotangent."""
        if self._arguments is None:
            return self.args
        return (self.func.kept.with_arguments(self.args[0], self._arguments),)  # type: ignore[attr-defined]

    def __call__(self, *cotangent: Any) -> Any:
        given = self._given()
        if self._arguments is not None and any(residual is None for residual in given[0]):
            raise value_error("vjp: args_res has None for an argument that the derivative needs")
        return self.func(*given, *cotangent, **self.keywords)

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
    lambda p: ((p._given(), p.keywords), p.func),
    lambda func, children: Pullback(func, *children[0], **children[1]),
)
_tree.register(
    _PullbackOfReferences,
    lambda p: ((p.args, p.keywords), p.func),
    lambda func, children: _PullbackOfReferences(func, *children[0], **children[1]),
)
