"""Random keys: chains, estimators, designs, finance."""

import jax
import jax.numpy as jnp
from jax import lax, random
from jax.scipy.stats import norm
from written import program


@program("f32[2]", "u32[] 0..100")
def metropolis_chain(x, seed):
    def log_density(x):
        return -0.5 * jnp.sum(x**2) - 0.1 * jnp.prod(x)

    def step(x, key):
        move, decide = random.split(key)
        proposal = x + 0.5 * random.normal(move, x.shape)
        accept = jnp.log(random.uniform(decide)) < log_density(proposal) - log_density(x)
        return jnp.where(accept, proposal, x), accept

    return lax.scan(step, x, random.split(random.key(seed), 5))


@program("f32[2]", "u32[] 0..100")
def hamiltonian_monte_carlo(q, seed):
    potential = lambda q: 0.5 * q @ q + 0.25 * jnp.sum(q**4)
    slope = jax.grad(potential)

    def leapfrog(state, _):
        q, p = state
        p = p - 0.05 * slope(q)
        q = q + 0.1 * p
        return (q, p - 0.05 * slope(q)), None

    def sample(q, key):
        k1, k2 = random.split(key)
        p = random.normal(k1, q.shape)
        (q_new, p_new), _ = lax.scan(leapfrog, (q, p), None, length=3)
        rise = potential(q_new) + p_new @ p_new / 2 - potential(q) - p @ p / 2
        return lax.cond(random.uniform(k2) < jnp.exp(-rise), lambda: q_new, lambda: q), rise

    return lax.scan(sample, q, random.split(random.key(seed), 2))


@program("f32[] 0.3..0.9", "u32[] 0..100")
def gibbs_of_two_normals(correlation, seed):
    scale = jnp.sqrt(1 - correlation**2)

    def sweep(xy, key):
        k1, k2 = random.split(key)
        x = correlation * xy[1] + scale * random.normal(k1)
        y = correlation * x + scale * random.normal(k2)
        return jnp.stack([x, y]), x * y

    return lax.scan(sweep, jnp.zeros(2), random.split(random.key(seed), 4))


@program("f32[]", "f32[]", "u32[] 0..100")
def reparametrised_estimate(mean, log_scale, seed):
    z = random.normal(random.key(seed), (16,))
    x = mean + jnp.exp(log_scale) * z
    log_q = norm.logpdf(x, mean, jnp.exp(log_scale))
    log_p = norm.logpdf(x, 1.0, 2.0)
    return jnp.mean(log_p - log_q), jax.nn.logsumexp(log_p - log_q) - jnp.log(16.0)


@program("f32[4]", "u32[] 0..100", 0.7)
def gumbel_softmax_straight_through(logits, seed, temperature):
    noise = random.gumbel(random.key(seed), logits.shape)
    soft = jax.nn.softmax((logits + noise) / temperature)
    hard = jax.nn.one_hot(jnp.argmax(soft), 4)
    return hard + soft - lax.stop_gradient(soft), jnp.argmax(soft)


@program("f32[3]", "u32[] 0..100")
def score_function_gradient(logits, seed):
    def surrogate(logits, key):
        action = random.categorical(key, logits)
        reward = jnp.array([1.0, 0.0, 2.0])[action]
        return lax.stop_gradient(reward) * jax.nn.log_softmax(logits)[action]

    keys = random.split(random.key(seed), 6)
    return jax.vmap(jax.grad(surrogate), (None, 0))(logits, keys).mean(0)


@program("f32[4] 0.1..1", "u32[] 0..100")
def systematic_resampling(weights, seed):
    p = weights / weights.sum()
    offset = random.uniform(random.key(seed))
    positions = (jnp.arange(4) + offset) / 4
    chosen = jnp.minimum(jnp.searchsorted(jnp.cumsum(p), positions), 3)
    return chosen, jnp.bincount(chosen, length=4), 1 / jnp.sum(p**2)


@program("f32[5]", "u32[] 0..100")
def reservoir_sampling(x, seed):
    def step(state, inputs):
        kept, i = state
        value, key = inputs
        slot = random.randint(key, (), 0, i + 1)
        kept = jnp.where(slot < 2, kept.at[jnp.minimum(slot, 1)].set(value), kept)
        return (kept, i + 1), slot

    (kept, _), slots = lax.scan(step, (x[:2], 2), (x[2:], random.split(random.key(seed), 3)))
    return kept, slots


@program("i32[] 0..100", "f32[3]")
def random_fourier_features(seed, x):
    k1, k2 = random.split(random.PRNGKey(seed))
    frequencies = random.normal(k1, (8, 3))
    phases = random.uniform(k2, (8,), maxval=2 * jnp.pi)
    features = jnp.sqrt(2 / 8) * jnp.cos(frequencies @ x + phases)
    return features, features @ features


@program("u32[] 0..100", "f32[4,2]")
def shuffled_minibatches(seed, x):
    order = random.permutation(random.key(seed), 4)

    def batch(w, rows):
        loss = lambda w: jnp.mean((x[rows] @ w - 1.0) ** 2)
        return w - 0.1 * jax.grad(loss)(w), loss(w)

    return lax.scan(batch, jnp.zeros(2), order.reshape(2, 2)), order


@program("u32[] 0..1000")
def keys_of_a_tree(seed):
    key = random.key(seed)
    shapes = {"w": (2, 3), "b": (3,), "scale": ()}
    keys = dict(zip(shapes, random.split(key, 3)))
    made = {name: random.uniform(keys[name], shape) for name, shape in shapes.items()}
    return made, random.bits(random.fold_in(key, 7), (2,)), random.key_data(key)


@program("u32[] 0..1000", "f32[2,2]")
def many_distributions(seed, scale):
    keys = random.split(random.key(seed), 6)
    return {
        "exponential": random.exponential(keys[0], (2, 2)) * scale,
        "laplace": random.laplace(keys[1], (2, 2)) + scale,
        "logistic": random.logistic(keys[2], (2,)),
        "truncated": random.truncated_normal(keys[3], -1.0, scale, (2, 2)).shape[0],
        "rademacher": random.rademacher(keys[4], (5,)),
        "cauchy": jnp.tanh(random.cauchy(keys[5], (3,))),
    }


@program("f32[] 80..120", "f32[] 80..120", "f32[] 0.1..0.4")
def black_scholes(spot, strike, volatility):
    rate, t = 0.03, 0.5
    d1 = (jnp.log(spot / strike) + (rate + volatility**2 / 2) * t) / (volatility * jnp.sqrt(t))
    d2 = d1 - volatility * jnp.sqrt(t)
    call = spot * norm.cdf(d1) - strike * jnp.exp(-rate * t) * norm.cdf(d2)
    return {"call": call / 100, "put": (call - spot + strike * jnp.exp(-rate * t)) / 100, "delta": norm.cdf(d1)}


@program("f64[] 8..12", "f64[] 8..12", "f64[] 0.1..0.4", x64=True)
def american_put_on_a_tree(spot, strike, volatility):
    n, dt, rate = 4, 0.25, 0.05
    up = jnp.exp(volatility * jnp.sqrt(dt))
    p = (jnp.exp(rate * dt) - 1 / up) / (up - 1 / up)
    j = jnp.arange(n + 1)
    price = lambda step: spot * up ** (2 * j - step)

    def back(value, step):
        held = jnp.exp(-rate * dt) * (p * jnp.roll(value, -1) + (1 - p) * value)
        exercised = jnp.maximum(strike - price(step), 0.0)
        value = jnp.where(j <= step, jnp.maximum(held, exercised), 0.0)
        return value, value[0]

    return lax.scan(back, jnp.maximum(strike - price(n), 0.0), jnp.arange(n - 1, -1, -1))[1]


@program("f32[] 0.05..0.3", "f32[] 0.5..1.5", "u32[] 0..100")
def asian_option_by_simulation(volatility, spot, seed):
    def path(key):
        steps = random.normal(key, (4,)) * volatility * 0.5 - volatility**2 / 8
        prices = spot * jnp.exp(jnp.cumsum(steps))
        return jax.nn.relu(prices.mean() - 1.0)

    payoffs = jax.vmap(path)(random.split(random.key(seed), 8))
    return payoffs.mean(), payoffs.std() / jnp.sqrt(8.0)


@program("f64[3] 0.1..0.5", "f64[3,3]", x64=True, tolerance=100)
def minimum_variance_portfolio(returns, root):
    cov = root @ root.T + 0.5 * jnp.eye(3)
    ones = jnp.ones(3)
    a, b = jnp.linalg.solve(cov, ones), jnp.linalg.solve(cov, returns)
    gram = jnp.array([[ones @ a, ones @ b], [returns @ a, returns @ b]])
    weights = a * 0.7 / (ones @ a) + b * 0.3 / (ones @ b)
    return weights, jnp.sqrt(weights @ cov @ weights), jnp.linalg.det(gram)


@program("f32[] 3..8", "f32[] 0.1..0.3")
def implied_volatility(price, guess):
    def call(sigma):
        d1 = (jnp.log(100 / 100) + 0.5 * sigma**2) / sigma
        return 100 * (norm.cdf(d1) - norm.cdf(d1 - sigma))

    def step(_, sigma):
        value, vega = jax.value_and_grad(call)(sigma)
        return sigma - (value - price) / vega

    return lax.fori_loop(0, 3, step, guess)


@program("f32[5] 0.01..0.05", "f32[5]")
def bond_duration(rates, flows):
    times = jnp.arange(1.0, 6.0)
    discount = jnp.cumprod(1 / (1 + rates))
    value = lambda shift: jnp.sum(jnp.abs(flows) * discount * jnp.exp(-shift * times))
    price, slope = jax.value_and_grad(value)(0.0)
    return price, -slope / price, jax.grad(jax.grad(value))(0.0) / price


@program("f32[4]", "f32[4]", 0.05)
def value_at_risk(returns, weights, level):
    portfolio = returns * jax.nn.softmax(weights)
    ordered = jnp.sort(portfolio)
    cut = jnp.quantile(portfolio, level)
    tail = jnp.where(ordered <= cut, ordered, 0.0)
    return cut, tail.sum() / jnp.maximum((ordered <= cut).sum(), 1)


@program("f32[6]")
def drawdown_and_sharpe(returns):
    wealth = jnp.exp(jnp.cumsum(0.1 * returns))
    peak = lax.cummax(wealth)
    drawdown = 1 - wealth / peak
    return drawdown.max(), returns.mean() / returns.std(), jnp.argmax(drawdown)


@program("f32[3]", "u32[] 0..100")
def antithetic_control_variate(c, seed):
    z = random.normal(random.key(seed), (8,))
    z = jnp.concatenate([z, -z])
    f = jnp.exp(c[0] * 0.3 * z) + c[1] * z**2
    g = z**2
    slope = jnp.cov(f, g)[0, 1] / g.var(ddof=1)
    return (f - slope * (g - 1.0)).mean(), f.mean(), c[2] * slope


@program("u32[] 0..100", "i32[2] 3..9")
def hashed_sketch(seed, keys):
    coefficients = random.randint(random.key(seed), (3, 2), 1, 101)
    rows = (coefficients[:, :1] * keys + coefficients[:, 1:]) % 101 % 8
    sketch = jnp.zeros((3, 8), jnp.int32).at[jnp.arange(3)[:, None], rows].add(1)
    return sketch, sketch[jnp.arange(3)[:, None], rows].min(0)


@program("f32[3]", "u32[] 0..100")
def evolution_strategy(x, seed):
    cost = lambda x: jnp.sum((x - 1) ** 2) + jnp.prod(x)

    def generation(x, key):
        noise = random.normal(key, (4, 3))
        costs = jax.vmap(cost)(x + 0.1 * noise)
        ranks = jnp.argsort(jnp.argsort(costs))
        return x - 0.1 * (ranks - 1.5) @ noise, costs.min()

    return lax.scan(generation, x, random.split(random.key(seed), 3))


@program("f32[2]", "u32[] 0..100")
def brownian_bridge(ends, seed):
    z = random.normal(random.key(seed), (3,))
    middle = ends.mean() + 0.5 * z[0]
    left = (ends[0] + middle) / 2 + 0.35 * z[1]
    right = (middle + ends[1]) / 2 + 0.35 * z[2]
    path = jnp.stack([ends[0], left, middle, right, ends[1]])
    return path, jnp.sum(jnp.diff(path) ** 2)


@program("f32[3]", "f32[2]", "u32[] 0..100")
def ornstein_uhlenbeck(start, params, seed):
    rate, scale = jax.nn.softplus(params)

    def step(x, key):
        x = x * jnp.exp(-rate * 0.1) + scale * jnp.sqrt(-jnp.expm1(-0.2 * rate)) * random.normal(key, x.shape)
        return x, x.mean()

    return lax.scan(step, start, random.split(random.key(seed), 4))


@program("f32[4]", "u32[] 0..100")
def diffusion_training_loss(x, seed):
    k1, k2 = random.split(random.key(seed))
    t = random.uniform(k1)
    noise = random.normal(k2, x.shape)
    alpha = jnp.cos(0.5 * jnp.pi * t) ** 2
    noisy = jnp.sqrt(alpha) * x + jnp.sqrt(1 - alpha) * noise
    predicted = jnp.tanh(noisy * (1 + t)) + 0.1 * noisy[::-1]
    return jnp.mean((predicted - noise) ** 2) / (1 + t)
