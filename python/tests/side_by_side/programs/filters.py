"""Signals: filters, transforms, interpolation."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from written import program


@program("f32[2]", "f32[2,2]", "f32[5,1]")
def kalman_filter(mean, root, observations):
    f = jnp.array([[1.0, 0.1], [0.0, 1.0]])
    h = jnp.array([[1.0, 0.0]])
    q, r = 0.1 * jnp.eye(2), 0.5 * jnp.eye(1)

    def step(state, y):
        m, p = state
        m, p = f @ m, f @ p @ f.T + q
        s = h @ p @ h.T + r
        gain = jnp.linalg.solve(s, h @ p).T
        innovation = y - h @ m
        m, p = m + gain @ innovation, (jnp.eye(2) - gain @ h) @ p
        log_likelihood = -0.5 * (innovation @ jnp.linalg.solve(s, innovation) + jnp.linalg.slogdet(2 * jnp.pi * s)[1])
        return (m, p), (m, log_likelihood)

    (m, p), (means, terms) = lax.scan(step, (mean, root @ root.T + jnp.eye(2)), observations)
    return {"mean": m, "cov": p, "means": means, "log_likelihood": terms.sum()}


@program("f64[4]", x64=True)
def kalman_smoother(ys):
    def forward(state, y):
        m, p = state
        p = p + 0.2
        k = p / (p + 0.5)
        m, p = m + k * (y - m), (1 - k) * p
        return (m, p), (m, p)

    _, (means, variances) = lax.scan(forward, (0.0, 1.0), ys)

    def backward(after, mp):
        ms, ps = after
        m, p = mp
        g = p / (p + 0.2)
        m, p = m + g * (ms - m), p + g**2 * (ps - (p + 0.2))
        return (m, p), (m, p)

    last = means[-1], variances[-1]
    _, (smooth, spread) = lax.scan(backward, last, (means[:-1], variances[:-1]), reverse=True)
    return jnp.append(smooth, means[-1]), jnp.append(spread, variances[-1])


@program("f32[2]", "f32[3,2]")
def extended_kalman_step(m, ranges):
    beacons = jnp.array([[2.0, 0.0], [0.0, 2.0], [-2.0, -2.0]])

    def measure(m):
        return jnp.sqrt(jnp.sum((m - beacons) ** 2, -1) + 0.1)

    def update(state, y):
        m, p = state
        h = jax.jacfwd(measure)(m)
        s = h @ p @ h.T + 0.3 * jnp.eye(3)
        k = jnp.linalg.solve(s, h @ p).T
        return (m + k @ (y - measure(m)), p - k @ h @ p), m

    return lax.scan(update, (m, jnp.eye(2)), jnp.abs(ranges.T))


@program("f32[4]", "i32[] 0..99")
def particle_filter(ys, seed):
    def step(state, y):
        particles, key = state
        key, k1, k2 = jax.random.split(key, 3)
        particles = 0.9 * particles + 0.3 * jax.random.normal(k1, (6,))
        weights = jax.nn.softmax(-0.5 * (y - particles) ** 2 / 0.5)
        estimate = weights @ particles
        chosen = jax.random.choice(k2, 6, (6,), p=lax.stop_gradient(weights))
        return (particles[chosen], key), estimate

    (particles, _), estimates = lax.scan(step, (jnp.zeros(6), jax.random.key(seed)), ys)
    return particles, estimates


@program("f32[8]", "f32[3]", "f32[2] -0.4..0.4")
def iir_filter(xs, b, a):
    def step(z, x):
        y = b[0] * x + z[0]
        z = jnp.stack([b[1] * x - a[0] * y + z[1], b[2] * x - a[1] * y])
        return z, y

    z, ys = lax.scan(step, jnp.zeros(2), xs)
    return ys, z


@program("f32[8]")
def fft_low_pass(x):
    spectrum = jnp.fft.rfft(x * jnp.hanning(8))
    keep = jnp.arange(spectrum.size) < 3
    filtered = jnp.fft.irfft(jnp.where(keep, spectrum, 0.0), 8)
    return filtered, jnp.abs(spectrum) ** 2


@program("f32[6]", "f32[4]")
def fft_convolution(x, kernel):
    n = x.size + kernel.size - 1
    product = jnp.fft.rfft(x, n) * jnp.fft.rfft(kernel, n)
    fast = jnp.fft.irfft(product, n)
    return fast, fast - jnp.convolve(x, kernel)


@program("f32[10]")
def short_time_fourier(x):
    window = jnp.hamming(4)
    starts = jnp.arange(0, 7, 2)
    frames = jax.vmap(lambda i: lax.dynamic_slice(x, (i,), (4,)) * window)(starts)
    spectrum = jnp.fft.rfft(frames, axis=1)
    return jnp.log1p(jnp.abs(spectrum) ** 2), jnp.argmax(jnp.abs(spectrum), axis=1)


@program("f64[8]", x64=True)
def haar_wavelet(x):
    details = []
    while x.size > 1:
        even, odd = x[::2], x[1::2]
        details.append((even - odd) / np.sqrt(2))
        x = (even + odd) / np.sqrt(2)
    return x, details


@program("f32[8]")
def inverse_haar(x):
    approximation, at = x[:1], 1
    for size in (1, 2, 4):
        detail = x[at : at + size]
        both = jnp.stack([approximation + detail, approximation - detail], 1) / jnp.sqrt(2.0)
        approximation, at = both.reshape(-1), at + size
    return approximation, jnp.sum(approximation**2) - jnp.sum(x**2)


@program("f32[8]")
def discrete_cosine(x):
    n = x.size
    k = jnp.arange(n)
    basis = jnp.cos(jnp.pi * k[:, None] * (2 * k[None] + 1) / (2 * n))
    scale = jnp.where(k == 0, jnp.sqrt(1 / n), jnp.sqrt(2 / n))
    y = scale * (basis @ x)
    quantised = jnp.round(y * 4) / 4
    return y, basis.T @ (scale * quantised)


@program("c64[8]")
def radix_two_fft(x):
    def fft(x):
        if x.size == 1:
            return x
        even, odd = fft(x[::2]), fft(x[1::2])
        turned = jnp.exp(-2j * jnp.pi * jnp.arange(x.size // 2) / x.size) * odd
        return jnp.concatenate([even + turned, even - turned])

    y = fft(x)
    return y, jnp.abs(y - jnp.fft.fft(x)).max() < 1e-3


@program("f32[3]", "f32[3]")
def goertzel(x, other):
    def power(frequency):
        coefficient = 2 * jnp.cos(frequency)

        def step(state, sample):
            s1, s2 = state
            return (sample + coefficient * s1 - s2, s1), None

        (s1, s2), _ = lax.scan(step, (0.0, 0.0), jnp.concatenate([x, other]))
        return s1**2 + s2**2 - coefficient * s1 * s2

    return jax.vmap(power)(jnp.array([0.3, 0.9, 1.5]))


@program("f32[5]", "f32[6] -1..5")
def linear_interpolation(values, at):
    grid = jnp.arange(5.0)
    i = jnp.clip(jnp.searchsorted(grid, at) - 1, 0, 3)
    fraction = (at - grid[i]) / (grid[i + 1] - grid[i])
    mine = values[i] * (1 - fraction) + values[i + 1] * fraction
    return mine, jnp.interp(at, grid, values), jnp.interp(at, grid, values, left=-1.0, period=None)


@program("f64[5]", "f64[4] 0.1..3.9", x64=True)
def cubic_spline(y, at):
    n = y.size
    matrix = 4 * jnp.eye(n) + jnp.eye(n, k=1) + jnp.eye(n, k=-1)
    matrix = matrix.at[0].set(jnp.eye(n)[0]).at[-1].set(jnp.eye(n)[-1])
    rhs = jnp.zeros(n).at[1:-1].set(6 * (y[2:] - 2 * y[1:-1] + y[:-2]))
    m = jnp.linalg.solve(matrix, rhs)
    i = jnp.floor(at).astype(int)
    t = at - i
    a, b = y[i], y[i + 1]
    return a + t * (b - a - (2 * m[i] + m[i + 1]) / 6) + t**2 * m[i] / 2 + t**3 * (m[i + 1] - m[i]) / 6


@program("f32[6]", "f32[3] 0..1")
def catmull_rom(points, t):
    basis = 0.5 * jnp.array([[0, 2, 0, 0], [-1, 0, 1, 0], [2, -5, 4, -1], [-1, 3, -3, 1]], jnp.float32)
    windows = jnp.stack([points[i : i + 4] for i in range(3)])
    powers = t[:, None] ** jnp.arange(4)
    return jnp.einsum("tp,pk,wk->wt", powers, basis, windows)


@program("f32[4,2]", "f32[] 0..1")
def de_casteljau(points, t):
    def step(points, _):
        return points.at[:-1].set((1 - t) * points[:-1] + t * points[1:]), points[0]

    points, heads = lax.scan(step, points, None, length=3)
    return points[0], heads


@program("f32[7]", "f32[5]", 2)
def savitzky_golay(x, noise, degree):
    offsets = jnp.arange(-2, 3)
    vander = jnp.vander(offsets.astype(jnp.float32), degree + 1, increasing=True)
    weights = jnp.linalg.solve(vander.T @ vander, vander.T)[0]
    padded = jnp.pad(x, 2, mode="reflect")
    return jnp.correlate(padded, weights, mode="valid"), weights @ noise


@program("f32[9]")
def median_filter(x):
    padded = jnp.pad(x, 1, mode="symmetric")
    windows = jnp.stack([padded[i : i + 9] for i in range(3)], -1)
    smooth = jnp.median(windows, -1)
    return smooth, jnp.abs(x - smooth) > 0.5, jnp.sort(windows, -1)[:, 0]


@program("f32[5]", "f32[8]", 0.1)
def least_mean_squares(weights, x, rate):
    def step(w, i):
        window = lax.dynamic_slice(x, (i,), (5,))
        error = x[i + 2] * 0.5 - w @ window
        return w + rate * error * window, error

    return lax.scan(step, weights, jnp.arange(4))


@program("f32[6]")
def hilbert_envelope(x):
    n = x.size
    h = jnp.where(jnp.arange(n) < n // 2, 2.0, 0.0).at[0].set(1.0).at[n // 2].set(1.0)
    analytic = jnp.fft.ifft(jnp.fft.fft(x) * h)
    return jnp.abs(analytic), jnp.diff(jnp.unwrap(jnp.angle(analytic)))


@program("f32[4,4]")
def spectral_poisson_solver(rhs):
    k = jnp.fft.fftfreq(4) * 2 * jnp.pi
    k2 = k[:, None] ** 2 + k[None] ** 2
    inverse = jnp.where(k2 > 0, -1 / jnp.where(k2 > 0, k2, 1.0), 0.0)
    solution = jnp.fft.ifft2(jnp.fft.fft2(rhs) * inverse).real
    return solution, solution.mean()


@program("f32[12]", "i32[] 1..4")
def decimate_with_shift(x, shift):
    rolled = jnp.roll(x, shift)
    blocks = rolled.reshape(4, 3)
    return blocks.mean(1), jnp.repeat(blocks.max(1), 3) - rolled, jnp.cumsum(blocks, 1)[:, ::-1]


@program("i16[8] -500..500", "i16[8] -500..500")
def fixed_point_mixer(a, b):
    wide = a.astype(jnp.int32) * 3 + b.astype(jnp.int32) * 5
    mixed = jnp.right_shift(wide, 3)
    clipped = jnp.clip(mixed, -256, 255).astype(jnp.int16)
    return clipped, jnp.sum(clipped != mixed), jnp.cumsum(clipped), lax.cummax(clipped)
