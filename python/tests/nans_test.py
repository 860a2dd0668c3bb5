"""weft.debug_nans: the operation that gave a NaN, with the user's line."""

import inspect

import numpy as np
import pytest

import weft
import weft.numpy as wnp


@pytest.fixture(autouse=True)
def searched():
    with weft.debug_nans():
        yield


def line_of(function, text):
    """file:line of the line of a function that holds a text."""
    lines, first = inspect.getsourcelines(function)
    (at,) = [i for i, line in enumerate(lines) if text in line]
    return f"{__file__.rsplit('/', 1)[-1]}:{first + at}"


def raised(function, *args):
    with pytest.raises(FloatingPointError) as caught:
        function(*args)
    return str(caught.value)


def loss(x):
    y = x * 2
    z = wnp.log(y)  # here
    return z.sum()


def test_compiled():
    message = raised(weft.jit(loss), np.array([1.0, -1.0], np.float32))
    assert message.startswith("'log' gives a NaN") and line_of(loss, "# here") in message


def test_one_operation_at_a_time():
    message = raised(loss, wnp.array([1.0, -1.0]))
    assert message.startswith("'log' gives a NaN") and line_of(loss, "# here") in message
    assert raised(lambda: wnp.array([[np.inf]]) @ wnp.array([[0.0]])).startswith("'contract' gives a NaN")
    assert wnp.sqrt(wnp.array(-1 + 0j)) == 1j


def test_derivatives():
    """The value is finite, its derivative 0 * inf."""

    def norm(x):
        return wnp.sqrt((x * x).sum())  # here

    for transform in (weft.grad(norm), weft.jit(weft.grad(norm))):
        message = raised(transform, wnp.zeros(3))
        assert "gives a NaN" in message and line_of(norm, "# here") in message
    assert "gives a NaN" in raised(weft.vmap(weft.grad(norm)), wnp.zeros((2, 3)))


def test_what_is_left_out_does_not_count():
    """Only results are searched: a NaN that is not used is none, as in JAX."""
    assert weft.jit(lambda x: wnp.where(x > 0, wnp.log(x), 0.0))(-1.0) == 0


def roots(c):
    return wnp.sqrt(c - 1.0)  # here


def in_scan(x):
    return weft.scan(lambda c, y: (roots(c) * y, c), x, wnp.ones(3))[0]


def in_cond(x):
    return weft.cond(x > 0, lambda x: roots(x), lambda x: x, x - 1)


def in_while(x):
    return weft.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, roots(c[1])), (0, x))[1]


IN_REGIONS = {
    "fori_loop": lambda x: weft.fori_loop(0, 3, lambda i, c: roots(c), x),
    "while_loop": in_while,
    "scan": in_scan,
    "cond": in_cond,
    "map": lambda x: weft.map(lambda y: roots(x * y - x), wnp.ones(3)).sum(),
    "scan in scan": lambda x: weft.scan(lambda c, y: (in_scan(c), y), x, wnp.ones(2))[0],
    "cond in scan": lambda x: weft.scan(lambda c, y: (in_cond(c), y), x, wnp.ones(2))[0],
    "scan in cond": lambda x: weft.cond(x > 0, in_scan, lambda x: x, x),
    "checkpoint": lambda x: weft.checkpoint(in_scan)(x),
}


@pytest.mark.parametrize("name", IN_REGIONS)
@pytest.mark.parametrize("jitted", [False, True])
def test_operations_in_loops_and_branches_are_named(name, jitted):
    f = IN_REGIONS[name]
    message = raised(weft.jit(f) if jitted else f, 1.5)
    assert message.startswith("'sqrt' gives a NaN inside '") and line_of(roots, "# here") in message


@pytest.mark.parametrize("name", [n for n in IN_REGIONS if "while" not in n])
def test_operations_in_derivatives_of_loops_are_named(name):
    """The value is finite (of the square root of 0), its derivative is not."""

    def f(x):
        return IN_REGIONS[name](x) * 0.0

    message = raised(weft.jit(weft.grad(f)), 1.5)
    assert "gives a NaN" in message and line_of(roots, "# here") in message


def test_mapped_loops_too():
    message = raised(weft.jit(weft.vmap(in_scan)), wnp.array([9.0, 1.5]))
    assert message.startswith("'sqrt' gives a NaN") and line_of(roots, "# here") in message


def test_loops_over_one_array_after_another():
    def f(x, y):
        a = weft.scan(lambda c, v: (c + v, c), x, y)[1]  # finite
        return weft.scan(lambda c, v: (c + wnp.log(v), c), x, a)[0]  # here

    message = raised(weft.jit(f), -1.0, wnp.ones(3))
    assert message.startswith("'log' gives a NaN") and line_of(f, "# here") in message


def test_printing_in_a_loop_does_not_repeat(capfd):
    def body(c, y):
        weft.debug.print("seen {}", c)
        return roots(c), y

    raised(weft.jit(lambda x: weft.scan(body, x, wnp.ones(2))[0]), 0.5)
    assert capfd.readouterr().out.count("seen") == 2


def test_nested_functions_are_looked_into():
    inner = weft.jit(lambda x: wnp.arccos(x) + 1)
    assert raised(weft.jit(lambda x: inner(x) * 2), 2.0).startswith("'acos' gives a NaN")


def test_arguments():
    message = raised(weft.jit(lambda value: value + 1), np.float32("nan"))
    assert message.startswith("'add' gives a NaN (argument 'value' of ") and "holds a NaN)" in message
    assert "argument 'x' of" in raised(weft.jit(lambda x: x), np.float32("nan"))


def test_symbolic_sizes():
    f = weft.jit(weft.make_ir(loss)(weft.ShapeDtype(("n",), "float32")))
    assert f(wnp.ones(3)) == pytest.approx(3 * np.log(2))
    assert raised(f, -wnp.ones(5)).startswith("'log' gives a NaN")


def test_donated_arguments_cannot_be_looked_at_again():
    f = weft.jit(lambda x: wnp.log(x), donate_argnums=0)
    x = wnp.full((64, 64), -1.0) * 1
    assert "donated" in raised(f, x)


def test_printing_does_not_repeat(capfd):
    def printed(x):
        weft.debug.print("seen {}", x)
        return wnp.log(x)

    raised(weft.jit(printed), -1.0)
    assert capfd.readouterr().out.count("seen") == 1


def test_off():
    with weft.debug_nans(False):
        assert np.isnan(weft.jit(loss)(-np.ones(1, np.float32)))
        assert np.isnan(loss(-wnp.ones(1)))


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize(
    ("f", "name"),
    [
        (lambda x: wnp.sqrt(x) * 0.0, "sqrt"),
        (lambda x: wnp.arcsin(x + 1) * 0.0, "asin"),
        (lambda x: wnp.sum(wnp.arccosh(x + 1) * 0.0), "acosh"),
    ],
)
def test_a_derivative_names_the_operation_whose_it_is(f, name, jitted, order):
    g = f
    for _ in range(order):
        g = weft.grad(g)
    message = raised(weft.jit(g) if jitted else g, 0.0)
    assert f"in the derivative of '{name}' gives a NaN" in message and "nans_test.py" in message


def test_what_is_no_derivative_names_itself_alone():
    assert raised(weft.grad(lambda x: wnp.sqrt(x)), -1.0).startswith("'sqrt' gives a NaN")
