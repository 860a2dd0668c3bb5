"""Corners of lax and scipy: packed factorisations, formats of any number of bits, windows over several arrays, complex
arguments of transforms and minimisations, factors that are 0; against NumPy, SciPy and LAPACK."""

import itertools

import ml_dtypes
import numpy as np
import pytest
import scipy.fft
import scipy.linalg
import scipy.special

import weft
import weft.numpy as wnp


def matrix(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape)).astype(dtype) if np.dtype(dtype).kind == "c" else x.astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(4, 3), (3, 3), (3, 5), (2, 4, 3), (1, 1)])
def test_geqrf(shape, dtype):
    a = matrix(shape, dtype)
    packed, taus = weft.lax.linalg.geqrf(a)
    function = scipy.linalg.lapack.zgeqrf if dtype == "complex128" else scipy.linalg.lapack.dgeqrf
    for i in np.ndindex(shape[:-2]):
        expected, expected_taus, *_ = function(a[i])
        np.testing.assert_allclose(packed[i], expected, atol=1e-12)
        np.testing.assert_allclose(taus[i], expected_taus, atol=1e-12)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 3), (6, 6), (2, 5, 5)])
def test_tridiagonal(shape, dtype, lower):
    a = matrix(shape, dtype)
    found = weft.lax.linalg.tridiagonal(a, lower=lower)
    function = scipy.linalg.lapack.zhetrd if dtype == "complex128" else scipy.linalg.lapack.dsytrd
    for i in np.ndindex(shape[:-2]):
        packed, d, e, taus, info = function(a[i], lower=lower)
        assert info == 0
        for ours, theirs in zip(found, (packed, d, e, taus)):
            np.testing.assert_allclose(ours[i], theirs, atol=1e-12)
    jitted = weft.jit(lambda a: weft.lax.linalg.tridiagonal(a, lower=lower))(a)
    np.testing.assert_allclose(jitted[1], found[1], atol=1e-12)
    with pytest.raises(ValueError):
        weft.lax.linalg.tridiagonal(np.ones((2, 3)))


@pytest.mark.parametrize(
    ("bits", "dtype"),
    [((4, 3), ml_dtypes.float8_e4m3), ((3, 4), ml_dtypes.float8_e3m4), ((5, 2), ml_dtypes.float8_e5m2)],
)
def test_formats_of_any_number_of_bits(bits, dtype):
    """Those of 8-bit dtypes with infinities: all normal numbers, the middles between them, and their neighbours."""
    numbers = np.arange(256, dtype="uint8").view(dtype).astype("float64")
    normal = np.sort(numbers[np.isfinite(numbers) & (np.abs(numbers) >= float(ml_dtypes.finfo(dtype).tiny))])
    middles = (normal[1:] + normal[:-1]) / 2
    middles = middles[np.abs(middles) >= normal[normal > 0][0]]
    x = np.concatenate([normal, middles, middles * (1 + 1e-5), middles * (1 - 1e-5), [np.inf, -np.inf, 1e9, 0.0]])
    with np.errstate(over="ignore"):
        expected = x.astype(dtype).astype("float64")
    for wide in ("float64", "float32") if bits[1] < 4 else ("float64",):
        some = x if wide == "float64" else np.concatenate([normal, middles])
        want = expected if wide == "float64" else some.astype(dtype).astype("float64")
        np.testing.assert_array_equal(weft.lax.reduce_precision(some.astype(wide), *bits), want)
    assert np.isnan(weft.lax.reduce_precision(np.nan, *bits))
    with pytest.raises(ValueError, match="reduce_precision"):
        weft.lax.reduce_precision(1.0, 0, 3)


def test_windows_over_several_arrays():
    x, y = matrix((5, 6), "float32"), matrix((5, 6), "float32", 1)
    join = lambda a, b: (a[0] + b[0], weft.lax.max(a[1], b[1]))
    more = {"window_strides": (2, 1), "padding": ((1, 0), (0, 2)), "window_dilation": (1, 2)}
    for f in (weft.lax.reduce_window, weft.jit(weft.lax.reduce_window, static_argnums=(2, 3), static_argnames=more)):
        sums, tops = f((x, y), (0.0, -np.inf), join, (2, 2), **more)
        np.testing.assert_allclose(sums, weft.lax.reduce_window(x, 0.0, weft.lax.add, (2, 2), **more), rtol=1e-6)
        np.testing.assert_array_equal(tops, weft.lax.reduce_window(y, -np.inf, weft.lax.max, (2, 2), **more))
    one = lambda x, y: weft.lax.reduce_window((x, y), (0.0, -np.inf), join, (2,))[1]
    np.testing.assert_array_equal(weft.vmap(one)(x, y), np.maximum(y[:, 1:], y[:, :-1]))
    for wrong, kind in [
        (lambda: weft.lax.reduce_window((x, y), 0.0, join, (2, 2)), ValueError),
        (lambda: weft.lax.reduce_window((x, y[:4]), (0.0, 0.0), join, (2, 2)), ValueError),
        (lambda: weft.lax.reduce_window(x, 0.0, weft.lax.add, (0, 2)), TypeError),
        (lambda: weft.lax.reduce_window(x, np.ones(1), weft.lax.add, (2, 2)), TypeError),
        (lambda: weft.lax.reduce_window(x, 0.0, lambda a, b: [a], (2, 2)), ValueError),
        (lambda: weft.lax.reduce({"x": x}, {"y": 0.0}, lambda a, b: a, [0]), ValueError),
        (lambda: weft.lax.reduce(x, np.ones(2), weft.lax.add, [0]), ValueError),
    ]:
        with pytest.raises(kind, match="reduce"):
            wrong()


@pytest.mark.parametrize("name", ["dct", "idct", "dctn", "idctn"])
@pytest.mark.parametrize("norm", [None, "ortho"])
def test_cosine_transforms_of_complex_numbers(name, norm):
    z = matrix((4, 6), "complex128")
    ours, theirs = getattr(weft.scipy.fft, name)(z, norm=norm), getattr(scipy.fft, name)(z, norm=norm)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
    with pytest.raises(ValueError, match=r"at most x\.ndim"):
        weft.scipy.fft.dctn(z, s=(1, 2, 3))


@pytest.mark.parametrize("method", ["BFGS", "l-bfgs-experimental-do-not-rely-on-this"])
def test_minima_over_complex_numbers(method):
    place = np.array([1.0, 2.0 - 3.0j, 4.0, -5.0j])

    def f(z):
        return wnp.sum(wnp.abs(z - place) ** 2 * wnp.array([1.0, 2.0, 0.5, 3.0]))

    found = weft.scipy.optimize.minimize(f, wnp.zeros(4, "complex128"), method=method)
    assert bool(found.success)
    np.testing.assert_allclose(found.x, place, atol=1e-4)
    there = wnp.array(place + 0.5)
    at = weft.scipy.optimize.minimize(f, there, method=method, options={"maxiter": 0})
    np.testing.assert_allclose(at.jac, weft.grad(f)(there), rtol=1e-10)


def test_steps_far_shorter_than_the_first_direction():
    a = 1e4 * wnp.eye(2)
    found = weft.scipy.optimize.minimize(lambda x: wnp.mean((a @ x) ** 2), wnp.ones(2), method="BFGS")
    assert bool(found.success) and int(found.nit) < 10
    np.testing.assert_allclose(found.x, [0, 0], atol=1e-9)
    np.testing.assert_allclose(found.hess_inv, 1e-8 * np.eye(2), rtol=1e-4, atol=1e-12)


def test_operators_of_ones_own():
    class Operator:
        def __init__(self, a):
            self.a = a

        def __matmul__(self, x):
            return self.a @ x

    a = wnp.array([[4.0, 1.0], [1.0, 3.0]])
    b = wnp.array([1.0, 2.0])
    for solve in (weft.scipy.sparse.linalg.cg, weft.scipy.sparse.linalg.gmres, weft.scipy.sparse.linalg.bicgstab):
        np.testing.assert_allclose(solve(Operator(a), b)[0], np.linalg.solve(np.asarray(a), np.asarray(b)), rtol=1e-4)


def test_factors_of_0_in_logsumexp():
    a, b = np.array([[1000.0, -2.0, 3.0], [-1000.0, 5.0, 1e5]]), np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 0.0]])
    for axis in (None, 0, 1):
        np.testing.assert_allclose(
            weft.scipy.special.logsumexp(a, axis, b=b), scipy.special.logsumexp(a, axis, b=b), rtol=1e-12
        )
    slope = weft.grad(lambda b: weft.scipy.special.logsumexp(wnp.array([0.0, 1.0]), b=b))(wnp.array([1.0, 0.0]))
    np.testing.assert_allclose(slope, [1.0, np.e], rtol=1e-6)


def test_spherical_harmonics_beyond_half_a_turn():
    degrees, orders = np.array([(n, m) for n in range(4) for m in range(-n, n + 1)]).T
    for theta, phi in itertools.product([-2.0, -0.5, 0.7, 4.0], [-4.0, 1.0]):
        angles = np.full(len(degrees), theta), np.full(len(degrees), phi)
        np.testing.assert_allclose(
            weft.scipy.special.sph_harm_y(degrees, orders, *angles),
            scipy.special.sph_harm_y(degrees, orders, *angles),
            rtol=1e-9,
            atol=1e-12,
        )


@pytest.mark.parametrize("diagonal", [[1, 0, 0], [0, 4, 0], [0, 0, 9, 0, 0, 4]])
def test_square_roots_of_singular_matrices(diagonal):
    root = weft.scipy.linalg.sqrtm(wnp.diag(wnp.array(diagonal, float)))
    np.testing.assert_allclose(root, np.diag(np.sqrt(diagonal)), atol=1e-6)


def test_refused_arguments():
    for call, kind in [
        (lambda: weft.scipy.linalg.dft(3, dtype="float32"), ValueError),
        (lambda: weft.scipy.linalg.convolution_matrix(wnp.ones(0), 3), ValueError),
        (lambda: weft.scipy.linalg.convolution_matrix(wnp.ones(2), 0), ValueError),
        (lambda: weft.scipy.ndimage.map_coordinates(wnp.ones(3), [wnp.ones(1)], 1, "grid-wrap"), NotImplementedError),
        (lambda: weft.scipy.ndimage.map_coordinates(wnp.ones(3), [wnp.ones(1)] * 2, 1), ValueError),
        (lambda: wnp.tensordot(wnp.ones((2, 3)), wnp.ones(3), 2), TypeError),
        (lambda: wnp.tensordot(wnp.ones((2, 3)), wnp.ones((2, 3)), ([0], [0, 1])), TypeError),
        (lambda: wnp.fft.fftfreq([1, 2]), ValueError),
        (lambda: wnp.fft.rfftfreq(3, [1, 2]), ValueError),
        (lambda: wnp.var(wnp.ones(3), ddof=1, correction=0), ValueError),
    ]:
        with pytest.raises(kind):
            call()


def test_named_matrices_of_batches_and_numbers():
    c, r = matrix((1, 3), "float32"), matrix((2, 4), "float32", 1)
    want = [[scipy.linalg.hankel(c[0], row) for row in r], [scipy.linalg.hankel(row, c[0]) for row in r]]
    np.testing.assert_allclose(weft.scipy.linalg.hankel(c, r), want[0], rtol=1e-6)
    np.testing.assert_allclose(weft.scipy.linalg.hankel(r, c[0]), want[1], rtol=1e-6)
    assert weft.scipy.linalg.circulant(3.0).tolist() == [[3.0]] and weft.scipy.linalg.fiedler(3.0).tolist() == [[0.0]]


def test_rsf2csf_of_batches():
    a = matrix((3, 4, 4), "float32")
    t, _ = (np.stack(parts) for parts in zip(*(scipy.linalg.schur(m) for m in a)))
    z = np.eye(4, dtype=np.float32)
    got_t, got_z = (np.asarray(x) for x in weft.scipy.linalg.rsf2csf(t, z))
    np.testing.assert_allclose(got_z @ got_t @ np.conj(np.swapaxes(got_z, -1, -2)), t, atol=1e-5)
    # What is no Schur form: the elements below the blocks are not touched.
    for dtype in ("float32", "complex64"):
        t, z = matrix((15, 15), dtype), matrix((15, 15), dtype, 1)
        for x, y in zip(weft.scipy.linalg.rsf2csf(t, z), scipy.linalg.rsf2csf(t, z)):
            np.testing.assert_allclose(x, y, atol=2e-4)


@pytest.mark.parametrize("left_side", [False, True])
def test_triangular_solve_of_vectors(left_side):
    a = np.tril(matrix((2, 4, 4), "float64")) + 3 * np.eye(4)
    b = matrix((2, 4), "float64", 1)
    x = np.asarray(weft.lax.linalg.triangular_solve(a, b, left_side=left_side, lower=True))
    want = np.linalg.solve(a if left_side else np.swapaxes(a, -1, -2), b[..., None])[..., 0]
    np.testing.assert_allclose(x, want, rtol=1e-5)


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize(
    ("name", "points"),
    [
        ("hyp1f1", [(1.5, 2.5, 0.7), (-1.3, 0.4, 3.1), (2.3, -1.2, -2.1), (0.0, 1.5, 2.0), (1.2, 0.7, -30.0)]),
        ("hyp2f1", [(1.5, 2.5, 0.7, 0.2), (-1.3, 0.4, 3.1, -0.7), (2.3, -1.2, -2.1, 0.4), (0.3, 0.6, 1.4, 0.95)]),
    ],
)
def test_derivatives_of_hypergeometric_functions_by_all_arguments(name, points, jitted):
    f = getattr(weft.scipy.special, name)
    slopes = weft.grad(f, tuple(range(len(points[0]))))
    slopes = weft.jit(slopes) if jitted else slopes
    for point in np.array(points):
        for i, slope in enumerate(slopes(*point)):
            step = 1e-5 * np.eye(len(point))[i]
            want = (float(f(*(point + step))) - float(f(*(point - step)))) / 2e-5
            np.testing.assert_allclose(float(slope), want, rtol=2e-6, atol=1e-8, err_msg=f"{name}{tuple(point)}, {i}")
    assert np.isnan(float(weft.grad(f, 0)(*points[0][:-1], 200.0)))


def test_corners_that_scipy_has():
    x = np.array([-2.0, -0.5, 0.5, 3.0])
    for got, want in zip(weft.scipy.special.sici(x), scipy.special.sici(x)):
        np.testing.assert_allclose(got, want, rtol=1e-10)
    assert weft.scipy.stats.poisson.entropy(np.ones((3, 1)), loc=np.ones((2, 3, 4))).shape == (2, 3, 4)
    x = np.array([3, 1, 3, 3, 2])
    values, counts = wnp.unique(x, return_counts=True, size=2)
    assert values.tolist() == [1, 2] and counts.tolist() == [1, 1]
    values, counts = wnp.unique(x, return_counts=True, size=4)
    assert counts.tolist() == [1, 1, 3, 0]
    add = wnp.frompyfunc(lambda a, b: a + b, 2, 1, identity=0)
    assert (
        add.reduce(wnp.zeros((2, 0, 3)), axis=0).shape == (0, 3)
        and float(add.reduce(wnp.zeros((3, 0)), axis=None)) == 0
    )


@pytest.mark.parametrize("dtype, tolerance", [("complex64", 2e-6), ("complex128", 1e-12)])
@pytest.mark.parametrize("name", ["gamma", "erfcx"])
def test_special_functions_of_complex_numbers(name, dtype, tolerance):
    rng = np.random.default_rng(3)
    z = (6 * (rng.normal(size=500) + 1j * rng.normal(size=500))).astype(dtype)
    expected = getattr(scipy.special, name)(z.astype("complex128"))
    size = np.abs(expected)
    fine = np.isfinite(size) & (size < 1e30) & (size > 1e-30)
    got = getattr(weft.scipy.special, name)(z)
    assert got.dtype == dtype and fine.sum() > 400
    np.testing.assert_array_less(np.abs(np.asarray(got)[fine] - expected[fine]) / size[fine], tolerance)


def test_gamma_at_its_poles_and_beside_them():
    poles = np.asarray(weft.scipy.special.gamma(np.array([0, -1, -5], "complex64")))
    assert np.isnan(poles.real).all() and np.isnan(poles.imag).all()
    z = np.array([-2.5 + 1e-12j, -2.5 - 1e-12j, 0.5 + 1j, 4.0])
    np.testing.assert_allclose(weft.scipy.special.gamma(z), scipy.special.gamma(z), atol=1e-14, rtol=1e-13)
    slope = weft.grad(lambda x: wnp.abs(weft.scipy.special.gamma(x + 1j)))(np.float64(2.0))
    h = 1e-6
    sizes = np.abs(scipy.special.gamma(np.array([2 + h, 2 - h]) + 1j))
    np.testing.assert_allclose(slope, (sizes[0] - sizes[1]) / (2 * h), rtol=1e-8)


def test_the_sine_integral_is_of_real_numbers():
    with pytest.raises(TypeError, match="sici: x must be real, got dtype complex64"):
        weft.scipy.special.sici(np.ones(2, "complex64"))
