"""Functions that are made in loops and asked later, converted: they read the variables that Python has in the end,
which all steps share. Those that end with their step change nothing in the program."""

# ruff: noqa: B023, C417

import functools

import numpy as np
import pytest

import weft
import weft.numpy as wnp

PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


@program
def of_the_loops_variable(x):
    fs = []
    for i in range(3):
        fs.append(lambda: i + x)
    return [f() for f in fs]


@program
def of_a_variable_in_a_branch(x):
    fs = []
    for i in range(3):
        if i != 5:
            u = i * 2 + x
            fs.append(lambda: u)
    return [f() for f in fs]


@program
def of_a_while(x):
    fs, i = {}, 0
    while i < 3:
        k = i * 10

        def g():
            return x + k

        fs[i] = g
        i += 1
    return [fs[n]() for n in fs]


@program
def of_the_step_before(x):
    before, out = None, []
    for i in range(3):
        if before is not None:
            out.append(before())
        before = lambda: x * i
    return out


@program
def made_once(x):
    f = None
    for i in range(4):
        if i == 1:
            f = lambda: x + i
    return f()


@program
def generators(x):
    found = []
    for i in range(3):
        found.append(v + i for v in [x, x])
    return [sum(g) for g in found]


@program
def partials(x):
    fs = []
    for i in range(3):
        fs.append(functools.partial(lambda z: z + i, x))
    return [f() for f in fs]


@program
def by_another_function(x):
    fs = []
    for i in range(3):
        h = lambda: i

        def g():
            return h() + x

        fs.append(g)
    return [f() for f in fs]


@program
def nested_loops(x):
    fs = []
    for i in range(2):
        for j in range(2):
            fs.append(lambda: x + 10 * i + j)
    return [f() for f in fs]


@program
def in_displays(x):
    fs, gs = (), []
    for i in range(3):
        fs += (lambda: x + i,)
        k = [lambda: x - i, lambda: x]
        gs.append(k[0])
    return [f() for f in (*fs, *gs)]


@program
def methods_of_classes(x):
    found = []
    for i in range(3):

        class Adds:
            def to(self, z):
                return z + i

        found.append(Adds())
    return [a.to(x) for a in found]


@program
def defaults_are_of_the_step(x):
    fs = []
    for i in range(3):
        fs.append(lambda i=i: i + x)
    return [f() for f in fs]


@program
def after_a_break(x):
    fs = []
    for i in range(5):
        fs.append(lambda: x * i)
        if i == 2:
            break
    return [f() for f in fs]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_read_later(function):
    expected = function(1.5)
    for way in (weft.autograph(function), weft.jit(function, autograph=True)):
        np.testing.assert_allclose(np.array(way(1.5), np.float32), np.array(expected, np.float32))


def test_read_later_inside_of_a_traced_branch():
    def f(x):
        y = x
        if x > 0:
            fs = []
            for i in range(3):
                fs.append(lambda: y + i)
            y = fs[0]() + fs[1]()
        return y

    for x in (1.5, -1.5):
        assert weft.jit(f, autograph=True)(x) == f(x)


def test_what_ends_with_its_step_is_no_variable_of_the_loop():
    """It would be carried, and have to keep its type."""

    def f(x):
        for i in range(3):
            name = f"step {i}"
            shown = lambda: name
            x = x + len(shown()) + weft.cond(x > i, lambda: x * i, lambda: x)
            x = sum(map(lambda v: v * i, [x, x]))
        return x

    def by_hand(x):
        def step(i, x):
            x = x + 6 + weft.cond(x > i, lambda: x * i, lambda: x)
            return 0 + x * i + x * i

        return weft.fori_loop(0, 3, step, x)

    x = wnp.array(1.5)
    assert weft.jit(f, autograph=True)(x) == f(x) == by_hand(x)
    scan = [op for op in weft.make_ir(weft.autograph(f))(x).walk(regions=False) if op.primitive == "scan"]
    assert all(len(op.results) == 1 for op in scan)
