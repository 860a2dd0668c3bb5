"""Everyday Python, converted: programs that a person would write, each compared with the plain Python function on its
numbers, compiled, in lanes, and with its slope by central differences."""

import contextlib
import dataclasses
import enum
import functools

import numpy as np
import pytest

import weft
import weft.numpy as wnp

PROGRAMS = []


def program(*arguments):
    def add(function):
        PROGRAMS.extend((function, a if isinstance(a, tuple) else (a,)) for a in arguments)
        return function

    return add


# --- Where a variable gets its first value ----------------------------------------------------------------------------


@program(1.0, -1.0)
def annotations(x):
    total: float = 0.0
    if x > 0:
        z: float
        z = x * 2
    else:
        z: float = x * 3
    for i in range(3):
        step: float
        step = z * i
        total += step
    return z + total


@program(1.0, 4.0)
def first_value_before_break(x):
    while True:
        x = x * 2
        if x > 10:
            r = x + 1
            break
    return r


@program((5.5, 3), (-1.5, 2))
def first_values_before_two_breaks(x, n):
    i = 0
    while True:
        i += 1
        if x * i > 10:
            result, how = x, 1
            break
        if i > n:
            result, how = -x, 2
            break
    return result * how


@program((1.0, 5), (22.0, 5), (1.0, 0))
def first_value_in_the_else_of_a_for(x, n):
    for _ in range(n):
        x = x * 2
        if x > 20:
            r = x
            break
    else:
        r = -x
    return r


@program((5.5, 3), (-1.5, 2), (7.0, 0))
def two_variables_of_a_search(x, n):
    for i in range(n):
        y = x * i
        if y > 3:
            found = y
            break
    else:
        found = -1.0
        y = 2.0 * x
    return found + y


@program(5.5, -1.5)
def text_of_every_path(x):
    for i in range(3):
        if x > 5 + i:
            r = "found"
            break
    else:
        r = "found"
    return x if r == "found" else -x


@program((5.5, 3), (-1.5, 2), (-0.5, 1))
def variables_of_every_branch_that_goes_on(x, n):
    if x > 0:
        kind = 1
        val = x
    elif x > -1:
        return 0.0 * x
    else:
        kind = 2
        val = -x
    for j in range(n):
        if val > j:
            last = val - j
        else:
            last = kind
        val = last
    return val * kind


# --- Jumps ------------------------------------------------------------------------------------------------------------


@program((1.0, 5), (22.0, 5), (1.0, 0))
def return_in_the_else_of_a_for(x, n):
    for _ in range(n):
        x = x * 2
        if x > 20:
            break
    else:
        return -x
    return x + 1


@program((1.0, 5), (22.0, 5), (1.0, 0))
def return_in_the_else_of_a_while(x, n):
    i = 0
    while i < n:
        i += 1
        x = x * 2
        if x > 20:
            break
    else:
        if x > 3:
            return -x
        x = x + 100
    return x + 1


@program((5.5, 3), (-1.5, 2), (0.5, 2))
def loop_in_a_loop_with_else_that_returns(x, n):
    for i in range(n):
        for j in range(3):
            if i * j > x:
                break
        else:
            if x > i + 3:
                return x * 10
            continue
        x = x + 1
    else:
        return -x


@program((1.0, 4), (31.0, 4))
def break_inside_and_continue_outside(x, n):
    t = 0.0
    for i in range(n):
        if i == 1:
            continue
        for j in range(5):
            if j * x > 10:
                break
            t = t + j * x
        else:
            t = t + 100
            continue
        t = t - 1
    return t


@program(1.0, 41.0)
def return_from_two_loops(x):
    for i in range(4):
        for j in range(4):
            if i * j * x > 5:
                return x * i + j
    return -x


@program(1.5, -1.5)
def while_with_else(x):
    n = 0
    while n < 5:
        if x * n > 4:
            break
        n += 1
    else:
        x = x * 10
    return x + n


@program(1.0, -1.0)
def finally_runs(x):
    y = 0.0
    try:
        if x > 0:
            y = x * 2
        else:
            y = x
    finally:
        y = y + 1
    return y


@program(1.0, -1.0)
def return_inside_finally_and_with(x):
    with contextlib.suppress(ValueError):
        try:
            if x > 0:
                return x * 3
            x = x - 1
        finally:
            z = 1
        if x < -1.5:
            x = x * 7
    return x + z


# --- Membership -------------------------------------------------------------------------------------------------------


@program(1, 2, 5)
def in_a_tuple(n):
    if n in (1, 2):
        return 1.0
    return 0.0


@program(1, 2, 5, -3)
def in_a_list_of_traced_values(n):
    return n if n not in [n + 1, 2, 2 - n, -n - 6] else n * 3


@program(3, 5, 1, 0)
def in_everything_else(n):
    names = {1: "a", 3: "b"}
    r = 0
    if n in names:
        r += 1
    if n in {5, 7}:
        r += 10
    if n not in names.keys():  # noqa: SIM118
        r += 100
    if 1 < n in (3, 4):
        r += 1000
    if n in range(n):
        r += 10000
    if n - 1 in range(0, n, 2):
        r += 100000
    if n in range(9, 0, -4):
        r += 1000000
    if "a" in names.values():
        r += 5
    if n in []:  # noqa: RUF060
        r += 7
    if None in (n, None):
        r += 3
    if n in np.array([1, 3]):
        r += 11
    return r * 1.0


@program(1.5, 1.0, -3.0)
def of_a_users_container(x):
    class Interval:
        def __init__(self, low, high):
            self.low, self.high = low, high

        def __contains__(self, v):
            if v < self.low:
                return False
            return v < self.high

    return x * 2 if x in Interval(0.0, x + 1) else -x


# --- max, min, sum, any, all, sorted ----------------------------------------------------------------------------------


@program(1.0, -2.0)
def extremes_of_generators(x):
    return max(x * i for i in range(3)) + 10 * min(x - i for i in range(3))


@program(1.5, -2.5)
def extremes_by_a_key(x):
    def size(v):
        return v if v > 0 else -v

    pair = max((x, 2 * x), (1.0, 5.0), key=lambda p: p[0])
    return max([x, -2.0, 3 * x / 4], key=size) + min(x, 2.0, key=lambda v: -v) + pair[1]


@program(1.5, -1.5)
def extremes_of_plain_values(x):
    smallest = min({1.0: x, 2.0: 3.0})
    return (
        max([x], default=3.0) + max([], default=3.0) + smallest + max(v for v in (1, 2)) + ord(max("abc")) + min(x, 1)
    )


@program(1.0, -2.0)
def sums(x):
    return sum(x * i for i in range(3)) + sum([x, x], 5.0) + sum(v if v > 0 else 0.0 for v in [x, -x, 2 * x])


@program(1.5, -2.0)
def any_and_all(x):
    some = any(x > i for i in range(3)) and not all(x > i for i in range(3))
    return (
        x * (1.0 if some else 2.0)
        + (1.0 if all(v < 2 for v in (x, 1.0)) else 0.0)
        + (2.0 if any(v in (1.5, 2) for v in (x,)) else 0)
    )


@program(1.5, -1.5, 0.5)
def sorting(x):
    a = [x, 1.0, 0.0]
    a.sort(reverse=True)
    by_key = sorted([(1.0, x), (2.0, -x)], key=lambda p: p[1])
    return sorted([x, 1.0, 0.0])[0] * 100 + a[0] * 10 + by_key[0][0] + sorted([3, 1, 2])[0]


def test_sorting_keeps_the_order_of_equals():
    def f(x):
        pairs = [(x, 1), (x - 1, 2), (x, 3), (x - 1, 4)]
        up = [p[1] for p in sorted(pairs, key=lambda p: p[0])]
        down = [p[1] for p in sorted(pairs, key=lambda p: p[0], reverse=True)]
        return up, down

    assert f(1.0) == ([2, 4, 1, 3], [1, 3, 2, 4])
    got = weft.jit(f, autograph=True)(1.0)
    assert [[int(v) for v in row] for row in got] == [[2, 4, 1, 3], [1, 3, 2, 4]]


# --- Conditions -------------------------------------------------------------------------------------------------------


@program(0.5, 3.0, -1.0)
def chained(x):
    return 1.0 * x if 0 < x < 1 < 2 else 3 * x


@program(1.5, -1.5, 3.0)
def conditions_of_numbers(x):
    y = 0.0
    if (x and x > 1) or y:
        y = x
    while y and y < 10:
        y = y * 2
    assert x or y
    return y + (x if not (x and y) else 3.0)


@program(1.5, -1.5)
def conditions_with_names(x):
    ok = x > 0 and x < 2
    bad = not ok or x == 7
    return x if ok and not bad else -x


@program(3.0, -3.0)
def walrus(x):
    if (y := x * 2) > 1:
        return y
    return y - 1


@program(1.5, -1.5, 0.5)
def conditional_in_conditional(x):
    return 1.0 * x if x > 1 else 2.0 * x if x > 0 else 3.0 * x


# --- Assignments ------------------------------------------------------------------------------------------------------


@program(3.0, -3.0)
def starred(x):
    a, *b, c = (x, 1.0, 2.0, x * 2)
    if x > 0:
        a, *b = [c, *b]
    else:
        a, *b = [x, b[0], b[1]]
    return a + sum(b) + c


@program(1.5, -1.5)
def several_targets(x):
    a = b = x
    if a > 0:
        a = b = a * 2
    (c, d), e = (a, b), x
    if c > d or e > 0:
        c, d = d, c + 1
    return c * 10 + d


@program(1.5, -1.5)
def slices_of_lists(x):
    a = [x, x * 2, x * 3]
    if x > 0:
        a[1:] = [1.0, 2.0]
    else:
        a[:2] = [3.0, 4.0]
    return a[0] + a[1] * 10 + a[2] * 100


@program(1.5, -1.5)
def deleted_before(x):
    y = x * 2
    z = y + 1
    del y
    if z > 0:
        return z
    return -z


@program(1.5, -1.5)
def none_first(x):
    y = None
    if x > 0:
        y = x
    else:
        y = -x
    return y


# --- Functions --------------------------------------------------------------------------------------------------------


def with_defaults(x, s=2.0, *a, k=1.0, **more):
    if x > 0:
        return x * s * k + sum(a) + sum(more.values())
    return x - s


@program(1.0, -1.0)
def calls_with_defaults(x):
    return with_defaults(x) + with_defaults(x, 3.0, 4.0, k=x, z=x)


@program(1.0, -1.0)
def closures(x):
    k = 0.0

    def g(v):
        nonlocal k
        if v > 0:
            k = k + v
        else:
            k = k - 2 * v
        return k

    return g(x) + g(2 * x) + k


def away_from_zero(f):
    @functools.wraps(f)
    def wrapped(*a, **k):
        r = f(*a, **k)
        return r + 1 if r > 0 else r - 1

    return wrapped


@away_from_zero
def decorated(x):
    return x * 2 if x > 1 else x


@program(0.5, -1.0, 4.0)
def decorators(x):
    return decorated(x)


@program(5.5, -1.5)
def lambdas(x):
    fs = [lambda v, k=k: v + k if v > 0 else v - k for k in range(3)]
    return sum(f(x) for f in fs) + (lambda *a: a[0])(x)


@program(5.5, -1.5)
def functions_of_functions(x):
    largest = functools.reduce(lambda a, b: a if a > b else b, [x, 1.0, 2.0])
    return sum(map(lambda v: v if v > 0 else 0.0, [x, -x])) + largest + sum(filter(None, [1.0, 2.0]))  # noqa: C417


@program(1.0, -1.0)
def generators(x):
    def multiples(n):
        for i in range(n):
            yield x * i

    t = 0.0
    for v in multiples(3):
        if v > 0:
            t = t + v
        else:
            t = t - 1
    return t


@dataclasses.dataclass
class Point:
    a: float
    b: float = 2.0

    @staticmethod
    def size(x):
        return x if x > 0 else -x

    @classmethod
    def make(cls, x):
        return cls(x, 3.0 if x > 0 else 4.0)

    def __add__(self, other):
        return Point(self.a + other.a, self.b + other.b)


@program(1.5, -1.5)
def classes(x):
    p, q = Point(x), Point.make(x)
    return (p + q).a + q.b + Point.size(x)


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@program(1.0, -1.0)
def match_inside_a_static_loop(x):
    r = 0.0
    for c in Color:
        match c:
            case Color.RED:
                if x > 0:
                    r = r + x
            case Color.BLUE:
                r = r * 2 + 1
    return r


@program(1.5, -1.5)
def comprehensions(x):
    d = {k: (x * k if x > 0 else -x) for k in range(3)}
    return sum(d.values()) + sum({i for i in range(3)})  # noqa: C416


# --- Loops and algorithms ---------------------------------------------------------------------------------------------


@program(1.5, -1.5)
def enumerate_zip_reversed(x):
    t = 0.0
    for i, v in enumerate([x, 2 * x, 3 * x]):
        if v > 2:
            t = t + i * v
    for a, b in zip(range(3), reversed(range(3))):
        t = t + a * b * x
    for i, a in enumerate(np.arange(3.0) * 2, start=1):
        t = t + i * a * x
    return t


@program((0, 5, 2), (5, 0, -2), (0, 5, -1), (5, 0, 2), (1, 8, 3), (8, 1, -3), (4, 4, 1))
def range_with_a_traced_step(a, b, s):
    t = 0
    for i in range(a, b, s):
        t = t * 10 + i
    if 4 in range(a, b, s):
        t = t + 100000
    return t * 1.0


@program(3.5, -1.5, 1.0)
def bubble_sort(x):
    a = [x, 2.0, 0.5]
    for i in range(3):
        for j in range(2 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return a[0] * 100 + a[1] * 10 + a[2]


@program(2.0, 50.0)
def newton(a):
    x = a
    for _ in range(100):
        new = 0.5 * (x + a / x)
        if abs(new - x) < 1e-4:
            break
        x = new
    else:
        return -1.0
    return new


@program(7, 13, 12, 1)
def is_prime(n):
    if n < 2:
        return False
    i = 2
    while i * i <= n:
        if n % i == 0:
            return False
        i += 1
    return True


@program((2.0, 10), (3.0, 0))
def power(x, n):
    r = 1.0
    while n > 0:
        if n & 1:
            r = r * x
        x = x * x
        n >>= 1
    return r


@program(2.0, 5.0)
def fizz_buzz(x):
    r = 0.0
    for i in range(1, 16):
        if i % 15 == 0:
            r = r + x
        elif i % 5 == 0:
            r = r * x / 2
        elif i % 3 == 0:
            r = r - x
        else:
            r = r + i
    return r


def test_algorithms_on_arrays():
    def position_of_largest(a):
        best = 0
        for i in range(len(a)):
            if a[i] > a[best]:
                best = i
        return best

    def search(a, v):
        low, high = 0, len(a)
        while low < high:
            middle = (low + high) // 2
            if a[middle] < v:
                low = middle + 1
            else:
                high = middle
        return low

    a = np.array([1.0, 3.0, 2.0])
    assert int(weft.jit(position_of_largest, autograph=True)(a)) == 1
    a = np.arange(8.0) * 2
    for v in (-1.0, 0.0, 5.0, 14.0, 20.0):
        assert int(weft.jit(search, autograph=True)(a, v)) == np.searchsorted(a, v)


# --- The comparison ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("function", "args"), PROGRAMS, ids=[f"{f.__name__}-{a}" for f, a in PROGRAMS])
def test_program(function, args):
    want = function(*args)
    converted = weft.autograph(function)
    assert repr(converted(*args)) == repr(want)
    np.testing.assert_allclose(float(weft.jit(function, autograph=True)(*args)), want, rtol=1e-5)
    lanes = weft.vmap(converted)(*[np.array([a, a]) for a in args])
    np.testing.assert_allclose(np.asarray(lanes), [want, want], rtol=1e-6)
    if isinstance(args[0], float):
        f = lambda v: float(function(v, *args[1:]))
        h = 1e-5
        slope = (f(args[0] + h) - f(args[0] - h)) / (2 * h)
        got = weft.jit(weft.grad(converted))(*args)
        np.testing.assert_allclose(float(got), slope, rtol=1e-4, atol=1e-4)


# --- Messages and mistakes --------------------------------------------------------------------------------------------


def _messages():
    """Functions of -1.5 and 3, and what Python says."""

    def of_a_tuple(x, i):
        assert x > 0, ("bad", i, x)

    def of_an_f_string(x, i):
        assert x > 0, f"bad {x:.2f} {x!r} {(x, i)} {'q'!r} {{}} 100%"

    def of_a_sum(x, i):
        assert x > 0, "bad " + f"{x}" + " at " + str(x)

    def of_percent(x, i):
        assert x > 0, "%r is bad, %5.1f%% of %s" % (x, x, "all")  # noqa: UP031

    def of_format(x, i):
        assert x > 0, f"{x} is bad {x:>6.2f} {x}"

    def of_a_number(x, i):
        assert x > 0, x

    def of_a_dict(x, i):
        assert x > 0, {"x": x, "more": [x, (x,)]}

    def of_an_exception(x, i):
        assert x > 0, ValueError(f"bad {x}")

    def made_before(x, i):
        message = ", ".join([f"early {x}", "y"])
        assert x > 0, message

    return {
        of_a_tuple: "('bad', 3, -1.5)",
        of_an_f_string: "bad -1.50 -1.5 (-1.5, 3) 'q' {} 100%",
        of_a_sum: "bad -1.5 at -1.5",
        of_percent: "-1.5 is bad,  -1.5% of all",
        of_format: "-1.5 is bad  -1.50 -1.5",
        of_a_number: "-1.5",
        of_a_dict: "{'x': -1.5, 'more': [-1.5, (-1.5,)]}",
        of_an_exception: "bad -1.5",
        made_before: "early -1.5, y",
    }


@pytest.mark.parametrize("function", _messages(), ids=lambda f: f.__name__)
def test_messages_of_asserts(function):
    (want,) = [m for f, m in _messages().items() if f.__name__ == function.__name__]
    with pytest.raises(AssertionError) as plain:  # pytest adds a line to Python's message
        function(-1.5, 3)
    assert want in str(plain.value)
    with pytest.raises(AssertionError) as converted:
        weft.autograph(function)(-1.5, 3)
    assert str(converted.value) == want
    with pytest.raises(RuntimeError) as compiled:
        weft.jit(lambda x: weft.autograph(function)(x, 3))(-1.5)
    assert str(compiled.value).startswith(want + " ("), str(compiled.value)


def test_texts_that_are_printed(capfd):
    def f(x, n):
        early = f"m {x} {x:.3f}"
        print(early)
        print("a %s %d %.2f%%" % (x, 3, x))  # noqa: UP031
        print(f"b {x} {x:>8.2f}")
        print(str(x) + "!", ", ".join([f"{x}", "q", str(n)]))
        print((x, 1), [f"z{x}"], {"a": n})
        for i in range(n):
            print(f"{i}: " + f"{x * 2:.1f}")

    f(1.5, 2)
    want = capfd.readouterr().out
    weft.jit(f, autograph=True)(1.5, 2)
    assert capfd.readouterr().out == want


def test_a_traced_step_of_zero_is_an_error_when_the_program_runs():
    @weft.jit(autograph=True)
    def f(n, step):
        t = 0
        for i in range(0, n, step):
            t = t + i
        return t

    assert int(f(5, 2)) == 6
    with pytest.raises(RuntimeError, match="range: step must not be zero") as info:
        f(5, 0)
    assert "autograph_programs_test.py" in str(info.value)


def test_membership_and_extremes_that_are_refused():
    with pytest.raises(ValueError, match="truth of an array with more than one element"):
        weft.jit(lambda x: 1.0 if x in (1.0, 2.0) else 2.0, autograph=True)(wnp.ones(3))
    with pytest.raises(weft.autograph.ConversionError, match=r"max\(\) chooses between 'b' and 'a'"):
        weft.jit(lambda x: max(["a", "b"], key=lambda s: x if s == "a" else -x), autograph=True)(1.0)
    with pytest.raises(weft.autograph.ConversionError, match=r"sorted\(\) by traced values"):
        weft.jit(lambda x: sorted(["a", "b"], key=lambda s: x if s == "a" else -x), autograph=True)(1.0)


def test_variables_of_paths_that_python_may_take_are_still_refused():
    def may_not_run(x, n):
        for i in range(n):
            if x > i:
                y = x
                break
        return y

    with pytest.raises(UnboundLocalError, match="'y' is read"):
        weft.jit(may_not_run, autograph=True)(1.0, 3)
