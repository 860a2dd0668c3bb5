"""Special functions and functions of matrices beside SciPy in 64 bits, where JAX itself is poor or has none of them;
and their derivatives beside differences."""

import itertools
import math

import numpy as np
import pytest

import weft
import weft.numpy as wnp

sp = pytest.importorskip("scipy.special")
sl = pytest.importorskip("scipy.linalg")

RNG = np.random.default_rng(0)
POSITIVE = np.exp(RNG.uniform(-5, 4, 300))
BOTH = np.concatenate([POSITIVE, -np.exp(RNG.uniform(-5, 3, 100))])
SHAPE = np.exp(RNG.uniform(-3, 6, 300))
NEAR = SHAPE * np.exp(RNG.normal(0, 0.5, 300))
OTHER = np.exp(RNG.uniform(-3, 5, 300))
PART = RNG.beta(np.maximum(SHAPE, 0.1), np.maximum(OTHER, 0.1)).clip(1e-6, 1 - 1e-6)
PLANE = RNG.normal(size=300) * 4 + 1j * RNG.normal(size=300) * 4
FEW = RNG.uniform(0.3, 5, 300)
MORE = RNG.uniform(0.5, 8, 300)

# name -> (arguments, relative error in 64 bits, in 32 bits)
FUNCTIONS = {
    "gammainc": ((SHAPE, NEAR), 1e-12, 1e-4),
    "gammaincc": ((SHAPE, NEAR), 1e-12, 1e-4),
    "betainc": ((SHAPE, OTHER, PART), 1e-12, 1e-3),
    "zeta": ((1.1 + FEW, POSITIVE), 1e-14, 2e-6),
    "i1": ((BOTH,), 1e-14, 2e-6),
    "i1e": ((BOTH,), 1e-14, 2e-6),
    "erfcx": ((BOTH.clip(-3, None),), 1e-13, 2e-5),
    "dawsn": ((BOTH,), 1e-13, 2e-6),
    "exp1": ((POSITIVE,), 1e-13, 5e-6),
    "expi": ((BOTH,), 1e-12, 2e-5),
    "spence": ((POSITIVE,), 1e-12, 1e-5),
    "owens_t": ((RNG.normal(size=300) * 2, RNG.normal(size=300) * 3), 1e-13, 1e-5),
    "hyp1f1": ((FEW, MORE, RNG.uniform(-100, 60, 300)), 1e-10, None),
    "hyp2f1": ((FEW, MORE, MORE[::-1], RNG.uniform(-5, 0.95, 300)), 1e-9, None),
    "loggamma": ((PLANE,), 1e-11, None),
    "wofz": ((PLANE[(-(PLANE**2)).real < 10],), 1e-12, 2e-5),
}


def worst(got, want) -> float:
    got, want = np.asarray(got), np.asarray(want)
    kept = abs(want) > 1e-30
    return float((abs(got - want)[kept] / abs(want)[kept]).max())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name):
    arguments, in_64, in_32 = FUNCTIONS[name]
    function = weft.jit(getattr(weft.scipy.special, name))
    assert worst(function(*arguments), getattr(sp, name)(*arguments)) < in_64
    if in_32 is not None:
        single = [a.astype("complex64" if a.dtype.kind == "c" else "float32") for a in arguments]
        exact = getattr(sp, name)(*(a.astype("complex128" if a.dtype.kind == "c" else "float64") for a in single))
        assert worst(function(*single), exact) < in_32


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7])
def test_exponential_integrals_of_orders(n):
    assert worst(weft.scipy.special.expn(n, POSITIVE), sp.expn(n, POSITIVE)) < 1e-8


def test_pairs_of_integrals():
    s, c = weft.scipy.special.sici(POSITIVE)
    np.testing.assert_allclose(s, sp.sici(POSITIVE)[0], rtol=1e-13)
    np.testing.assert_allclose(c, sp.sici(POSITIVE)[1], rtol=1e-11, atol=1e-14)
    for got, want in zip(weft.scipy.special.fresnel(BOTH), sp.fresnel(BOTH)):
        np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("order", [0, 1, 2, 5])
def test_polygamma(order):
    np.testing.assert_allclose(weft.scipy.special.polygamma(order, POSITIVE), sp.polygamma(order, POSITIVE), rtol=1e-11)


def test_bessel_functions_of_whole_orders():
    x = np.concatenate([[0.0], POSITIVE[POSITIVE < 20]])
    got = weft.scipy.special.bessel_jn(x, v=4)
    np.testing.assert_allclose(got, np.stack([sp.jv(k, x) for k in range(5)]), rtol=1e-10, atol=1e-14)


def test_spherical_harmonics():
    n, m = np.array([0, 1, 2, 3, 3, 4]), np.array([0, -1, 2, 1, -3, 0])
    theta, phi = RNG.uniform(0, 3, 6), RNG.uniform(0, 6, 6)
    np.testing.assert_allclose(
        weft.scipy.special.sph_harm_y(n, m, theta, phi), sp.sph_harm_y(n, m, theta, phi), rtol=1e-13
    )


@pytest.mark.parametrize("normalized", [False, True])
def test_associated_legendre_functions(normalized):
    z, orders, degrees = RNG.uniform(-1, 1, 7), 4, 9
    got = np.asarray(weft.scipy.special.lpmn_values(orders, degrees, z, normalized))
    assert got.shape == (orders + 1, degrees + 1, 7)
    m, n = np.mgrid[: orders + 1, : degrees + 1][..., None]
    want = sp.assoc_legendre_p(n, m, z)[0] if not normalized else np.real(sp.sph_harm_y(n, m, np.arccos(z), 0.0))
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-12)


def test_derivatives_of_associated_legendre_functions():
    z = RNG.uniform(-0.9, 0.9, 5)
    value, slope = weft.scipy.special.lpmn(5, 5, z)
    near = [weft.scipy.special.lpmn_values(5, 5, z + step, False) for step in (-1e-6, 1e-6)]
    np.testing.assert_allclose(slope, (np.asarray(near[1]) - near[0]) / 2e-6, rtol=1e-6, atol=1e-5)
    np.testing.assert_allclose(value, weft.scipy.special.lpmn_values(5, 5, z, False))
    # Those of even order are polynomials.
    at_poles = np.asarray(weft.scipy.special.lpmn(4, 4, np.array([-1.0, 1.0]))[1])
    np.testing.assert_allclose(at_poles[2, 2], [6, -6])
    np.testing.assert_allclose(at_poles[0, :, 1], [0, 1, 3, 6, 10])


def test_what_associated_legendre_functions_refuse():
    with pytest.raises(TypeError, match="float32 and float64"):
        weft.scipy.special.lpmn_values(2, 2, np.arange(3), False)
    with pytest.raises(ValueError, match="a vector"):
        weft.scipy.special.lpmn_values(2, 2, np.ones((2, 2)), False)
    with pytest.raises(ValueError, match="m is 3 and n is 2"):
        weft.scipy.special.lpmn(3, 2, np.ones(2))


def test_exponential_integrals_are_finite_where_the_exponential_overflows():
    x = np.float32([88.5, 90.0, 93.0])
    exact = sp.expi(x.astype(np.float64))
    expi = weft.scipy.special.expi
    for function in (expi, weft.jit(expi)):
        np.testing.assert_allclose(function(wnp.asarray(x)), exact, rtol=1e-5)
    slope = np.exp(x.astype(np.float64)) / x
    np.testing.assert_allclose(weft.vmap(weft.grad(expi))(wnp.asarray(x)), slope, rtol=1e-6)


# Functions of several arguments with the places of those that have derivatives.
DERIVATIVES = [
    ("gammainc", (0, 1), (2.5, 3.1)),
    ("gammaincc", (0, 1), (2.5, 1.1)),
    ("betainc", (0, 1, 2), (2.5, 1.5, 0.4)),
    ("zeta", (0, 1), (2.5, 1.5)),
    ("i1", (0,), (1.7,)),
    ("i1e", (0,), (-1.7,)),
    ("dawsn", (0,), (1.7,)),
    ("erfcx", (0,), (3.7,)),
    ("exp1", (0,), (1.7,)),
    ("expi", (0,), (1.7,)),
    ("spence", (0,), (1.7,)),
    ("owens_t", (0, 1), (0.7, 1.7)),
    ("hyp1f1", (2,), (1.5, 2.5, -1.7)),
    ("hyp2f1", (3,), (1.5, 0.5, 2.5, 0.4)),
]


@pytest.mark.parametrize(("name", "places", "at"), DERIVATIVES, ids=[d[0] for d in DERIVATIVES])
def test_derivatives(name, places, at):
    function = getattr(weft.scipy.special, name)
    reverse = weft.jit(weft.grad(function, places))(*(np.float64(v) for v in at))
    batch = weft.vmap(weft.grad(function, places))(*(np.full(3, v) for v in at))
    forward = weft.jacfwd(function, places)(*(np.float64(v) for v in at))
    for i, place in enumerate(places):
        h = 1e-5
        moved = [[v + s * h if k == place else v for k, v in enumerate(at)] for s in (1, -1)]
        up, down = (getattr(sp, name)(*arguments) for arguments in moved)
        want = (up - down) / (2 * h)
        for got in (reverse[i], forward[i], *batch[i]):
            np.testing.assert_allclose(got, want, rtol=1e-5)


MATRICES = [(n, dtype) for n in (1, 2, 3, 5, 12, 30) for dtype in ("float64", "complex128", "float32")]


def drawn(n: int, dtype: str) -> np.ndarray:
    a = RNG.normal(size=(n, n))
    return (a + 1j * RNG.normal(size=(n, n)) if dtype[0] == "c" else a).astype(dtype)


@pytest.mark.parametrize(("n", "dtype"), MATRICES)
def test_factors(n, dtype):
    a, eps = drawn(n, dtype), np.finfo(dtype).eps
    near = {"rtol": 0, "atol": 300 * n * eps}
    for factors in (
        weft.scipy.linalg.schur(a),
        weft.jit(weft.scipy.linalg.schur)(a),
        weft.scipy.linalg.schur(a, "complex"),
        weft.scipy.linalg.rsf2csf(*weft.scipy.linalg.schur(a)),
        weft.scipy.linalg.hessenberg(a, calc_q=True),
    ):
        t, q = (np.asarray(x) for x in factors)
        np.testing.assert_allclose(q @ t @ q.conj().T, a, **near)
        np.testing.assert_allclose(q.conj().T @ q, np.eye(n), **near)
        assert not np.tril(t, -2).any()
    t = np.asarray(weft.scipy.linalg.schur(a, "complex")[0])
    assert not np.tril(t, -1).any()
    # Blocks that are left in the real form have no real eigenvalues.
    t = np.asarray(weft.scipy.linalg.schur(a)[0])
    for i in np.flatnonzero(np.diagonal(t, -1)):
        assert ((t[i, i] - t[i + 1, i + 1]) / 2) ** 2 + t[i, i + 1] * t[i + 1, i] < 0
    u, p = (np.asarray(x) for x in weft.scipy.linalg.polar(a))
    np.testing.assert_allclose(u @ p, a, **near)
    np.testing.assert_array_equal(p, p.conj().T)


DEFECTIVE = {
    "zero": np.zeros((4, 4)),
    "identity": np.eye(4),
    "Jordan": np.eye(4) + np.eye(4, k=1),
    "cycle": np.roll(np.eye(4), 1, 0),
    "rotation": np.array([[0.0, -1.0], [1.0, 0.0]]),
    "companion of (x - 1)^4": sl.companion([1, -4, 6, -4, 1]),
}


@pytest.mark.parametrize("name", DEFECTIVE)
def test_schur_form_of_special_matrices(name):
    a = DEFECTIVE[name]
    for output in ("real", "complex"):
        t, q = (np.asarray(x) for x in weft.scipy.linalg.schur(a, output))
        np.testing.assert_allclose(q @ t @ q.conj().T, a, atol=1e-13)


def test_functions_of_matrices():
    a, b, c = RNG.normal(size=(3, 6, 6)), RNG.normal(size=(3, 4, 4)), RNG.normal(size=(3, 6, 4))
    many = weft.jit(weft.vmap(weft.scipy.linalg.solve_sylvester))(a, b, c)
    for x, p, q, r in zip(np.asarray(many), a, b, c):
        np.testing.assert_allclose(x, sl.solve_sylvester(p, q, r), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(weft.scipy.linalg.solve_sylvester(a, b, c), many, rtol=1e-9)
    spd = a[0] @ a[0].T + np.eye(6)
    np.testing.assert_allclose(weft.scipy.linalg.sqrtm(spd), sl.sqrtm(spd), atol=1e-10)
    np.testing.assert_allclose(weft.scipy.linalg.funm(spd, wnp.exp), sl.expm(spd), rtol=1e-8)


@pytest.mark.parametrize("function", ["sqrtm", "solve_sylvester"])
def test_derivatives_of_functions_of_matrices(function):
    a, b, c = RNG.normal(size=(4, 4)), RNG.normal(size=(3, 3)), RNG.normal(size=(4, 3))
    if function == "sqrtm":
        arguments, weight = (a @ a.T + np.eye(4),), RNG.normal(size=(4, 4))
    else:
        arguments, weight = (a, b, c), RNG.normal(size=(4, 3))
    f = lambda *m: wnp.sum(wnp.real(getattr(weft.scipy.linalg, function)(*m)) * weight)
    places = tuple(range(len(arguments)))
    reverse = weft.jit(weft.grad(f, places))(*arguments)
    for i in places:
        direction = RNG.normal(size=arguments[i].shape)
        at = lambda s, i=i, direction=direction: float(
            f(*(m + s * 1e-5 * direction if k == i else m for k, m in enumerate(arguments)))
        )
        want = (at(1) - at(-1)) / 2e-5
        np.testing.assert_allclose((np.asarray(reverse[i]) * direction).sum(), want, rtol=1e-6)
        slope = weft.jvp(
            lambda m, i=i: f(*(m if k == i else o for k, o in enumerate(arguments))), (arguments[i],), (direction,)
        )[1]
        np.testing.assert_allclose(slope, want, rtol=1e-6)


def test_schur_has_no_derivative():
    with pytest.raises(NotImplementedError, match="derivative"):
        weft.grad(lambda a: wnp.sum(weft.scipy.linalg.schur(a)[0]))(np.eye(3))


def test_incomplete_functions_at_the_ends_of_their_parameters():
    ends = [0.0, 0.5, 2.0, math.inf, -1.0, math.nan]
    for name, places in (
        ("gammainc", list(itertools.product(ends, repeat=2))),
        ("gammaincc", list(itertools.product(ends, repeat=2))),
        ("betainc", list(itertools.product(ends, ends, [0.0, 0.5, 1.0, -0.5, 1.5, math.nan]))),
    ):
        at = [np.array(column, np.float32) for column in zip(*places)]
        want = getattr(sp, name)(*at)
        ours = getattr(weft.scipy.special, name)
        for f in (ours, weft.jit(ours)):
            np.testing.assert_allclose(f(*at), want, rtol=1e-6)


@pytest.mark.parametrize("shape", [(40, 40), (50, 30), (30, 50)])
def test_polar_factors_in_single_precision(shape):
    rng = np.random.default_rng(7)
    w, _, vh = np.linalg.svd(rng.standard_normal(shape), full_matrices=False)
    a = ((w * np.logspace(0, 5, min(shape))) @ vh).astype(np.float32)
    side = "right" if shape[0] >= shape[1] else "left"
    u, p = (np.asarray(x) for x in weft.scipy.linalg.polar(a, side))
    np.testing.assert_array_equal(p, p.T)
    gram = u.T @ u if side == "right" else u @ u.T
    np.testing.assert_allclose(gram, np.eye(min(shape)), atol=1e-6)
    found = u @ p if side == "right" else p @ u
    assert np.linalg.norm(found - a) < 2e-6 * np.linalg.norm(a)
