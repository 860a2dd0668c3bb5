"""Indexing, scatters, cumulative operations, contractions, ragged data."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from written import FORWARD, REVERSE, WHILE, program

# Those with respect to the factors.
REPEATED_PRODUCTS = {
    key: "scatter_mul gradients are only implemented if"
    for key in (*FORWARD, *REVERSE)
    if key not in ("jacfwd", "jacrev", "hessian")
}


@program("f32[4]", "f32[5]", "i32[5] 0..4")
def scatters_of_every_kind(base, updates, where):
    added = base.at[where].add(updates)
    scaled = base.at[jnp.array([3, 1])].multiply(updates[:2], unique_indices=True)
    largest = base.at[where].max(updates)
    smallest = base.at[where].min(updates)
    return added, scaled, largest - smallest, base.at[1:3].power(2).at[0].divide(2.0)


@program("f32[4]", "f32[5]", "i32[5] 0..4", refuses=REPEATED_PRODUCTS)
def products_at_repeated_places(base, updates, where):
    scaled = base.at[where].multiply(updates)
    return scaled, jnp.cos(base) * scaled.sum(), jax.ops.segment_prod(updates, where, num_segments=4)


@program("f32[3,4]", "i32[3] -6..6", "i32[3] 0..4")
def gathers_beyond_the_end(x, rows, columns):
    filled = x.at[rows, columns].get(mode="fill", fill_value=-1.0)
    clipped = x.at[rows, columns].get(mode="clip")
    wrapped = jnp.take(x, rows, axis=0, mode="wrap")
    dropped = x.at[rows, columns].add(1.0, mode="drop")
    return filled, clipped, wrapped.sum(1), dropped


@program("f32[3,4,2]", "i32[2,2] 0..3", "bool[4]")
def mixed_indexing(x, i, mask):
    a = x[i, :, 0]
    b = x[::2, None, -1, ::-1]
    c = jnp.where(mask[:, None], x, 0.0)[..., 1]
    return a.sum((0, 1)), b, c[jnp.array([2, 0])], x[i[0], jnp.arange(2), i[1] % 2]


@program("f32[4,3]", "i32[4] 0..3")
def one_hot_against_gather(x, labels):
    onehot = jax.nn.one_hot(labels, 3)
    by_product = jnp.einsum("nk,nk->n", x, onehot)
    by_gather = x[jnp.arange(4), labels]
    confusion = onehot.T @ jax.nn.one_hot(jnp.argmax(x, 1), 3)
    return by_product - by_gather, by_gather, confusion


@program("f32[2,3,4]", "f32[4,3,2]", "f32[3,3]")
def einsum_of_many_letters(a, b, c):
    chain = jnp.einsum("abc,cbd,be->ade", a, b, c)
    trace = jnp.einsum("ii->", c) + jnp.einsum("abc,abc->", a, jnp.einsum("cba->abc", b))
    outer = jnp.einsum("...bc,be->...ec", a, c)
    return chain, trace, outer.sum(-1)


@program("f32[2,3]", "f32[3,2,2]", "f32[2,2]")
def tensor_train_contraction(first, core, last):
    left = jnp.tensordot(first, core, axes=([1], [0]))
    full = jnp.einsum("iab,bc->iac", left, last)
    matrix = full.reshape(4, 2)
    return full, jnp.kron(last, last)[0], matrix.T @ matrix


@program("f32[6]", "bool[6]")
def segmented_scan(x, starts):
    def combine(left, right):
        flag_l, sum_l = left
        flag_r, sum_r = right
        return flag_l | flag_r, jnp.where(flag_r, sum_r, sum_l + sum_r)

    _, sums = lax.associative_scan(combine, (starts, x))
    return sums, lax.associative_scan(jnp.maximum, x, reverse=True)


@program("f32[4,2,2]")
def matrix_products_of_all_prefixes(ms):
    ms = 0.5 * ms + jnp.eye(2)
    prefixes = lax.associative_scan(jnp.matmul, ms)

    def step(p, m):
        p = p @ m
        return p, jnp.linalg.det(p)

    last, dets = lax.scan(step, jnp.eye(2), ms)
    return prefixes, prefixes[-1] - last, dets


@program("f32[3,4]")
def cumulative_operations(x):
    return {
        "sum": jnp.cumsum(x, 1),
        "product": jnp.cumprod(x, 0)[-1],
        "max": lax.cummax(x, axis=1),
        "min": lax.cummin(x, axis=0, reverse=True),
        "logsumexp": lax.cumlogsumexp(x, axis=1),
    }


@program("f32[7]", "i32[7] 0..3")
def segment_reductions(x, ids):
    total = jax.ops.segment_sum(x, ids, num_segments=3)
    count = jax.ops.segment_sum(jnp.ones_like(ids), ids, num_segments=3)
    mean = total / jnp.maximum(count, 1)
    top = jax.ops.segment_max(x, ids, num_segments=3)
    top = jnp.where(count > 0, top, 0.0)
    spread = jax.ops.segment_sum((x - mean[ids]) ** 2, ids, num_segments=3)
    return mean, top, spread, count


@program("f32[6]", "f32[3]")
def top_k_and_thresholds(x, y):
    values, where = lax.top_k(x, 3)
    kept = jnp.where(x >= values[-1], x, 0.0)
    back = jnp.zeros_like(x).at[where].set(values * y)
    return kept, back, where


@program("f32[5]", "f32[6]")
def sort_with_a_passenger(keys, values):
    ordered, carried = lax.sort_key_val(keys, values[:5])
    inverse = jnp.argsort(jnp.argsort(keys))
    return carried[inverse], ordered, jnp.searchsorted(ordered, values), jnp.digitize(values, ordered)


@program("f32[3,4]", "bool[3,4]")
def masked_statistics(x, mask):
    mask = mask.at[:, 0].set(True)
    count = mask.sum(1)
    mean = jnp.mean(x, axis=1, where=mask)
    var = jnp.var(x, axis=1, where=mask)
    top = jnp.max(x, axis=1, where=mask, initial=-jnp.inf)
    return mean, jnp.sqrt(var + 0.1), top, jnp.sum(x, where=mask), count


@program("f32[3,4]", "bool[3,4]")
def statistics_without_nans(x, missing):
    x = jnp.where(missing.at[:, 1].set(False), jnp.nan, x)
    mean = jnp.nanmean(x, axis=0)
    filled = jnp.where(jnp.isnan(x), 0.5, x)
    return jnp.nansum(x, 1), jnp.nanmax(x, axis=1), filled @ filled.T, jnp.isnan(mean)


@program("f32[4]", "f32[3]", "i32[] 0..4")
def padded_ragged_rows(a, b, length):
    rows = jnp.stack([a, jnp.pad(b, (0, 1))])
    lengths = jnp.array([4, 3])
    mask = jnp.arange(4) < jnp.minimum(lengths, length + 1)[:, None]
    flat = jnp.where(mask, rows, 0).ravel()
    return flat, jnp.where(mask.any(0), rows.sum(0) / jnp.maximum(mask.sum(0), 1), 0.0)


class Queue(NamedTuple):
    items: object
    head: object
    size: object


@program("f32[5]", "bool[5]")
def ring_buffer(values, push):
    def step(queue, inputs):
        value, pushing = inputs
        tail = (queue.head + queue.size) % 3
        pushed = queue._replace(items=queue.items.at[tail].set(value), size=jnp.minimum(queue.size + 1, 3))
        popped = Queue(queue.items, (queue.head + 1) % 3, jnp.maximum(queue.size - 1, 0))
        queue = jax.tree.map(lambda a, b: jnp.where(pushing, a, b), pushed, popped)
        return queue, queue.items[queue.head]

    start = Queue(jnp.zeros(3), jnp.array(0), jnp.array(0))
    return lax.scan(step, start, (values, push))


@program("f32[4]", "i32[4] 0..3")
def stack_machine(constants, codes):
    def step(state, inputs):
        stack, top = state
        constant, code = inputs
        pushed = stack.at[top].set(constant)
        a, b = stack[top - 1], stack[top - 2]
        results = jnp.stack([constant, a + b, a * b])
        out = jnp.where(code == 0, pushed[top], results[code])
        return (pushed.at[top].set(out), top + 1), out

    return lax.scan(step, (jnp.ones(6), 2), (constants, codes))


@program("f32[2,3]", "f32[3]")
def broadcasting_rules(x, y):
    a, b = jnp.broadcast_arrays(x, y)
    stacked = jnp.stack([a, b], axis=1)
    tiled = jnp.tile(y, (2, 2))
    blocks = jnp.block([[x, x[:, :1]], [y[None], jnp.ones((1, 1))]])
    return stacked * y, tiled[:, 1:4], blocks, jnp.squeeze(x[:1], 0) + 1


@program("f32[2,3,4]")
def axis_gymnastics(x):
    y = jnp.moveaxis(x, 0, -1)
    z = jnp.swapaxes(y, 0, 1).reshape(4, -1)
    w = lax.collapse(lax.expand_dims(x, (1,)), 1, 3)
    parts = jnp.split(x, [1, 3], axis=2)
    return z, w.sum(1), [p.mean() for p in parts], jnp.roll(x, (1, -1), (0, 2))[1, ::-1]


@program("f32[3,3]", "f32[2]")
def triangles_and_diagonals(x, y):
    low = jnp.tril(x, -1)
    sym = low + low.T + jnp.diag(jnp.diagonal(x))
    packed = x[jnp.triu_indices(3)]
    built = jnp.zeros((3, 3)).at[jnp.tril_indices(3)].set(packed)
    return sym, built @ sym, jnp.diag(y, 1), jnp.trace(x, offset=1), jnp.fill_diagonal(x, 2.0, inplace=False)


@program("f32[3]", "f32[3]", "i32[] 0..6")
def weak_types_and_promotion(x, y, n):
    half = n * 0.5
    table = jnp.full((3,), 2) * x
    count = jnp.sum(x > 0)
    return half, table, count, n + 1, (n + 1.0) * y, jnp.asarray(3) * n, 2**n, x.astype(jnp.float16) * 2


@program("i8[3] -9..9", "f16[3]", "bf16[3]", "u8[3] 0..9")
def promotion_of_narrow_dtypes(i, h, b, u):
    return i + h, h * b, u - i, b + 1, i / u.astype(jnp.int8).clip(1), jnp.where(i > 0, h, 0), jnp.mean(u), i**2


@program("f64[3]", "f32[3]", "c128[2]", x64=True, tolerance=1e6)
def promotion_with_64_bits(d, s, z):
    mixed = s * 2 + d
    return mixed, s.sum(), jnp.arange(3) * s, z * d[0], jnp.ones(2), jnp.abs(z), (s > 0).sum()


@program("f32[0,3]", "f32[3]", "f32[1]")
def empty_and_single_arrays(none, x, one):
    total = none.sum(0) + x
    joined = jnp.concatenate([none, x[None]])
    mean = lax.scan(lambda c, row: (c + row.sum(), row), 0.0, none)
    return total * one, joined, mean, jnp.cumsum(none, 1).shape[1], jnp.all(none > 0), one.std()


@program({"a": ["f32[2]", None, ("f32[]", {"deep": "f32[1,2]"})], "b": ()}, "i32[] 0..3")
def nested_containers(tree, n):
    doubled = jax.tree.map(lambda x: x * 2, tree)
    leaves, structure = jax.tree.flatten(doubled)
    total = sum(leaf.sum() for leaf in leaves)
    picked = lax.switch(n, [lambda t: t, lambda t: jax.tree.map(jnp.sin, t), lambda t: jax.tree.map(jnp.tanh, t)], tree)
    return jax.tree.unflatten(structure, leaves), total, picked


@program("f32[3]", {"rate": 0.5, "shape": (2, 3)}, (1, 2.0))
def numbers_among_the_arguments(x, options, pair):
    y = x * options["rate"] + jnp.ones(options["shape"])
    first, second = pair
    return y, first * x, second, first + second, jax.tree.map(lambda v: v * 2, pair)


@program("f32[4]", "f32[4]", "f32[4]")
def carries_that_swap(a, b, c):
    def step(state, t):
        (a, b), named = state
        a, b = b, jnp.sin(a) + t
        return ((a, b), {"c": named["c"] * 0.5 + a}), (a.sum(), None)

    return lax.scan(step, ((a, b), {"c": c}), jnp.arange(3.0), reverse=True)


@program("f32[3,2]", "f32[2]")
def scan_inside_of_scan(xs, start):
    def outer(carry, row):
        def inner(c, x):
            c = c * 0.5 + jnp.tanh(x)
            return c, c**2

        last, squares = lax.scan(inner, carry.sum(), row)
        return carry + last, squares

    return lax.scan(outer, start, xs)


@program("f32[3]", "i32[] 1..5", refuses=WHILE)
def loop_of_given_length(x, n):
    def step(i, state):
        x, total = state
        x = jnp.where(i % 2 == 0, jnp.sin(x), x * 1.1)
        return x, total + x[i % 3]

    return lax.fori_loop(0, n, step, (x, 0.0))


@program("f32[4,2]", "f32[2]")
def map_in_batches(xs, w):
    def one(x):
        y = lax.cond(x.sum() > 0, lambda x: x * w, lambda x: x - w, x)
        return {"y": y, "n": jnp.linalg.norm(y) + 1.0}

    return lax.map(one, xs), lax.map(lambda x: x @ w, xs, batch_size=2)


@program("f32[2,3]", "f32[3,2]")
def vmap_over_different_axes(a, b):
    dots = jax.vmap(jnp.dot, (0, 1))(a, b)
    outer = jax.vmap(jax.vmap(lambda x, y: jnp.sin(x * y), (None, 0)), (0, None), out_axes=1)(a[0], b[:, 0])
    named = jax.vmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")(a)
    return dots, outer, named


@program("f32[4,3]", "f32[3]")
def collectives_over_a_named_axis(x, w):
    def one(row):
        total = lax.psum(row, "batch")
        mine = lax.axis_index("batch")
        right = lax.ppermute(row, "batch", [(i, (i + 1) % 4) for i in range(4)])
        return (row - total / 4) * w, right * mine, lax.all_gather(row[0], "batch")

    return jax.vmap(one, axis_name="batch")(x)


@program("f32[6]")
def piecewise_and_select(x):
    conditions = [x < -0.5, x < 0.5]
    chosen = jnp.select(conditions, [x**2, jnp.sin(x)], 0.1 * x)
    pieces = jnp.piecewise(x, [x < 0, x >= 1], [lambda v: -v, lambda v: v**2, 0.5])
    nth = lax.select_n(x > 0, x * 2, x * 3)
    return chosen, pieces, nth, lax.clamp(-0.5, x, 0.5)


@program("f32[2,3,2]", "f32[2,2]")
def batched_linear_algebra(a, b):
    gram = jnp.matmul(a.transpose(0, 2, 1), a) + jnp.eye(2)
    x = jnp.linalg.solve(gram, b[..., None])[..., 0]
    low = jnp.linalg.cholesky(gram)
    return x, low, jnp.linalg.det(gram), jnp.linalg.norm(a, axis=(1, 2))


@program("f32[5]", "f32[3]")
def polynomial_arithmetic(p, q):
    product = jnp.polymul(p, q)
    slope = jnp.polyder(p)
    value = jnp.polyval(product, jnp.array([0.5, -0.3]))
    return product, slope, value, jnp.convolve(q, q), jnp.polyint(q)


@program("f32[3,3]", np.arange(3, dtype=np.int32))
def permutation_matrices(x, order):
    shuffled = x[jnp.roll(order, 1)]
    p = jnp.eye(3)[jnp.roll(order, 1)]
    sign = jnp.linalg.det(p)
    return shuffled - p @ x, sign, jnp.take_along_axis(x, jnp.argsort(x, 1), 1)
