"""What the function that vjp gives has kept: args_res and opaque_residuals."""

import gc
import weakref

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft.pullbacks import NotNeeded


def test_residuals_that_are_arguments():
    x, w = wnp.array([[1.0, 2.0]]), wnp.array([[3.0], [4.0]])
    _, pullback = weft.vjp(lambda x, w: 2 * (x @ w), x, w)
    assert np.array_equal(pullback.args_res[0], x) and np.array_equal(pullback.args_res[1], w)
    _, of_sine = weft.vjp(wnp.sin, 3.0)
    assert of_sine.args_res == [NotNeeded()]
    assert [float(r) for r in of_sine.opaque_residuals] == [pytest.approx(np.cos(3.0))]


def test_an_argument_is_let_go_and_given_again():
    x, w = wnp.array([[1.0, 2.0]]), wnp.array([[3.0], [4.0]])
    value, pullback = weft.vjp(lambda x, w: 2 * (x @ w), x, w)
    expected = pullback(wnp.ones_like(value))
    pullback.args_res[1] = None
    assert len(weft.tree.leaves(pullback)) == 1
    with pytest.raises(ValueError, match="args_res has None"):
        pullback(wnp.ones_like(value))
    with pytest.raises(ValueError, match="args_res has an array of shape"):
        pullback.args_res[1] = wnp.ones(3)
        pullback(wnp.ones_like(value))
    pullback.args_res[1] = w
    for ours, theirs in zip(pullback(wnp.ones_like(value)), expected):
        assert np.array_equal(ours, theirs)


def test_pullbacks_without_arguments_pass_through_jit():
    @weft.jit
    def forward():
        value, pullback = weft.vjp(lambda d: d["a"] * d["b"], {"a": 2.0, "b": 3.0})
        pullback.args_res = [None]
        return value, pullback

    value, pullback = forward()
    assert weft.tree.leaves(pullback) == []

    @weft.jit
    def backward(pullback, a, b):
        pullback.args_res = [{"a": a, "b": b}]
        return pullback(1.0)

    (gradient,) = backward(pullback, 2.0, 3.0)
    assert (float(value), float(gradient["a"]), float(gradient["b"])) == (6.0, 3.0, 2.0)


def test_arguments_that_no_derivative_needs_are_let_go():
    x = wnp.ones(1000)
    there = weakref.ref(x)
    _, pullback = weft.vjp(lambda x: 2 * x, x)
    del x
    gc.collect()
    assert there() is None and float(pullback(wnp.ones(1000))[0][0]) == 2
    with weft.checking_leaks(True):
        _, pullback = weft.jit(lambda x: weft.vjp(wnp.sin, x))(0.0)
    assert float(pullback(3.0)[0]) == 3
