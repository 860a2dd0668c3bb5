"""Results of vmap that do not depend on what is mapped, through every operation that calls a function: they can have no
mapped axis (out_axes=None), and their derivatives are those of the function of one example. The oracles are the
functions called without vmap, and sums over the examples."""

import functools

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import lax

X = wnp.arange(4.0) + 1
Y = wnp.arange(3.0) + 1


def plain(x, y):
    """What depends on y alone, and what depends on both."""
    return wnp.sum(wnp.sin(y)), x * wnp.cos(y)


def jvp_rule(primals, tangents):
    return weft.jvp(plain, primals, tangents)


with_jvp = weft.custom_jvp(plain)
with_jvp.defjvp(jvp_rule)

calls_itself = weft.custom_jvp(plain)
calls_itself.defjvp(lambda p, t: (calls_itself(*p), weft.jvp(plain, p, t)[1]))


def back(residuals, cts):
    return weft.vjp(plain, *residuals)[1](cts)


with_vjp = weft.custom_vjp(plain)
with_vjp.defvjp(lambda x, y: (with_vjp(x, y), (x, y)), back)


@weft.custom_batching.custom_vmap
def with_vmap(x, y):
    return plain(x, y)


@with_vmap.def_vmap
def with_vmap_rule(size, mapped, x, y):
    value, rest = plain(x[:, None] if mapped[0] else x, y)
    return (value, rest), (mapped[1], True)


def branches(x, y):
    other = lambda x, y: (wnp.sum(y), x * y)
    return lax.cond(y[0] > 0, plain, other, x, y)


def scanned(x, y):
    def body(carry, row):
        s, t = carry
        return (s + row, t * x), (s, t)

    (s, t), (ss, ts) = lax.scan(body, (0.0, x), y)
    return s + wnp.sum(ss), t + wnp.sum(ts)


def looped(x, y):
    go = lambda c: c[1] < 3
    s, _, t = lax.while_loop(go, lambda c: (c[0] + wnp.sum(y), c[1] + 1, c[2] * x), (0.0, 0, x))
    return s, t


def solved(x, y):
    solve = lambda matvec, b: (b[0] / 2, b[1] / 3)
    return lax.custom_linear_solve(lambda v: (v[0] * 2, v[1] * 3), (y, x * y), solve, symmetric=True)


FUNCTIONS = {
    "custom_jvp": with_jvp,
    "custom_jvp that calls itself": calls_itself,
    "custom_vjp": with_vjp,
    "custom_vmap": with_vmap,
    "jit": weft.jit(plain),
    "jit of custom_vjp": weft.jit(lambda x, y: with_vjp(x, y)),
    "cond": branches,
    "scan": scanned,
    "while": looped,
    "checkpoint": weft.checkpoint(plain),
    "custom_linear_solve": solved,
    "scan of custom_jvp": lambda x, y: lax.scan(lambda c, row: (c + with_jvp(x, y)[0], x), 0.0, y),
    "cond of custom_vjp": lambda x, y: lax.cond(y[0] > 0, with_vjp, plain, x, y),
}


def mapped(f, **options):
    return weft.vmap(f, in_axes=(0, None), out_axes=(None, 0), **options)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name, compiled):
    f = FUNCTIONS[name]
    g = weft.jit(mapped(f)) if compiled else mapped(f)
    value, rest = g(X, Y)
    np.testing.assert_allclose(value, f(X[0], Y)[0], 1e-6)
    np.testing.assert_allclose(rest, np.stack([f(x, Y)[1] for x in X]), 1e-6)
    # What is made of it is not mapped either.
    doubled = mapped(lambda x, y: (lambda out: (wnp.exp(-out[0]) * 2, out[1]))(f(x, y)))(X, Y)[0]
    np.testing.assert_allclose(doubled, np.exp(-np.asarray(value)) * 2, 1e-6)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in ("while", "custom_vmap")])
def test_gradients(name):
    """A result that all examples share has one cotangent."""
    f = FUNCTIONS[name]

    def total(x, y):
        value, rest = mapped(f)(x, y)
        return 5 * wnp.sum(value) + wnp.sum(rest)

    def expected(x, y):
        return 5 * wnp.sum(f(x[0], y)[0]) + sum(wnp.sum(f(one, y)[1]) for one in x)

    for got, want in zip(weft.grad(total, (0, 1))(X, Y), weft.grad(expected, (0, 1))(X, Y)):
        np.testing.assert_allclose(got, want, 1e-5, 1e-6)


@pytest.mark.parametrize("name", ["custom_jvp", "custom_jvp that calls itself", "custom_vjp", "custom_linear_solve"])
def test_forward_mode_and_second_derivatives(name):
    f = FUNCTIONS[name]
    moved = weft.jvp(lambda y: mapped(f)(X, y)[0], (Y,), (wnp.ones(3),))[1]
    np.testing.assert_allclose(moved, weft.jvp(lambda y: f(X[0], y)[0], (Y,), (wnp.ones(3),))[1], 1e-6)
    # A tangent inside of the mapped function.
    inside = mapped(lambda x, y: (weft.jvp(lambda y: f(x, y)[0], (y,), (wnp.ones(3),))[1], x))(X, Y)[0]
    np.testing.assert_allclose(inside, moved, 1e-6)
    hessian = weft.hessian(lambda y: wnp.sum(mapped(f)(X, y)[0] ** 2))(Y)
    np.testing.assert_allclose(hessian, weft.hessian(lambda y: wnp.sum(plain_or(f)(X[0], y)[0] ** 2))(Y), 1e-5, 1e-6)


def plain_or(f):
    return plain if f in (with_jvp, calls_itself, with_vjp) else f


@pytest.mark.parametrize("f", [with_jvp, with_vjp])
def test_two_axes(f):
    g = weft.vmap(mapped(f), in_axes=(None, 0), out_axes=(0, 1))
    ys = wnp.stack([Y, 2 * Y])
    value, rest = g(X, ys)
    np.testing.assert_allclose(value, [f(X[0], y)[0] for y in ys], 1e-6)
    np.testing.assert_allclose(rest, np.stack([[f(x, y)[1] for y in ys] for x in X]), 1e-6)
    slopes = weft.grad(lambda ys: wnp.sum(g(X, ys)[0] * wnp.array([1.0, 3.0])))(ys)
    np.testing.assert_allclose(slopes, np.cos(ys) * np.array([[1.0], [3.0]]), 1e-5)


@weft.custom_jvp
def replaced(value, surrogate):
    """The value, with the derivative of the surrogate."""
    return value * 1


replaced.defjvp(lambda p, t: (replaced(*p), t[1]))

replaced_back = weft.custom_vjp(lambda value, surrogate: value * 1)
replaced_back.defvjp(lambda v, s: (replaced_back(v, s), None), lambda _, ct: (0 * ct, ct))


@pytest.mark.parametrize("f", [replaced, replaced_back])
def test_a_derivative_that_depends_on_what_is_mapped_makes_the_result_mapped(f):
    """The value is the same for all examples, its derivative is not."""
    weights = wnp.arange(4.0)
    slopes = weft.grad(lambda s: wnp.sum(weights * weft.vmap(f, in_axes=(None, 0))(2.0, s)))(X)
    np.testing.assert_allclose(slopes, weights)
    with pytest.raises(ValueError, match="depends on a mapped argument"):
        weft.vmap(f, in_axes=(None, 0), out_axes=None)(2.0, X)


def test_a_rule_that_fails_says_nothing():
    """There is no derivative then, and the value needs none."""
    broken = weft.custom_jvp(plain)
    broken.defjvp(lambda p, t: 1 / 0)
    np.testing.assert_allclose(mapped(broken)(X, Y)[0], plain(X[0], Y)[0], 1e-6)
    with pytest.raises(ZeroDivisionError):
        weft.grad(lambda y: mapped(broken)(X, y)[0])(Y)


def test_a_backward_rule_that_is_not_linear():
    clipped = weft.custom_vjp(plain)
    clipped.defvjp(lambda x, y: (plain(x, y), (x, y)), lambda r, ct: tuple(wnp.clip(g, -1, 1) for g in back(r, ct)))
    value, _ = weft.vmap(clipped, in_axes=(0, None))(X, Y)
    np.testing.assert_allclose(value, np.full(4, plain(X[0], Y)[0]), 1e-6)
    with pytest.raises(ValueError, match="depends on a mapped argument"):
        mapped(clipped)(X, Y)


def test_rules_are_run_for_functions_whose_results_are_not_mapped_alone():
    runs = []

    def rule(primals, tangents):
        runs.append(1)
        return weft.jvp(plain, primals, tangents)

    counted = weft.custom_jvp(lambda x, y: (x * wnp.sum(y), x * y))
    counted.defjvp(rule)
    weft.vmap(counted, in_axes=(0, None))(X, Y)
    assert not runs


def test_sums_over_the_mapped_axis():
    """psum depends on what is mapped, its result does not."""

    def summed(x, y):
        return lax.psum(x, "i") * wnp.sum(y), x

    custom = weft.custom_jvp(summed)
    custom.defjvp(lambda p, t: weft.jvp(summed, p, t))
    g = functools.partial(mapped, axis_name="i")
    np.testing.assert_allclose(g(custom)(X, Y)[0], g(summed)(X, Y)[0], 1e-6)
    slopes = weft.grad(lambda x: g(custom)(x, Y)[0])(X)
    np.testing.assert_allclose(slopes, weft.grad(lambda x: g(summed)(x, Y)[0])(X), 1e-6)


def test_no_examples():
    empty = wnp.zeros(0)
    value, rest = weft.vmap(with_jvp, in_axes=(0, None))(empty, Y)
    assert value.shape == (0,) and rest.shape == (0, 3)


@pytest.mark.parametrize("f", [with_jvp, with_vjp])
def test_programs_whose_rules_are_part_of_them(f):
    program = weft.make_ir(lambda x, y: f(x, y))(X[0], Y)
    read = weft.parse_ir(program.text)
    value, rest = mapped(read)(X, Y)
    np.testing.assert_allclose(value, plain(X[0], Y)[0], 1e-6)
    np.testing.assert_allclose(rest, np.stack([plain(x, Y)[1] for x in X]), 1e-6)
    slopes = weft.grad(lambda y: mapped(read)(X, y)[0])(Y)
    np.testing.assert_allclose(slopes, np.cos(Y), 1e-6)
