"""Simulations: steps of motion, integrators, fields, reactions."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from written import WHILE, program


class Body(NamedTuple):
    position: object
    velocity: object


@program("f32[3,2]", "f32[3,2]", "f32[3] 0.5..2")
def n_body_leapfrog(position, velocity, mass):
    def acceleration(p):
        offset = p[None] - p[:, None]
        distance2 = jnp.sum(offset**2, -1) + 0.5
        return jnp.einsum("ijd,ij,j->id", offset, distance2**-1.5, mass)

    def step(body, _):
        half = body.velocity + 0.05 * acceleration(body.position)
        position = body.position + 0.1 * half
        body = Body(position, half + 0.05 * acceleration(position))
        return body, 0.5 * jnp.sum(mass[:, None] * body.velocity**2)

    return lax.scan(step, Body(position, velocity), None, length=3)


@program("f64[4] 0.3..1", "f64[2] 0.5..1", x64=True)
def lotka_volterra_rk4(rates, start):
    a, b, c, d = rates

    def field(y):
        prey, predator = y
        return jnp.stack([a * prey - b * prey * predator, d * prey * predator - c * predator])

    def step(y, h):
        k1 = field(y)
        k2 = field(y + h / 2 * k1)
        k3 = field(y + h / 2 * k2)
        k4 = field(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return y, y

    return lax.scan(step, start, jnp.full(5, 0.2))


@program("f32[3]", "f32[3] 0.5..1.5")
def lorenz_by_midpoint(state, params):
    def field(s):
        x, y, z = s
        return jnp.array([params[0] * (y - x), x * (params[1] - z) - y, x * y - params[2] * z])

    def body(_, s):
        return s + 0.1 * field(s + 0.05 * field(s))

    return lax.fori_loop(0, 4, body, state)


@program("f32[2]", 0.1)
def pendulum_energy(state, h):
    def energy(s):
        angle, momentum = s
        return 0.5 * momentum**2 - jnp.cos(angle)

    def step(s, _):
        d = jax.grad(energy)(s)
        momentum = s[1] - h * d[0]
        s = jnp.array([s[0] + h * momentum, momentum])
        return s, energy(s)

    return lax.scan(step, state, None, length=4)


@program("f32[6]", 0.2)
def heat_explicit(u, r):
    def step(u, _):
        padded = jnp.pad(u, 1, mode="edge")
        return u + r * (padded[2:] - 2 * u + padded[:-2]), u.sum()

    return lax.scan(step, u, jnp.arange(4))


@program("f64[5]", x64=True)
def heat_crank_nicolson(u):
    n = u.size
    laplacian = jnp.diag(jnp.full(n, -2.0)) + jnp.diag(jnp.ones(n - 1), 1) + jnp.diag(jnp.ones(n - 1), -1)
    left, right = jnp.eye(n) - 0.25 * laplacian, jnp.eye(n) + 0.25 * laplacian

    def step(_, u):
        return jnp.linalg.solve(left, right @ u)

    return lax.fori_loop(0, 3, step, u)


@program("f32[4,4]", "f32[4,4]")
def wave_equation_2d(u, previous):
    def laplacian(f):
        return sum(jnp.roll(f, s, axis) for s in (-1, 1) for axis in (0, 1)) - 4 * f

    def step(state, _):
        u, previous = state
        return (2 * u - previous + 0.1 * laplacian(u), u), jnp.mean(u**2)

    return lax.scan(step, (u, previous), None, length=3)


@program("f32[6] 0.5..1.5")
def burgers_upwind(u):
    def step(u, _):
        flux = 0.5 * u**2
        left = jnp.where(u > 0, flux - jnp.roll(flux, 1), jnp.roll(flux, -1) - flux)
        u = u - 0.2 * left
        return u, jnp.max(jnp.abs(u))

    return lax.scan(step, u, None, length=4)


@program("f32[5,2] 0..1", 0.05)
def gray_scott(uv, feed):
    def step(state, _):
        u, v = state[:, 0], state[:, 1]
        reaction = u * v**2

        def diffuse(w):
            return jnp.roll(w, 1) + jnp.roll(w, -1) - 2 * w

        du = 0.16 * diffuse(u) - reaction + feed * (1 - u)
        dv = 0.08 * diffuse(v) + reaction - (feed + 0.06) * v
        return state + jnp.stack([du, dv], -1), None

    return lax.scan(step, uv, None, length=3)[0]


@program("f32[]", "f32[] 0.5..1")
def van_der_pol_adaptive(x, mu):
    def field(y):
        return jnp.stack([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])

    def step(state, _):
        y, h = state
        euler = y + h * field(y)
        heun = y + h / 2 * (field(y) + field(euler))
        error = jnp.max(jnp.abs(heun - euler)) + 1e-6
        accept = error < 0.05
        h = h * jnp.clip(0.9 * jnp.sqrt(0.05 / error), 0.3, 2.0)
        return (jnp.where(accept, heun, y), h), accept

    return lax.scan(step, (jnp.stack([x, 0.5 * x]), 0.1), None, length=4)


@program("f32[4,2] 0..2", "f32[4,2]")
def lennard_jones_forces(x, v):
    def potential(x):
        i, j = np.triu_indices(4, 1)
        r2 = jnp.sum((x[i] - x[j]) ** 2, -1) + 0.8
        s6 = 1 / r2**3
        return jnp.sum(4 * (s6**2 - s6))

    force = -jax.grad(potential)(x)
    return x + 0.01 * v + 0.5e-4 * force, v + 0.01 * force, potential(x)


@program("f32[4]", "f32[3]", "f32[3]")
def rigid_body_step(q, omega, torque):
    inertia = jnp.array([1.0, 2.0, 3.0])

    def product(a, b):
        w = a[0] * b[0] - a[1:] @ b[1:]
        return jnp.concatenate([w[None], a[0] * b[1:] + b[0] * a[1:] + jnp.cross(a[1:], b[1:])])

    omega = omega + 0.1 * (torque - jnp.cross(omega, inertia * omega)) / inertia
    q = q / jnp.linalg.norm(q)
    q = q + 0.05 * product(q, jnp.concatenate([jnp.zeros(1), omega]))
    return q / jnp.linalg.norm(q), omega


@program("f32[4]", "f32[3,3]")
def quaternion_rotation(q, points):
    w, x, y, z = q / jnp.linalg.norm(q)
    rotation = jnp.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    return points @ rotation.T, jnp.linalg.det(rotation), jnp.trace(rotation)


@program("f32[3]", "f32[4,3]")
def rodrigues_rotation(axis_angle, points):
    angle = jnp.sqrt(jnp.sum(axis_angle**2) + 1e-6)
    k = axis_angle / angle
    turned = points * jnp.cos(angle) + jnp.cross(k, points) * jnp.sin(angle)
    return turned + jnp.outer(points @ k, k) * (1 - jnp.cos(angle))


@program("f32[] 5..10", "f32[] 0.5..1.2", refuses=WHILE)
def projectile_until_landing(speed, angle):
    def flying(state):
        return (state[1] >= 0) & (state[4] < 50)

    def step(state):
        x, y, vx, vy, n = state
        drag = 0.01 * jnp.hypot(vx, vy)
        return x + 0.1 * vx, y + 0.1 * vy, vx * (1 - drag), vy * (1 - drag) - 0.981, n + 1

    return lax.while_loop(flying, step, (0.0, 0.0, speed * jnp.cos(angle), speed * jnp.sin(angle), 0))


@program("f32[]", "f32[]")
def bouncing_ball(height, velocity):
    def step(state, _):
        y, v = state
        y, v = y + 0.1 * v, v - 0.5
        y, v = lax.cond(y < 0, lambda y, v: (-y, -0.8 * v), lambda y, v: (y, v), y, v)
        return (y, v), y < 0.1

    return lax.scan(step, (jnp.abs(height) + 0.3, velocity), None, length=6)


@program("c64[4]", "f32[4]")
def schroedinger_split_step(psi, potential):
    k = 2 * jnp.pi * jnp.fft.fftfreq(4)
    kinetic = jnp.exp(-0.5j * 0.1 * k**2)

    def step(psi, _):
        psi = jnp.exp(-0.05j * potential) * psi
        psi = jnp.fft.ifft(kinetic * jnp.fft.fft(psi))
        psi = jnp.exp(-0.05j * potential) * psi
        return psi, jnp.sum(jnp.abs(psi) ** 2)

    return lax.scan(step, psi, None, length=2)


@program("f32[] 0.1..1", "f32[2]")
def two_spin_hamiltonian(coupling, field):
    z = jnp.array([[1.0, 0.0], [0.0, -1.0]])
    x = jnp.array([[0.0, 1.0], [1.0, 0.0]])
    one = jnp.eye(2)
    h = coupling * jnp.kron(z, z) + field[0] * jnp.kron(x, one) + field[1] * jnp.kron(one, x)
    evolved = jax.scipy.linalg.expm(-h)
    return jnp.trace(evolved), evolved[0] / jnp.trace(evolved)


@program("i32[4,4] 0..2", "f32[] 0.2..0.6", "u32[] 0..50")
def ising_sweep(spins, beta, seed):
    spins = 2 * spins - 1
    i, j = jnp.indices(spins.shape)

    def half(spins, colour_key):
        colour, key = colour_key
        neighbours = sum(jnp.roll(spins, s, axis) for s in (-1, 1) for axis in (0, 1))
        flip = jax.random.uniform(key, spins.shape) < jax.nn.sigmoid(-2 * beta * spins * neighbours)
        return jnp.where(flip & ((i + j) % 2 == colour), -spins, spins), spins.sum()

    keys = jax.random.split(jax.random.key(seed), 4)
    return lax.scan(half, spins, (jnp.array([0, 1, 0, 1]), keys))


@program("f32[5]", "f32[5]")
def spring_chain_modes(stiffness, displacement):
    k = jax.nn.softplus(stiffness)
    matrix = jnp.diag(k + jnp.append(k[1:], 1.0)) - jnp.diag(k[1:], 1) - jnp.diag(k[1:], -1)
    energy = 0.5 * displacement @ matrix @ displacement
    return jnp.linalg.eigvalsh(matrix), energy, jnp.linalg.slogdet(matrix)[1]


@program("f32[3]", "f32[3]", "f32[3]")
def charged_particle_boris(x, v, magnetic):
    def push(state, electric):
        x, v = state
        v = v + 0.05 * electric
        t = 0.05 * magnetic
        s = 2 * t / (1 + t @ t)
        v = v + jnp.cross(v + jnp.cross(v, t), s) + 0.05 * electric
        return (x + 0.1 * v, v), 0.5 * v @ v

    return lax.scan(push, (x, v), jnp.array([[0.1, 0.0, 0.0], [0.0, 0.1, 0.0], [0.0, 0.0, -0.1]]))


@program("f64[3]", "f64[3]", "f64[] 0.1..1", x64=True)
def kepler_equation(mean_anomaly, other, eccentricity):
    e = eccentricity * 0.8

    def step(_, x):
        return x - (x - e * jnp.sin(x) - mean_anomaly) / (1 - e * jnp.cos(x))

    x = lax.fori_loop(0, 6, step, mean_anomaly)
    true_anomaly = 2 * jnp.arctan2(jnp.sqrt(1 + e) * jnp.sin(x / 2), jnp.sqrt(1 - e) * jnp.cos(x / 2))
    return true_anomaly, (1 - e * jnp.cos(x)) * other


@program("f32[5] 0..1", "f32[] 0.1..0.5", "f32[] 0.1..0.3")
def epidemic_on_a_ring(infected, beta, gamma):
    def day(state, _):
        s, i, r = state
        pressure = beta * (i + 0.5 * (jnp.roll(i, 1) + jnp.roll(i, -1)))
        new = s * -jnp.expm1(-pressure)
        healed = gamma * i
        return (s - new, i + new - healed, r + healed), new.sum()

    return lax.scan(day, (1 - infected, infected, jnp.zeros(5)), None, length=3)


@program("bf16[4,4]", tolerance=3)
def brain_float_diffusion(u):
    def step(u, _):
        mean = (jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1)) / 4
        return (u + mean) / 2, u.max()

    return lax.scan(step, u, None, length=2)
