"""`match` on Python values beside branches on traced ones: every kind of pattern, against the functions in Python."""

import dataclasses

import pytest

import weft


@dataclasses.dataclass
class Pair:
    a: object
    b: object = 2


def singles(x, mode):
    if x > 0:
        y = x * 2
    else:
        y = x - 1
    match mode:
        case None:
            y = y + 1
        case True:
            y = y + 2
        case False:
            y = y + 3
        case _:
            y = y + 4
    return y


def fall(x, mode):
    # No case may be taken: y is then that of the branch.
    y = x
    if x > 0:
        y = 2 * x
    match mode:
        case 1:
            y = x + 10.0
        case 2:
            y = x + 20.0
    return y


def capture(x, mode):
    y = x
    if x > 0:
        y = 2 * x
    match mode:
        case [y]:
            return y + x
        case [1, *y] if len(y) > 3:
            return y[0] + x
        case _:
            pass
    return y


def guard(x, mode):
    n = x
    if x > 0:
        n = 3 * x
    match mode:
        case n if n is not None and n > 2:
            r = n + x
        case _:
            r = x
    return r


def kinds(x, mode):
    n = 0.0
    match mode:
        case int() as n if (lambda: n > 2)():
            r = n + x
        case {"k": n, **rest} if rest:
            r = n + x + len(rest)
        case Pair(n, b=None | 3):
            r = n * x
        case Pair(a=n):
            r = n - x
        case "a" | "b" | 3.5 | -1:
            r = x * 7
        case (1 | 2 as n, *_):
            r = x + n
        case _:
            r = x
    if x > 0:
        r = r + n if not isinstance(n, Pair) else r
    else:
        r = r - 1
    return r


def loop(x, mode):
    out = x
    for k in mode:
        match k:
            case None:
                continue
            case True:
                break
            case _:
                if x > 0:
                    out = out + k
                else:
                    out = out - k
    return out


def traced_loop(x, mode):
    y = x
    while x < 10:
        match mode:
            case None:
                x = x + 3
            case (1, z):
                x = x + z
                y = y + x
            case _:
                x = x + y * y
        if x > 5:
            y = y + 1
    return x, y


def exhausted(x, mode):
    match mode:
        case None:
            y = 1.0
        case []:
            y = 2.0
        case {}:
            y = 3.0
    if x > 0:
        y = y + x
    return y


def returns(x, mode):
    if x > 0:
        match mode:
            case None:
                return x
            case True | False:
                return -x
    return x * 3


_PROGRAMS = {
    singles: [None, True, False, 1, 0, "q"],
    fall: [1, 2, 3],
    capture: [[5.0], [1, 2, 3, 4, 5], [1, 2], None],
    guard: [None, 1, 5],
    kinds: [1, 5, {"k": 4.0}, {"k": 4.0, "l": 1}, Pair(3.0, 3), Pair(3.0, None), Pair(2.0)]
    + ["a", 3.5, -1, (1, 5), (3,), True],
    loop: [[1, None, 2, True, 5]],
    traced_loop: [None, (1, 2.0), 5],
    exhausted: [None, [], {}],
    returns: [None, True, 5],
}
_CASES = [(function, mode, x) for function, modes in _PROGRAMS.items() for mode in modes for x in (3.0, -3.0)]


@pytest.mark.parametrize("function,mode,x", _CASES, ids=lambda p: getattr(p, "__name__", repr(p)))
def test_patterns(function, mode, x):
    converted = weft.jit(lambda x: function(x, mode), autograph=True)
    expected, got = function(x, mode), converted(x)
    if isinstance(expected, (list, tuple)):
        assert [float(v) for v in got] == [float(v) for v in expected]
    else:
        assert float(got) == float(expected)
