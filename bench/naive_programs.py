"""Programs as a newcomer writes them, each beside the form of somebody who knows what they cost, for both libraries.

Each entry of PROGRAMS: kind -> [(name, operands, naive, expert)]. `operands` are shapes of normal numbers in f32 (an
int in place of a shape: an index below it, a list of two ints: so many indices below the second); functions get the
library's numpy, the library, and the operands.
"""

from __future__ import annotations

N = 384  # of square matrices


def stable(np, A):
    """A matrix of the same shape whose powers neither grow nor vanish."""
    return A / np.sqrt(np.float32(A.shape[0]))


def power_by_squaring(A, n):
    result = None
    while n:
        if n & 1:
            result = A if result is None else result @ A
        n >>= 1
        if n:
            A = A @ A
    return result


def lstm_step(np, lib, x, h, c, gates):
    i, f, g, o = gates
    s = lib.nn.sigmoid
    c = s(f) * c + s(i) * np.tanh(g)
    return s(o) * np.tanh(c), c


def lstm_naive(np, lib, x, h, c, *w):
    gates = [x @ w[k] + h @ w[4 + k] for k in range(4)]
    return lstm_step(np, lib, x, h, c, gates)


def lstm_expert(np, lib, x, h, c, *w):
    wx, wh = np.concatenate(w[:4], 1), np.concatenate(w[4:], 1)
    gates = np.split(x @ wx + h @ wh, 4, 1)
    return lstm_step(np, lib, x, h, c, gates)


def lstm_scan_naive(np, lib, xs, *w):
    def step(carry, x):
        h, c = lstm_naive(np, lib, x, *carry, *w)
        return (h, c), h

    zero = np.zeros((xs.shape[1], w[4].shape[0]), np.float32)
    return lib.lax.scan(step, (zero, zero), xs)[1]


def lstm_scan_expert(np, lib, xs, *w):
    wx, wh = np.concatenate(w[:4], 1), np.concatenate(w[4:], 1)
    before = xs @ wx

    def step(carry, x):
        h, c = carry
        h, c = lstm_step(np, lib, x, h, c, np.split(x + h @ wh, 4, 1))
        return (h, c), h

    zero = np.zeros((xs.shape[1], w[4].shape[0]), np.float32)
    return lib.lax.scan(step, (zero, zero), before)[1]


def attention(np, lib, q, k, v):
    s = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(np.float32(q.shape[-1]))
    return np.einsum("hqk,khd->qhd", lib.nn.softmax(s, -1), v)


def heads_naive(np, lib, x, wq, wk, wv):
    out = []
    for h in range(wq.shape[0]):
        q, k, v = x @ wq[h], x @ wk[h], x @ wv[h]
        out.append(lib.nn.softmax(q @ k.T / np.sqrt(np.float32(q.shape[-1])), -1) @ v)
    return np.concatenate(out, -1)


def heads_expert(np, lib, x, wq, wk, wv):
    q, k, v = (np.einsum("td,hde->the", x, w) for w in (wq, wk, wv))
    return attention(np, lib, q, k, v).reshape(x.shape[0], -1)


def grad_of(f, over):
    """The gradient of the sum of what `f` gives."""

    def g(np, lib, *x):
        def total(*y):
            out = f(np, lib, *y)
            return np.sum(out[0] if isinstance(out, tuple) else out)

        return lib.grad(total, argnums=over)(*x)

    return g


def loop_of_products(np, lib, A, v):
    return lib.lax.fori_loop(0, 16, lambda i, x: x @ A, v)


def scan_sum(np, lib, step, first, xs):
    return lib.lax.scan(lambda carry, x: (carry + step(x), None), first, xs)[0]


PROGRAMS = {
    "matrix chains": [
        ("(A@B)@v", [(N, N), (N, N), (N,)], lambda np, lib, A, B, v: (A @ B) @ v, lambda np, lib, A, B, v: A @ (B @ v)),
        ("v@(A@B)", [(N,), (N, N), (N, N)], lambda np, lib, v, A, B: v @ (A @ B), lambda np, lib, v, A, B: (v @ A) @ B),
        (
            "A@B@C@v",
            [(N, N), (N, N), (N, N), (N,)],
            lambda np, lib, A, B, C, v: A @ B @ C @ v,
            lambda np, lib, A, B, C, v: A @ (B @ (C @ v)),
        ),
        (
            "A@B@C by order",
            [(N, 16), (16, N), (N, 16)],
            lambda np, lib, A, B, C: A @ B @ C,
            lambda np, lib, A, B, C: A @ (B @ C),
        ),
        (
            "A@(B@C) by order",
            [(16, N), (N, N), (N, N)],
            lambda np, lib, A, B, C: A @ (B @ C),
            lambda np, lib, A, B, C: (A @ B) @ C,
        ),
        (
            "chain of four",
            [(200, 8), (8, 600), (600, 8), (8, 200)],
            lambda np, lib, A, B, C, D: ((A @ B) @ C) @ D,
            lambda np, lib, A, B, C, D: A @ ((B @ C) @ D),
        ),
        (
            "x.T@A@B@x",
            [(N, N), (N, N), (N,)],
            lambda np, lib, A, B, x: x.T @ (A @ B) @ x,
            lambda np, lib, A, B, x: np.dot(x @ A, B @ x),
        ),
        (
            "stacked (A@B)@v",
            [(8, 128, 128), (8, 128, 128), (8, 128, 1)],
            lambda np, lib, A, B, v: (A @ B) @ v,
            lambda np, lib, A, B, v: A @ (B @ v),
        ),
        (
            "(u v.T)@A",
            [(N,), (N,), (N, N)],
            lambda np, lib, u, v, A: np.outer(u, v) @ A,
            lambda np, lib, u, v, A: np.outer(u, v @ A),
        ),
        (
            "(u v.T)@w",
            [(N,), (N,), (N,)],
            lambda np, lib, u, v, w: np.outer(u, v) @ w,
            lambda np, lib, u, v, w: u * np.dot(v, w),
        ),
        (
            "gradient of |(A@B)@v|^2",
            [(N, N), (N, N), (N,)],
            grad_of(lambda np, lib, A, B, v: np.sum(((A @ B) @ v) ** 2), 2),
            grad_of(lambda np, lib, A, B, v: np.sum((A @ (B @ v)) ** 2), 2),
        ),
        (
            "einsum of three",
            [(N, N), (N, N), (N,)],
            lambda np, lib, A, B, v: np.einsum("ij,jk,k->i", A, B, v),
            lambda np, lib, A, B, v: A @ (B @ v),
        ),
        (
            "projection X@inv(X.T@X)@X.T@y",
            [(N, 64), (N,)],
            lambda np, lib, X, y: X @ np.linalg.inv(X.T @ X) @ X.T @ y,
            lambda np, lib, X, y: X @ np.linalg.solve(X.T @ X, X.T @ y),
        ),
        (
            "kron(A,B)@v",
            [(32, 32), (32, 32), (1024,)],
            lambda np, lib, A, B, v: np.kron(A, B) @ v,
            lambda np, lib, A, B, v: (A @ v.reshape(32, 32) @ B.T).reshape(-1),
        ),
    ],
    "traces and diagonals": [
        (
            "trace(kron(A, B))",
            [(40, 40), (40, 40)],
            lambda np, lib, A, B: np.trace(np.kron(A, B)),
            lambda np, lib, A, B: np.trace(A) * np.trace(B),
        ),
        ("trace(A@B)", [(N, N), (N, N)], lambda np, lib, A, B: np.trace(A @ B), lambda np, lib, A, B: np.sum(A * B.T)),
        (
            "trace(A@B@C)",
            [(N, N), (N, 16), (16, N)],
            lambda np, lib, A, B, C: np.trace(A @ B @ C),
            lambda np, lib, A, B, C: np.sum((A @ B) * C.T),
        ),
        ("sum of diag(A)", [(N, N)], lambda np, lib, A: np.sum(np.diag(A)), lambda np, lib, A: np.trace(A)),
        (
            "diag(A@B)",
            [(N, N), (N, N)],
            lambda np, lib, A, B: np.diag(A @ B),
            lambda np, lib, A, B: np.sum(A * B.T, 1),
        ),
        (
            "diagonal by index",
            [(N, N), (N, N)],
            lambda np, lib, A, B: (A @ B)[np.arange(N), np.arange(N)],
            lambda np, lib, A, B: np.einsum("ij,ji->i", A, B),
        ),
        ("diag(d)@A", [(N,), (N, N)], lambda np, lib, d, A: np.diag(d) @ A, lambda np, lib, d, A: d[:, None] * A),
        ("A@diag(d)", [(N, N), (N,)], lambda np, lib, A, d: A @ np.diag(d), lambda np, lib, A, d: A * d),
        (
            "A@diag(d)@B",
            [(N, N), (N,), (N, N)],
            lambda np, lib, A, d, B: A @ np.diag(d) @ B,
            lambda np, lib, A, d, B: (A * d) @ B,
        ),
        ("eye@A", [(N, N)], lambda np, lib, A: np.eye(N, dtype=np.float32) @ A, lambda np, lib, A: A + 0),
        (
            "A@(B + 2 eye)",
            [(N, N), (N, N)],
            lambda np, lib, A, B: A @ (B + 2 * np.eye(N, dtype=np.float32)),
            lambda np, lib, A, B: A @ B + 2 * A,
        ),
        (
            "row norms by A@A.T",
            [(N, N)],
            lambda np, lib, A: np.sqrt(np.diag(A @ A.T)),
            lambda np, lib, A: np.sqrt(np.sum(A * A, 1)),
        ),
        (
            "gradient of trace(A@B)",
            [(N, N), (N, N)],
            grad_of(lambda np, lib, A, B: np.trace(A @ B), 0),
            lambda np, lib, A, B: B.T + 0,
        ),
        (
            "mahalanobis diag(X@S@X.T)",
            [(600, 32), (32, 32)],
            lambda np, lib, X, S: np.diag(X @ S @ X.T),
            lambda np, lib, X, S: np.sum((X @ S) * X, 1),
        ),
    ],
    "sums of products": [
        (
            "A@B + A@C",
            [(N, N), (N, N), (N, N)],
            lambda np, lib, A, B, C: A @ B + A @ C,
            lambda np, lib, A, B, C: A @ (B + C),
        ),
        (
            "A@C - B@C",
            [(N, N), (N, N), (N, N)],
            lambda np, lib, A, B, C: A @ C - B @ C,
            lambda np, lib, A, B, C: (A - B) @ C,
        ),
        (
            "A@(B+C) of low ranks",
            [(N, N), (N,), (N,), (N,)],
            lambda np, lib, A, u, v, w: (A + np.outer(u, v)) @ w,
            lambda np, lib, A, u, v, w: A @ w + u * np.dot(v, w),
        ),
        (
            "(2A)@(3B)",
            [(N, N), (N, 8)],
            lambda np, lib, A, B: (2 * A) @ (3 * B),
            lambda np, lib, A, B: A @ (6 * B),
        ),
        (
            "sum of an outer product",
            [(2000,), (2000,)],
            lambda np, lib, u, v: np.sum(np.outer(u, v)),
            lambda np, lib, u, v: np.sum(u) * np.sum(v),
        ),
        (
            "product by broadcasting",
            [(128, 128), (128, 128)],
            lambda np, lib, A, B: np.sum(A[:, :, None] * B[None, :, :], 1),
            lambda np, lib, A, B: A @ B,
        ),
        (
            "pairwise squared distances",
            [(300, 64), (300, 64)],
            lambda np, lib, X, Y: np.sum((X[:, None, :] - Y[None, :, :]) ** 2, -1),
            lambda np, lib, X, Y: np.sum(X * X, 1)[:, None] + np.sum(Y * Y, 1) - 2 * X @ Y.T,
        ),
    ],
    "parts of products": [
        ("(A@B)[i]", [(N, N), (N, N)], lambda np, lib, A, B: (A @ B)[5], lambda np, lib, A, B: A[5] @ B),
        (
            "(A@B)[i], i traced",
            [(N, N), (N, N), N],
            lambda np, lib, A, B, i: (A @ B)[i],
            lambda np, lib, A, B, i: A[i] @ B,
        ),
        (
            "(A@B)[i, j]",
            [(N, N), (N, N)],
            lambda np, lib, A, B: (A @ B)[5, 7],
            lambda np, lib, A, B: np.dot(A[5], B[:, 7]),
        ),
        ("(A@B)[:, :k]", [(N, N), (N, N)], lambda np, lib, A, B: (A @ B)[:, :8], lambda np, lib, A, B: A @ B[:, :8]),
        ("(A@B)[:, j]", [(N, N), (N, N)], lambda np, lib, A, B: (A @ B)[:, 3], lambda np, lib, A, B: A @ B[:, 3]),
        ("(A@B)[-1]", [(N, N), (N, N)], lambda np, lib, A, B: (A @ B)[-1], lambda np, lib, A, B: A[-1] @ B),
        (
            "(A@B)[rows]",
            [(N, N), (N, N), [8, N]],
            lambda np, lib, A, B, rows: (A @ B)[rows],
            lambda np, lib, A, B, rows: A[rows] @ B,
        ),
        (
            "tanh(A@B + c)[0]",
            [(N, N), (N, N), (N,)],
            lambda np, lib, A, B, c: np.tanh(A @ B + c)[0],
            lambda np, lib, A, B, c: np.tanh(A[0] @ B + c),
        ),
        ("(A@B).sum(0)", [(N, N), (N, N)], lambda np, lib, A, B: (A @ B).sum(0), lambda np, lib, A, B: A.sum(0) @ B),
        ("(A@B).sum(1)", [(N, N), (N, N)], lambda np, lib, A, B: (A @ B).sum(1), lambda np, lib, A, B: A @ B.sum(1)),
        (
            "(A@B).mean()",
            [(N, N), (N, N)],
            lambda np, lib, A, B: (A @ B).mean(),
            lambda np, lib, A, B: np.dot(A.mean(0), B.mean(1)),
        ),
        (
            "one-hot @ table",
            [(2000, 64), [256, 2000]],
            lambda np, lib, T, i: lib.nn.one_hot(i, 2000, dtype=np.float32) @ T,
            lambda np, lib, T, i: T[i],
        ),
        (
            "one-hot by comparison",
            [(1000, 64), [128, 1000]],
            lambda np, lib, T, i: (i[:, None] == np.arange(1000)).astype(np.float32) @ T,
            lambda np, lib, T, i: T[i],
        ),
        (
            "triangle of ones @ x",
            [(N, 64)],
            lambda np, lib, X: np.tril(np.ones((N, N), np.float32)) @ X,
            lambda np, lib, X: np.cumsum(X, 0),
        ),
        (
            "tri(n) @ v",
            [(1000,)],
            lambda np, lib, v: np.tri(1000, dtype=np.float32) @ v,
            lambda np, lib, v: np.cumsum(v),
        ),
    ],
    "products with a common operand": [
        (
            "q, k, v",
            [(256, 128), (128, 128), (128, 128), (128, 128)],
            lambda np, lib, x, q, k, v: (x @ q, x @ k, x @ v),
            lambda np, lib, x, q, k, v: tuple(np.split(x @ np.concatenate([q, k, v], 1), 3, 1)),
        ),
        (
            "heads one by one",
            [(128, 128), (8, 128, 16), (8, 128, 16), (8, 128, 16)],
            heads_naive,
            heads_expert,
        ),
        (
            "heads one by one, gradient",
            [(128, 128), (8, 128, 16), (8, 128, 16), (8, 128, 16)],
            grad_of(heads_naive, (1, 2, 3)),
            grad_of(heads_expert, (1, 2, 3)),
        ),
        ("LSTM step", [(32, 128), (32, 128), (32, 128)] + 8 * [(128, 128)], lstm_naive, lstm_expert),
        ("LSTM over 64 steps", [(64, 16, 64)] + 4 * [(64, 64)] + 4 * [(64, 64)], lstm_scan_naive, lstm_scan_expert),
        (
            "LSTM over 64 steps, gradient",
            [(64, 16, 64)] + 4 * [(64, 64)] + 4 * [(64, 64)],
            grad_of(lstm_scan_naive, (1, 2, 3, 4, 5, 6, 7, 8)),
            grad_of(lstm_scan_expert, (1, 2, 3, 4, 5, 6, 7, 8)),
        ),
        (
            "Gram matrix by vmaps",
            [(200, 64)],
            lambda np, lib, X: lib.vmap(lambda a: lib.vmap(lambda b: np.sum(a * b))(X))(X),
            lambda np, lib, X: X @ X.T,
        ),
        (
            "Gram matrix by map",
            [(200, 64)],
            lambda np, lib, X: lib.lax.map(lambda a: lib.lax.map(lambda b: np.dot(a, b), X), X),
            lambda np, lib, X: X @ X.T,
        ),
        (
            "Gram matrix by rows",
            [(24, 64)],
            lambda np, lib, X: np.stack([np.stack([X[i] @ X[j] for j in range(24)]) for i in range(24)]),
            lambda np, lib, X: X @ X.T,
        ),
        (
            "covariance by outer products",
            [(300, 32)],
            lambda np, lib, X: np.mean(lib.vmap(lambda x: np.outer(x, x))(X), 0),
            lambda np, lib, X: X.T @ X / 300,
        ),
    ],
    "more than is read": [
        (
            "exp(broadcast)",
            [(1000,)],
            lambda np, lib, x: np.exp(np.broadcast_to(x, (1000, 1000))).sum(0),
            lambda np, lib, x: np.exp(x) * 1000,
        ),
        (
            "tanh(x[:, None] + zeros)",
            [(1000,)],
            lambda np, lib, x: np.tanh(x[:, None] + np.zeros((1000, 500), np.float32)),
            lambda np, lib, x: np.broadcast_to(np.tanh(x)[:, None], (1000, 500)) + 0,
        ),
        (
            "exp(repeat)",
            [(2000,)],
            lambda np, lib, x: np.exp(np.repeat(x, 200)),
            lambda np, lib, x: np.repeat(np.exp(x), 200),
        ),
        (
            "f(table)[i]",
            [(20000, 32), [64, 20000]],
            lambda np, lib, T, i: np.tanh(T)[i],
            lambda np, lib, T, i: np.tanh(T[i]),
        ),
        (
            "normalised table, gathered",
            [(20000, 32), [64, 20000]],
            lambda np, lib, T, i: (T / np.sqrt(np.sum(T * T, 1, keepdims=True)))[i],
            lambda np, lib, T, i: T[i] / np.sqrt(np.sum(T[i] * T[i], 1, keepdims=True)),
        ),
        (
            "(E@W)[i]",
            [(5000, 64), (64, 64), [64, 5000]],
            lambda np, lib, E, W, i: (E @ W)[i],
            lambda np, lib, E, W, i: E[i] @ W,
        ),
        (
            "f(x)[:k]",
            [(200000,)],
            lambda np, lib, x: np.log1p(np.exp(np.sin(x)))[:100],
            lambda np, lib, x: np.log1p(np.exp(np.sin(x[:100]))),
        ),
        (
            "where, both branches",
            [(), (300, 300), (300, 300)],
            lambda np, lib, p, A, B: np.where(p > 0, A @ B, A - B),
            lambda np, lib, p, A, B: lib.lax.cond(p > 0, lambda: A @ B, lambda: A - B),
        ),
        (
            "before a cond",
            [(), (300, 300), (300, 300)],
            lambda np, lib, p, A, B: (lambda C: lib.lax.cond(p > 5, lambda: C, lambda: A))(A @ B),
            lambda np, lib, p, A, B: lib.lax.cond(p > 5, lambda: A @ B, lambda: A),
        ),
        ("sort(x)[0]", [(20000,)], lambda np, lib, x: np.sort(x)[0], lambda np, lib, x: np.min(x)),
        ("sort(x)[-1]", [(20000,)], lambda np, lib, x: np.sort(x)[-1], lambda np, lib, x: np.max(x)),
        ("sort(x)[::-1][0]", [(20000,)], lambda np, lib, x: np.sort(x)[::-1][0], lambda np, lib, x: np.max(x)),
        ("max(sort(x))", [(20000,)], lambda np, lib, x: np.max(np.sort(x)), lambda np, lib, x: np.max(x)),
        ("sum(sort(x))", [(20000,)], lambda np, lib, x: np.sum(np.sort(x)), lambda np, lib, x: np.sum(x)),
        ("argsort(x)[-1]", [(20000,)], lambda np, lib, x: np.argsort(x)[-1], lambda np, lib, x: np.argmax(x)),
        ("cumsum(x)[-1]", [(200000,)], lambda np, lib, x: np.cumsum(x)[-1], lambda np, lib, x: np.sum(x)),
        (
            "mean of repeated",
            [(2000,)],
            lambda np, lib, x: np.mean(np.repeat(x, 100)),
            lambda np, lib, x: np.mean(x),
        ),
        (
            "sum of tiles",
            [(2000,)],
            lambda np, lib, x: np.sum(np.tile(x, 100)),
            lambda np, lib, x: 100 * np.sum(x),
        ),
        (
            "concatenate, then a part",
            [(100000,), (100000,)],
            lambda np, lib, x, y: np.concatenate([np.sin(x), np.cos(y)])[:1000],
            lambda np, lib, x, y: np.sin(x[:1000]),
        ),
    ],
    "loops": [
        (
            "x@A, 16 times",
            [(N, N), (N,)],
            lambda np, lib, A, v: loop_of_products(np, lib, stable(np, A), v),
            lambda np, lib, A, v: loop_of_products(np, lib, stable(np, A), v),
        ),
        (
            "powers of a matrix",
            [(200, 200)],
            lambda np, lib, A: lib.lax.fori_loop(0, 16, lambda i, P: P @ stable(np, A), np.eye(200, dtype=np.float32)),
            lambda np, lib, A: power_by_squaring(stable(np, A), 16),
        ),
        (
            "A@A@A@A@A@A@A@A",
            [(200, 200)],
            lambda np, lib, A: (lambda S: S @ S @ S @ S @ S @ S @ S @ S)(stable(np, A)),
            lambda np, lib, A: power_by_squaring(stable(np, A), 8),
        ),
        (
            "x*x*...*x, 16 times",
            [(100000,)],
            lambda np, lib, x: __import__("functools").reduce(lambda a, b: a * b, 16 * [x]),
            lambda np, lib, x: np.square(np.square(np.square(np.square(x)))),
        ),
        (
            "x**8 by a loop",
            [(100000,)],
            lambda np, lib, x: lib.lax.fori_loop(0, 8, lambda i, p: p * x, np.ones_like(x)),
            lambda np, lib, x: np.square(np.square(np.square(x))),
        ),
        (
            "dot by scan",
            [(4000,), (4000,)],
            lambda np, lib, x, y: lib.lax.scan(lambda c, ab: (c + ab[0] * ab[1], None), np.float32(0), (x, y))[0],
            lambda np, lib, x, y: np.dot(x, y),
        ),
        (
            "sum by fori_loop",
            [(4000,)],
            lambda np, lib, x: lib.lax.fori_loop(0, 4000, lambda i, s: s + x[i], np.float32(0)),
            lambda np, lib, x: np.sum(x),
        ),
        (
            "X.T@X by scan",
            [(400, 48)],
            lambda np, lib, X: scan_sum(np, lib, lambda x: np.outer(x, x), np.zeros((48, 48), np.float32), X),
            lambda np, lib, X: X.T @ X,
        ),
        (
            "rows @ W by map",
            [(400, 64), (64, 64)],
            lambda np, lib, X, W: lib.lax.map(lambda x: x @ W, X),
            lambda np, lib, X, W: X @ W,
        ),
        (
            "f of rows by map",
            [(400, 64), (64, 64)],
            lambda np, lib, X, W: lib.lax.map(lambda x: np.tanh(x @ W).sum(), X),
            lambda np, lib, X, W: np.tanh(X @ W).sum(1),
        ),
        (
            "a carry that never changes",
            [(64, 64), (64,)],
            lambda np, lib, W, v: lib.lax.scan(
                lambda c, _: ((c[0], np.tanh((c[0] @ c[0]) @ c[1])), None), (stable(np, W), v), None, length=50
            )[0][1],
            lambda np, lib, W, v: (lambda S: lib.lax.scan(lambda c, _: (np.tanh(S @ c), None), v, None, length=50)[0])(
                stable(np, W) @ stable(np, W)
            ),
        ),
        (
            "constant in a loop",
            [(64, 64), (64, 64), (64,)],
            lambda np, lib, A, B, v: lib.lax.fori_loop(0, 50, lambda i, x: np.tanh((A @ B).sum(0) * x), v),
            lambda np, lib, A, B, v: (lambda s: lib.lax.fori_loop(0, 50, lambda i, x: np.tanh(s * x), v))(A.sum(0) @ B),
        ),
        (
            "exp of constants in a loop",
            [(1000,), (1000,)],
            lambda np, lib, w, v: lib.lax.fori_loop(0, 100, lambda i, x: x * 0.5 + np.exp(np.sin(w)), v),
            lambda np, lib, w, v: (lambda e: lib.lax.fori_loop(0, 100, lambda i, x: x * 0.5 + e, v))(np.exp(np.sin(w))),
        ),
        (
            "prefix sums by scan",
            [(4000,)],
            lambda np, lib, x: lib.lax.scan(lambda c, a: (c + a, c + a), np.float32(0), x)[1],
            lambda np, lib, x: np.cumsum(x),
        ),
        (
            "maximum by scan",
            [(4000,)],
            lambda np, lib, x: lib.lax.scan(lambda c, a: (np.maximum(c, a), None), np.float32(-1e30), x)[0],
            lambda np, lib, x: np.max(x),
        ),
    ],
    "systems": [
        (
            "inv(A)@b",
            [(N, N), (N,)],
            lambda np, lib, A, b: np.linalg.inv(A) @ b,
            lambda np, lib, A, b: np.linalg.solve(A, b),
        ),
        (
            "inv(A)@B@v",
            [(N, N), (N, N), (N,)],
            lambda np, lib, A, B, v: np.linalg.inv(A) @ B @ v,
            lambda np, lib, A, B, v: np.linalg.solve(A, B @ v),
        ),
        (
            "b@inv(A)@b",
            [(N, N), (N,)],
            lambda np, lib, A, b: b @ np.linalg.inv(A) @ b,
            lambda np, lib, A, b: np.dot(b, np.linalg.solve(A, b)),
        ),
        (
            "solve(A, B@v)",
            [(N, N), (N, N), (N,)],
            lambda np, lib, A, B, v: np.linalg.solve(A, B) @ v,
            lambda np, lib, A, B, v: np.linalg.solve(A, B @ v),
        ),
        (
            "solve(tril(A, -1) + eye, b)",
            [(N, N), (N,)],
            lambda np, lib, A, b: np.linalg.solve(np.tril(A / N, -1) + np.eye(N, dtype="float32"), b),
            lambda np, lib, A, b: lib.scipy.linalg.solve_triangular(A / N, b, lower=True, unit_diagonal=True),
        ),
        (
            "solve(diag(d), b)",
            [(N,), (N,)],
            lambda np, lib, d, b: np.linalg.solve(np.diag(1 + d * d), b),
            lambda np, lib, d, b: b / (1 + d * d),
        ),
        (
            "det(triu(A))",
            [(N, N)],
            lambda np, lib, A: np.linalg.slogdet(np.triu(A))[1],
            lambda np, lib, A: np.sum(np.log(np.abs(np.diag(A)))),
        ),
        (
            "solve(X@X.T + c*eye, b)",
            [(N, N), (N,)],
            lambda np, lib, X, b: np.linalg.solve(X @ X.T + 0.5 * np.eye(N, dtype="float32"), b),
            lambda np, lib, X, b: lib.scipy.linalg.cho_solve(
                (np.linalg.cholesky(X @ X.T + 0.5 * np.eye(N, dtype="float32")), True), b
            ),
        ),
        ("inv(inv(A))", [(200, 200)], lambda np, lib, A: np.linalg.inv(np.linalg.inv(A)), lambda np, lib, A: A + 0),
        (
            "log(det(A))",
            [(200, 200)],
            lambda np, lib, A: np.log(np.abs(np.linalg.det(A / 10))),
            lambda np, lib, A: np.linalg.slogdet(A / 10)[1],
        ),
    ],
    "repeated and dead parts": [
        (
            "the same twice",
            [(N, N), (N, N)],
            lambda np, lib, A, B: np.sum(A @ B) + np.max(A @ B),
            lambda np, lib, A, B: (lambda C: np.sum(C) + np.max(C))(A @ B),
        ),
        (
            "transposed again",
            [(N, N), (N, N)],
            lambda np, lib, A, B: A @ B + (B.T @ A.T).T,
            lambda np, lib, A, B: 2 * (A @ B),
        ),
        (
            "times zero of a mask",
            [(N, N), (N, N)],
            lambda np, lib, A, B: (A @ B) * 1.0 + (A - A),
            lambda np, lib, A, B: A @ B,
        ),
        (
            "dead carry",
            [(64, 64), (64,)],
            lambda np, lib, W, v: lib.lax.scan(
                lambda c, _: ((np.tanh(c[0] @ stable(np, W)), c[1] + W @ W), None), (v, W), None, length=30
            )[0][0],
            lambda np, lib, W, v: lib.lax.scan(lambda c, _: (np.tanh(c @ stable(np, W)), None), v, None, length=30)[0],
        ),
        (
            "stacked, last read",
            [(64, 64), (64,)],
            lambda np, lib, W, v: lib.lax.scan(
                lambda c, _: (np.tanh(c @ stable(np, W)), np.exp(np.outer(c, c))), v, None, length=30
            )[1][-1],
            lambda np, lib, W, v: (lambda c: np.exp(np.outer(c, c)))(
                lib.lax.scan(lambda c, _: (np.tanh(c @ stable(np, W)), None), v, None, length=29)[0]
            ),
        ),
    ],
}
