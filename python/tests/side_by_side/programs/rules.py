"""Rules of one's own, stopped gradients, quantisation, transforms inside of programs."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from written import BACKWARD_ONLY, BACKWARD_ONLY_IN_LOOP, NO_FORWARD, WHILE, program


@jax.custom_jvp
def stable_softplus(x):
    return jnp.log1p(jnp.exp(-jnp.abs(x))) + jnp.maximum(x, 0)


@stable_softplus.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    return stable_softplus(x), jax.nn.sigmoid(x) * t


@program("f32[4]", "f32[4]")
def softplus_with_its_own_slope(x, w):
    def step(h, w):
        h = stable_softplus(h * w)
        return h, h[::-1]

    return lax.scan(step, x, jnp.stack([w, 1 - w]))


@jax.custom_jvp
def safe_norm(x):
    return jnp.sqrt(jnp.sum(x**2))


@safe_norm.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    n = safe_norm(x)
    return n, jnp.where(n > 0, x @ t / jnp.where(n > 0, n, 1.0), 0.0)


@program("f32[3]", "f32[2,3]")
def norms_that_are_safe_at_zero(x, rows):
    rows = rows.at[1].set(0.0)
    norms = jax.vmap(safe_norm)(rows)
    return x / (1 + safe_norm(x)), norms, jax.grad(safe_norm)(jnp.zeros(3))


@partial(jax.custom_jvp, nondiff_argnums=(0, 2))
def apply_scaled(f, x, scale):
    return f(x) * scale


@apply_scaled.defjvp
def _(f, scale, primals, tangents):
    (x,), (t,) = primals, tangents
    y, dy = jax.jvp(f, (x,), (t,))
    return y * scale, dy * scale * 2


@program("f32[3]", 3.0)
def function_argument_of_a_rule(x, scale):
    y = apply_scaled(jnp.sin, x, scale)
    return y, apply_scaled(lambda v: v * jnp.tanh(v), x, 0.5)


@jax.custom_vjp
def round_through(x):
    return jnp.round(x)


round_through.defvjp(lambda x: (jnp.round(x), None), lambda _, g: (g,))


@program("f32[4]", "f32[4,2]", refuses=BACKWARD_ONLY)
def straight_through_rounding(x, w):
    levels = round_through(jnp.clip(x, -1, 1) * 4) / 4
    return levels @ w, levels


@jax.custom_vjp
def fake_quantise(x, scale):
    return jnp.clip(jnp.round(x / scale), -8, 7) * scale


def fake_forward(x, scale):
    inside = jnp.abs(x / scale) < 7.5
    return fake_quantise(x, scale), (inside, x, scale)


def fake_backward(saved, g):
    inside, x, scale = saved
    return jnp.where(inside, g, 0), jnp.sum(jnp.where(inside, 0.0, g * jnp.sign(x)) * 7) + 0 * scale


fake_quantise.defvjp(fake_forward, fake_backward)


@program("f32[5]", "f32[] 0.05..0.3", "f32[5]", refuses=BACKWARD_ONLY_IN_LOOP)
def quantisation_aware_layer(x, scale, w):
    def layer(h, w):
        return jnp.tanh(fake_quantise(h, scale) * w), h.sum()

    return lax.scan(layer, x, jnp.stack([w, w + 1]))


@jax.custom_vjp
def clip_cotangent(x):
    return x


clip_cotangent.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -0.1, 0.1),))


@program("f32[3]", "f32[3,3]", refuses=BACKWARD_ONLY)
def recurrent_gradient_clipping(h, w):
    def step(_, h):
        return jnp.tanh(w @ clip_cotangent(h)) * 1.5

    return lax.fori_loop(0, 3, step, h)


@jax.custom_vjp
def reverse_sign(x, strength):
    return x


reverse_sign.defvjp(lambda x, s: (x, s), lambda s, g: (-s * g, None))


@program("f32[3]", "f32[3,2]", 0.5, refuses=BACKWARD_ONLY)
def domain_adversarial_features(x, w, strength):
    features = jnp.tanh(x @ w)
    return features.sum(), jax.nn.softplus(reverse_sign(features, strength).sum())


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def fixed_point(f, params, start):
    def more(state):
        before, here = state
        return jnp.max(jnp.abs(before - here)) > 1e-6

    return lax.while_loop(more, lambda s: (s[1], f(params, s[1])), (start, f(params, start)))[1]


def fixed_point_forward(f, params, start):
    x = fixed_point(f, params, start)
    return x, (params, x)


def fixed_point_backward(f, saved, g):
    params, x = saved
    _, pull = jax.vjp(f, params, x)
    u = fixed_point(lambda g, u: g + pull(u)[1], g, g)
    return pull(u)[0], jnp.zeros_like(x)


fixed_point.defvjp(fixed_point_forward, fixed_point_backward)


# JAX finds what the backward rule captures one derivative too late, and meets it again in functions traced before.
@program(
    "f64[3]",
    "f64[3]",
    x64=True,
    tolerance=1e5,
    refuses=dict.fromkeys([*BACKWARD_ONLY_IN_LOOP, "grad_grad"], f"{NO_FORWARD}|unexpected tracer"),
)
def implicit_fixed_point(a, b):
    return fixed_point(lambda p, x: 0.5 * jnp.cos(p[0] * x) + 0.1 * p[1], (a, b), jnp.zeros(3))


@partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_saveable)
def rematerialised_block(x, w):
    return jnp.sin(jnp.tanh(x @ w) @ w.T)


@program("f32[2,3]", "f32[3,3]")
def checkpointed_blocks(x, w):
    for _ in range(2):
        x = rematerialised_block(x, w)
    return x + lax.stop_gradient(x.mean())


@program("f32[4]", "f32[3,4]")
def checkpoint_inside_of_scan(x, ws):
    @jax.checkpoint
    def step(x, w):
        y = jnp.sin(x * w)
        return y, lax.cond(y.sum() > 0, lambda: y.max(), lambda: y.min())

    return lax.scan(step, x, ws)


@program("f32[3]")
def laplacian_by_forward_over_reverse(x):
    f = lambda x: jnp.exp(-jnp.sum(x**2)) * jnp.sin(x[0] + 2 * x[1])
    columns = jax.vmap(lambda v: jax.jvp(jax.grad(f), (x,), (v,))[1])(jnp.eye(3))
    return jnp.trace(columns), jnp.trace(jax.hessian(f)(x))


@program("f32[2] -1..1", "f32[4] -1..1")
def physics_informed_residual(params, points):
    u = lambda t: jnp.tanh(params[0] * t) * jnp.exp(params[1] * t)
    first = jax.vmap(jax.grad(u))(points)
    second = jax.vmap(jax.grad(jax.grad(u)))(points)
    return jnp.mean((second + 0.3 * first + jax.vmap(u)(points)) ** 2)


@program("f32[2]", "f32[2]")
def double_pendulum_from_the_lagrangian(q, v):
    def lagrangian(q, v):
        kinetic = v[0] ** 2 + 0.5 * v[1] ** 2 + v[0] * v[1] * jnp.cos(q[0] - q[1])
        return kinetic + 2 * jnp.cos(q[0]) + jnp.cos(q[1])

    mass = jax.hessian(lagrangian, 1)(q, v)
    cross = jax.jacfwd(jax.grad(lagrangian, 1), 0)(q, v)
    return jnp.linalg.solve(mass, jax.grad(lagrangian, 0)(q, v) - cross @ v)


@program("f32[3]", "f32[3]")
def geodesic_acceleration(x, v):
    def metric(x):
        return jnp.diag(1 + x**2) + 0.1 * jnp.outer(x, x)

    d = jax.jacfwd(metric)(x)
    christoffel = 0.5 * (jnp.einsum("lji->lij", d) + jnp.einsum("lij->lij", d) - jnp.einsum("ijl->lij", d))
    return -jnp.linalg.solve(metric(x), jnp.einsum("lij,i,j->l", christoffel, v, v))


@program("f32[2,2]", "f32[2]", 0.1)
def maml(w, x, rate):
    def loss(w, target):
        return jnp.sum((jnp.tanh(w @ x) - target) ** 2)

    def adapted(target):
        return loss(w - rate * jax.grad(loss)(w, target), target)

    return jax.vmap(adapted)(jnp.array([0.0, 0.5, 1.0]))


@program("f32[3]")
def divergence_and_curl(x):
    field = lambda p: jnp.array([p[1] * p[2], jnp.sin(p[0]) * p[2], p[0] ** 2 * p[1]])
    j = jax.jacrev(field)(x)
    curl = jnp.array([j[2, 1] - j[1, 2], j[0, 2] - j[2, 0], j[1, 0] - j[0, 1]])
    return jnp.trace(j), curl


@program("f32[3]", "f32[3,2]")
def fisher_information(theta, x):
    log_p = lambda theta, x: jax.nn.log_softmax(theta)[0] * x[0] + jnp.sum(jnp.sin(theta)) * x[1]
    scores = jax.vmap(jax.grad(log_p), (None, 0))(theta, x)
    return jnp.einsum("ni,nj->ij", scores, scores) / 3


@program("f32[4]", "f32[4]")
def neural_tangent_kernel(x, y):
    def network(w, x):
        return jnp.tanh(w[:2] * x).sum() * w[2] + w[3]

    jacobian = jax.vmap(jax.jacrev(network), (None, 0))(y, x)
    return jacobian @ jacobian.T


@program("f32[2]", refuses=WHILE)
def forward_mode_through_while(x):
    def cost(x):
        return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, jnp.sin(s[1]) + 0.1), (0, x))[1]

    return jax.jacfwd(cost)(x), jax.jvp(cost, (x,), (x,))[1]


@program("f32[3]", "f32[2,3]")
def vmapped_conditionals(x, rows):
    def one(row):
        return lax.cond(row.sum() > 0, lambda r: jnp.sin(r) * x, lambda r: r * 0.1, row)

    picked = lax.switch(jnp.argmax(x), [lambda: x, lambda: x * 2, lambda: jnp.cos(x)])
    return jax.vmap(one)(rows), picked


@program("f64[4]", "f64[4]", x64=True)
def double_where_against_nans(x, y):
    positive = x > 0
    safe = jnp.where(positive, x, 1.0)
    return jnp.where(positive, jnp.sqrt(safe) * jnp.log(safe), 0.0), jnp.where(y != 0, jnp.sinc(y), 1.0)


@program("f32[3]", "f32[3]")
def linear_map_transposed(x, y):
    f = lambda v: jnp.cumsum(v) * jnp.arange(1.0, 4.0) + jnp.roll(v, 1)
    transposed = jax.linear_transpose(f, x)
    back = transposed(y)[0]
    return back, jnp.allclose(f(x) @ y, x @ back, atol=1e-4)


@program("f32[3]", "f32[2]", refuses=BACKWARD_ONLY)
def custom_gradient_decorator(x, y):
    @jax.custom_gradient
    def log1pexp(x):
        e = jnp.exp(x)
        return jnp.log(1 + e), lambda g: g * (1 - 1 / (1 + e))

    return log1pexp(x), jax.vmap(jax.grad(lambda v: log1pexp(v) * v))(y)
