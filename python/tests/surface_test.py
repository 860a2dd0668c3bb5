"""What a JAX user tries first, and what went wrong once: captures of custom rules, effects that happen once, formats."""

import contextlib
import functools
import io

import numpy as np
import pytest

import weft
import weft.numpy as wnp

A = np.arange(1, 13, dtype=np.float32).reshape(3, 4)


def printed(function, *args) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        function(*args)
    return out.getvalue()


# --- Numbers beside arrays --------------------------------------------------------------------------------------------

PARTNERS = [
    (p["name"], place)
    for p in weft._weft.primitives()
    if p["elementwise"] and p["num_operands"] == 2 and p["name"] not in ("complex", "nextafter")
    for place in (0, 1)
]


@pytest.mark.parametrize("name,place", PARTNERS)
def test_derivatives_beside_a_number(name, place):
    """A number beside an array has the derivative of an array of that number."""
    bind = weft._weft.bind_elementwise

    def with_number(x):
        return bind(name, (x, 0.75) if place == 0 else (0.75, x), {})

    def with_array(x):
        full = wnp.full(x.shape, 0.75, "float32")
        return bind(name, (x, full) if place == 0 else (full, x), {})

    try:
        inexact = np.issubdtype(with_number(A).dtype, np.floating)
    except TypeError:
        return  # not for floats
    if inexact:
        for transform in (weft.grad, lambda f: weft.jit(weft.grad(f)), lambda f: weft.grad(lambda x: weft.grad(f)(x).sum())):
            got, want = (transform(lambda x, f=f: f(x).sum())(A) for f in (with_number, with_array))
            np.testing.assert_allclose(got, want, rtol=1e-5)


def test_index_made_by_a_full_reduction():
    f = lambda s, v: v[wnp.sum((s < 0.5).astype("int32"))]
    s = np.array([0.1, 0.2, 0.7, 0.9], np.float32)
    assert weft.jit(f)(s, np.arange(4.0, dtype=np.float32)) == 2.0


def test_random_numbers_from_a_key_that_is_known_inside_jit():
    draw = lambda x: weft.random.normal(weft.random.key(3), x.shape) + 0 * x
    np.testing.assert_array_equal(weft.jit(draw)(A), draw(A))


# --- Custom rules that capture ----------------------------------------------------------------------------------------


def scaled_jvp(y):
    @weft.custom_jvp
    def f(x):
        return x * y.sum()

    f.defjvp(lambda p, t: (f(*p), t[0] * y.sum() * 10))
    return f


def scaled_vjp(y):
    @weft.custom_vjp
    def f(x):
        return x * y.sum()

    f.defvjp(lambda x: (x * y.sum(), None), lambda _, ct: (ct * y.sum() * 10,))
    return f


@pytest.mark.parametrize("make", [scaled_jvp, scaled_vjp])
def test_rules_capture_large_arrays_and_traced_values(make):
    big = wnp.arange(1000.0)
    total = 1000 * 999 / 2
    assert make(big)(2.0) == 2 * total
    assert weft.grad(make(big))(2.0) == 10 * total
    assert weft.jit(weft.grad(make(big)))(2.0) == 10 * total
    traced = lambda y: weft.grad(make(y))(2.0)
    assert weft.jit(traced)(big) == 10 * total
    np.testing.assert_allclose(weft.vmap(traced)(A), 10 * A.sum(1))
    np.testing.assert_allclose(weft.jit(weft.vmap(traced))(A), 10 * A.sum(1))
    looped = lambda y: weft.scan(lambda c, _: (c + weft.grad(make(y))(c), None), 0.0, None, length=3)[0]
    assert weft.jit(looped)(big) == 30 * total


@pytest.mark.parametrize("make", [scaled_jvp, scaled_vjp])
def test_derivatives_with_respect_to_captures_are_an_error(make):
    with pytest.raises(weft.DerivativeError, match="captured"):
        weft.grad(lambda y: make(y)(2.0))(wnp.asarray(A))


def test_nondiff_argument_may_capture_traced_values():
    @functools.partial(weft.custom_vjp, nondiff_argnums=(0,))
    def apply(f, x):
        return f(x)

    apply.defvjp(lambda f, x: (f(x), x), lambda f, x, ct: (ct * f(x) * 2,))
    at = weft.jit(lambda y: weft.grad(lambda x: apply(lambda z: z * y, x))(3.0))
    assert at(5.0) == 30.0


# --- Effects ----------------------------------------------------------------------------------------------------------


def test_a_demanded_callback_runs_once():
    calls = []

    def callback(x):
        calls.append(float(x))
        return np.asarray(x) * 2

    def f(x):
        first = weft.io_callback(callback, weft.ShapeDtype((), "float32"), weft.stop_gradient(x) + 1)
        y = weft.io_callback(callback, weft.ShapeDtype((), "float32"), weft.stop_gradient(x))
        return y * x + first if y > 3 else x

    value, gradient = weft.value_and_grad(f)(2.0)
    assert calls == [3.0, 2.0]  # in their order, and once
    assert (value, gradient) == (14.0, 4.0)
    with pytest.raises(weft.TracerError, match="io_callback"):
        weft.jit(lambda x: weft.grad(f)(3.0) * x)(1.0)


def test_a_demanded_callback_runs_once_a_call_of_a_recorded_function():
    calls = []

    def callback(x):
        calls.append(float(x))
        return np.asarray(x)

    def f(x):
        y = weft.io_callback(callback, weft.ShapeDtype((), "float32"), x)
        return x if y > 0 else -x

    recorded = weft.jit(f, capture="auto")
    assert [float(recorded(x)) for x in (1.0, 1.0, -2.0)] == [1.0, 1.0, 2.0]
    assert calls == [1.0, 1.0, -2.0]
    slope = weft.jit(weft.grad(lambda x: x * f(weft.stop_gradient(x))), capture="auto")
    calls.clear()
    assert [float(slope(x)) for x in (1.0, 1.0, -2.0)] == [1.0, 1.0, 2.0]
    assert calls == [1.0, 1.0, -2.0]


def test_prints_before_a_demanded_callback_come_first():
    def f(x):
        weft.debug.print("before {}", x)
        y = weft.io_callback(lambda v: (print("called"), np.asarray(v))[1], weft.ShapeDtype((), "float32"), x)
        weft.debug.print("after {}", x)
        return x if float(y) > 0 else -x

    assert printed(weft.vmap(lambda a, x: a * f(x), in_axes=(0, None)), A[0], 1.5) == "before 1.5\ncalled\nafter 1.5\n"


def test_debug_print_formats():
    rng = np.random.default_rng(0)
    numbers = [0.0, 1.5, -2.25, 1234567.891, 1e-7, float("nan"), float("inf"), -3e20, 0.1]
    for _ in range(200):
        spec = "".join(
            rng.choice(o)
            for o in (
                ["", "<", "^", ">", "*<", "=", "0>"],
                ["", "+", " ", "-"],
                ["", "0"],
                ["", "5", "12"],
                ["", ".0", ".2", ".5"],
                list("feg%FEG"),
            )
        )
        x = float(np.float32(rng.choice(numbers)))
        assert printed(weft.debug.print, "{:" + spec + "}", x) == format(x, spec) + "\n", (spec, x)
        spec = "".join(rng.choice(o) for o in (["", "<", "^", "*>"], ["", "+"], ["", "0"], ["", "9"], list("dxXbo")))
        n = int(rng.choice([0, 5, -7, 123456]))
        assert printed(weft.debug.print, "{:" + spec + "}", n) == format(n, spec) + "\n", (spec, n)
    show = weft.jit(lambda x: weft.debug.print("{x:.1f} {} {{}}", 3, x=x[0, :2]))
    assert printed(show, A) == "[1.0 2.0] 3 {}\n"
    for bad, error in [("{:zz}", ValueError), ("{} {}", IndexError), ("{y}", KeyError), ("{2}", IndexError)]:
        with pytest.raises(error):
            weft.debug.print(bad, 1.0)
