"""Converted Python control flow: its meaning, the IR it becomes, and where that says it came from."""

import functools
import math
import os

import numpy as np
import pytest

import weft
import weft.numpy as wnp

to_source = weft.autograph.to_source


def line_of(text):
    with open(__file__) as file:
        for number, line in enumerate(file, 1):
            if line.rstrip().endswith("# " + text):
                return f"{os.path.basename(__file__)}:{number}"
    raise AssertionError(text)


def agree(function, *argument_lists, **tolerance):
    """The converted function gives what the function gives: on plain numbers, and compiled."""
    converted, jitted = weft.autograph(function), weft.jit(function, autograph=True)
    for args in argument_lists:
        want = function(*args)
        assert repr(converted(*args)) == repr(want), (args, converted(*args), want)
        got = jitted(*args)
        assert weft.tree.structure(got) == weft.tree.structure(want), (args, got, want)
        for g, w in zip(weft.tree.leaves(got), weft.tree.leaves(want)):
            np.testing.assert_allclose(np.asarray(g), np.asarray(w), **({"rtol": 1e-5} | tolerance), err_msg=str(args))


# --- The programs of the seeds: one IR, however they are written ------------------------------------------------------


def foo1(x, y, z):
    if x < y:
        s = x + y
    else:
        s = wnp.square(y)
    return s


def foo2(s):
    for i in range(10):
        s += i
    return s


def test_foo1_is_cond():
    by_hand = [
        lambda x, y, z: weft.cond(x < y, lambda: x + y, lambda: wnp.square(y)),
        lambda x, y, z: weft.cond(x < y, lambda x, y, z: x + y, lambda x, y, z: wnp.square(y), x, y, z),
        lambda x, y, z: weft.cond(x < y, lambda y, x: x + y, lambda y, _: wnp.square(y), y, x),
    ]
    converted = weft.make_ir(weft.autograph(foo1))(1.0, 2.0, 3.0)
    for function in by_hand:
        assert converted == weft.make_ir(function)(1.0, 2.0, 3.0)
    # What runs without conversion is the branch that is taken.
    for x, taken in [(1.0, lambda x, y, z: x + y), (3.0, lambda x, y, z: wnp.square(y))]:
        assert weft.grad(foo1, argnums=(0, 1))(x, 2.0, 3.0) == weft.grad(taken, argnums=(0, 1))(x, 2.0, 3.0)
        assert foo1(x, 2.0, 3.0) == float(taken(x, 2.0, 3.0))


def test_foo2_is_fori_loop():
    converted = weft.make_ir(weft.autograph(foo2))(1.0)
    assert converted == weft.make_ir(lambda s: weft.fori_loop(0, 10, lambda i, s: s + i, s))(1.0)
    assert [e["name"] for e in converted.eqns].count("scan") == 1

    def unrolled(s):
        s = s + 0
        s = s + 1
        s = s + 2
        s = s + 3
        s = s + 4
        s = s + 5
        s = s + 6
        s = s + 7
        s = s + 8
        return s + 9

    assert weft.make_ir(foo2)(1.0) == weft.make_ir(unrolled)(1.0)


def test_while_is_while_loop():
    def gcd(a, b):
        while b != 0:
            a, b = b, a % b
        return a

    by_hand = lambda a, b: weft.while_loop(lambda c: c[1] != 0, lambda c: (c[1], c[0] % c[1]), (a, b))[0]
    assert weft.make_ir(weft.autograph(gcd))(12, 18) == weft.make_ir(by_hand)(12, 18)
    agree(gcd, (12, 18), (7, 0), (17, 5))


def test_for_over_rows_is_scan():
    def total(xs):
        t = wnp.zeros(2)
        for row in xs:
            t = t * 0.5 + row
        return t

    by_hand = lambda xs: weft.scan(lambda t, row: (t * 0.5 + row, None), wnp.zeros(2), xs)[0]
    xs = np.arange(6, dtype=np.float32).reshape(3, 2)
    assert weft.make_ir(weft.autograph(total))(xs) == weft.make_ir(by_hand)(xs)
    np.testing.assert_allclose(np.asarray(weft.jit(total, autograph=True)(xs)), [0 + 1 + 4, 0.25 + 1.5 + 5])


def test_for_over_a_traced_range():
    def powers(x, n):
        p = 1.0
        for _ in range(n):
            p = p * x
        return p

    by_hand = lambda x, n: weft.fori_loop(0, n, lambda i, p: p * x, 1.0)
    assert weft.make_ir(weft.autograph(powers))(2.0, 5) == weft.make_ir(by_hand)(2.0, 5)
    agree(powers, (2.0, 5), (3.0, 0), (2.0, -1))


# --- Meaning ----------------------------------------------------------------------------------------------------------


def test_if():
    def f(x):
        if x > 10:
            y = 1.0
        elif x > 5:
            y, x = x, 0.0
        elif x > 0:
            y = -x
        else:
            y = x * 2.0
            y += 1.0
        return x, y

    agree(f, (12.0,), (7.0,), (2.0,), (-3.0,))


def test_one_armed_if_and_nesting():
    def f(x, y):
        if x > 0:
            x = x + 1.0
            if y > 0:
                x = x * y
        return x

    agree(f, (1.0, 2.0), (1.0, -2.0), (-1.0, 2.0))


def test_loops_that_leave_early():
    def find(xs, wanted):
        for i in range(8):
            if xs[i] == wanted:
                break
        else:
            i = -1
        return i

    def skip(n):
        total = 0
        for i in range(n):
            if i % 3 == 0:
                continue
            if i > 11:
                break
            total += i
        return total

    def first_above(x, limit):
        while True:
            x = x * 2
            if x > limit:
                return x
            x = x + 1

    def both(n, m):
        count = 0
        for i in range(n):
            for j in range(m):
                if j > i:
                    break
                if count > 20:
                    return -count
                count += 1
            else:
                count += 100
        return count

    def until(n):
        k = 0
        while k < n:
            k += 1
            if k * k > 50:
                break
        else:
            k = -k
        return k

    xs = np.arange(8) * 3
    for wanted in (0, 9, 21, 22):
        assert weft.jit(find, autograph=True)(xs, wanted).item() == find(xs, wanted)
    agree(skip, (0,), (1,), (9,), (50,))
    agree(first_above, (1.0, 10.0), (3.0, 2.0), (1.5, 500.0))
    agree(both, (2, 2), (3, 7), (9, 9), (0, 3))
    agree(until, (0,), (5,), (20,))


def test_return_in_many_places():
    def f(x):
        if x > 100:
            return 1.0
        x = x + 1
        for _ in range(5):
            if x > 50:
                return x
            elif x < -50:
                x = 0.0
                break
            x = x * 3
        if x < 0:
            if x < -10:
                return x * 2
            x = -x
        return x - 1

    agree(f, (200.0,), (1.0,), (-1.1,), (-40.0,), (0.0,), (-1.01,))


def test_assignment_in_the_test_of_a_while():
    def f(x):
        while (y := x * 0.5) > 1:
            x = y
        return x, y

    agree(f, (10.0,), (1.0,))


def test_value_of_an_endless_loop():
    def f(x):
        while True:
            y = x * 3
            x = y - 1
            if y > 20:
                break
        return x, y

    agree(f, (1.0,), (30.0,))


def test_nothing_comes_back():
    def f(x, log):
        if x.shape:
            log.append(1)
            return
        log.append(2)

    log = []
    weft.autograph(f)(wnp.ones(3), log)
    weft.autograph(f)(wnp.ones(()), log)
    assert log == [1, 2]


def test_boolean_operators_are_lazy():
    calls = []

    def seen(name, value):
        weft.debug.callback(lambda: calls.append(name))
        return value

    @weft.jit(autograph=True)
    def f(a, b):
        return (seen("a", a) > 0 and seen("b", b) > 0) or not seen("c", b) > 5

    for a, b, want in [(1, 2, "ab"), (-1, 2, "ac"), (1, -2, "abc")]:
        calls.clear()
        result = f(a, b)
        assert bool(result) == ((a > 0 and b > 0) or not b > 5) and "".join(calls) == want

    def g(a, b, c):
        return 0 < a < b <= c, a and b, a or b, not a

    agree(g, (1, 2, 3), (0, 2, 3), (2, 2, 2), (5, 1, 2), (0, 0, 0))


def test_chained_comparison_evaluates_once_and_lazily():
    calls = []

    def seen(value):
        calls.append(value)
        return value

    f = weft.autograph(lambda a, b, c: seen(a) < seen(b) < seen(c))
    assert f(1, 2, 3) is True and calls == [1, 2, 3]
    calls.clear()
    assert f(3, 2, 1) is False and calls == [3, 2]


def test_conditional_expressions():
    f = lambda x, y: x if x > y else (y if y > 0 else -y) + (1 if x else 2)
    agree(f, (3.0, 1.0), (1.0, 3.0), (-5.0, -2.0), (0.0, 1.0))


def test_numbers_are_true_unless_they_are_0():
    def f(n):
        count = n if n < 0 else 0 * n
        if n:
            n = n * 10
        while count:
            n, count = n + 100, count + 1
        return n, (1 if n else 2), not n, (n and 3), (n or 5)

    agree(f, (-3,), (-1,), (0,), (1,), (7,))
    agree(lambda x: 1 if x else 2, (-0.5,), (0.0,), (-0.0,), (float("nan"),))


def test_calls_are_converted():
    def positive(x):
        if x > 0:
            return x
        return -x

    class Layer:
        def __init__(self, scale):
            self.scale = scale

        def __call__(self, x):
            return x * self.scale if x > 0 else x

        def twice(self, x):
            return self(self(x))

    layer = Layer(3.0)

    def f(x):
        g = functools.partial(lambda a, b: a if a > b else b, x)
        total = positive(x) + layer(x) + layer.twice(x) + g(1.0)
        return total + sum(map(positive, [x, -x])) + max(x, 0.5) - min(x, 0.5, -0.5) + abs(int(x)) + float(bool(x))

    agree(f, (2.5,), (-2.5,), (0.25,))
    assert float(weft.jit(lambda x: weft.grad(positive)(x), autograph=True)(-3.0)) == -1
    np.testing.assert_allclose(
        np.asarray(weft.jit(lambda xs: weft.vmap(positive)(xs), autograph=True)(np.array([-1.0, 2.0]))), [1, 2]
    )
    agree(layer.twice, (2.0,), (-2.0,))
    assert weft.jit(layer, autograph=True)(2.0).item() == 6


def test_do_not_convert():
    @weft.autograph.do_not_convert
    def plain(x):
        return x if x > 0 else -x

    with pytest.raises(weft.TracerError):
        weft.jit(lambda x: plain(x), autograph=True)(1.0)


def test_closures():
    scale = 2.0

    def f(n):
        count = 0
        shift = 1.0

        def bump(by):
            nonlocal count
            count = count + by

        i = 0
        while i < n:
            bump(i)
            if i > 2:
                shift = shift * scale
            i += 1
        show = lambda: count * shift
        return show()

    agree(f, (0,), (3,), (6,))
    scale = 3.0
    agree(f, (6,))


def test_globals_are_read_when_called():
    global _FACTOR
    _FACTOR = 2.0
    f = weft.autograph(lambda x: x * _FACTOR if x > 0 else x)
    assert f(1.0) == 2.0
    _FACTOR = 5.0
    assert f(1.0) == 5.0


def test_defaults_keywords_and_methods():
    def f(a, /, b=2.0, *rest, c=3.0, **more):
        if a > 0:
            b = b + sum(rest)
        return a * b + c + sum(more.values())

    g = weft.autograph(f)
    assert g(1.0) == f(1.0) and g(1.0, 5.0, 6.0, c=1.0, d=2.0) == f(1.0, 5.0, 6.0, c=1.0, d=2.0)
    assert g.__name__ == "f" and g.__wrapped__ is f and g.__defaults__ == f.__defaults__


class Base:
    def step(self, x):
        return x + 1


class Child(Base):
    def __init__(self):
        self.__hidden = 10.0

    def step(self, x):
        if x > 0:
            x = super().step(x) + self.__hidden
        return x


def test_super_and_private_names():
    agree(Child().step, (1.0,), (-1.0,))


def test_containers_and_attributes():
    class Box:
        pass

    def f(x, n):
        d = {"a": x, "b": [x, 1.0]}
        alias = d["b"]
        box = Box()
        box.total = 0.0
        for i in range(n):
            d["a"] = d["a"] + i
            d["b"][1] = d["b"][1] * 2.0
            box.total += d["a"]
        if x > 0:
            alias[0] = 100.0
            box.total = -box.total
        ys = []
        for k in range(3):
            ys.append(x * k)
        return d, alias, box.total, ys

    agree(f, (1.0, 3), (-1.0, 4), (2.0, 0))


def test_both_branches_may_append():
    def f(x):
        ys = [0.0]
        if x > 0:
            ys.append(x)
        else:
            ys.append(-x)
        return ys

    agree(f, (1.0,), (-2.0,))


def test_iteration():
    def f(xs, n):
        t = 0.0
        for i, (a, b) in enumerate(zip(xs, xs[::-1])):
            t = t + i * a * b
        for i in range(10, n, -3):
            t = t + i
        for i, j in zip(range(n), range(3)):
            t = t * 0.5 + i + j
        for row in reversed(xs):
            t = t + row * 0.5
        for name, value in {"p": 1.0, "q": 2.0}.items():
            t = t + value * len(name)
        return t + sum([xs[i] for i in range(3)]) + sum(x for x in xs)

    def reference(xs, n):
        t = 0.0
        for i, (a, b) in enumerate(zip(xs, xs[::-1])):
            t = t + i * a * b
        for i in range(10, n, -3):
            t = t + i
        for i, j in zip(range(n), range(3)):
            t = t * 0.5 + i + j
        for row in xs[::-1]:
            t = t + row * 0.5
        return t + 3.0 + sum(xs[:3]) + sum(xs)

    xs = np.array([1.0, 2.0, 4.0, 8.0], np.float32)
    for n in (0, 1, 5):
        np.testing.assert_allclose(float(weft.jit(f, autograph=True)(xs, n)), reference(xs, n), rtol=1e-6)
    assert [e["name"] for e in weft.make_ir(weft.autograph(f))(xs, 2).eqns].count("scan") == 2


def test_static_python_stays_python():
    def f(x, mode, layers):
        if mode == "double":
            x = x * 2
        for w in layers:
            x = x + w
        k = 0
        while k < 3:
            k += 1
        assert isinstance(k, int) and k == 3
        for i in range(len(layers)):
            x = x * layers[i]
        return x.reshape((1,) * k) if k else x

    ir = weft.make_ir(weft.autograph(f), static_argnums=(1, 2))(1.0, "double", (1.0, 2.0))
    assert not {e["name"] for e in ir.eqns} & {"cond", "while", "scan"}
    assert ir(1.0).shape == (1, 1, 1) and ir(1.0).item() == (2 + 3) * 2


def test_loops_can_be_unrolled():
    def f(x):
        for _ in weft.autograph.unroll(range(3)):
            x = x * 2
        return x

    ir = weft.make_ir(weft.autograph(f))(1.0)
    assert [e["name"] for e in ir.eqns] == ["mul"] * 3


def test_values_from_a_loop_that_surely_runs():
    def f(xs):
        for i in range(4):
            last = xs[i] * i
        return last, i

    xs = wnp.arange(4.0)
    assert [float(v) for v in weft.jit(f, autograph=True)(xs)] == [9, 3]


def test_python_numbers_that_agree_stay_numbers():
    def f(x):
        if x > 0:
            n = 3
            x = x + 1
        else:
            n = 3
        return x * wnp.ones(n).sum()

    agree(f, (1.0,), (-1.0,))


def test_print(capfd):
    @weft.jit(autograph=True)
    def f(x, n):
        print("start", n, sep=": ")
        for i in range(n):
            print(f"i = {i}")
            if x > 1:
                print("big", x, f"{x:.2f}", end="!\n")
        return x

    f(2.5, 2)
    assert capfd.readouterr().out.split("\n") == ["start: 2", "i = 0", "big 2.5 2.50!", "i = 1", "big 2.5 2.50!", ""]
    f(0.5, 1)
    assert capfd.readouterr().out.split("\n") == ["start: 1", "i = 0", ""]


def test_assert():
    @weft.jit(autograph=True)
    def f(x):
        assert x > 0, f"x must be positive, got {x} (100%, {{}})"  # checked
        assert x < 100
        return x

    assert f(1.0).item() == 1
    with pytest.raises(RuntimeError, match=r"x must be positive, got -1.* \(100%, \{\}\)") as info:
        f(-1.0)
    assert line_of("checked") in str(info.value)
    with pytest.raises(RuntimeError, match="assert x < 100"):
        f(1000.0)
    with pytest.raises(AssertionError, match="got -2"):
        weft.autograph(f.__wrapped__)(-2)


def test_vmap_grad_and_jvp():
    def f(x):
        y = x
        for _ in range(3):
            if y > 1:
                y = y * x
            else:
                y = y + x
        return y

    def slope(x, e=1e-3):
        return (f(x + e) - f(x - e)) / (2 * e)

    g = weft.autograph(f)
    for x in (0.3, 0.7, 2.0):
        for transform in (weft.grad(g), weft.jit(weft.grad(g)), lambda v: weft.jvp(g, (v,), (1.0,))[1]):
            np.testing.assert_allclose(float(transform(x)), slope(x), rtol=1e-3)
    xs = np.array([0.3, 0.7, 2.0])
    np.testing.assert_allclose(np.asarray(weft.vmap(weft.grad(g))(xs)), [slope(x) for x in xs], rtol=1e-3)


def test_newton_by_while_has_forward_derivatives():
    def root(a):
        x = a
        while abs(x * x - a) > 1e-6 * a:
            x = 0.5 * (x + a / x)
        return x

    agree(root, (2.0,), (9.0,))
    _, slope = weft.jvp(weft.autograph(root), (2.0,), (1.0,))
    np.testing.assert_allclose(float(slope), 0.5 / math.sqrt(2.0), rtol=1e-3)


# --- Places -----------------------------------------------------------------------------------------------------------


def test_equations_have_the_users_lines():
    def helper(x):
        return x * 3  # in the helper

    @weft.autograph
    def f(x):
        if x > 0:  # the test
            y = wnp.sin(x)  # taken
        else:
            y = helper(x)  # calls the helper
        while y > 1:  # the loop
            y = y / 2
        return y

    text = weft.make_ir(f)(1.0).text_with_locations()
    at = {
        line.split("#")[0].split("=")[1].split()[0]: line for line in text.splitlines() if "#" in line and "=" in line
    }
    assert line_of("the test") in at["gt"] or line_of("the loop") in at["gt"]
    assert line_of("taken") in at["sin"] and "(test_equations_have_the_users_lines.<locals>.f)" in at["sin"]
    assert line_of("in the helper") in at["mul"]
    assert line_of("the test") in text.split("= cond")[1].split("\n")[0]
    assert line_of("the loop") in text.split("while[num_carry=1]")[1].split("\n")[0]


def test_errors_have_the_users_stack():
    def helper(x):
        return x @ wnp.ones((7, 2))  # bad product

    def f(x):
        if x.sum() > 0:
            x = helper(x)  # calls it
        return x

    with pytest.raises(TypeError, match="matmul") as info:
        weft.jit(f, autograph=True)(wnp.ones(3))
    assert line_of("bad product") in str(info.value) and line_of("calls it") in str(info.value)


def test_python_errors_are_at_the_users_line():
    def f(x):
        if x > 0:
            return x.nothing  # no such attribute
        return x

    with pytest.raises(AttributeError) as info:
        weft.jit(f, autograph=True)(1.0)
    lines = [f"{os.path.basename(t.path)}:{t.lineno + 1}" for t in info.traceback]
    assert line_of("no such attribute") in lines


def test_to_source():
    text = to_source(foo1)
    assert "ag.if_(x < y" in text and "def if_body():" in text
    assert to_source(weft.autograph(foo1)) == text == to_source(weft.jit(foo1, autograph=True))
    compile(text, "converted", "exec")
