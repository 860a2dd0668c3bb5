"""jax.example_libraries.stax: layers as pairs of functions,

init(rng, input_shape) -> (output_shape, params)
apply(params, inputs, **kwargs) -> outputs        # rng= where a layer draws random numbers
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import weft.lax as lax
import weft.nn as nn
import weft.numpy as wnp
from weft import ShapeDtype, eval_shape, random
from weft.nn.initializers import glorot_normal, normal, ones, zeros

from .._core.errors import value_error

Layer = tuple[Callable[..., Any], Callable[..., Any]]

# Names that stax has for initializers.
glorot, randn = glorot_normal, normal
_GLOROT_NORMAL, _NORMAL, _SMALL = glorot_normal(), normal(), normal(1e-6)


def Dense(out_dim: int, W_init: Any = _GLOROT_NORMAL, b_init: Any = _NORMAL) -> Layer:
    """inputs @ W + b."""

    def init(rng: Any, input_shape: Any) -> Any:
        k1, k2 = random.split(rng)
        return (*input_shape[:-1], out_dim), (W_init(k1, (input_shape[-1], out_dim)), b_init(k2, (out_dim,)))

    def apply(params: Any, inputs: Any, **_: Any) -> Any:
        W, b = params
        return wnp.dot(inputs, W) + b

    return init, apply


def _sizes(values: Sequence[int], spec: str) -> tuple[int, ...]:
    rest = iter(values)
    return tuple(next(rest) if letter not in "NC" else 1 for letter in spec)


def GeneralConv(
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = _SMALL,
) -> Layer:
    """A convolution whose dimensions are in a given order, such as ("NHWC", "HWIO", "NHWC")."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    strides = strides or (1,) * len(filter_shape)
    W_init = W_init or glorot_normal(rhs_spec.index("I"), rhs_spec.index("O"))

    def init(rng: Any, input_shape: Any) -> Any:
        spatial = iter(filter_shape)
        of = {"O": out_chan, "I": input_shape[lhs_spec.index("C")]}
        kernel = [of[c] if c in of else next(spatial) for c in rhs_spec]
        output = _shape_of(lambda x, w: convolve(x, w), input_shape, kernel)
        bias = [out_chan if c == "C" else 1 for c in out_spec]
        k1, k2 = random.split(rng)
        return output, (W_init(k1, kernel), b_init(k2, bias))

    def convolve(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=dimension_numbers)

    def apply(params: Any, inputs: Any, **_: Any) -> Any:
        W, b = params
        return convolve(inputs, W) + b

    return init, apply


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))


def GeneralConvTranspose(
    dimension_numbers: Any,
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = _SMALL,
) -> Layer:
    """A transposed convolution."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    strides = strides or (1,) * len(filter_shape)
    W_init = W_init or glorot_normal(rhs_spec.index("I"), rhs_spec.index("O"))

    def init(rng: Any, input_shape: Any) -> Any:
        spatial = iter(filter_shape)
        of = {"O": out_chan, "I": input_shape[lhs_spec.index("C")]}
        kernel = [of[c] if c in of else next(spatial) for c in rhs_spec]
        output = _shape_of(lambda x, w: convolve(x, w), input_shape, kernel)
        bias = [out_chan if c == "C" else 1 for c in out_spec]
        k1, k2 = random.split(rng)
        return output, (W_init(k1, kernel), b_init(k2, bias))

    def convolve(x: Any, w: Any) -> Any:
        return lax.conv_transpose(x, w, strides, padding, dimension_numbers=dimension_numbers)

    def apply(params: Any, inputs: Any, **_: Any) -> Any:
        W, b = params
        return convolve(inputs, W) + b

    return init, apply


Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))


def _shape_of(f: Callable[..., Any], *shapes: Sequence[int]) -> tuple[int, ...]:
    return eval_shape(f, *(ShapeDtype(tuple(s), "float32") for s in shapes)).shape


def BatchNorm(
    axis: Any = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Any = zeros,
    gamma_init: Any = ones,
) -> Layer:
    """Values without their mean over some axes, of variance 1, then scaled and moved; by the batch's own statistics."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init(rng: Any, input_shape: Any) -> Any:
        shape = tuple(n for d, n in enumerate(input_shape) if d not in axes)
        k1, k2 = random.split(rng)
        return input_shape, (beta_init(k1, shape) if center else (), gamma_init(k2, shape) if scale else ())

    def apply(params: Any, x: Any, **_: Any) -> Any:
        beta, gamma = params
        shape = tuple(1 if d in axes else n for d, n in enumerate(x.shape))
        z = nn.standardize(x, axes, epsilon=epsilon)
        if scale:
            z = z * gamma.reshape(shape)
        return z + beta.reshape(shape) if center else z

    return init, apply


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """A function of every element as a layer."""
    return (lambda rng, input_shape: (input_shape, ())), (lambda params, inputs, **_: fun(inputs, **fun_kwargs))


Tanh = elementwise(wnp.tanh)
Relu = elementwise(nn.relu)
Exp = elementwise(wnp.exp)
LogSoftmax = elementwise(nn.log_softmax, axis=-1)
Softmax = elementwise(nn.softmax, axis=-1)
Softplus = elementwise(nn.softplus)
Sigmoid = elementwise(nn.sigmoid)
Elu = elementwise(nn.elu)
LeakyRelu = elementwise(nn.leaky_relu)
Selu = elementwise(nn.selu)
Gelu = elementwise(nn.gelu)


def _pooling(reducer: Callable[..., Any], initial: float, mean: bool = False) -> Callable[..., Layer]:
    def pool(
        window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: str = "VALID", spec: Any = None
    ) -> Layer:
        places = spec or ("NHWC" if len(window_shape) == 2 else "N" + "HWD"[: len(window_shape)] + "C")
        around = lambda values: _sizes(values, places)
        window, steps = around(window_shape), around(strides or (1,) * len(window_shape))

        def apply(params: Any, inputs: Any, **_: Any) -> Any:
            out = lax.reduce_window(inputs, initial, reducer, window, steps, padding)
            if mean:
                counts = lax.reduce_window(wnp.ones(inputs.shape, inputs.dtype), 0.0, lax.add, window, steps, padding)
                out = out / counts
            return out

        def init(rng: Any, input_shape: Any) -> Any:
            return _shape_of(lambda x: apply((), x), input_shape), ()

        return init, apply

    return pool


MaxPool = _pooling(lax.max, -math.inf)
SumPool = _pooling(lax.add, 0.0)
AvgPool = _pooling(lax.add, 0.0, mean=True)


def _flatten() -> Layer:
    def init(rng: Any, input_shape: Any) -> Any:
        return (input_shape[0], functools.reduce(operator.mul, input_shape[1:], 1)), ()

    return init, lambda params, inputs, **_: wnp.reshape(inputs, (inputs.shape[0], -1))


Flatten = _flatten()
Identity: Layer = (lambda rng, input_shape: (input_shape, ())), (lambda params, inputs, **_: inputs)


def FanOut(num: int) -> Layer:
    """The input, several times."""
    return (lambda rng, input_shape: ([input_shape] * num, ())), (lambda params, inputs, **_: [inputs] * num)


FanInSum: Layer = (
    (lambda rng, input_shape: (input_shape[0], ())),
    (lambda params, inputs, **_: functools.reduce(operator.add, inputs)),
)


def FanInConcat(axis: int = -1) -> Layer:
    """The inputs one after the other along an axis."""

    def init(rng: Any, input_shape: Any) -> Any:
        d = axis % len(input_shape[0])
        first = input_shape[0]
        return (*first[:d], sum(shape[d] for shape in input_shape), *first[d + 1 :]), ()

    return init, lambda params, inputs, **_: wnp.concatenate(inputs, axis)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Elements are kept with the probability `rate`, and divided by it; mode="test": all are kept."""

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.get("rng")
        if rng is None:
            raise value_error(
                "Dropout: apply needs a random key: give rng= to the apply function, as in apply(params, x, rng=key)"
            )
        if mode != "train":
            return inputs
        return wnp.where(random.bernoulli(rng, rate, inputs.shape), inputs / rate, 0)

    return (lambda rng, input_shape: (input_shape, ())), apply


def serial(*layers: Layer) -> Layer:
    """Layers one after the other."""
    inits, applies = zip(*layers, strict=True) if layers else ((), ())

    def init(rng: Any, input_shape: Any) -> Any:
        params = []
        for one in inits:
            rng, layer_rng = random.split(rng)
            input_shape, param = one(layer_rng, input_shape)
            params.append(param)
        return input_shape, params

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.pop("rng", None)
        rngs = random.split(rng, len(applies)) if rng is not None else itertools.repeat(None)
        for one, param, key in zip(applies, params, rngs):
            inputs = one(param, inputs, rng=key, **kwargs)
        return inputs

    return init, apply


def parallel(*layers: Layer) -> Layer:
    """Layers beside each other: each has an input of its own."""
    inits, applies = zip(*layers, strict=True) if layers else ((), ())

    def init(rng: Any, input_shape: Any) -> Any:
        rngs = random.split(rng, len(inits))
        made = [one(key, shape) for one, key, shape in zip(inits, rngs, input_shape)]
        return [shape for shape, _ in made], [param for _, param in made]

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.pop("rng", None)
        rngs = random.split(rng, len(applies)) if rng is not None else itertools.repeat(None)
        return [one(p, x, rng=key, **kwargs) for one, p, x, key in zip(applies, params, inputs, rngs)]

    return init, apply


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """The layer that a function makes of the shape of its input."""

    def init(rng: Any, input_shape: Any) -> Any:
        return make_layer(input_shape)[0](rng, input_shape)

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return make_layer(inputs.shape)[1](params, inputs, **kwargs)

    return init, apply
