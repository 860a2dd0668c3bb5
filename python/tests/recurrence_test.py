"""S1-10: a loop as one operation, with taps, a condition to end, and truncated gradients."""

import numpy as np
import pytest

import weft
import weft.numpy as wnp


def by_hand(step, sequences, initial, length, reverse=False, until=None):
    """The same in Python: sequences and initial are (array, taps)."""
    begin = [-min(0, *taps, 0) for _, taps in sequences]
    outputs = [list(np.asarray(values)) for values, _ in initial]
    results = []
    for t in range(length):
        at = length - 1 - t if reverse else t
        xs = [np.asarray(x)[b + at + tap] for (x, taps), b in zip(sequences, begin) for tap in taps]
        earlier = [outputs[i][tap] for i, (_, taps) in enumerate(initial) for tap in taps]
        out = step(*xs, *earlier)
        for values, value in zip(outputs, out):
            values.append(value)
        results.append(out)
        if until is not None and until(*out):
            break
    results = [np.array(column) for column in zip(*results)]
    return [r[::-1] for r in results] if reverse else results


X, W = np.float32([1, 2, 3, 4, 5, 6]), np.float32([0.5, -1, 2, 1, 3, -2])


def two(x_before, x, w_next, a2, a1, b1):
    return [x_before * a1 - a2 * 0.5 + w_next, b1 * 0.5 + x]


SEQUENCES = [(X, [-1, 0]), (W, [1])]
INITIAL = [(np.float32([1, 2]), [-2, -1]), (np.float32([3]), [-1])]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [None, 3])
def test_taps_of_sequences_and_outputs(reverse, length):
    got = weft.recurrence(two, SEQUENCES, INITIAL, length=length, reverse=reverse)
    want = by_hand(two, SEQUENCES, INITIAL, length or 5, reverse)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_it_is_one_scan_and_a_function_like_any():
    f = lambda x: weft.recurrence(two, [(x, [-1, 0]), (W, [1])], INITIAL)[0].sum()
    assert [op.name for op in weft.make_ir(f)(X).walk(regions=False)].count("scan") == 1
    step, direction = 1e-2, np.float32([1, -1, 0.5, 2, 0, 1])
    slope = weft.grad(f)(X) @ direction
    np.testing.assert_allclose(slope, (f(X + step * direction) - f(X - step * direction)) / (2 * step), rtol=1e-2)
    np.testing.assert_allclose(weft.vmap(f)(np.stack([X, X * 2])), [f(X), f(X * 2)], rtol=1e-5)
    np.testing.assert_allclose(weft.jit(f)(X), f(X), rtol=1e-6)


@pytest.mark.parametrize("limit", [0.0, 5.0, 1e9])
def test_until(limit):
    step = lambda x, y: [x + y]
    until = lambda y: y > limit
    want = by_hand(step, [(X, [0])], [(np.float32([0]), [-1])], 6, until=until)[0]
    got, steps = weft.recurrence(step, [X], [np.float32(0)], until=until)
    assert int(steps) == len(want)
    np.testing.assert_allclose(got[0][: len(want)], want)
    assert not np.any(got[0][len(want) :])
    total = lambda x: weft.recurrence(step, [x], [np.float32(0)], until=until)[0][0].sum()
    expected = [max(len(want) - i, 0) for i in range(6)]
    np.testing.assert_allclose(weft.grad(total)(X), expected)
    np.testing.assert_allclose(weft.jit(weft.grad(total))(X), expected)


@pytest.mark.parametrize("truncate", [1, 2, 5, 6, 100])
@pytest.mark.parametrize("reverse", [False, True])
def test_truncated_gradients(truncate, reverse):
    def last(w, **how):
        y = weft.recurrence(lambda x, y, w: w * y + x, [X], [np.float32(1)], [w], reverse=reverse, **how)
        return y[0 if reverse else -1]

    w, order = 0.5, X[::-1] if reverse else X
    np.testing.assert_allclose(last(w, truncate_gradient=truncate), last(w), rtol=1e-6)
    state, slope = 1.0, 0.0
    for t, x in enumerate(order):
        slope = state + w * slope if t >= 6 - truncate else 0.0
        state = w * state + x
    np.testing.assert_allclose(weft.grad(lambda w: last(w, truncate_gradient=truncate))(w), slope, rtol=1e-5)
    if truncate >= 6:
        np.testing.assert_allclose(slope, weft.grad(last)(w), rtol=1e-5)


@pytest.mark.parametrize("wrap", ["grad", "jit", "vmap"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("truncate", [1, 2, 3, 6, 100])
@pytest.mark.parametrize("limit", [0.0, 2.5, 6.0, 1e9])
def test_truncated_gradients_of_a_loop_that_ends_early(limit, truncate, reverse, wrap):
    """Derivatives go back from the last step that was taken."""

    def total(w, scale):
        y, _ = weft.recurrence(
            lambda x, y, w: [w * y + x], [X], [np.float32(1)], [w], reverse=reverse, until=lambda y: y > limit, **scale
        )
        return (y[0] * wnp.arange(1.0, 7.0)).sum()

    w, order = 0.5, X[::-1] if reverse else X
    states, steps = [1.0], 0
    for x in order:
        states.append(w * states[-1] + x)
        steps += 1
        if states[-1] > limit:
            break
    weights = np.arange(1.0, 7.0)[::-1] if reverse else np.arange(1.0, 7.0)
    slope, wanted = 0.0, 0.0
    for t in range(steps):
        slope = states[t] + w * slope if t >= steps - truncate else 0.0
        wanted += weights[t] * slope
    how = {"truncate_gradient": truncate}
    np.testing.assert_allclose(total(w, how), total(w, {}), rtol=1e-6)
    g = weft.grad(lambda w: total(w, how))
    if wrap == "vmap":
        np.testing.assert_allclose(weft.vmap(g)(wnp.array([w, w])), [wanted, wanted], rtol=1e-5)
    else:
        np.testing.assert_allclose((weft.jit(g) if wrap == "jit" else g)(w), wanted, rtol=1e-5)


def test_outputs_without_earlier_values_and_constants():
    ys = weft.recurrence(lambda x, c: [x * c, x + c], [X], [None, None], [3.0])
    np.testing.assert_allclose(ys[0], X * 3)
    np.testing.assert_allclose(ys[1], X + 3)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"initial": [1.0]}, "give length="),
        ({"initial": [(X, [0])], "length": 3}, "must be negative"),
        ({"initial": [(X, [])], "length": 3}, "must be negative"),
        ({"initial": [(X[:1], [-2])], "length": 3}, "needs 2 initial values, got 1"),
        ({"initial": [(1.0, [-1])], "length": 3}, "got a single number"),
        ({"sequences": [1.0], "initial": [None]}, "sequence 0 is a single number"),
        ({"sequences": [X], "initial": [None], "length": 7}, "has elements for 6 steps, expected 7"),
        ({"sequences": [X], "initial": [None], "length": 0}, "1 or more"),
        ({"sequences": [X], "initial": [None], "truncate_gradient": 0}, "1 or more"),
        ({"sequences": [X], "initial": [None, None]}, "returns 1 outputs, but initial has 2"),
        ({"sequences": [(X, 0)], "initial": [None]}, "sequence 0 is a tuple with taps 0; expected an array, or"),
        ({"sequences": [(X, [0], 1)], "initial": [None]}, "sequence 0 is a tuple with 3 members"),
        ({"sequences": [(X, [0.5])], "initial": [None]}, "sequence 0 is a tuple with taps .0.5.; expected"),
        ({"initial": [(X, -1)], "length": 3}, "output 0 is a tuple with taps -1; expected"),
        ({"sequences": [(X, [-7])], "initial": [None]}, "leave no step"),
        ({"sequences": [X], "initial": [wnp.ones(3)]}, r"output 0 is f32\[\], its initial values are f32\[3\]"),
        ({"sequences": [X], "initial": [None], "until": lambda y: None}, "until must give one truth, got None"),
        ({"sequences": [X], "initial": [None], "until": lambda y: y < X}, r"until must give one truth, got bool\[6\]"),
    ],
)
def test_what_is_wrong(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        weft.recurrence(lambda *x: x[0], **arguments)


@pytest.mark.parametrize("given", [None, {"a": 1.0}, "a"])
def test_a_step_that_gives_no_array(given):
    with pytest.raises(TypeError, match=r"the step returns .* as output 1; expected an array"):
        weft.recurrence(lambda x: [x, given], [X], [None, None])
