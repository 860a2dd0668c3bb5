"""jax.experimental.rnn: a long short-term memory of several layers, with the parameters of all of them in one array.

For each layer l, and for each direction of it where it is bidirectional, the array holds a matrix of the inputs and one
of the state; after all of those come, in the same order, a bias of each. The rows of all four are those of the input
gate i, the forget gate f, the candidate g and the output gate o:

    i, f, o = sigmoid(W_ih @ x + b_ih + W_hh @ h + b_hh)      g = tanh(... the same)
    c = f * c + i * g
    h = o * tanh(c)

JAX's lstm is cuDNN's; here it is a program like others, for each backend.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import weft.lax as lax
import weft.nn as nn
import weft.numpy as wnp
from weft import jit, random

from .._core.errors import not_implemented

_GATES = 4
Parts = dict[int, Any]


def _shapes(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> tuple[list[Any], list[Any]]:
    """The shapes of the matrices and of the biases, in their order in the array."""
    directions = 2 if bidirectional else 1
    rows = _GATES * hidden_size
    matrices = []
    for layer in range(num_layers):
        columns = input_size if layer == 0 else directions * hidden_size
        matrices += [(rows, columns), (rows, hidden_size)] * directions
    return matrices, [(rows,)] * len(matrices)


def get_num_params_in_lstm(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> int:
    """How many numbers the parameters are."""
    matrices, biases = _shapes(input_size, hidden_size, num_layers, bidirectional)
    return sum(math.prod(shape) for shape in matrices + biases)


def init_lstm_weight(rng: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Any:
    """Parameters from the uniform distribution within 1 / sqrt(hidden_size)."""
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    bound = math.sqrt(1 / hidden_size)
    return random.uniform(rng, (count,), dtype=wnp.float32, minval=-bound, maxval=bound)


def _blocks(weights: Any, shapes: list[Any]) -> list[Any]:
    """The array as blocks of the shapes, one behind the other."""
    found, start = [], 0
    for shape in shapes:
        end = start + math.prod(shape)
        found.append(weights[start:end].reshape(shape))
        start = end
    return found


def unpack_lstm_weights(
    weights: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> tuple[Parts, Parts, Parts, Parts]:
    """W_ih, W_hh, b_ih, b_hh: each by the number of the layer (and direction: 2 * layer + 1 is the reverse one)."""
    matrices, biases = _shapes(input_size, hidden_size, num_layers, bidirectional)
    blocks = _blocks(weights, matrices + biases)
    W, b = blocks[: len(matrices)], blocks[len(matrices) :]
    W_ih, W_hh, b_ih, b_hh = (dict(enumerate(each)) for each in (W[::2], W[1::2], b[::2], b[1::2]))
    return W_ih, W_hh, b_ih, b_hh


def swap_lstm_gates(weights: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Any:
    """The parameters with the rows of g and of o in each other's place."""
    matrices, biases = _shapes(input_size, hidden_size, num_layers, bidirectional)
    swapped = []
    for block in _blocks(wnp.asarray(weights), matrices + biases):
        i, f, g, o = wnp.split(block, _GATES)
        swapped += [part.ravel() for part in (i, f, o, g)]
    return wnp.concatenate(swapped)


def _reversed(xs: Any, lengths: Any) -> Any:
    """Each sequence of (time, batch, size) from its end to its start; what pads it stays where it is."""
    time = wnp.arange(xs.shape[0], dtype=lengths.dtype)[:, None]
    order = wnp.where(time < lengths, lengths - 1 - time, time)
    return wnp.take_along_axis(xs, order[..., None], axis=0)


def _direction(xs: Any, h: Any, c: Any, weights: tuple[Any, ...], lengths: Any, precision: Any) -> tuple[Any, Any, Any]:
    """A layer in one direction, over (time, batch, size): the outputs, 0 behind the ends, and the last state."""
    W_ih, W_hh, b_ih, b_hh = weights
    # The inputs' share of the gates does not wait for the state: one product for all steps.
    from_inputs = wnp.matmul(xs, W_ih.T, precision=precision) + (b_ih + b_hh)

    def step(state: tuple[Any, Any], share: Any) -> Any:
        h, c = state
        i, f, g, o = wnp.split(share + wnp.matmul(h, W_hh.T, precision=precision), _GATES, axis=-1)
        c = nn.sigmoid(f) * c + nn.sigmoid(i) * wnp.tanh(g)
        h = nn.sigmoid(o) * wnp.tanh(c)
        return (h, c), (h, c)

    _, (hs, cs) = lax.scan(step, (h, c), from_inputs)
    time, batch = hs.shape[:2]
    last = (lengths - 1, wnp.arange(batch))
    inside = wnp.arange(time, dtype=lengths.dtype)[:, None] < lengths
    return wnp.where(inside[..., None], hs, 0), hs[last], cs[last]


def _forward(
    x: Any, h_0: Any, c_0: Any, parts: tuple[Parts, Parts, Parts, Parts], lengths: Any, settings: tuple[Any, ...]
) -> tuple[Any, Any, Any]:
    num_layers, dropout, bidirectional, precision = settings
    if lengths.dtype != wnp.dtype("int32"):
        raise not_implemented("`seq_lengths` can only be int32.")
    if dropout != 0.0:
        raise not_implemented("Dropout between layers is not there: which numbers cuDNN drops is not known.")
    xs = x.transpose(1, 0, 2)
    states = []
    directions = 2 if bidirectional else 1
    for layer in range(num_layers):
        outputs = []
        for place in range(directions * layer, directions * (layer + 1)):
            backwards = place > directions * layer
            weights = tuple(part[place] for part in parts)
            inputs = _reversed(xs, lengths) if backwards else xs
            ys, h, c = _direction(inputs, h_0[place], c_0[place], weights, lengths, precision)
            outputs.append(_reversed(ys, lengths) if backwards else ys)
            states.append((h, c))
        xs = wnp.concatenate(outputs, axis=-1)
    h_n, c_n = (wnp.stack(each) for each in zip(*states))
    return xs.transpose(1, 0, 2), h_n, c_n


@functools.partial(
    jit, static_argnames=("input_size", "hidden_size", "num_layers", "dropout", "bidirectional", "precision")
)
def lstm(
    x: Any,
    h_0: Any,
    c_0: Any,
    weights: Any,
    seq_lengths: Any,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: Any = None,
) -> tuple[Any, Any, Any]:
    """The outputs (batch, time, size) of sequences x, and the last states h and c of each layer and direction."""
    parts = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    return _forward(x, h_0, c_0, parts, seq_lengths, (num_layers, dropout, bidirectional, precision))


@functools.partial(jit, static_argnames=("input_size", "hidden_size", "num_layers", "dropout", "bidirectional"))
def lstm_ref(
    x: Any,
    h_0: Any,
    c_0: Any,
    W_ih: Parts,
    W_hh: Parts,
    b_ih: Parts,
    b_hh: Parts,
    seq_lengths: Any,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
) -> tuple[Any, Any, Any]:
    """The same of parameters that are taken apart."""
    return _forward(x, h_0, c_0, (W_ih, W_hh, b_ih, b_hh), seq_lengths, (num_layers, dropout, bidirectional, None))
