"""Messages about arguments begin with the function that the user called, and name the argument and the user's line."""

import pytest

import weft
import weft.lax as lax
import weft.numpy as wnp
from weft import nn, random

X = wnp.ones((2, 3))
NAN, INF = float("nan"), float("inf")

# Functions of one axis; those that take several or None as well.
ONE_AXIS = {
    "sort": lambda axis: wnp.sort(X, axis),
    "argsort": lambda axis: wnp.argsort(X, axis),
    "lexsort": lambda axis: wnp.lexsort([X, X], axis),
    "take": lambda axis: wnp.take(X, 0, axis),
    "take_along_axis": lambda axis: wnp.take_along_axis(X, wnp.zeros((1, 1), int), axis),
    "diff": lambda axis: wnp.diff(X, axis=axis),
    "swapaxes": lambda axis: wnp.swapaxes(X, axis, 0),
    "repeat": lambda axis: wnp.repeat(X, 2, axis),
    "cumsum": lambda axis: wnp.cumsum(X, axis),
    "cummax": lambda axis: lax.cummax(X, axis),
    "argmax": lambda axis: wnp.argmax(X, axis),
    "argmin": lambda axis: wnp.argmin(X, axis),
    "concatenate": lambda axis: wnp.concatenate([X, X], axis),
    "stack": lambda axis: wnp.stack([X, X], axis),
    "fft": lambda axis: wnp.fft.fft(X, axis=axis),
    "hfft": lambda axis: wnp.fft.hfft(X, axis=axis),
    "split": lambda axis: wnp.split(X, 1, axis),
    "compress": lambda axis: wnp.compress([True], X, axis),
    "delete": lambda axis: wnp.delete(X, 0, axis),
    "unwrap": lambda axis: wnp.unwrap(X, axis=axis),
    "top_k": lambda axis: lax.top_k(X, 1, axis=axis),
    "slice_in_dim": lambda axis: lax.slice_in_dim(X, 0, 1, axis=axis),
    "permutation": lambda axis: random.permutation(random.key(0), X, axis),
    "categorical": lambda axis: random.categorical(random.key(0), X, axis),
}
SEVERAL_AXES = {
    "roll": lambda axis: wnp.roll(X, 1, axis),
    "quantile": lambda axis: wnp.quantile(X, 0.5, axis),
    "average": lambda axis: wnp.average(X, axis, X),
    "trim_zeros": lambda axis: wnp.trim_zeros(X, "fb", axis),
    "flip": lambda axis: wnp.flip(X, axis),
    "moveaxis": lambda axis: wnp.moveaxis(X, axis, 0),
    "squeeze": lambda axis: wnp.squeeze(X, axis),
    "expand_dims": lambda axis: wnp.expand_dims(X, axis),
    "sum": lambda axis: wnp.sum(X, axis),
    "max": lambda axis: wnp.max(X, axis),
    "mean": lambda axis: wnp.mean(X, axis),
}
NO_NONE = [
    "lexsort",
    "diff",
    "swapaxes",
    "cummax",
    "stack",
    "hfft",
    "split",
    "unwrap",
    "top_k",
    "slice_in_dim",
    "permutation",
    "categorical",
    "moveaxis",
]


@pytest.mark.parametrize("name", [*ONE_AXIS, *SEVERAL_AXES])
def test_an_axis_is_an_integer(name):
    for axis in ["a", 1.5, *([(0,)] if name in ONE_AXIS else [(0, "a")]), *([None] if name in NO_NONE else [])]:
        culprit = axis[1] if axis == (0, "a") else axis
        with pytest.raises(TypeError) as info:
            {**ONE_AXIS, **SEVERAL_AXES}[name](axis)
        message, *stack = str(info.value).split("\n")
        assert message == f"{name}: axis: an integer is needed, got {culprit!r}", axis
        assert "named_calls_test.py" in stack[0]
    for axis in (7, -4, 2**70):
        with pytest.raises((IndexError, ValueError), match=rf"{name}: .*{axis}"):
            {**ONE_AXIS, **SEVERAL_AXES}[name](axis)


V = wnp.arange(3.0)
KEY = random.key(0)
# The whole first line of a message: it begins with the function that was called, whatever inner one refused.
WORDS = {
    "linspace: num must not be negative, got -1": lambda: wnp.linspace(0, 1, -1),
    "logspace: linspace: num must not be negative, got -1": lambda: wnp.logspace(0, 1, -1),
    "one_hot: num_classes must not be negative, got -1": lambda: nn.one_hot(wnp.array([1]), -1),
    "one_hot: axis 7 is out of range for an array of 2 dimensions": lambda: nn.one_hot(wnp.array([1]), 3, axis=7),
    "eye: N must be an integer, got 'a'": lambda: wnp.eye("a"),
    "eye: k must be an integer, got 1.5": lambda: wnp.eye(3, k=1.5),
    "tri: M must not be negative, got -2": lambda: wnp.tri(3, -2),
    "diag: k must be an integer, got 'a'": lambda: wnp.diag(V, "a"),
    "tile: the shape (-1,) has a negative size": lambda: wnp.tile(V, -1),
    "tile: a size must be an integer, got 1.5": lambda: wnp.tile(V, 1.5),
    "repeat: repeats must not be negative, got -1": lambda: wnp.repeat(V, -1),
    "repeat: repeats must not be negative, got [1, -1, 2]": lambda: wnp.repeat(V, [1, -1, 2]),
    "repeat: repeats must be integers, got 1.5": lambda: wnp.repeat(V, 1.5),
    "split: random: the shape (-1,) has a negative size": lambda: random.split(KEY, -1),
    "normal: random: the shape (-1,) has a negative size": lambda: random.normal(KEY, -1),
    "normal: random: a size must be an integer, got 'a'": lambda: random.normal(KEY, (2, "a")),
    "random: a size must be an integer, got 'a'": lambda: nn.initializers.normal()(KEY, "a"),
    "multivariate_normal: mean of shape (3,) and cov of shape (2, 2); expected (..., n) and (..., n, n)": lambda: (
        random.multivariate_normal(KEY, V, wnp.eye(2))
    ),
    "bernoulli: lt: shapes (2,) and (3,) do not broadcast: 2 against 3 in dimension -1": lambda: random.bernoulli(
        KEY, V, (2,)
    ),
    "array: the items of a list must have one shape, got (2,) and (1,)": lambda: wnp.array([[1, 2], [3]]),
    "array: 'abc' of type 'str' has no counterpart; expected numbers": lambda: wnp.array("abc"),
    "array: could not convert string to float: 'abc'": lambda: wnp.float32("abc"),
    "array: Python integer 300 out of bounds for int8": lambda: wnp.array([300], "int8"),
    "array: the complex number 1j does not fit the dtype float32; take its .real, or a complex dtype": lambda: (
        wnp.array(1j, float)
    ),
    "full: the complex number 1j does not fit the dtype float32; take its .real, or a complex dtype": lambda: wnp.full(
        2, 1j, "float32"
    ),
    "relu: array: 'a' of type 'str' has no counterpart; expected numbers": lambda: nn.relu("a"),
    "nonzero: size must be an integer, got 'a'": lambda: wnp.nonzero(V, size="a"),
    "allclose: array: 'a' of type 'str' has no counterpart; expected numbers": lambda: wnp.allclose(V, V, rtol="a"),
    "where: x is None of type 'NoneType'; expected an array or a number": lambda: wnp.where(V > 0, None, V),
    "where: y is 'a' of type 'str'; expected an array or a number": lambda: wnp.where(V > 0, V, "a"),
    "vander: x must be a vector, got shape (2, 3)": lambda: wnp.vander(X),
    "top_k: k must be an integer, got 'a'": lambda: lax.top_k(V, "a"),
    "concatenate: expected a sequence of arrays, got None": lambda: wnp.concatenate(None),
    "stack: expected a sequence of arrays, got 3": lambda: wnp.stack(3),
    "vstack: concatenate: array 1 has shape (1, 2), array 0 (1, 3); all dimensions but axis 0 must agree": lambda: (
        wnp.vstack([V, V[:2]])
    ),
    "tensordot: axes must be an integer or a pair of axes or lists of axes, got None": lambda: wnp.tensordot(
        X, X, axes=None
    ),
    "roll: shift must be an integer, got 'a'": lambda: wnp.roll(V, "a"),
    "pad: pad_width is (1, 2, 3) for an array of shape (3,); expected a number, a pair, or a pair for each dimension": (
        lambda: wnp.pad(V, (1, 2, 3))
    ),
    "reshape: sizes are -1 or not negative, got (-2, -3)": lambda: X.reshape(-2, -3),
    "delete: index 9 is out of bounds for axis 0 with size 3": lambda: wnp.delete(V, 9),
    "arange: start, stop and step must be finite, got 0, nan and 1": lambda: wnp.arange(0, NAN),
    "arange: start, stop and step must be finite, got 0, inf and 1": lambda: wnp.arange(INF),
    f"zeros: a size must fit 64 bits, got {2**70}": lambda: wnp.zeros(2**70),
    f"sort: axis: the integer {2**70} does not fit 64 bits": lambda: wnp.sort(V, 2**70),
    "piecewise: 4 functions for 1 conditions; expected 1 or 2": lambda: wnp.piecewise(V, [V > 0], [1, 2, 3, 4]),
    "vmap: out_axes is no prefix of the structure of the values: Expected an instance of tuple, got a leaf.": lambda: (
        weft.vmap(lambda a: a, out_axes=(0, 0))(V)
    ),
    "vmap: in_axes is no prefix of the structure of the values: dictionary key mismatch; expected key(s): ['a'], got "
    "key(s): ['a', 'b'], extra key(s): ['b']; dict: {'a': a leaf, 'b': a leaf}.": lambda: weft.vmap(
        lambda a: a, in_axes=({"a": 0},)
    )({"a": V, "b": V}),
    "jacfwd: '<lambda>' has an argument i32[3]; expected real floating-point ones (holomorphic=True is for "
    "complex-differentiable functions)": lambda: weft.jacfwd(lambda x: x)(wnp.arange(3)),
    "dynamic_slice: start_indices has 2 entries; expected one for each of 1 dimensions": lambda: lax.dynamic_slice(
        V, (0, 0), (1,)
    ),
    "ix_: argument 0 must be a vector, got shape (2, 3)": lambda: wnp.ix_(X),
    "polyfit: deg must not be negative, got -1": lambda: wnp.polyfit(V, V, -1),
    "sort: kind must be one of None, 'quicksort', 'mergesort', 'heapsort', 'stable', got 'foo'": lambda: wnp.sort(
        V, kind="foo"
    ),
    "ravel: order must be one of 'C', 'F', got 'Q'": lambda: V.ravel("Q"),
    "scan: unroll must be an integer, got 'a'": lambda: lax.scan(lambda c, x: (c, x), 0.0, V, unroll="a"),
    "rfft2: axis -2 is out of range for an array of 1 dimensions": lambda: wnp.fft.rfft2(V),
    "format(): the format '.2f' is for single numbers, got f32[3]": lambda: f"{V:.2f}",
}


@pytest.mark.parametrize("words", WORDS)
def test_messages_begin_with_what_was_called(words):
    with pytest.raises((TypeError, ValueError, IndexError, OverflowError)) as info:
        WORDS[words]()
    message, *stack = str(info.value).split("\n")
    lines = {line for *_, line in WORDS[words].__code__.co_lines()}
    assert message == words
    where = next(line for line in stack if line.startswith("  at "))  # after details, if there are any
    assert any(f"named_calls_test.py:{line}" in where for line in lines), stack
