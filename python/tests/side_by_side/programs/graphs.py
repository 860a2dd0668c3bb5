"""Graphs, dynamic programming, games, automata, sorting networks."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from written import WHILE, program


@program("f32[4,2]", "f32[2,2]", "i32[6] 0..4", "i32[6] 0..4")
def message_passing(nodes, w, senders, receivers):
    def layer(h, _):
        messages = jnp.tanh(h[senders] @ w)
        total = jax.ops.segment_sum(messages, receivers, num_segments=4)
        degree = jax.ops.segment_sum(jnp.ones(6), receivers, num_segments=4)
        return h + total / jnp.maximum(degree, 1)[:, None], None

    return lax.scan(layer, nodes, None, length=2)[0]


@program("f32[4,2]", "f32[4]", "i32[6] 0..4", "i32[6] 0..4")
def graph_attention(nodes, a, senders, receivers):
    score = jnp.concatenate([nodes[senders], nodes[receivers]], -1) @ a
    top = jax.ops.segment_max(score, receivers, num_segments=4)
    weight = jnp.exp(score - top[receivers])
    total = jax.ops.segment_sum(weight, receivers, num_segments=4)
    weight = weight / total[receivers]
    return jnp.zeros_like(nodes).at[receivers].add(weight[:, None] * nodes[senders])


@program("f32[5,5]")
def page_rank(weights):
    links = jnp.where(weights > 0, weights, 0) + 0.01
    p = links / links.sum(0)

    def step(_, r):
        return 0.85 * p @ r + 0.15 / 5

    ranks = lax.fori_loop(0, 6, step, jnp.full(5, 0.2))
    return ranks, jnp.argsort(-ranks)


@program("f32[3,3]", "i32[] 1..6")
def markov_chain_power(logits, steps):
    p = jax.nn.softmax(logits, axis=1)
    many = jnp.linalg.matrix_power(p, 4)
    stationary = jnp.linalg.solve(jnp.eye(3) - p.T + 1.0, jnp.ones(3))
    return many[0], stationary, steps * 2


@program("f32[4,4] 0.5..3")
def floyd_warshall(distance):
    d = jnp.where(jnp.eye(4, dtype=bool), 0.0, distance)

    def through(k, d):
        return jnp.minimum(d, d[:, k, None] + d[None, k])

    d = lax.fori_loop(0, 4, through, d)
    return d, d.max()


@program("f32[6] 0.5..3")
def bellman_ford(lengths):
    sources, targets = jnp.array([0, 0, 1, 2, 2, 3]), jnp.array([1, 2, 3, 1, 3, 4])

    def relax(distance, _):
        offered = distance[sources] + lengths
        distance = distance.at[targets].min(offered)
        return distance, None

    start = jnp.full(5, 100.0).at[0].set(0.0)
    return lax.scan(relax, start, None, length=4)[0]


@program("i32[5,5] 0..2")
def reachable_by_squaring(edges):
    step = (edges > 0) | jnp.eye(5, dtype=bool)

    def more(state):
        _, changed = state
        return changed

    def square(state):
        reach, _ = state
        wider = (reach.astype(jnp.int32) @ reach.astype(jnp.int32)) > 0
        return wider, jnp.any(wider != reach)

    reach, _ = lax.while_loop(more, square, (step, jnp.array(True)))
    return reach, reach.sum(1)


@program("i32[5,5] 0..2", "i32[] 0..5")
def breadth_first_levels(edges, source):
    adjacency = (edges + edges.T) > 0

    def more(state):
        _, frontier, _ = state
        return frontier.any()

    def expand(state):
        level, frontier, depth = state
        reached = (adjacency & frontier[:, None]).any(0) & (level < 0)
        return jnp.where(reached, depth + 1, level), reached, depth + 1

    start = jnp.arange(5) == source
    level, _, depth = lax.while_loop(more, expand, (jnp.where(start, 0, -1), start, jnp.array(0)))
    return level, depth


@program("i32[6] 0..3", "i32[5] 0..3")
def edit_distance(a, b):
    def row(previous, ai):
        def cell(left, cells):
            up, diagonal, bj = cells
            best = jnp.minimum(jnp.minimum(left, up) + 1, diagonal + (ai != bj))
            return best, best

        first = previous[0] + 1
        _, rest = lax.scan(cell, first, (previous[1:], previous[:-1], b))
        current = jnp.concatenate([first[None], rest])
        return current, current

    last, table = lax.scan(row, jnp.arange(6), a)
    return last[-1], table


@program("f32[4]", "f32[3]")
def soft_dynamic_time_warping(x, y):
    cost = (x[:, None] - y[None]) ** 2

    def row(previous, c):
        def cell(left, cells):
            up, diagonal, cost = cells
            soft = -jax.nn.logsumexp(-jnp.stack([left, up, diagonal]))
            return cost + soft, cost + soft

        _, rest = lax.scan(cell, 1e3, (previous[1:], previous[:-1], c))
        return jnp.concatenate([jnp.array([1e3]), rest]), None

    start = jnp.array([0.0, 1e3, 1e3, 1e3])
    return lax.scan(row, start, cost)[0][-1]


@program("i32[5] 1..6", "i32[5] 1..10")
def knapsack(weights, values):
    capacity = jnp.arange(11)

    def item(best, wv):
        weight, value = wv
        without = jnp.where(capacity >= weight, best[jnp.maximum(capacity - weight, 0)] + value, 0)
        return jnp.maximum(best, without), without > best

    best, taken = lax.scan(item, jnp.zeros(11, jnp.int32), (weights, values))
    return best, taken.sum(0)


@program("i32[7] 0..20")
def longest_increasing_subsequence(x):
    def step(lengths, i):
        before = (x < x[i]) & (jnp.arange(7) < i)
        length = jnp.where(before, lengths, 0).max() + 1
        return lengths.at[i].set(length), length

    lengths, _ = lax.scan(step, jnp.zeros(7, jnp.int32), jnp.arange(7))
    return lengths.max(), lengths


@program("f32[7]")
def largest_subarray(x):
    def step(state, v):
        here, best = state
        here = jnp.maximum(v, here + v)
        return (here, jnp.maximum(best, here)), here

    (_, best), trail = lax.scan(step, (0.0, -jnp.inf), x)
    return best, jnp.argmax(trail)


@program("i32[] 5..30")
def coin_change_counts(target):
    ways = jnp.zeros(32, jnp.int32).at[0].set(1)
    for coin in (1, 2, 5, 10):

        def add(i, ways, coin=coin):
            return ways.at[i].add(ways[i - coin])

        ways = lax.fori_loop(coin, 32, add, ways)
    return ways[target], ways[:8]


@program("f32[3,3]", "f32[4]")
def grid_path_cost(grid, rewards):
    def row(above, costs):
        def cell(left, ac):
            above, cost = ac
            best = jnp.minimum(left, above) + cost
            return best, best

        _, out = lax.scan(cell, 1e6, (above, costs))
        return out, out

    start = jnp.concatenate([jnp.zeros(1), jnp.full(2, 1e6)])
    last, table = lax.scan(row, start, grid**2)
    return last[-1] + rewards.sum(), table


@program("i32[6,6] 0..2")
def game_of_life_generations(board):
    def step(b, _):
        n = sum(jnp.roll(b, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
        b = ((n == 3) | ((b == 1) & (n == 2))).astype(b.dtype)
        return b, b.sum()

    return lax.scan(step, board, None, length=5)


@program("bool[9]", "u8[] 0..255")
def elementary_automaton(cells, rule):
    def step(cells, _):
        pattern = jnp.roll(cells, 1) * 4 + cells * 2 + jnp.roll(cells, -1)
        cells = (jnp.right_shift(rule, pattern.astype(jnp.uint8)) & 1).astype(bool)
        return cells, cells

    return lax.scan(step, cells, None, length=6)


@program("f32[4,4]")
def sandpile(heights):
    def step(h, _):
        over = h > 0.8
        spill = jnp.where(over, 0.8, 0.0)
        padded = jnp.pad(spill / 4, 1)
        received = padded[2:, 1:-1] + padded[:-2, 1:-1] + padded[1:-1, 2:] + padded[1:-1, :-2]
        return h - spill + received, over.sum()

    return lax.scan(step, heights, None, length=3)


@program("f32[8]")
def bitonic_sort(x):
    for size in (2, 4, 8):
        stride = size // 2
        while stride:
            i = np.arange(8)
            partner = i ^ stride
            ascending = (i & size) == 0
            low = (i < partner) == ascending
            x = jnp.where(low, jnp.minimum(x, x[partner]), jnp.maximum(x, x[partner]))
            stride //= 2
    return x


@program("i16[6] -50..50")
def odd_even_transposition_sort(x):
    def round_(i, x):
        start = i % 2
        left = jnp.where((jnp.arange(6) % 2) == start, jnp.arange(6), jnp.arange(6) - 1)
        right = jnp.minimum(left + 1, 5)
        valid = (left >= 0) & (left < 5)
        low = jnp.minimum(x[left], x[right])
        high = jnp.maximum(x[left], x[right])
        swapped = jnp.where(jnp.arange(6) == left, low, high)
        return jnp.where(valid, swapped, x)

    ordered = lax.fori_loop(0, 6, round_, x)
    return ordered, jnp.all(ordered[1:] >= ordered[:-1])


@program("f32[6]")
def insertion_sort(x):
    def insert(i, x):
        def shift(state):
            j, x = state
            a, b = x[j - 1], x[j]
            return j - 1, x.at[j - 1].set(b).at[j].set(a)

        return lax.while_loop(lambda s: (s[0] > 0) & (s[1][s[0] - 1] > s[1][s[0]]), shift, (i, x))[1]

    return jax.lax.stop_gradient(lax.fori_loop(1, 6, insert, x)), jnp.sort(x)


@program("i32[] 1..30", "i32[] 1..40")
def collatz(n, other):
    def more(state):
        return state[0] != 1

    def step(state):
        n, steps, peak = state
        n = jnp.where(n % 2 == 0, n // 2, 3 * n + 1)
        return n, steps + 1, jnp.maximum(peak, n)

    def length(n):
        return lax.while_loop(more, step, (n, 0, n))[1:]

    return length(n), jax.vmap(length)(other + jnp.arange(3))


@program("i32[4] 1..60", "i32[4] 1..60")
def euclid(a, b):
    def gcd(a, b):
        return lax.while_loop(lambda s: s[1] != 0, lambda s: (s[1], s[0] % s[1]), (a, b))[0]

    g = jax.vmap(gcd)(a, b)
    return g, a // g * b, g == jnp.gcd(a, b)


@program("f32[6]", "f32[6,3]")
def beam_search(start, scores):
    def step(beam, row):
        values, _ = beam
        candidates = (values[:, None] + row).ravel()
        best, which = lax.top_k(candidates, 2)
        parent, token = which // 3, which % 3
        return (best, token), (parent, token)

    first, tokens = lax.top_k(start[:3], 2)
    (values, _), trail = lax.scan(step, (first, tokens), scores)
    return values, trail


# Factors that are powers of two: XLA computes q twice, and would miss the maximum if the two were rounded differently.
@program("f32[3,3]", "f32[3]", 0.5)
def value_iteration(rewards, exits, discount):
    moves = jnp.array([[0, 1, 1], [0, 2, 2], [1, 2, 0]])

    def step(values, _):
        q = rewards + discount * values[moves] + 0.125 * exits
        return q.max(1), jnp.argmax(q, 1)

    return lax.scan(step, jnp.zeros(3), None, length=4)


@program("f32[5]", "f32[5]", 0.95, 0.8)
def generalised_advantages(rewards, values, gamma, decay):
    after = jnp.append(values[1:], 0.0)
    delta = rewards + gamma * after - values

    def step(advantage, d):
        advantage = d + gamma * decay * advantage
        return advantage, advantage

    _, advantages = lax.scan(step, 0.0, delta, reverse=True)
    return advantages, (advantages - advantages.mean()) / (advantages.std() + 1e-3)


@program("f32[3,4]", "f32[4]", "i32[6] 0..4")
def q_learning(table, rewards, actions):
    def step(state, action):
        q, s = state
        s_after = (s + action) % 3
        target = rewards[action] + 0.9 * q[s_after].max()
        error = target - q[s, action]
        return (q.at[s, action].add(0.5 * error), s_after), error

    return lax.scan(step, (table, 0), actions)


@program("f32[5]", "i32[] 0..100")
def multi_armed_bandit(means, seed):
    def pull(state, key):
        total, count = state
        bound = total / jnp.maximum(count, 1) + jnp.sqrt(2 / (count + 0.1))
        arm = jnp.argmax(bound)
        reward = lax.stop_gradient(means[arm]) + 0.1 * jax.random.normal(key)
        return (total.at[arm].add(reward), count.at[arm].add(1)), arm

    keys = jax.random.split(jax.random.key(seed), 6)
    return lax.scan(pull, (jnp.zeros(5), jnp.zeros(5)), keys)


@program("f32[4,4]", "f32[4]")
def sinkhorn_transport(cost, logits):
    kernel = jnp.exp(-(cost**2))
    target = jax.nn.softmax(logits)

    def step(uv, _):
        u, v = uv
        u = 0.25 / (kernel @ v)
        v = target / (kernel.T @ u)
        return (u, v), None

    (u, v), _ = lax.scan(step, (jnp.ones(4), jnp.ones(4)), None, length=4)
    plan = u[:, None] * kernel * v
    return jnp.sum(plan * cost**2), plan


@program("f32[3,2]", "f32[4,2]")
def chamfer_distance(a, b):
    squared = jnp.sum((a[:, None] - b[None]) ** 2, -1)
    nearest = jnp.argmin(squared, 1)
    return jnp.sqrt(squared.min(1) + 0.01).mean() + jnp.sqrt(squared.min(0) + 0.01).mean(), b[nearest] - a


@program("f32[] 0..3", "f32[] 1..4", refuses=WHILE)
def random_walk_until_exit(start, width):
    def inside(state):
        x, _, n = state
        return (jnp.abs(x) < width) & (n < 20)

    def step(state):
        x, key, n = state
        key, use = jax.random.split(key)
        return x * 1.01 + jnp.where(jax.random.bernoulli(use), 0.5, -0.5), key, n + 1

    x, _, n = lax.while_loop(inside, step, (start * 0.2, jax.random.key(7), 0))
    return x, n
