"""Arguments that are one of several names, given something else: an error that says so, with the user's line."""

import operator

import pytest

import weft
import weft.numpy as wnp
from weft import nn, random

X = wnp.ones((2, 3))


class Unhashable:
    __hash__ = None


# Arguments that are one of several names, given something else.
NAMED = {
    "resize": lambda name: weft.image.resize(X, (4, 4), name),
    "variance_scaling, mode": lambda name: nn.initializers.variance_scaling(1, name, "normal")(random.key(0), (3, 3)),
    "variance_scaling": lambda name: nn.initializers.variance_scaling(1, "fan_in", name)(random.key(0), (3, 3)),
    "take": lambda name: wnp.take(X, wnp.array([0]), mode=name),
    "at[].set": lambda name: X.at[0].set(1, mode=name),
    "at[].get": lambda name: X.at[0].get(mode=name),
    "quantile": lambda name: wnp.quantile(X, 0.5, method=name),
    "pad": lambda name: wnp.pad(X, 1, mode=name),
    "convolve": lambda name: wnp.convolve(X[0], X[0], mode=name),
    "signal.convolve": lambda name: weft.scipy.signal.convolve(X, X, mode=name),
    "map_coordinates": lambda name: weft.scipy.ndimage.map_coordinates(X, [[0, 1], [0, 1]], 1, mode=name),
    "searchsorted": lambda name: wnp.searchsorted(X[0], 1.0, side=name),
    "fft": lambda name: wnp.fft.fft(X, norm=name),
    "meshgrid": lambda name: wnp.meshgrid(X[0], X[0], indexing=name),
    "qr": lambda name: wnp.linalg.qr(X, mode=name),
    "jit, optimize": lambda name: weft.jit(operator.neg, optimize=name)(X),
    "jit, disable": lambda name: weft.jit(operator.neg, disable=[name])(X),
    "jit, licence": lambda name: weft.jit(operator.neg, licence=name)(X),
    "jit, backend": lambda name: weft.jit(operator.neg, backend=name)(X),
    "jit, capture": lambda name: weft.jit(operator.neg, capture=name)(X),
    "jit, static_argnames": lambda name: weft.jit(lambda x: x, static_argnames=[name])(X),
    "jit, donate_argnames": lambda name: weft.jit(lambda x: x, donate_argnames=[name])(X),
    "optimization": lambda name: weft.optimization(name).__enter__(),
    "config": lambda name: setattr(weft.config, "optimize", name),
    "checkpoint": lambda name: weft.checkpoint(operator.neg, policy=name)(X),
    "key": lambda name: random.key(0, impl=name),
}


@pytest.mark.parametrize("given", ["no_such_name", ["edge"], {"mode": 1}, Unhashable()], ids=type)
@pytest.mark.parametrize("what", NAMED)
def test_names_that_are_none(what, given):
    with pytest.raises((TypeError, ValueError, NotImplementedError)) as raised:
        NAMED[what](given)
    assert "unhashable" not in str(raised.value)
    assert here_in(str(raised.value))


def here_in(message):
    """Whether a message names a line of this file."""
    return "named_arguments_test.py:" in message
