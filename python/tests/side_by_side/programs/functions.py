"""Special functions, series, complex functions, careful arithmetic."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy import special
from written import program


@program("f32[4] -2..2")
def bessel_by_series(x):
    def step(state, k):
        term, total = state
        term = -term * (x / 2) ** 2 / (k * k)
        return (term, total + term), None

    (_, total), _ = lax.scan(step, (jnp.ones(4), jnp.ones(4)), jnp.arange(1.0, 8.0))
    return total, special.i0(x)


@program("f64[3] -0.9..0.9", x64=True)
def legendre_and_chebyshev(x):
    def step(state, n):
        (p0, p1), (t0, t1) = state
        p2 = ((2 * n + 1) * x * p1 - n * p0) / (n + 1)
        t2 = 2 * x * t1 - t0
        return ((p1, p2), (t1, t2)), (p2, t2)

    ones = jnp.ones_like(x)
    return lax.scan(step, ((ones, x), (ones, x)), jnp.arange(1, 4))[1]


@program("f64[3]", x64=True)
def hermite_oscillator_states(x):
    h0, h1 = jnp.ones_like(x), 2 * x
    states = [h0, h1]
    for n in range(1, 4):
        states.append(2 * x * states[-1] - 2 * n * states[-2])
    scale = jnp.exp(-(x**2) / 2 - 0.5 * special.gammaln(jnp.arange(1, 6))[:, None])
    return jnp.stack(states) * scale


@program("f32[3] 0.1..0.9")
def agm_elliptic_integral(m):
    def step(_, ab):
        a, b = ab
        return (a + b) / 2, jnp.sqrt(a * b)

    a, _ = lax.fori_loop(0, 4, step, (jnp.ones(3), jnp.sqrt(1 - m)))
    return jnp.pi / (2 * a)


@program("f64[3] 0.2..3", x64=True)
def lambert_w(x):
    def step(_, w):
        e = jnp.exp(w)
        f = w * e - x
        return w - f / (e * (w + 1) - (w + 2) * f / (2 * w + 2))

    w = lax.fori_loop(0, 5, step, jnp.log1p(x))
    return w, w * jnp.exp(w) - x


@program("f64[3] 1.1..3", x64=True, tolerance=10)
def zeta_by_euler_maclaurin(s):
    n = jnp.arange(1.0, 8.0)
    head = jnp.sum(n ** -s[:, None], -1)
    tail = 8.0 ** (1 - s) / (s - 1) + 0.5 * 8.0**-s + s * 8.0 ** (-s - 1) / 12
    return head + tail, jnp.log(head)


@program("f32[4] 0.5..4")
def continued_fractions(x):
    def step(tail, k):
        return k / (x + tail), None

    tail, _ = lax.scan(step, jnp.zeros(4), jnp.arange(8.0, 0.0, -1.0))
    normal_tail = jnp.exp(-(x**2) / 2) / (x + tail)
    return normal_tail, special.ndtr(-x) * jnp.sqrt(2 * jnp.pi)


@program("f64[3] 0.5..3", "f64[3] 0.5..3", x64=True, tolerance=10)
def beta_and_gamma_identities(a, b):
    log_beta = special.gammaln(a) + special.gammaln(b) - special.gammaln(a + b)
    return jnp.exp(log_beta), special.digamma(a + 1) - special.digamma(a) - 1 / a, special.betaln(a, b) - log_beta


@program("f32[5]")
def error_functions(x):
    smooth = 0.5 * (1 + special.erf(x / jnp.sqrt(2.0)))
    quantile = special.ndtri(jnp.clip(smooth, 0.01, 0.99))
    return smooth, quantile, special.log_ndtr(x), special.erfinv(special.erf(0.5 * x))


@program("f32[4]", "f32[4]")
def entropies_of_distributions(a, b):
    p, q = jax.nn.softmax(a), jax.nn.softmax(b)
    kl = jnp.sum(special.rel_entr(p, q))
    middle = (p + q) / 2
    js = 0.5 * (jnp.sum(special.rel_entr(p, middle)) + jnp.sum(special.rel_entr(q, middle)))
    return kl, js, special.entr(p).sum(), special.logit(p)


@program("f32[4] -3..3")
def numbers_near_cancellation(x):
    small = x * 1e-4
    return jnp.expm1(small), jnp.log1p(small) / 1e-4, jnp.hypot(x, small), jnp.logaddexp(x, -x), jnp.sinc(x * 0.3)


@program("f32[8]")
def kahan_summation(x):
    def step(state, v):
        total, lost = state
        y = v - lost
        after = total + y
        return (after, (after - total) - y), None

    (total, _), _ = lax.scan(step, (0.0, 0.0), x * 3)
    return total, x.sum()


@program("c64[3]")
def complex_functions(z):
    w = jnp.exp(1j * z) + jnp.sqrt(z)
    return w, jnp.angle(w), jnp.log(z) * jnp.conj(z), jnp.abs(z) ** 2


@program("c128[3]", x64=True, tolerance=10)
def moebius_transform(z):
    w = (z - 1j) / (z + 2j)
    back = (2j * w + 1j) / (1 - w)
    return w, back - z, jnp.real(w) ** 2 + jnp.imag(w) ** 2 < 1


@program("f32[2]", "c64[3]", tolerance=4)
def phasor_sum(params, z):
    t = jnp.arange(4) * 0.3
    wave = jnp.sum(z[:, None] * jnp.exp(1j * params[0] * t), 0)
    power = jnp.abs(wave) ** 2
    return wave.real, power / power.sum(), lax.complex(params[0], params[1]) * z


@program("c64[2,2]", "c64[2]")
def unitary_evolution(a, psi):
    h = (a + a.conj().T) / 2
    u = jnp.linalg.solve(jnp.eye(2) + 0.1j * h, jnp.eye(2) - 0.1j * h)
    psi = u @ psi
    return psi, jnp.vdot(psi, h @ psi).real, u @ u.conj().T


@program("f32[3]", "c64[4]")
def quantum_circuit(angles, state):
    state = state / jnp.linalg.norm(state)

    def rotation(a):
        c, s = jnp.cos(a / 2).astype(jnp.complex64), jnp.sin(a / 2).astype(jnp.complex64)
        return jnp.array([[c, -1j * s], [-1j * s, c]])

    for wire, angle in enumerate(angles[:2]):
        gate = rotation(angle)
        state = jnp.moveaxis(jnp.tensordot(gate, state.reshape(2, 2), (1, wire)), 0, wire).reshape(-1)
    state = state.at[2].set(state[3]).at[3].set(state[2] * angles[2])
    return jnp.abs(state) ** 2


@program("f32[4]", "f32[2]")
def horner_and_its_derivative(c, x):
    def step(state, a):
        value, slope = state
        return (value * x + a, slope * x + value), None

    (value, slope), _ = lax.scan(step, (jnp.zeros(2), jnp.zeros(2)), c)
    return value, slope, value - jnp.polyval(c, x)


@program("f64[4]", x64=True)
def barycentric_interpolation(values):
    nodes = jnp.cos(jnp.pi * jnp.arange(4) / 3)
    signs = jnp.array([0.5, -1.0, 1.0, -0.5])
    at = jnp.array([0.1, -0.7, 0.9])
    weights = signs / (at[:, None] - nodes)
    return (weights @ values) / weights.sum(1)


@program("f64[4]", x64=True)
def newton_divided_differences(y):
    x = jnp.array([0.0, 0.5, 1.5, 2.0])
    c = y
    for k in range(1, 4):
        c = c.at[k:].set((c[k:] - c[k - 1 : -1]) / (x[k:] - x[:-k]))
    at = 0.8
    value = c[3]
    for k in (2, 1, 0):
        value = value * (at - x[k]) + c[k]
    return c, value


@program("f32[5] 0.1..2")
def sequence_acceleration(a):
    partial = jnp.cumsum(a * 0.5 ** jnp.arange(5) * (-1.0) ** jnp.arange(5))
    d1, d2 = jnp.diff(partial), jnp.diff(partial, 2)
    aitken = partial[2:] - d1[1:] ** 2 / d2
    return aitken, partial[-1]


@program("f32[3] -1..1", "f32[3] 0.2..2")
def trigonometric_identities(x, y):
    a = jnp.arctan2(jnp.sin(x), jnp.cos(x))
    s, c = jnp.sinh(y), jnp.cosh(y)
    return a, c**2 - s**2, jnp.arccosh(c), jnp.arcsin(x) + jnp.arccos(x), jnp.tan(x) - jnp.sin(x) / jnp.cos(x)


@program("f32[3] -1..1", "f32[3] -1..1", "f32[3] -1..1")
def spherical_geometry(a, b, c):
    a, b, c = (v / jnp.sqrt(v @ v + 0.01) for v in (a, b, c))
    triple = a @ jnp.cross(b, c)
    solid_angle = 2 * jnp.arctan2(triple, 1.2 + a @ b + b @ c + c @ a)
    haversine = jnp.arcsin(jnp.sqrt(jnp.sum((a - b) ** 2) / 4.5))
    return solid_angle, haversine


@program("f32[2] -1..1", "f32[2] 0.1..1")
def hyperbolic_distance(x, y):
    x, y = 0.5 * x, 0.5 * y
    gap = jnp.sum((x - y) ** 2)
    argument = 1 + 2 * gap / ((1 - x @ x) * (1 - y @ y))
    return jnp.arccosh(argument), (1 - x @ x) / 2


@program("f16[4] 0.1..2", tolerance=3)
def functions_in_half_precision(x):
    y = jnp.exp(-x) * jnp.sqrt(x)
    return y, jnp.log1p(y).sum(), jnp.maximum(x, 1) / (1 + x)


@program("bf16[4] 0.1..2", tolerance=3)
def functions_in_brain_floats(x):
    y = jax.nn.sigmoid(x) * jnp.tanh(x)
    return y, jnp.where(y > 0.3, y, 0), y.astype(jnp.float32).sum()


@program("f32[3]", np.linspace(0.1, 1.0, 4))
def fourier_series_of_a_square(c, at):
    at = jnp.asarray(at, jnp.float32)
    k = 2 * jnp.arange(3) + 1
    terms = jnp.sin(jnp.outer(at, k)) / k
    return terms @ c, jnp.sign(jnp.sin(at)), jnp.max(terms, 1)


@program("f32[] 0.1..1", "f32[] 0.1..1")
def dual_numbers_by_hand(a, b):
    def multiply(x, y):
        return x[0] * y[0], x[0] * y[1] + x[1] * y[0]

    def step(d, _):
        return multiply(d, (a, 1.0 + 0.0 * b)), None

    (value, slope), _ = lax.scan(step, (b, 0.0 * b), None, length=3)
    return value, slope, jax.grad(lambda a: b * a**3)(a) - slope


@program("f32[2]", "f32[2]", "f32[2]")
def interval_arithmetic(a, b, c):
    low, high = jnp.minimum(a, b), jnp.maximum(a, b)
    products = jnp.stack([low * low, low * high, high * high, c * low, c * high])
    box = products.min(0), products.max(0)
    return box, (box[1] - box[0]).prod(), (c > low) & (c < high)
