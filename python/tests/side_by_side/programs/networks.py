"""Layers, networks, losses, normalisation, dropout."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn
from written import program


@program("f32[4,3]", {"q": "f32[3,4]", "k": "f32[3,4]", "v": "f32[3,4]"})
def causal_attention(x, w):
    q, k, v = x @ w["q"], x @ w["k"], x @ w["v"]
    scores = q @ k.T / jnp.sqrt(k.shape[-1])
    mask = jnp.tril(jnp.ones((4, 4), bool))
    weights = nn.softmax(jnp.where(mask, scores, -jnp.inf), axis=-1)
    return weights @ v, weights


@program("f32[2,4]", "f32[3,4]", "f32[3,4]")
def multi_head_attention(q, k, v):
    def heads(x):
        return x.reshape(x.shape[0], 2, 2).transpose(1, 0, 2)

    def attend(q, k, v):
        return nn.softmax(q @ k.T / jnp.sqrt(2.0)) @ v

    out = jax.vmap(attend)(heads(q), heads(k), heads(v))
    return out.transpose(1, 0, 2).reshape(2, 4)


@program("f32[3,2]", "f32[4,2]", "f32[4,2]")
def attention_block_by_block(q, keys, values):
    def block(state, kv):
        peak, total, out = state
        k, v = kv
        score = q @ k.T
        top = jnp.maximum(peak, score.max(-1))
        p = jnp.exp(score - top[:, None])
        fix = jnp.exp(peak - top)
        return (top, total * fix + p.sum(-1), out * fix[:, None] + p @ v), None

    start = jnp.full(3, -1e30), jnp.zeros(3), jnp.zeros((3, 2))
    blocks = keys.reshape(2, 2, 2), values.reshape(2, 2, 2)
    (_, total, out), _ = lax.scan(block, start, blocks)
    return out / total[:, None]


@program("f32[4,4]", "i32[] 0..8")
def rotary_embedding(x, offset):
    positions = offset + jnp.arange(4)
    frequency = 10.0 ** (-jnp.arange(2) / 2)
    angle = positions[:, None] * frequency
    a, b = x[:, :2], x[:, 2:]
    rotated = jnp.concatenate([a * jnp.cos(angle) - b * jnp.sin(angle), a * jnp.sin(angle) + b * jnp.cos(angle)], -1)
    return rotated, jnp.einsum("id,jd->ij", rotated, rotated)


@program("f32[3]", {"w": "f32[3,3]", "u": "f32[2,3]", "b": "f32[3]"}, "f32[4,2]")
def recurrent_network(h, p, xs):
    def cell(h, x):
        h = jnp.tanh(h @ p["w"] + x @ p["u"] + p["b"])
        return h, h.sum()

    return lax.scan(cell, h, xs)


@program("f32[2]", {"w": "f32[4,8]", "b": "f32[8]"}, "f32[3,2]")
def lstm(c, p, xs):
    def cell(state, x):
        c, h = state
        i, f, g, o = jnp.split(jnp.concatenate([h, x]) @ p["w"] + p["b"], 4)
        c = nn.sigmoid(f + 1) * c + nn.sigmoid(i) * jnp.tanh(g)
        h = nn.sigmoid(o) * jnp.tanh(c)
        return (c, h), h

    return lax.scan(cell, (c, jnp.zeros(2)), xs)


@program("f32[2]", "f32[3,4,2]", "f32[3,2]")
def gated_recurrent_unit(h, w, xs):
    def cell(h, x):
        z = nn.sigmoid(jnp.concatenate([h, x]) @ w[0])
        r = nn.sigmoid(jnp.concatenate([h, x]) @ w[1])
        candidate = jnp.tanh(jnp.concatenate([r * h, x]) @ w[2])
        return (1 - z) * h + z * candidate, (z, r)

    return lax.scan(cell, h, xs)


@program("f32[2]", "f32[2,2]", "f32[4,2]", "i32[] 1..5")
def masked_recurrent_network(h, w, xs, length):
    def cell(h, tx):
        t, x = tx
        after = nn.gelu(h @ w + x)
        h = jnp.where(t < length, after, h)
        return h, jnp.where(t < length, after, 0.0)

    return lax.scan(cell, h, (jnp.arange(4), xs), unroll=2)


@program("f32[1,1,5,5]", "f32[2,1,3,3]", "f32[2,8]")
def small_convolution_net(image, kernel, dense):
    x = lax.conv_general_dilated(image, kernel, (1, 1), "SAME")
    x = nn.relu(x)
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return nn.log_softmax(dense @ x.reshape(-1))


@program("f32[1,6,2]", "f32[3,2,2]", "f32[3,1,2]")
def dilated_causal_convolution(x, kernel, depthwise):
    dims = ("NWC", "WIO", "NWC")
    y = lax.conv_general_dilated(x, kernel, (1,), [(4, 0)], rhs_dilation=(2,), dimension_numbers=dims)
    y = jnp.tanh(y)
    return lax.conv_general_dilated(y, depthwise, (2,), [(1, 1)], dimension_numbers=dims, feature_group_count=2), y[
        :, -1
    ]


@program("f32[1,3,3,2]", "f32[2,2,2,3]")
def upsampling_convolution(x, kernel):
    y = lax.conv_transpose(x, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return nn.leaky_relu(y, 0.1).mean((1, 2)), y[0, ::2, ::2]


@program("f32[4,3]", "f32[3]", "f32[3]")
def layer_norm_block(x, scale, shift):
    mean = x.mean(-1, keepdims=True)
    var = jnp.mean(jnp.square(x - mean), -1, keepdims=True)
    y = (x - mean) * lax.rsqrt(var + 1e-2) * scale + shift
    return x + nn.silu(y)


@program("f32[5,2]", {"mean": "f32[2]", "var": "f32[2] 0.5..2"}, "f32[2]", True)
def batch_norm(x, running, gamma, training):
    if training:
        mean, var = x.mean(0), x.var(0)
        running = {"mean": 0.9 * running["mean"] + 0.1 * mean, "var": 0.9 * running["var"] + 0.1 * var}
    else:
        mean, var = running["mean"], running["var"]
    return gamma * (x - mean) / jnp.sqrt(var + 1e-3), running


@program("f32[2,4,3]", "f32[4]")
def group_norm(x, scale):
    groups = x.reshape(2, 2, 2, 3)
    mean = groups.mean((2, 3), keepdims=True)
    var = groups.var((2, 3), keepdims=True)
    y = ((groups - mean) / jnp.sqrt(var + 0.05)).reshape(x.shape)
    return y * scale[:, None] + jax.nn.logsumexp(y, axis=1, keepdims=True)


@program("f32[3,4]", "f32[4]")
def root_mean_square_norm(x, scale):
    inverse = lax.rsqrt(jnp.mean(x**2, -1, keepdims=True) + 1e-3)
    y = x * inverse * (1 + scale)
    gate, value = jnp.split(y, 2, -1)
    return nn.swish(gate) * value


@program("f32[4,4]", "f32[4]")
def weight_norm_and_spectral_norm(v, u):
    rows = v / jnp.linalg.norm(v, axis=1, keepdims=True)

    def step(u, _):
        w = v.T @ u
        w = w / (jnp.linalg.norm(w) + 1e-6)
        u = v @ w
        return u / (jnp.linalg.norm(u) + 1e-6), None

    u, _ = lax.scan(step, u, None, length=2)
    sigma = u @ v @ (v.T @ u)
    return rows, v / jnp.sqrt(jnp.abs(sigma) + 1.0)


@program("f32[4,3]", "f32[3,2]", "u32[] 0..100")
def dropout_network(x, w, seed):
    key = jax.random.key(seed)
    keep = jax.random.bernoulli(key, 0.7, x.shape)
    x = jnp.where(keep, x / 0.7, 0.0)
    noise = jax.random.uniform(jax.random.fold_in(key, 1), (4, 2), minval=-0.1, maxval=0.1)
    return nn.elu(x @ w + noise), keep.sum()


@program("f32[5]", "i32[4] 0..5")
def cross_entropy_with_smoothing(logits, labels):
    targets = 0.9 * nn.one_hot(labels, 5) + 0.1 / 5
    log_p = nn.log_softmax(logits)
    losses = -(targets * log_p).sum(-1)
    return losses.mean(), nn.one_hot(labels, 5, dtype=jnp.int32).sum(0), jnp.exp(losses.mean())


@program("f32[4]", "f32[4]", 2.0)
def focal_and_hinge_losses(logits, scores, gamma):
    p = nn.sigmoid(logits)
    focal = -((1 - p) ** gamma) * nn.log_sigmoid(logits)
    hinge = jnp.maximum(0.0, 1 - scores * jnp.sign(logits))
    return focal.sum(), hinge.sum(), jnp.where(hinge > 1, 2 * hinge - 1, hinge**2)


@program("f32[4,2]", "f32[3,2]", "f32[2]", "f32[]")
def adversarial_losses(real, noise, w, b):
    def discriminator(x):
        return nn.leaky_relu(x @ w + b, 0.2)

    fake = jnp.tanh(noise * w)
    d_loss = nn.softplus(-discriminator(real)).mean() + nn.softplus(discriminator(fake)).mean()
    slopes = jax.vmap(jax.grad(discriminator))(real)
    penalty = jnp.mean((jnp.sqrt(jnp.sum(slopes**2, -1) + 1e-3) - 1) ** 2)
    return {"d": d_loss + 0.1 * penalty, "g": nn.softplus(-discriminator(fake)).mean()}


@program("f32[3,2]", "f32[3,2]")
def contrastive_loss(a, b):
    a = a / jnp.linalg.norm(a, axis=-1, keepdims=True)
    b = b / jnp.linalg.norm(b, axis=-1, keepdims=True)
    logits = a @ b.T / 0.5
    labels = jnp.arange(3)
    rows = -nn.log_softmax(logits, 1)[labels, labels]
    columns = -nn.log_softmax(logits, 0)[labels, labels]
    return (rows + columns).mean() / 2, (jnp.argmax(logits, 1) == labels).mean()


@program("f32[2,3]", "f32[3]", "u32[] 0..9")
def variational_autoencoder(w, x, seed):
    mean, log_var = w @ x
    noise = jax.random.normal(jax.random.PRNGKey(seed))
    z = mean + jnp.exp(0.5 * log_var) * noise
    decoded = jnp.tanh(z * w.sum(0))
    divergence = -0.5 * (1 + log_var - mean**2 - jnp.exp(log_var))
    return jnp.sum((decoded - x) ** 2) + divergence


@program("f32[5,3]", "i32[2,4] 0..5", "bool[2,4]")
def masked_embedding_mean(table, tokens, mask):
    vectors = table[tokens]
    total = jnp.where(mask[..., None], vectors, 0).sum(1)
    count = jnp.maximum(mask.sum(1, keepdims=True), 1)
    pooled = total / count
    return pooled, jnp.max(jnp.where(mask[..., None], vectors, -1e9), axis=1, initial=-1.0)


@program({"layers": [("f32[2,3]", "f32[3]"), ("f32[3,2]", "f32[2]")]}, "f32[4,2]")
def perceptron_of_nested_parameters(params, x):
    norms = jax.tree.map(lambda p: jnp.sum(p**2), params)
    for w, b in params["layers"]:
        x = jnp.tanh(x @ w + b)
    return x, norms


@program("f32[2]", "f32[3,2,2]")
def residual_stack_by_scan(x, weights):
    @jax.checkpoint
    def layer(x, w):
        return x + nn.gelu(x @ w, approximate=False)

    def step(x, w):
        x = layer(x, w)
        return x, jnp.linalg.norm(x)

    return lax.scan(step, x, weights)


@program("f32[4,2]", "f32[2,3]", "f32[3,2,2]")
def mixture_of_experts(x, router, experts):
    gates = nn.softmax(x @ router)
    top, which = lax.top_k(gates, 2)
    every = jnp.einsum("nd,edf->nef", x, experts)
    chosen = jnp.take_along_axis(every, which[..., None], axis=1)
    out = jnp.sum(top[..., None] * chosen, 1)
    load = jax.ops.segment_sum(jnp.ones(8), which.ravel(), num_segments=3)
    return out, load, (gates.mean(0) * load).sum()


@program("f32[3,4]", "f32[4,3]", "f32[4,3]")
def low_rank_adaptation(x, w, delta):
    a, b = delta[:, :1], delta[:, 1:].T
    base = x @ lax.stop_gradient(w)
    update = (x @ a) @ (b.sum(0, keepdims=True) @ w)
    return base + 2.0 * update, jnp.linalg.norm(update)


@program("f32[2,4]", "f32[4]", "f32[4]")
def selective_state_space(x, a, b):
    decay = nn.sigmoid(a)

    def combine(left, right):
        return left[0] * right[0], right[0] * left[1] + right[1]

    gains = jnp.broadcast_to(decay[:, None], (4, 2))
    _, states = lax.associative_scan(combine, (gains, (x * b).T))
    return states, states[-1] * nn.softplus(states[0])


@program("f32[3]", "f32[3,2]")
def deep_equilibrium_layer(x, w):
    def f(z):
        return 0.4 * jnp.tanh(w @ (w.T @ z) * 0.3 + x)

    z = lax.fori_loop(0, 8, lambda _, z: f(z), jnp.zeros(3))
    return z, jnp.max(jnp.abs(f(z) - z)) < 0.1


@program("f16[3,4]", "f16[4,4]", tolerance=4)
def half_precision_mlp(x, w):
    h = nn.relu(x @ w)
    h = h / (1 + jnp.abs(h).max(-1, keepdims=True))
    logits = (h @ w.T).astype(jnp.float32)
    return nn.log_softmax(logits), h


@program("bf16[3,4]", "bf16[4,2]", tolerance=3)
def mixed_precision_linear(x, w):
    y = jnp.dot(x, w, preferred_element_type=jnp.float32)
    scale = jnp.max(jnp.abs(y))
    return (y / scale).astype(jnp.bfloat16), scale


@program("f32[2,4]", "f32[2,4]", "f32[2,2]")
def loss_with_padding(predictions, targets, lengths):
    steps = jnp.arange(4)
    valid = steps < jnp.ceil(jnp.abs(lengths.sum(1, keepdims=True))) + 1
    error = jnp.where(valid, jnp.abs(predictions - targets), 0)
    huber = jnp.where(error < 1, 0.5 * error**2, error - 0.5)
    return huber.sum() / valid.sum(), valid


@program("f32[4,3]", "i32[2] 0..3")
def connectionist_temporal_alignment(logits, labels):
    log_p = nn.log_softmax(logits)
    extended = jnp.array([0, 1, 0, 2, 0]).at[1::2].set(labels)
    start = jnp.full(5, -1e9).at[:2].set(log_p[0, extended[:2]])

    def step(alpha, frame):
        one = jnp.concatenate([jnp.array([-1e9]), alpha[:-1]])
        alpha = jnp.logaddexp(alpha, one) + frame[extended]
        return alpha, None

    alpha, _ = lax.scan(step, start, log_p[1:])
    return -jnp.logaddexp(alpha[-1], alpha[-2])


@program("f32[3]", np.float32(0.7))
def temperature_activations(x, temperature):
    y = x / temperature
    return {
        "softplus": nn.softplus(y) * temperature,
        "mish": nn.mish(y),
        "selu": nn.selu(y).sum(),
        "gates": (nn.hard_sigmoid(y), nn.soft_sign(y), nn.celu(y, 0.5)),
    }
