"""jax.experimental.rnn: LSTM networks whose weights are one vector, laid out as cuDNN has them: the matrices of all
layers, (W_ih, W_hh) of each, then their biases, (b_ih, b_hh). A layer of a network in two directions is two of them.

Gates stand below each other in the order input, forget, cell, output. lstm runs here on every device, without dropout.

Source: Hochreiter and Schmidhuber, "Long short-term memory", 1997; the layout: NVIDIA's cuDNN, cudnnRNNMode_t."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import weft
import weft.numpy as wnp

from .._core.errors import not_implemented

_KINDS = (("W_ih", "W_hh"), ("b_ih", "b_hh"))


def _pieces(
    input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Iterator[tuple[str, int, tuple[int, ...]]]:
    """(kind, layer, shape) of each part of the vector, in its order."""
    directions = 2 if bidirectional else 1
    for kinds in _KINDS:
        for layer in range(num_layers * directions):
            for kind in kinds:
                width = {"W_ih": input_size if layer < directions else directions * hidden_size, "W_hh": hidden_size}
                yield kind, layer, (4 * hidden_size, width[kind]) if kind in width else (4 * hidden_size,)


def get_num_params_in_lstm(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> int:
    """How many numbers the weights are."""
    return sum(math.prod(shape) for *_, shape in _pieces(input_size, hidden_size, num_layers, bidirectional))


def init_lstm_weight(rng: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Any:
    """Random weights: uniform within the inverse root of hidden_size."""
    bound = math.sqrt(1 / hidden_size)
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    return weft.random.uniform(rng, (count,), "float32", -bound, bound)


def unpack_lstm_weights(
    weights: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> tuple[dict[int, Any], dict[int, Any], dict[int, Any], dict[int, Any]]:
    """(W_ih, W_hh, b_ih, b_hh), each by layers."""
    found: dict[str, dict[int, Any]] = {kind: {} for kinds in _KINDS for kind in kinds}
    start = 0
    for kind, layer, shape in _pieces(input_size, hidden_size, num_layers, bidirectional):
        end = start + math.prod(shape)
        found[kind][layer] = weights[start:end].reshape(shape)
        start = end
    return found["W_ih"], found["W_hh"], found["b_ih"], found["b_hh"]


def swap_lstm_gates(weights: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Any:
    """The weights with the cell's gate and the output's in each other's places."""
    weights = wnp.asarray(weights)
    parts, start = [], 0
    for *_, shape in _pieces(input_size, hidden_size, num_layers, bidirectional):
        end = start + math.prod(shape)
        gates = weights[start:end].reshape(4, -1)
        parts.append(gates[wnp.array([0, 1, 3, 2])].reshape(-1))
        start = end
    return wnp.concatenate(parts)


def _one_direction(x: Any, start: tuple[Any, Any], weights: Sequence[Any], lengths: Any, reverse: bool) -> Any:
    """((h, c) at the end, all h) of sequences [time, batch, ...] of different lengths, behind which h is 0. In reverse
    each begins at its own end."""
    w_ih, w_hh, b_ih, b_hh = weights

    def step(carry: Any, given: Any) -> Any:
        h, c = carry
        time, now = given
        gates = now @ w_ih.T + b_ih + h @ w_hh.T + b_hh
        let_in, keep, cell, let_out = wnp.split(gates, 4, axis=-1)
        c_next = weft.nn.sigmoid(keep) * c + weft.nn.sigmoid(let_in) * wnp.tanh(cell)
        h_next = weft.nn.sigmoid(let_out) * wnp.tanh(c_next)
        on = (time < lengths)[:, None]
        return (wnp.where(on, h_next, h), wnp.where(on, c_next, c)), wnp.where(on, h_next, 0)

    times = wnp.arange(x.shape[0], dtype="int32")
    return weft.lax.scan(step, start, (times, x), reverse=reverse)


def lstm_ref(
    x: Any,
    h_0: Any,
    c_0: Any,
    W_ih: Mapping[int, Any],
    W_hh: Mapping[int, Any],
    b_ih: Mapping[int, Any],
    b_hh: Mapping[int, Any],
    seq_lengths: Any,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
) -> tuple[Any, Any, Any]:
    """(y [batch, time, ...], h_n, c_n [layers, batch, hidden_size]) of x [batch, time, input_size]."""
    del input_size, hidden_size
    if seq_lengths.dtype != "int32":
        raise not_implemented(f"`seq_lengths` can only be int32, got {seq_lengths.dtype}.")
    if dropout != 0.0:
        raise not_implemented("lstm: there is no dropout, whose mask is cuDNN's; give dropout=0.0")
    directions = 2 if bidirectional else 1
    y = wnp.swapaxes(x, 0, 1)
    ends = []
    for layer in range(num_layers):
        outs = []
        for i in range(layer * directions, (layer + 1) * directions):
            weights = W_ih[i], W_hh[i], b_ih[i], b_hh[i]
            end, out = _one_direction(y, (h_0[i], c_0[i]), weights, seq_lengths, reverse=i % directions == 1)
            ends.append(end)
            outs.append(out)
        y = wnp.concatenate(outs, axis=-1)
    h_n, c_n = (wnp.stack(parts) for parts in zip(*ends))
    return wnp.swapaxes(y, 0, 1), h_n, c_n


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
    """lstm_ref of weights that are one vector."""
    del precision
    sizes = (input_size, hidden_size, num_layers)
    unpacked = unpack_lstm_weights(weights, *sizes, bidirectional)
    return lstm_ref(x, h_0, c_0, *unpacked, seq_lengths, *sizes, dropout, bidirectional)
