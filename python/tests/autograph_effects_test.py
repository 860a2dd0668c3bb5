"""What functions called in converted branches and loops change: attributes, containers, variables of enclosing
functions, globals. It happens on the path that is taken, as often as it is taken, or is refused by name. The oracle is
the plain Python function; its slope comes from central differences."""

import collections
import dataclasses
import functools
import heapq
import os
import time
import types

import numpy as np
import pytest

import weft
import weft.numpy as wnp

ConversionError = weft.autograph.ConversionError
StructureError = weft.autograph.StructureError


def line_of(text):
    with open(__file__) as file:
        for number, line in enumerate(file, 1):
            if line.rstrip().endswith("# " + text):
                return f"{os.path.basename(__file__)}:{number}"
    raise AssertionError(text)


class Tally:
    def __init__(self):
        self.n, self.seen = 0.0, []

    def bump(self, by=1.0):
        self.n += by

    def note(self, value):
        self.seen.append(value)


class Slotted:
    __slots__ = ("n",)

    def __init__(self):
        self.n = 0.0

    def bump(self, by):
        self.n = self.n + by


class Shared:
    total = 0.0

    @classmethod
    def bump(cls, by):
        cls.total = cls.total + by


class Doubling:
    def __init__(self):
        self._value = 1.0

    @property
    def value(self):
        return self._value

    @value.setter
    def value(self, new):
        self._value = new * 2


class Squares:
    def __init__(self, x):
        self.x = x

    @functools.cached_property
    def square(self):
        return self.x * self.x


@dataclasses.dataclass
class Point:
    a: float
    b: float = 2.0

    def scale(self, by):
        if by > 0:
            self.a = self.a * by
        else:
            self.b = self.b + by
        return self


TOTALS = {"n": 0.0}
COUNT = 0.0


def add_to_totals(by):
    TOTALS["n"] += by


def add_to_count(by):
    global COUNT
    COUNT = COUNT + by


def counter():
    n = 0.0

    def bump(by):
        nonlocal n
        n += by
        return n

    return bump


PROGRAMS = []


def program(*arguments):
    def add(function):
        PROGRAMS.extend((function, a if isinstance(a, tuple) else (a,)) for a in arguments)
        return function

    return add


@program(1.0, -1.0)
def method_in_a_branch(x):
    tally = Tally()
    if x > 0:
        tally.bump()
        tally.bump(x)
    return tally.n + x


@program(1.0, -1.5)
def list_of_an_object_in_both_branches(x):
    tally = Tally()
    if x > 0:
        tally.note(x)
    else:
        tally.note(-x)
    return tally.seen[0] + len(tally.seen)


@program((1.5, 3), (2.0, 0))
def method_in_a_loop(x, n):
    tally = Tally()
    for i in range(n):
        tally.bump(x * i)
    return tally.n + x


@program(3.25, -1.5)
def method_in_a_while(x):
    tally = Tally()
    while tally.n < x:
        tally.bump(0.5)
    return tally.n * x


@program(1.5, -1.5)
def function_that_fills_a_list_in_a_static_loop(x):
    ys = []

    def add(v):
        ys.append(v)

    for i in range(3):
        add(x * i)
    return ys[0] + ys[1] + ys[2] + len(ys)


@program(1.5, -1.5)
def iterator_in_a_static_loop(x):
    items, t = iter([1.0, 2.0, 3.0]), x
    for _ in range(3):
        t = t * next(items) + x
    return t


@program(1.5, -1.5)
def numpy_array_that_a_function_fills_in_a_static_loop(x):
    found = np.zeros(3)

    def fill():
        found[int(found.sum())] = 1.0

    for i in range(2):
        fill()
        x = x * (i + 2)
    return x + found.sum()


@program(1.5, -1.5)
def function_that_updates_its_argument(x):
    def update(d, v):
        d.update(a=v)
        d["b"] += v

    d = {"a": 0.0, "b": x}
    if x > 0:
        update(d, x)
    return d["a"] + 10 * d["b"]


@program(1.5, -1.5)
def variable_of_another_closure(x):
    bump = counter()
    if x > 0:
        bump(x)
    return bump(1.0)


@program(1.5, -1.5)
def list_extended_in_place(x):
    ys = [x]
    alias = ys
    if x > 0:
        ys += [x]
    else:
        ys += [-x]
    ys.append(5.0)
    return alias[0] + 3 * alias[1] + ys[1] + 10 * alias[2]


@program(1.5, -1.5)
def globals_and_classes(x):
    global COUNT
    TOTALS["n"], COUNT, Shared.total = 0.0, 0.0, 0.0
    if x > 0:
        add_to_totals(x)
        add_to_count(2 * x)
        Shared.bump(3 * x)
    result = TOTALS["n"] + COUNT + Shared.total
    TOTALS["n"], COUNT, Shared.total = 0.0, 0.0, 0.0
    return result


@program((1.5, 4), (-1.5, 3))
def slots(x, n):
    s = Slotted()
    for _ in range(n):
        if x > 0:
            s.bump(x)
    return s.n + x


@program(1.5, -1.5)
def property_with_a_setter(x):
    d = Doubling()
    if x > 0:
        d.value = x
    return d.value


@program(1.5, -1.5)
def cached_property(x):
    s = Squares(x)
    if x > 0:
        y = s.square
    else:
        y = -s.square
    return y + s.square


@program(1.5, -1.5)
def methods_of_a_dataclass(x):
    p = Point(1.0).scale(x)
    if x > 0:
        p.scale(x)
        p.scale(2.0)
    else:
        p.scale(3.0)
    return p.a + p.b


@program((1.5, 4), (30.0, 1))
def method_with_a_branch_in_a_while(x, n):
    p = Point(x)
    k = 0
    while p.a < 20 and k < n:
        p.scale(1.5)
        k += 1
    return p.a + k


@program((5.5, 3), (-1.5, 2))
def effects_within_effects(x, n):
    tally = Tally()

    def outer(v):
        if v > 1:
            inner(v)
        else:
            tally.bump(0.25)

    def inner(v):
        for i in range(n):
            if v > i:
                tally.bump(v)
            else:
                tally.bump(-1.0)

    while tally.n < 10:
        outer(x)
        tally.n = tally.n + 1
    return tally.n + x


@program(1.5, -1.5)
def stack(x):
    items = [x, 2.0]

    def pop():
        return items.pop()

    def push(v):
        items.append(v)

    if x > 0:
        y = pop()
        push(y * 3)
    else:
        y = pop()
        push(y + x)
    return y + items.pop() + items.pop()


@program(1.5, -1.5)
def objects_in_objects(x):
    d = {"a": {"b": [x, 1.0]}, "n": 0}

    def up(e):
        e["b"][0] = e["b"][0] * 2
        d["n"] += 1

    if x > 0:
        up(d["a"])
    d["a"]["b"][1] += x
    return d["a"]["b"][0] + d["a"]["b"][1] + d["n"]


@program(1.5, -1.5)
def containers_of_the_library(x):
    count, default, space = collections.Counter(a=1.0), collections.defaultdict(float), types.SimpleNamespace(a=1.0)

    def add():
        default["a"] += x
        space.a = space.a + x

    default["a"] = 2.0
    heap = [3, 2]
    if x > 0:
        count.update(a=x)
        add()
        heapq.heappush(heap, 0)
    else:
        heapq.heappush(heap, 5)
    return count["a"] + 10 * default["a"] + 100 * space.a + 1000 * heap[0]


@program(1.5, -1.5)
def setattr_in_a_branch(x):
    p = Point(1.0)
    if x > 0:
        setattr(p, "a", x)  # noqa: B010
    return p.a + x


@program(1.5, -1.5)
def effects_in_expressions(x):
    tally = Tally()

    def up(v):
        tally.bump(v)
        return v

    y = up(x) if x > 0 else up(2.0)
    z = x > 0 and up(1.0) > 0
    if x > 1 or up(7.0) > 0:
        y = y + 1
    return y + tally.n + (1.0 if z else 0.0)


@program(1.5, -1.5)
def list_put_in_the_place_of_another(x):
    inner = [1.0]
    d = {"b": inner}
    if x > 0:
        d["b"] = [x]
    return inner[0] * 10 + d["b"][0]


@program(1.5, -1.5)
def list_in_the_place_of_another_in_a_loop(x):
    inner = [1.0]
    d = {"b": inner}
    for i in range(3):
        if x > i:
            d["b"] = [x * i]
    return inner[0] * 10 + d["b"][0]


@program(1.5, -1.5)
def dict_that_is_copied_before_it_changes(x):
    tally = Tally()
    tally.d = {"a": 1.0}

    def copy():
        tally.d = dict(tally.d)

    def change():
        tally.d["a"] = tally.d["a"] + x

    first = tally.d
    if x > 0:
        copy()
        change()
    else:
        change()
    return tally.d["a"] + 10 * first["a"]


@program((1.5, 6), (-1.5, 2))
def model_with_state(x, n):
    class Model:
        def __init__(self):
            self.w, self.calls = 2.0, 0

        def __call__(self, v):
            self.calls += 1
            if v > 0:
                self.grow(v)
            return self.w * v

        def grow(self, v):
            self.w = self.w + v

    model, total = Model(), 0.0
    for i in range(n):
        total = total + model(x - i)
        if total > 10:
            break
    return total + model.w + model.calls


def slope(function, args, h=1e-5):
    f = lambda v: float(function(v, *args[1:]))
    return (f(args[0] + h) - f(args[0] - h)) / (2 * h)


@pytest.mark.parametrize(("function", "args"), PROGRAMS, ids=[f"{f.__name__}-{a[0]}" for f, a in PROGRAMS])
def test_effects_are_those_of_the_path_that_is_taken(function, args):
    want = function(*args)
    converted = weft.autograph(function)
    assert repr(converted(*args)) == repr(want)
    np.testing.assert_allclose(float(weft.jit(function, autograph=True)(*args)), want, rtol=1e-6)
    lanes = weft.vmap(converted)(*[np.array([a, a]) for a in args])
    np.testing.assert_allclose(np.asarray(lanes), [want, want], rtol=1e-6)
    np.testing.assert_allclose(
        float(weft.jit(weft.grad(converted))(*args)), slope(function, args), rtol=1e-4, atol=1e-5
    )


def test_another_attribute_at_every_trace_is_refused():
    tally = Tally()

    def f(x):
        def name():
            setattr(tally, f"v{time.perf_counter_ns()}", x)

        if x > 0:
            name()
        else:
            name()
        return x

    with pytest.raises(StructureError, match="changes something else each time"):
        weft.jit(f, autograph=True)(1.0)


def test_lanes_have_their_own_effects():
    xs = np.array([1.0, -1.0, 2.5])
    got = weft.vmap(weft.autograph(method_in_a_branch))(xs)
    np.testing.assert_allclose(np.asarray(got), [method_in_a_branch(x) for x in xs])


def test_a_trace_that_fails_leaves_nothing_behind():
    tally = Tally()

    def f(x):
        if x.sum() > 0:
            tally.note(x)
            x = x @ wnp.ones((7, 2))
        return x

    with pytest.raises(TypeError, match="matmul"):
        weft.jit(f, autograph=True)(wnp.ones(3))
    assert tally.seen == []


def _refused():
    """Functions of (x, n), an error and words of its message, for the line that ends in "here"."""

    def append_in_one_branch(x, n):
        tally = Tally()
        if x > 0:  # here
            tally.note(x)
        return len(tally.seen)

    def append_in_a_loop(x, n):
        tally = Tally()
        for _ in range(n):  # here
            tally.note(x)
        return len(tally.seen)

    def attribute_of_one_branch(x, n):
        tally = Tally()

        def add():
            tally.new = x

        if x > 0:  # here
            add()
        return x

    def text_in_a_branch(x, n):
        tally = Tally()
        tally.mode = "a"

        def change():
            tally.mode = "b"

        if x > 0:  # here
            change()
        return x

    def text_in_a_loop(x, n):
        tally = Tally()
        tally.mode = "a"

        def change():
            tally.mode = "b"

        while n > 0:  # here
            change()
            n = n - 1
        return x

    def numpy_array(x, n):
        buffer = np.zeros(3)

        def write():
            buffer[0] = 1.0

        if x > 0:  # here
            write()
        return x + buffer[0]

    def next_of_an_iterator(x, n):
        items = iter([1.0, 2.0])
        if x > 0:
            x = x + next(items)  # here
        return x

    def loop_over_an_iterator(x, n):
        items = iter([1.0, 2.0])
        if x > 0:
            for v in items:  # here
                x = x + v
        return x

    def generator_that_is_used_up(x, n):
        items = (v for v in [1.0, 2.0])
        if x > 0:  # here
            x = x + sum(items)
        return x

    def test_of_a_while(x, n):
        tally = Tally()

        def more():
            tally.bump()
            return tally.n < n

        while more():  # here
            x = x * 2
        return x

    by_a_call = "A function that is called there changes it"
    return {
        append_in_one_branch: (StructureError, rf"'tally.seen' is a list of \(f32\[\]\) .* {by_a_call}"),
        append_in_a_loop: (StructureError, rf"'tally.seen' is a list of \(\) on entry .* {by_a_call}"),
        attribute_of_one_branch: (StructureError, rf"'tally.new' exists after the `if` branch only.* {by_a_call}"),
        text_in_a_branch: (StructureError, rf"'tally.mode' is 'b' on one path and 'a' .* {by_a_call}"),
        text_in_a_loop: (StructureError, rf"'tally.mode' holds 'a' on entry but 'b' .* {by_a_call}"),
        numpy_array: (StructureError, "'buffer' is a NumPy array that a function called .* writes to"),
        next_of_an_iterator: (StructureError, r"next\(\) .* iterator from outside"),
        loop_over_an_iterator: (StructureError, "`for` .* iterator from outside"),
        generator_that_is_used_up: (StructureError, "'items' is an iterator from outside"),
        test_of_a_while: (ConversionError, "test changes 'tally.n'"),
    }


@pytest.mark.parametrize("function", _refused(), ids=lambda f: f.__name__)
def test_refused_effects(function):
    ((error, words),) = [v for f, v in _refused().items() if f.__name__ == function.__name__]
    first = function.__code__.co_firstlineno
    with open(__file__) as file:
        lines = file.readlines()
    (line,) = [n for n in range(first, first + 12) if lines[n - 1].rstrip().endswith("# here")][:1]
    with pytest.raises(error, match=words) as info:
        weft.jit(function, autograph=True)(2.0, 3)
    assert f"{os.path.basename(__file__)}:{line}" in str(info.value), str(info.value)
    assert weft.autograph(function)(2.0, 3) == function(2.0, 3)


def test_what_nothing_changes_costs_nothing_in_the_program():
    class Model:
        def __init__(self):
            self.w, self.layers = 2.0, [1.0, {"a": np.ones(3)}]

        def __call__(self, x):
            return x * self.w + self.layers[0]

    model = Model()

    def f(x):
        if x > 0:
            x = model(x)
        return x

    by_hand = lambda x: weft.cond(x > 0, lambda: model(x), lambda: x)
    assert weft.make_ir(weft.autograph(f))(1.0) == weft.make_ir(by_hand)(1.0)


def test_a_changed_attribute_is_a_result_of_the_branch():
    def f(x):
        tally = Tally()
        if x > 0:
            tally.bump(x)
        return tally.n

    by_hand = lambda x: weft.cond(x > 0, lambda: 0.0 + x, lambda: 0.0)
    assert weft.make_ir(weft.autograph(f))(1.0) == weft.make_ir(by_hand)(1.0)
