"""jax.example_libraries.optimizers: optimizers as triples of functions (init, update, get_params).

init, update, get_params = optimizers.adam(1e-3)
state = init(params)
state = update(step, jax.grad(loss)(get_params(state)), state)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import weft.numpy as wnp

from .. import tree_util as _tree_util
from .._core import tree as _tree
from .._core.errors import type_error

Schedule = Callable[[Any], Any]


class OptimizerState(NamedTuple):
    """What an optimizer keeps of each parameter: (parameter, ...) in the order of the leaves."""

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


_tree_util.register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda data, children: OptimizerState(children[0], *data),
)


class Optimizer(NamedTuple):
    """The functions init(params) -> state, update(step, gradients, state) -> state, get_params(state) -> params."""

    init_fn: Callable[[Any], OptimizerState]
    update_fn: Callable[[Any, Any, OptimizerState], OptimizerState]
    params_fn: Callable[[OptimizerState], Any]


def optimizer(opt_maker: Callable[..., Any]) -> Callable[..., Optimizer]:
    """A decorator: an optimizer of one array as one of trees of them."""

    @functools.wraps(opt_maker)
    def make(*args: Any, **kwargs: Any) -> Optimizer:
        init_one, update_one, get_one = opt_maker(*args, **kwargs)

        def init(params: Any) -> OptimizerState:
            leaves, structure = _tree.flatten(params)
            return _packed([init_one(leaf) for leaf in leaves], structure)

        def update(i: Any, grads: Any, state: OptimizerState) -> OptimizerState:
            leaves, structure = _tree.flatten(grads)
            if structure != state.tree_def:
                raise type_error(
                    f"the gradients have the structure {structure}, and the parameters {state.tree_def}: an optimizer "
                    "needs the same"
                )
            states = _states(state)
            return _packed([update_one(i, g, s) for g, s in zip(leaves, states)], state.tree_def)

        def get_params(state: OptimizerState) -> Any:
            return _tree.unflatten(state.tree_def, [get_one(s) for s in _states(state)])

        return Optimizer(init, update, get_params)

    return make


def _packed(states: Sequence[Any], structure: Any) -> OptimizerState:
    flat = [_tree.flatten(state) for state in states]
    return OptimizerState(tuple(tuple(leaves) for leaves, _ in flat), structure, tuple(tree for _, tree in flat))


def _states(state: OptimizerState) -> list[Any]:
    return [_tree.unflatten(tree, leaves) for tree, leaves in zip(state.subtree_defs, state.packed_state)]


class JoinPoint:
    """In an unpacked state: where the tree of parameters ends, and the state of one of them begins."""

    def __init__(self, subtree: Any):
        self.subtree = subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """The state as a tree like the parameters, with a JoinPoint in the place of each."""
    return _tree.unflatten(opt_state.tree_def, [JoinPoint(state) for state in _states(opt_state)])


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The state that unpack_optimizer_state has made a tree of."""
    points, structure = _tree.flatten(marked_pytree)
    if not all(isinstance(point, JoinPoint) for point in points):
        raise type_error("pack_optimizer_state: the leaves of the tree must be JoinPoints")
    return _packed([point.subtree for point in points], structure)


def constant(step_size: Any) -> Schedule:
    """The same step size always."""
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """step_size * decay_rate ** (i / decay_steps)."""
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False) -> Schedule:
    """step_size / (1 + decay_rate * i / decay_steps); with staircase the quotient is rounded down."""
    if staircase:
        return lambda i: step_size / (1 + decay_rate * wnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(step_size: Any, decay_steps: Any, final_step_size: Any, power: Any = 1.0) -> Schedule:
    """From step_size to final_step_size, as a power of what is left of decay_steps."""

    def schedule(i: Any) -> Any:
        i = wnp.minimum(i, decay_steps)
        return (1 - i / decay_steps) ** power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """values[k] after the k-th boundary."""
    boundaries, values = wnp.array(boundaries), wnp.array(values)
    if boundaries.ndim != 1 or values.shape != (boundaries.shape[0] + 1,):
        raise type_error("piecewise_constant: there must be one more value than boundaries, both vectors")
    return lambda i: values[wnp.sum(i > boundaries)]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """A step size as a schedule; a schedule as it is."""
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if wnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise type_error(f"make_schedule: expected a number or a function of the step, got {scalar_or_schedule!r}")


def l2_norm(tree: Any) -> Any:
    """The root of the sum of squares of all elements."""
    return wnp.sqrt(sum(wnp.vdot(x, x) for x in _tree.leaves(tree)))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """The gradients, scaled down to a norm where theirs is larger."""
    norm = l2_norm(grad_tree)
    return _tree.map(lambda g: wnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


@optimizer
def sgd(step_size: Any) -> Any:
    """Gradient descent: x - step * g."""
    schedule = make_schedule(step_size)
    return (lambda x: x), (lambda i, g, x: x - schedule(i) * g), (lambda x: x)


@optimizer
def momentum(step_size: Any, mass: Any) -> Any:
    """Polyak's momentum: v = mass * v + g, x - step * v."""
    schedule = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, v = state
        v = mass * v + g
        return x - schedule(i) * v, v

    return (lambda x: (x, wnp.zeros_like(x))), update, (lambda state: state[0])


@optimizer
def nesterov(step_size: Any, mass: Any) -> Any:
    """Nesterov's momentum: v = mass * v + g, x - step * (mass * v + g)."""
    schedule = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, v = state
        v = mass * v + g
        return x - schedule(i) * (mass * v + g), v

    return (lambda x: (x, wnp.zeros_like(x))), update, (lambda state: state[0])


def _inverse_root(x: Any) -> Any:
    return wnp.where(x > 0, 1 / wnp.sqrt(wnp.where(x > 0, x, 1)), 0.0)


@optimizer
def adagrad(step_size: Any, momentum: Any = 0.9) -> Any:
    """Adagrad (Duchi, Hazan and Singer 2011): gradients over the root of the sum of their squares, with momentum."""
    schedule = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, m = state
        squares = squares + g * g
        m = (1 - momentum) * (g * _inverse_root(squares)) + momentum * m
        return x - schedule(i) * m, squares, m

    return (lambda x: (x, wnp.zeros_like(x), wnp.zeros_like(x))), update, (lambda state: state[0])


@optimizer
def rmsprop(step_size: Any, gamma: Any = 0.9, eps: Any = 1e-8) -> Any:
    """RMSProp: gradients over the root of a moving average of their squares."""
    schedule = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, average = state
        average = average * gamma + g * g * (1 - gamma)
        return x - schedule(i) * g / wnp.sqrt(average + eps), average

    return (lambda x: (x, wnp.zeros_like(x))), update, (lambda state: state[0])


@optimizer
def rmsprop_momentum(step_size: Any, gamma: Any = 0.9, eps: Any = 1e-8, momentum: Any = 0.9) -> Any:
    """RMSProp with momentum."""
    schedule = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, average, v = state
        average = average * gamma + g * g * (1 - gamma)
        v = momentum * v + schedule(i) * g / wnp.sqrt(average + eps)
        return x - v, average, v

    return (lambda x: (x, wnp.zeros_like(x), wnp.zeros_like(x))), update, (lambda state: state[0])


@optimizer
def adam(step_size: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8) -> Any:
    """Adam (Kingma and Ba 2014, algorithm 1)."""
    schedule = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * (g * g) + b2 * v
        first = m / (1 - wnp.asarray(b1, m.dtype) ** (i + 1))
        second = v / (1 - wnp.asarray(b2, m.dtype) ** (i + 1))
        return x - schedule(i) * first / (wnp.sqrt(second) + eps), m, v

    return (lambda x: (x, wnp.zeros_like(x), wnp.zeros_like(x))), update, (lambda state: state[0])


@optimizer
def adamax(step_size: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8) -> Any:
    """Adamax (Kingma and Ba 2014, algorithm 2)."""
    schedule = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = wnp.maximum(b2 * v, wnp.abs(g))
        return x - (schedule(i) / (1 - b1 ** (i + 1))) * m / (v + eps), m, v

    return (lambda x: (x, wnp.zeros_like(x), wnp.zeros_like(x))), update, (lambda state: state[0])


@optimizer
def sm3(step_size: Any, momentum: Any = 0.9) -> Any:
    """SM3 (Anil, Gupta, Koren and Singer 2019): Adagrad that keeps one number for each row, column ..."""
    schedule = make_schedule(step_size)

    def along(d: int, ndim: int) -> tuple[int, ...]:
        return tuple(k for k in range(ndim) if k != d)

    def init(x: Any) -> Any:
        x = wnp.asarray(x)
        return x, wnp.zeros_like(x), [wnp.zeros(n, x.dtype) for n in x.shape or [()]]

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, covers = state
        spread = [v.reshape([-1 if k == d else 1 for k in range(x.ndim)]) for d, v in enumerate(covers)]
        squares = functools.reduce(wnp.minimum, spread) + g * g
        m = (1 - momentum) * (g * _inverse_root(squares)) + momentum * m
        covers = [wnp.max(squares, along(d, x.ndim)) for d in range(x.ndim)] or [squares]
        return x - schedule(i) * m, m, covers

    return init, update, (lambda state: state[0])
