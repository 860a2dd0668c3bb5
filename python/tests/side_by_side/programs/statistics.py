"""Estimates, likelihoods and tests."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import digamma, gammaln, logsumexp
from jax.scipy.stats import norm
from written import program


@program("f32[3]", "f32[]", "f32[6,3]", "bool[6]")
def logistic_regression(w, b, x, labels):
    logits = x @ w + b
    signs = jnp.where(labels, 1.0, -1.0)
    losses = jax.nn.softplus(-signs * logits)
    return losses.mean() + 0.01 * jnp.sum(w**2), logits > 0


@program({"w": "f32[3,4]", "b": "f32[4]"}, "f32[5,3]", "i32[5] 0..4")
def softmax_regression(params, x, labels):
    logits = x @ params["w"] + params["b"]
    log_p = jax.nn.log_softmax(logits)
    loss = -jnp.take_along_axis(log_p, labels[:, None], axis=1).mean()
    return {"loss": loss, "accuracy": jnp.mean(jnp.argmax(logits, 1) == labels)}


@program("f64[6] -3..3", x64=True)
def mixture_by_em(x):
    def step(state, _):
        means, scales, weights = state
        log_p = norm.logpdf(x[:, None], means, scales) + jnp.log(weights)
        r = jax.nn.softmax(log_p, axis=1)
        n = r.sum(0)
        means = (r * x[:, None]).sum(0) / n
        scales = jnp.sqrt((r * (x[:, None] - means) ** 2).sum(0) / n + 0.1)
        return (means, scales, n / n.sum()), logsumexp(log_p, axis=1).sum()

    start = jnp.array([-1.0, 1.0]), jnp.ones(2), jnp.full(2, 0.5)
    return lax.scan(step, start, None, length=4)


@program("f32[2,3]", "f32[2,3]", "f32[2]", "f32[5,3]")
def mixture_of_diagonal_gaussians(means, log_scales, logits, x):
    z = (x[:, None] - means) * jnp.exp(-log_scales)
    log_density = -0.5 * jnp.sum(z**2, -1) - log_scales.sum(-1) - 1.5 * jnp.log(2 * jnp.pi)
    return logsumexp(log_density + jax.nn.log_softmax(logits), axis=-1)


@program("f32[6,3]", "f32[6]")
def least_squares_by_normal_equations(x, y):
    gram = x.T @ x + 0.5 * jnp.eye(3)
    beta = jnp.linalg.solve(gram, x.T @ y)
    residual = y - x @ beta
    sigma2 = residual @ residual / (x.shape[0] - x.shape[1])
    return beta, jnp.sqrt(jnp.diag(jnp.linalg.inv(gram)) * sigma2)


@program("f64[5,3]", x64=True, tolerance=100)
def principal_components(x):
    centred = x - x.mean(0)
    values, vectors = jnp.linalg.eigh(centred.T @ centred / (x.shape[0] - 1))
    projector = vectors[:, -2:] @ vectors[:, -2:].T
    return values[::-1] / values.sum(), centred @ projector


@program("f32[2,3]", "f32[7,3]")
def k_means_step(centres, x):
    distance = jnp.sum((x[:, None] - centres[None]) ** 2, -1)
    nearest = jnp.argmin(distance, axis=1)
    count = jax.ops.segment_sum(jnp.ones(7), nearest, num_segments=2)
    total = jax.ops.segment_sum(x, nearest, num_segments=2)
    moved = jnp.where(count[:, None] > 0, total / jnp.maximum(count, 1)[:, None], centres)
    return moved, nearest, distance.min(1).sum()


@program("f32[3]", "f32[3,3]", "f32[3,4]", "i32[6] 0..4")
def hmm_forward(start, transition, emission, observed):
    log_start = jax.nn.log_softmax(start)
    log_a = jax.nn.log_softmax(transition, axis=1)
    log_b = jax.nn.log_softmax(emission, axis=1)

    def step(alpha, y):
        alpha = logsumexp(alpha[:, None] + log_a, axis=0) + log_b[:, y]
        return alpha, alpha

    alpha = log_start + log_b[:, observed[0]]
    last, alphas = lax.scan(step, alpha, observed[1:])
    return logsumexp(last), alphas


@program("f32[3,3]", "f32[3,4]", "i32[5] 0..4")
def hmm_viterbi(transition, emission, observed):
    def step(score, y):
        candidates = score[:, None] + transition
        return candidates.max(0) + emission[:, y], jnp.argmax(candidates, 0)

    score, back = lax.scan(step, emission[:, observed[0]], observed[1:])

    def follow(state, pointers):
        return pointers[state], state

    last = jnp.argmax(score)
    first, path = lax.scan(follow, last, back, reverse=True)
    return score.max(), jnp.concatenate([first[None], path])


@program("f32[2,2]", "f32[2,3]", "i32[4] 0..3")
def hmm_posterior(transition, emission, observed):
    a, b = jax.nn.softmax(transition, 1), jax.nn.softmax(emission, 1)

    def forward(alpha, y):
        alpha = (alpha @ a) * b[:, y]
        return alpha / alpha.sum(), alpha / alpha.sum()

    def backward(beta, y):
        before = a @ (b[:, y] * beta)
        return before / before.sum(), beta

    _, alphas = lax.scan(forward, jnp.array([0.5, 0.5]), observed)
    _, betas = lax.scan(backward, jnp.ones(2), observed, reverse=True)
    posterior = alphas * betas
    return posterior / posterior.sum(1, keepdims=True)


@program("f32[5]", "f32[4]", 0.4)
def kernel_density(data, points, bandwidth):
    def at(point):
        return jnp.mean(jnp.exp(-0.5 * ((point - data) / bandwidth) ** 2))

    return lax.map(at, points) / (bandwidth * jnp.sqrt(2 * jnp.pi))


@program("f32[8]", "i32[] 0..1000")
def bootstrap_interval(x, seed):
    def one(key):
        return x[jax.random.randint(key, (8,), 0, 8)].mean()

    means = jax.vmap(one)(jax.random.split(jax.random.key(seed), 16))
    return jnp.quantile(means, jnp.array([0.1, 0.9])), means.std()


@program("f32[7]", "f32[7] 0.1..1")
def weighted_median(x, weights):
    order = jnp.argsort(x)
    cumulative = jnp.cumsum(weights[order]) / weights.sum()
    at = jnp.searchsorted(cumulative, 0.5)
    return x[order][at], at, cumulative


@program("f32[6,2]", "f32[] 0.1..0.9")
def exponential_moving_statistics(xs, alpha):
    def step(state, x):
        mean, var = state
        delta = x - mean
        mean = mean + alpha * delta
        var = (1 - alpha) * (var + alpha * delta**2)
        return (mean, var), {"mean": mean, "z": delta / jnp.sqrt(var + 1e-2)}

    return lax.scan(step, (xs[0], jnp.ones(2)), xs[1:])


@program("f32[8]")
def autocorrelation(x):
    centred = x - x.mean()
    full = jnp.convolve(centred, centred[::-1], mode="full")
    positive = full[x.size - 1 :]
    return positive / positive[0], jnp.argmax(positive[1:] < 0)


@program("f64[6,3]", "f64[6]", x64=True)
def ridge_leave_one_out(x, y):
    def error(penalty):
        hat = x @ jnp.linalg.solve(x.T @ x + penalty * jnp.eye(3), x.T)
        return jnp.mean(((y - hat @ y) / (1 - jnp.diag(hat))) ** 2)

    penalties = jnp.logspace(-1, 1, 3)
    errors = jax.vmap(error)(penalties)
    return errors, penalties[jnp.argmin(errors)]


@program("f64[5,2]", "i32[5] 0..6", x64=True)
def poisson_regression_by_newton(x, counts):
    def loss(w):
        rate = x @ w
        return jnp.sum(jnp.exp(rate) - counts * rate + gammaln(counts + 1.0)) + 0.5 * w @ w

    def step(_, w):
        return w - jnp.linalg.solve(jax.hessian(loss)(w), jax.grad(loss)(w))

    w = lax.fori_loop(0, 3, step, jnp.zeros(2))
    return w, loss(w)


@program("f32[9]")
def welford(xs):
    def step(state, x):
        n, mean, m2 = state
        n = n + 1
        delta = x - mean
        mean = mean + delta / n
        return (n, mean, m2 + delta * (x - mean)), None

    (n, mean, m2), _ = lax.scan(step, (0, 0.0, 0.0), xs)
    return n, mean, m2 / (n - 1)


@program("f32[12] -2..2")
def histogram_entropy(x):
    edges = jnp.linspace(-2.0, 2.0, 5)
    bins = jnp.clip(jnp.searchsorted(edges, x, side="right") - 1, 0, 3)
    counts = jnp.zeros(4).at[bins].add(1.0)
    p = counts / counts.sum()
    sums = jax.ops.segment_sum(x, bins, num_segments=4)
    return -jnp.sum(jax.scipy.special.xlogy(p, p)), sums


@program("f32[3,4] 0.1..1")
def mutual_information(table):
    joint = table / table.sum()
    rows, columns = joint.sum(1, keepdims=True), joint.sum(0, keepdims=True)
    information = jnp.sum(joint * (jnp.log(joint) - jnp.log(rows * columns)))
    entropy = -jnp.sum(rows * jnp.log(rows))
    return information, information / entropy


@program("f32[7]", "f32[7]")
def rank_correlation(x, y):
    def ranks(v):
        return jnp.zeros(v.size).at[jnp.argsort(v)].set(jnp.arange(v.size, dtype=jnp.float32))

    return jnp.corrcoef(ranks(x), ranks(y))[0, 1], jnp.corrcoef(x, y)


@program("f64[6,2]", "f64[6]", x64=True)
def robust_regression(x, y):
    def step(beta, _):
        r = jnp.abs(y - x @ beta)
        w = jnp.where(r < 0.5, 1.0, 0.5 / jnp.where(r < 0.5, 1.0, r))
        beta = jnp.linalg.solve((x * w[:, None]).T @ x, (x * w[:, None]).T @ y)
        return beta, w.sum()

    return lax.scan(step, jnp.zeros(2), None, length=3)


@program("f32[7] 0..5", "bool[7]")
def kaplan_meier(times, died):
    order = jnp.argsort(times)
    at_risk = jnp.arange(times.size, 0, -1)
    survival = jnp.cumprod(jnp.where(died[order], 1 - 1 / at_risk, 1.0))
    gaps = jnp.diff(times[order], prepend=0.0)
    return survival, jnp.sum(jnp.concatenate([jnp.ones(1), survival[:-1]]) * gaps)


@program("f32[4] 0.5..3", "i32[4] 0..5")
def dirichlet_multinomial(alpha, counts):
    n, total = counts.sum(), alpha.sum()
    value = gammaln(total) - gammaln(n + total) + jnp.sum(gammaln(counts + alpha) - gammaln(alpha))
    return value, digamma(total) - digamma(alpha)


@program("f32[]", "f32[]", "f32[] 1..3", "f32[6]", tolerance=4)
def student_t_likelihood(mean, log_scale, log_df, x):
    df = jnp.exp(log_df)
    z = (x - mean) * jnp.exp(-log_scale)
    constant = gammaln((df + 1) / 2) - gammaln(df / 2) - 0.5 * jnp.log(df * jnp.pi) - log_scale
    return jnp.sum(constant - (df + 1) / 2 * jnp.log1p(z**2 / df))


@program("f32[2]", "f32[6,2]", "bool[6]")
def cox_partial_likelihood(beta, x, died):
    risk = x @ beta
    log_set = lax.cumlogsumexp(risk, reverse=True)
    terms = jnp.where(died, risk - log_set, 0.0)
    return terms.sum(), jnp.exp(risk - log_set)


@program("f32[5,3]", "f32[3]")
def mahalanobis(x, point):
    cov = jnp.cov(x, rowvar=False) + 0.3 * jnp.eye(3)
    factor = jnp.linalg.cholesky(cov)
    z = jax.scipy.linalg.solve_triangular(factor, point - x.mean(0), lower=True)
    log_det = 2 * jnp.sum(jnp.log(jnp.diag(factor)))
    return jnp.sqrt(z @ z), log_det


@program("i32[6,4] 0..2", "i32[6] 0..3", "i32[2,4] 0..2")
def naive_bayes(x, labels, test):
    onehot = jax.nn.one_hot(labels, 3)
    prior = jnp.log(onehot.mean(0) + 0.1)
    on = (onehot.T @ x + 1.0) / (onehot.sum(0)[:, None] + 2.0)
    score = test @ jnp.log(on).T + (1 - test) @ jnp.log1p(-on).T + prior
    return jnp.argmax(score, 1), jax.nn.softmax(score)


@program("f32[5]", "f32[7]")
def welch_test(a, b):
    va, vb = a.var(ddof=1) / a.size, b.var(ddof=1) / b.size
    t = (a.mean() - b.mean()) / jnp.sqrt(va + vb)
    df = (va + vb) ** 2 / (va**2 / (a.size - 1) + vb**2 / (b.size - 1))
    return {"t": t, "df": df, "p": 2 * norm.sf(jnp.abs(t))}


@program("f32[4]", "f32[4]", "u32[] 0..99")
def permutation_test(a, b, seed):
    both = jnp.concatenate([a, b])
    observed = a.mean() - b.mean()

    def one(key):
        mixed = jax.random.permutation(key, both)
        return mixed[:4].mean() - mixed[4:].mean()

    differences = jax.vmap(one)(jax.random.split(jax.random.key(seed), 8))
    return jnp.mean(jnp.abs(differences) >= jnp.abs(observed) - 1e-3), differences


@program("f16[4,3]")
def half_precision_standardisation(x):
    mean = x.mean(0, dtype=jnp.float32)
    scale = jnp.sqrt(jnp.mean((x.astype(jnp.float32) - mean) ** 2, 0) + 0.1)
    z = ((x - mean) / scale).astype(x.dtype)
    return z, jnp.clip(z, -1, 1).sum(1)


@program("f64[4,4]", x64=True)
def partial_correlations(a):
    precision = jnp.linalg.inv(a @ a.T + jnp.eye(4))
    scale = 1 / jnp.sqrt(jnp.diagonal(precision))
    partial = -precision * jnp.outer(scale, scale)
    return partial.at[jnp.diag_indices(4)].set(1.0)


@program("f32[3] 0.2..2", np.array([0.5, 1.0, 2.0, 4.0], np.float32))
def generalised_gamma_moments(params, orders):
    scale, shape, power = params
    log_moments = orders * jnp.log(scale) + gammaln(shape + orders / power) - gammaln(shape)
    return jnp.exp(log_moments), jnp.diff(log_moments)
