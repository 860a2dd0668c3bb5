"""Derivatives of complex functions: conventions and errors are JAX's."""

import numpy as np
import pytest

import weft
import weft.numpy as wnp

Z = np.array([0.3 + 0.7j, -1.2 + 0.4j, 0.8 - 0.9j], dtype="complex64")

HOLOMORPHIC = {
    "sin": (lambda np_, z: np_.sin(z), np.cos),
    "exp(z^2)": (lambda np_, z: np_.exp(z * z), lambda z: 2 * z * np.exp(z * z)),
    "z^3": (lambda np_, z: z**3, lambda z: 3 * z**2),
    "1/z": (lambda np_, z: 1 / z, lambda z: -1 / z**2),
    "sqrt": (lambda np_, z: np_.sqrt(z), lambda z: 0.5 / np.sqrt(z)),
    "log": (lambda np_, z: np_.log(z), lambda z: 1 / z),
    "tanh": (lambda np_, z: np_.tanh(z), lambda z: 1 / np.cosh(z) ** 2),
    "power": (lambda np_, z: z ** (1.5 + 0.5j), lambda z: (1.5 + 0.5j) * z ** (0.5 + 0.5j)),
}


@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_holomorphic_derivatives(name):
    f, derivative = HOLOMORPHIC[name]
    g = lambda z: f(wnp, z)
    expected = derivative(Z.astype("complex128"))
    close = lambda got, want=expected: np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)
    close(weft.vmap(weft.grad(g, holomorphic=True))(Z))
    close(np.diagonal(weft.jacfwd(g, holomorphic=True)(Z)))
    close(np.diagonal(weft.jacrev(g, holomorphic=True)(Z)))
    close(weft.jvp(g, (Z,), (np.ones(3, "complex64"),))[1])
    close(weft.jvp(g, (Z,), (1j * np.ones(3, "complex64"),))[1], 1j * expected)
    close(weft.vjp(g, Z)[1](np.ones(3, "complex64"))[0])  # no conjugate: JAX's convention
    close(weft.vjp(g, Z)[1](1j * np.ones(3, "complex64"))[0], 1j * expected)
    # Complex-step: the second derivative from differences of the first.
    h = 1e-4
    second = (derivative(Z.astype("complex128") + h) - derivative(Z.astype("complex128") - h)) / (2 * h)
    np.testing.assert_allclose(
        np.einsum("iii->i", np.asarray(weft.hessian(g, holomorphic=True)(Z))), second, rtol=1e-3, atol=1e-3
    )


def programs(np_):
    return {
        "abs2": lambda z: (np_.abs(z) ** 2).sum(),
        "real": lambda z: (z * z).real.sum(),
        "imag": lambda z: np_.imag(z**3).sum(),
        "conj": lambda z: (z * np_.conj(z) * (1 + 2j)).real.sum(),
        "angle": lambda z: np_.angle(z).sum(),
        "matmul": lambda z: np_.abs(z @ np_.outer(z, z)).sum(),
        "fft": lambda z: np_.abs(np_.fft.fft(z)).sum(),
        "select": lambda z: np_.where(z.real > 0, np_.abs(z), z.imag).sum(),
        "mixed": lambda z: (z.real * np_.exp(1j * z.imag)).real.sum(),
    }


@pytest.mark.parametrize("name", programs(wnp))
def test_real_functions_of_complex_arguments(name):
    jax = pytest.importorskip("jax")
    import jax.numpy as jnp

    f, theirs = programs(wnp)[name], programs(jnp)[name]
    np.testing.assert_allclose(weft.grad(f)(Z), jax.grad(theirs)(Z), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(weft.jacrev(f)(Z), jax.jacrev(theirs)(Z), rtol=1e-4, atol=1e-5)
    v = np.array([1 - 1j, 0.5j, 2], dtype="complex64")
    np.testing.assert_allclose(weft.jvp(f, (Z,), (v,))[1], jax.jvp(theirs, (Z,), (v,))[1], rtol=1e-4, atol=1e-5)
    # The gradient is the conjugate of the direction of steepest ascent.
    g = np.asarray(weft.grad(f)(Z)).astype("complex128")
    h, d = 1e-3, np.conj(g) / np.abs(g).max()
    slope = (float(f((Z + h * d).astype("complex64"))) - float(f((Z - h * d).astype("complex64")))) / (2 * h)
    assert slope == pytest.approx((g * d).sum().real, rel=2e-2)


def test_complex_functions_of_real_arguments():
    jax = pytest.importorskip("jax")
    import jax.numpy as jnp

    x = np.array([0.3, -1.2], dtype="float32")
    f = lambda np_: lambda x: np_.exp(1j * x) * x
    np.testing.assert_allclose(weft.jacfwd(f(wnp))(x), jax.jacfwd(f(jnp))(x), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(weft.vjp(f(wnp), x)[1](Z[:2])[0], jax.vjp(f(jnp), x)[1](Z[:2])[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(weft.jvp(f(wnp), (x,), (x,))[1], jax.jvp(f(jnp), (x,), (x,))[1], rtol=1e-5)
    two = lambda f, grad: grad(lambda x: (abs(f(x)) ** 2).sum())
    np.testing.assert_allclose(two(f(wnp), weft.grad)(x), 2 * x, rtol=1e-5)


WRONG = {
    "grad of a complex result": lambda m, np_: m.grad(lambda z: (z * z).sum())(Z),
    "value_and_grad of a complex result": lambda m, np_: m.value_and_grad(lambda z: (z * z).sum())(Z),
    "holomorphic grad at a real point": lambda m, np_: m.grad(lambda x: x * 1j, holomorphic=True)(1.0),
    "holomorphic grad of a real result": lambda m, np_: m.grad(lambda z: np_.abs(z), holomorphic=True)(Z[0]),
    "grad at an integer": lambda m, np_: m.grad(lambda x: x * 1.0)(3),
    "jacfwd at a complex point": lambda m, np_: m.jacfwd(lambda z: z * z)(Z),
    "jacfwd at an integer": lambda m, np_: m.jacfwd(lambda x: x * 1.0)(3),
    "holomorphic jacfwd at a real point": lambda m, np_: m.jacfwd(lambda x: x * 1j, holomorphic=True)(1.0),
    "holomorphic jacfwd of a real result": lambda m, np_: m.jacfwd(lambda z: np_.abs(z), holomorphic=True)(Z),
    "jacrev of a complex result": lambda m, np_: m.jacrev(lambda z: z * z)(Z),
    "jacrev at an integer": lambda m, np_: m.jacrev(lambda x: x * 1.0)(3),
    "holomorphic jacrev at a real point": lambda m, np_: m.jacrev(lambda x: x * 1j, holomorphic=True)(1.0),
    "holomorphic jacrev of a real result": lambda m, np_: m.jacrev(lambda z: np_.abs(z), holomorphic=True)(Z),
    "hessian of a complex function": lambda m, np_: m.hessian(lambda z: z * z)(Z),
    "jvp with a real tangent": lambda m, np_: m.jvp(lambda z: z * z, (Z,), (np.ones(3, "float32"),)),
    "jvp with a complex tangent": lambda m, np_: m.jvp(lambda x: x * x, (np.ones(3, "float32"),), (Z,)),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors(case):
    with pytest.raises(TypeError, match=r"complex|float|holomorphic|tangent|dtype|i32"):
        WRONG[case](weft, wnp)
    jax = pytest.importorskip("jax")
    import jax.numpy as jnp

    with pytest.raises(TypeError):
        WRONG[case](jax, jnp)


def test_allow_int():
    assert weft.jacrev(lambda x: x * 2.0, allow_int=True)(3).shape == ()
    f = lambda n, x: x**n
    assert float(weft.grad(f, 1)(3, 2.0)) == 12


PRODUCTS = {
    "mul": lambda np_, a, b: a * b,
    "square": lambda np_, a, b: np_.square(a),
    "third power": lambda np_, a, b: a**3 if np_ is wnp else a * (a * a),
    "cumprod": lambda np_, a, b: np_.cumprod(a),
    "matmul": lambda np_, a, b: np_.matmul(a[:, None], b[None, :]),
    "at.multiply": lambda np_, a, b: a.at[:].multiply(b) if np_ is wnp else a * b,
}


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_infinities_are_numpys_in_the_interpreter_too(name, dtype):
    inf = np.inf
    a = np.array([1 + 2j, complex(inf, inf), complex(inf, 0), complex(inf, 1), complex(0, -inf), complex(3, inf)])
    b = np.array([1 + 0j, 1 + 0j, complex(inf, 0), complex(0, inf), complex(-1, 1), complex(-inf, 2)])
    with np.errstate(all="ignore"):
        a, b = a.astype(dtype), b.astype(dtype)
        wanted = PRODUCTS[name](np, a, b)
    run = lambda a, b: PRODUCTS[name](wnp, a, b)
    np.testing.assert_array_equal(weft.jit(run)(a, b), wanted)
    folded = weft.jit(lambda: run(wnp.array(a), wnp.array(b)))  # of constants: the interpreter's numbers
    np.testing.assert_array_equal(folded(), wanted)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("spec", ["bi,bi->b", "ib,bi->b", "bi,ib->b", "ib,ib->b", "bi,bi->", "i,i->"])
def test_inner_products(spec, dtype):
    rng = np.random.default_rng(0)
    letters = spec.split("->")[0].split(",")
    x, y = (rng.standard_normal([{"b": 5, "i": 300}[c] for c in l]) for l in letters)
    if dtype.startswith("complex"):
        x, y = x + 1j * x[::-1], y - 0.5j * y[::-1]
    x, y = x.astype(dtype), y.astype(dtype)
    wide = "complex128" if dtype.startswith("complex") else "float64"
    wanted = np.einsum(spec, x.astype(wide), y.astype(wide))
    scale = np.einsum(spec, abs(x.astype(wide)), abs(y.astype(wide)))
    got = np.asarray(weft.jit(lambda x, y: wnp.einsum(spec, x, y))(x, y))
    assert got.dtype == dtype and (abs(got - wanted) <= 20 * np.finfo(dtype).eps * scale).all()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_quotients(dtype):
    rng = np.random.default_rng(0)
    scale = 10.0 ** rng.integers(-30, 30, (2, 1000))
    parts = rng.standard_normal((2, 1000)), rng.standard_normal((2, 1000))
    a, b = (np.float32(scale * (re)) + 1j * np.float32(scale * im) for re, im in [parts, parts[::-1]])
    a, b = a.astype(dtype), b.astype(dtype)[::-1]
    got, wanted = np.asarray(weft.jit(lambda a, b: a / b)(a, b)), a.astype("complex256") / b.astype("complex256")
    finite = np.abs(wanted) < 1e38
    error = np.abs(got - wanted)[finite] / np.maximum(np.abs(wanted[finite]), 1e-37)
    assert error.max() < 4 * np.finfo(dtype).eps


def test_quotients_of_infinities_and_zeros():
    # C's annex G: a finite number over an infinite one is zero, one that is not zero over zero infinite.
    inf = np.inf
    a = np.array([1 + 2j, complex(inf, 1), 1 + 2j, complex(0, 0), complex(inf, inf)], "complex64")
    b = np.array([complex(inf, inf), 2 - 1j, 0, 0, complex(inf, 0)], "complex64")
    got = np.asarray(weft.jit(lambda a, b: a / b)(a, b))
    assert got[0] == 0 and np.isinf(got[1]) and np.isinf(got[2]) and np.isnan(got[3]) and np.isnan(got[4])


def test_largest_and_smallest_by_real_and_then_imaginary_part():
    lax = weft.lax
    x = np.array([1j, 1 - 2j, 2j, 1 + 1j, -1], np.complex64)
    best, least = 1 + 1j, -1
    assert lax.reduce_max(x, (0,)) == best and lax.reduce_min(x, (0,)) == least
    assert lax.reduce(x, np.complex64(-9), lax.max, (0,)) == best
    np.testing.assert_array_equal(lax.max(x, np.complex64(1j)), [1j, 1 - 2j, 2j, 1 + 1j, 1j])
    np.testing.assert_array_equal(lax.min(x, np.complex64(1j)), [1j, 1j, 1j, 1j, -1])
    np.testing.assert_array_equal(lax.cummax(x), [1j, 1 - 2j, 1 - 2j, 1 + 1j, 1 + 1j])
    np.testing.assert_array_equal(lax.cummin(x, reverse=True), [-1] * 5)
    np.testing.assert_array_equal(lax.clamp(np.complex64(1j), x, np.complex64(1)), [1j, 1 - 2j, 2j, 1, 1j])
    windows = lax.reduce_window(x, np.complex64(-9), lax.max, (2,), (1,), "VALID")
    np.testing.assert_array_equal(windows, [1 - 2j, 1 - 2j, 1 + 1j, 1 + 1j])
    assert np.isnan(np.asarray(lax.max(x, np.complex64(np.nan)))).all()
    _, pull = weft.vjp(lambda x: lax.reduce_max(x, (0,)), x)
    np.testing.assert_array_equal(pull(np.complex64(2 + 1j))[0], [0, 0, 0, 2 + 1j, 0])
    jitted = weft.jit(lambda x: (lax.max(x, 1j), lax.reduce_min(x, (0,))))(x)
    assert jitted[1] == least


def test_resizing_complex_images():
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    z = (x + 1j * x[::-1]).astype(np.complex64)
    both = lambda f: np.asarray(f(z.real)) + 1j * np.asarray(f(z.imag))
    for method in ("linear", "cubic", "lanczos3"):
        resize = lambda a, method=method: weft.image.resize(a, (5, 3), method)
        np.testing.assert_allclose(resize(z), both(resize), rtol=1e-5, atol=1e-5)
    scale, move = np.array([2.0, 0.7]), np.array([0.1, 0.2])
    place = lambda a: weft.image.scale_and_translate(a, (4, 5), (0, 1), scale, move, "linear")
    np.testing.assert_allclose(place(z), both(place), rtol=1e-5, atol=1e-5)
    assert weft.scipy.signal.fftconvolve(x, x, axes=0).shape == (5, 4)
