"""Derivatives of high order: right to order 6, and without the blow-up of equations that nesting brings elsewhere."""

import mpmath
import numpy
import pytest

import weft
import weft.numpy as wnp

X = 0.3
# At most so many equations for the derivatives of orders 1 to 6.
GRAD_LIMITS = [12, 30, 60, 110, 190, 300]
JVP_LIMITS = [12, 24, 44, 70, 105, 165]


def f(x):
    return wnp.tanh(wnp.sin(x) * wnp.exp(x))


def mp_f(x):
    return mpmath.tanh(mpmath.sin(x) * mpmath.exp(x))


def tangent_of(function):
    return lambda x: weft.jvp(function, (x,), (1.0,))[1]


def primal_and_tangent_of(function):
    return lambda x: weft.jvp(function, (x,), (1.0,))


def pullback_of(function):
    return lambda x: weft.vjp(function, x)[1](1.0)[0]


def orders(transform, count=6):
    g = f
    for _ in range(count):
        g = transform(g)
        yield g


@pytest.mark.parametrize(
    ("transform", "limits"),
    [
        (weft.grad, GRAD_LIMITS),
        (pullback_of, GRAD_LIMITS),
        (weft.jacrev, GRAD_LIMITS),
        (tangent_of, JVP_LIMITS),
        (primal_and_tangent_of, JVP_LIMITS),
        (weft.jacfwd, JVP_LIMITS),
    ],
    ids=["grad", "vjp", "jacrev", "jvp", "jvp with primals", "jacfwd"],
)
def test_equations_grow_slowly(transform, limits):
    counts = [len(weft.make_ir(g)(X).eqns) for g in orders(transform)]
    assert all(n <= most for n, most in zip(counts, limits, strict=True)), counts
    # And not by leaving the work to a region.
    assert counts == [weft.make_ir(g)(X).num_eqns for g in orders(transform)]


@pytest.mark.parametrize("transform", [weft.grad, pullback_of, weft.jacrev, tangent_of])
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_orders_one_to_six(transform, compiled):
    with weft.enable_x64():
        with mpmath.workdps(40):
            expected = [float(mpmath.diff(mp_f, mpmath.mpf(X), n)) for n in range(1, 7)]
        for n, g in enumerate(orders(transform)):
            y = (weft.jit(g) if compiled else g)(numpy.float64(X))
            assert float(y) == pytest.approx(expected[n], rel=1e-11), n + 1


def test_reverse_of_forward_and_forward_of_reverse_agree():
    with weft.enable_x64():
        x = numpy.float64(X)
        with mpmath.workdps(30):
            expected = float(mpmath.diff(mp_f, mpmath.mpf(X), 3))
        for first in (weft.grad, tangent_of):
            for second in (weft.grad, tangent_of):
                for third in (weft.grad, tangent_of):
                    assert float(third(second(first(f)))(x)) == pytest.approx(expected, rel=1e-11)


def test_mixed_derivatives_of_two_numbers():
    def g(x, y):
        return wnp.sin(x * y) * wnp.exp(y)

    with weft.enable_x64():
        x, y = numpy.float64(0.7), numpy.float64(-0.4)
        with mpmath.workdps(30):
            expected = float(mpmath.diff(lambda a, b: mpmath.sin(a * b) * mpmath.exp(b), (0.7, -0.4), (2, 2)))
        d = weft.grad(weft.grad(weft.grad(weft.grad(g, 0), 1), 0), 1)
        assert float(d(x, y)) == pytest.approx(expected, rel=1e-11)


def test_a_stopped_gradient_stays_stopped_at_every_order():
    def g(x):
        return x * weft.stop_gradient(x) ** 2

    assert float(weft.grad(g)(3.0)) == 9
    assert float(weft.grad(weft.grad(g))(3.0)) == 0
    assert float(tangent_of(weft.grad(g))(3.0)) == 0


def test_a_custom_rule_is_kept_at_every_order():
    @weft.custom_jvp
    def g(x):
        return x**3

    g.defjvp(lambda primals, tangents: (g(primals[0]), 5 * primals[0] ** 2 * tangents[0]))
    assert float(weft.grad(weft.grad(g))(2.0)) == 20

    @weft.custom_vjp
    def h(x):
        return x**3

    h.defvjp(lambda x: (h(x), x), lambda x, ct: (7 * x**2 * ct,))
    assert float(weft.grad(weft.grad(h))(2.0)) == 28


def test_gradient_with_respect_to_an_array_of_a_derivative():
    def g(w, x):
        return wnp.sum(wnp.sin(w * x))

    w = numpy.array([0.1, 0.2, 0.3], "float32")
    # d/dw d/dx sum sin(w x) = cos(w x) - w x sin(w x)
    got = weft.grad(weft.grad(g, 1), 0)(w, 2.0)
    numpy.testing.assert_allclose(got, numpy.cos(2 * w) - 2 * w * numpy.sin(2 * w), rtol=1e-5)


def test_value_and_aux_of_a_second_derivative():
    first = weft.value_and_grad(lambda x: (x**3, {"square": x**2}), has_aux=True)

    def slope(x):
        (value, aux), g = first(x)
        return g, {**aux, "value": value}

    (g, aux), second = weft.value_and_grad(slope, has_aux=True)(2.0)
    assert (float(g), float(second)) == (12, 12)
    assert (float(aux["square"]), float(aux["value"])) == (4, 8)
