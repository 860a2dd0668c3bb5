"""Converted programs that are long: hundreds of `elif`s, early returns and operands of `or`; the same source defined
again; and `is` of traced truths."""

import dataclasses
import itertools
import linecache
import time

import numpy as np
import pytest

import weft
import weft.numpy as wnp

_files = itertools.count()


def define(text, name="f", file=None, **space):
    """The function of a source text, as a cell of a notebook defines it."""
    file = file or f"<cell {next(_files)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space |= {"wnp": wnp, "np": np, "weft": weft}
    exec(compile(text, file, "exec"), space)
    return space[name]


def elifs(n, test="x == {i}", body="y = x * {i} + 0.5", end="y = 7.0 * x"):
    lines = ["def f(x):", "    y = -1.0"]
    for i in range(n):
        lines += [f"    {'elif' if i else 'if'} {test.format(i=i)}:", f"        {body.format(i=i)}"]
    lines += ["    else:", f"        {end}"] if end else []
    return "\n".join([*lines, "    return y", ""])


def early_returns(n):
    lines = ["def f(x):"]
    for i in range(n):
        lines += [f"    if x < {i}:", f"        return x * {i} + 0.5"]
    return "\n".join([*lines, "    return 7.0 * x", ""])


def in_a_loop(n):
    lines = ["def f(x):", "    y = 0.0 * x", f"    for k in range({n} + 3):"]
    for i in range(n):
        lines += [f"        if k + x == {i}:", f"            y = y + {i} * x", "            continue"]
    return "\n".join([*lines, "        y = y + 1.0", "    return y", ""])


def mixed(n):
    """Tests of Python's own, and variables that some branches assign."""
    lines = ["def f(x):", "    n = 3", "    y = x"]
    for i in range(n):
        test = "n == 4" if i % 7 == 3 else f"x == {i}"
        lines += [f"    {'elif' if i else 'if'} {test}:", f"        y = {i} * x", f"        z = y * {i}"]
    return "\n".join([*lines, "    else:", "        z = x * x", "    return y + z", ""])


def some_that_return(n):
    lines = ["def f(x):", "    y = x"]
    for i in range(n):
        ends = f"return x * {i} + 0.5" if i % 2 else f"y = y + {i}"
        lines += [f"    {'elif' if i else 'if'} x == {i}:", f"        {ends}"]
    return "\n".join([*lines, "    else:", "        y = y * 2", "    return y * 3", ""])


def attributes_and_items(n):
    lines = ["class C:", "    pass", "def f(x):", "    c = C()", "    c.v, xs, d = x, [x, x], {'a': x, 'b': 2 * x}"]
    for i in range(n):
        body = (f"c.v = c.v + {i}", f"d['b'] = d['a'] * {i}", f"xs[1] = x + {i}")[i % 3]
        lines += [f"    {'elif' if i else 'if'} d['a'] + c.v == {2 * i}:", f"        {body}"]
    return "\n".join([*lines, "    return c.v + d['b'] + xs[1] + xs[0]", ""])


def of_an_enclosing_function(n):
    lines = ["def f(x):", "    def g(z):", "        nonlocal x"]
    for i in range(n):
        lines += [f"        {'elif' if i else 'if'} z == {i}:", f"            x, z = x + {i}, z * 2"]
    return "\n".join([*lines, "        return z", "    r = g(x)", "    return r + x", ""])


def in_a_while(n):
    lines = ["def f(x):", "    n = 0.0", "    while True:"]
    for i in range(n):
        ends = "break" if i % 5 == 4 else "x = x + 1"
        lines += [f"        {'elif' if i else 'if'} x == {i}:", f"            {ends}"]
    return "\n".join([*lines, "        else:", "            return -n", "        n = n + 1", "    return n + x", ""])


LONG = {
    "elif": elifs,
    "elif without else": lambda n: elifs(n, end=""),
    "comparisons of more": lambda n: elifs(n, "not (x - 1 != {i} or x > 900) and 0 <= x"),
    "functions of arithmetic": lambda n: elifs(n, "wnp.abs(x) == np.float32({i})"),
    "early returns": early_returns,
    "continue": in_a_loop,
    "some that are not traced": mixed,
    "some that return": some_that_return,
    "attributes and items": attributes_and_items,
    "variables of an enclosing function": of_an_enclosing_function,
    "break and return in a while": in_a_while,
    "branches in branches": lambda n: elifs(n, body="y = x * {i} if x > 3 else x - {i}"),
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
@pytest.mark.parametrize("n", [15, 16, 120])
def test_long_chains(text, n):
    f = define(text(n))
    compiled = weft.jit(f, autograph=True)
    points = [-2.0, 0.0, 1.0, 3.0, 7.0, n / 2, n - 1.0, n, n + 1.0]
    for x in points if n < 100 else points[1::4]:
        assert compiled(x) == np.float32(f(np.float32(x))), x
    if n == 16:
        for x in points[1::4]:
            at = x + 0.25
            slope = (f(at + 0.0625) - f(at - 0.0625)) / 0.125
            assert weft.grad(compiled)(at) == pytest.approx(slope)
        got = weft.vmap(weft.autograph(f))(np.array(points, "float32"))
        assert got.tolist() == [f(np.float32(x)) for x in points]


def test_every_branch_of_a_long_chain():
    f = define(elifs(40))
    got = weft.jit(weft.vmap(weft.autograph(f)))(np.arange(45, dtype="float32"))
    assert got.tolist() == [f(float(x)) for x in range(45)]


def test_hundreds():
    for text in (elifs(300), early_returns(300)):
        f = define(text)
        assert weft.jit(f, autograph=True)(250.0) == f(250.0)


def test_a_long_chain_is_as_deep_as_its_logarithm():
    def depth(ir):
        text, deepest, now = str(ir), 0, 0
        for c in text:
            now += (c == "{") - (c == "}")
            deepest = max(deepest, now)
        return deepest

    deep = [depth(weft.make_ir(weft.autograph(define(elifs(n))))(1.0)) for n in (32, 128)]
    assert deep[1] - deep[0] <= 6


def test_tests_with_effects_run_in_turn():
    """They stay inside each other: what follows one that holds is not evaluated."""
    text = elifs(20, "test(x, {i})")
    seen = []

    def test(x, i):
        weft.debug.callback(lambda v: seen.append(i), x)
        return x == i

    f = define(text, test=test)
    assert weft.jit(f, autograph=True)(3.0) == f(3.0)
    weft.jit(f, autograph=True)(3.0)
    assert seen[-4:] == [0, 1, 2, 3]


def test_too_many_inside_each_other_say_so():
    f = define(elifs(90, "test(x, {i})"), test=lambda x, i: x == i)
    with pytest.raises(RecursionError, match=r"75 traced branches and loops of 'f' are inside each other.*weft.switch"):
        weft.jit(f, autograph=True)(3.0)
    g = define("def g(x):\n    return g(x - 1) + 1 if x > 0 else x\n", "g")
    with pytest.raises(RecursionError, match="'g' calls itself under a traced condition"):
        weft.jit(g, autograph=True)(3.0)


@pytest.mark.parametrize("word", ["or", "and"])
@pytest.mark.parametrize(
    "where", ["    return 1.0 if {} else x", "    return ({}) * 2", "    y = not ({})\n    return y"]
)
def test_many_operands(word, where):
    for n in (15, 16, 17, 150):
        parts = f" {word} ".join(f"(x {'==' if word == 'or' else '!='} {i})" for i in range(n))
        f = define(f"def f(x):\n{where.format(parts)}\n")
        for x in (0.0, 1.0, n - 1.0, n, 0.5):
            assert weft.jit(f, autograph=True)(x) == f(x)
    # The value is one of the operands, not a truth.
    parts = f" {word} ".join(f"(x - {i})" for i in range(20))
    f = define(f"def f(x):\n    return {parts}\n")
    for x in (0.0, 5.0, 30.0):
        assert weft.jit(f, autograph=True)(x) == f(x)


def test_the_same_source_again():
    """Code objects that are equal take Python long to compare, for each function inside another twice as long."""

    def again(n):
        text = elifs(n, "test(x, {i})")
        for _ in range(3):
            start = time.perf_counter()
            f = define(text, file=f"<again {n}>", test=lambda x, i: x == i)
            assert weft.jit(f, autograph=True)(2.0) == f(2.0)
            took = time.perf_counter() - start
        return took

    again(3)
    assert again(40) < 100 * again(10)


# --- `is` ---


def test_is_of_traced_truths():
    def f(a, b, known=True):
        return (
            (a is True, a is False, a is not True, a is not False, True is a, False is not a, a is None, a is not None)
            + (a is b, a is not b, a is known, known is not a, a is a, a is ..., a == "text" if False else False)
            + (a is not True, (1 if a is True else 2), 0 if a is True is not None else 3)
        )

    compiled = weft.jit(f, autograph=True)
    for a, b in itertools.product([True, False], repeat=2):
        assert [np.asarray(v).tolist() for v in compiled(a, b)] == list(f(a, b))


def test_is_in_branches_and_loops():
    def f(flag, x):
        if flag is True:
            x = x + 1
        elif flag is False:
            x = x - 1
        n = 0
        while (x < 5) is True:
            x, n = x + 1, n + 1
        return x, n

    compiled = weft.jit(f, autograph=True)
    for flag in (True, False):
        assert [v.item() for v in compiled(flag, 2.0)] == list(f(flag, 2.0))


def test_is_of_traced_values_that_are_no_truths():
    @weft.jit(autograph=True)
    def f(x, v):
        return x is True, v is True, x is v, x is x, x is None, v is not False

    assert [bool(b) for b in f(1, np.array([True, False]))] == [False, False, False, True, False, True]
    for text in ("x is 3", "3 is not x", "x is 2.0"):
        f = define(f"def f(x):\n    return 1 if {text} else 2\n")
        with pytest.raises(weft.autograph.ConversionError, match=r"<cell \d+>:2: `is` asks .* compare them with =="):
            weft.jit(f, autograph=True)(3)
        weft.autograph(f)(3)  # of Python's own numbers it is Python's answer


# --- What is looked up by identity ---


class Equal(type):
    def __eq__(cls, other):
        raise AssertionError("classes are compared")

    __hash__ = None


class Holder(metaclass=Equal):
    def __init__(self):
        self.n = 0.0

    def bump(self, x):
        self.n = self.n + x


@dataclasses.dataclass(frozen=True)
class Scaled:
    by: object  # an array, which has no hash

    def __call__(self, x):
        return x * self.by


def test_classes_and_callables_without_a_hash():
    def f(x):
        h, g, xs = Holder(), Scaled(wnp.arange(3.0)), [1.0, 2.0]
        ys = xs if x > 5 else [3.0, 4.0]
        if x > 0:
            h.bump(x)
        else:
            h.bump(-x)
        return h.n + g(x) + ys[0]

    for x in (2.0, -3.0, 7.0):
        np.testing.assert_allclose(weft.jit(f, autograph=True)(x), f(x))
