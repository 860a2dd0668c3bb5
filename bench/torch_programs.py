"""Programs in two spellings, for Weft and JAX, and for PyTorch: what bench/beside_torch.py measures.

A program is a function of NumPy arrays. `shared(lib, np)` gives it for a library with JAX's names, `torch(torch, F)`
for PyTorch, as its own users would write it: with its fused operations where it has one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy

Function = Callable[..., object]


@dataclass
class Program:
    name: str
    shared: Callable[[object, object], Function]
    torch: Callable[[object, object], Function]
    operands: list[numpy.ndarray]
    gradient: tuple[int, ...] = ()  # operands by which the gradient of the sum of cubes is measured, too
    tolerance: float = 2e-3  # of what is compared, relative to its largest number


@functools.cache
def _numbers(*shape: int, seed: int = 0, scale: float = 1.0) -> numpy.ndarray:
    return (numpy.random.default_rng(seed).standard_normal(shape) * scale).astype("float32")


def _weights(*shape: int, seed: int = 0) -> numpy.ndarray:
    fan = int(numpy.prod(shape[1:])) if len(shape) > 2 else shape[0]
    return _numbers(*shape, seed=seed, scale=fan**-0.5)


def _indices(most: int, *shape: int) -> numpy.ndarray:
    return numpy.random.default_rng(0).integers(0, most, shape).astype("int32")


def elementwise() -> list[Program]:
    x, row = _numbers(1000, 1000), _numbers(1000)
    price = numpy.abs(_numbers(200_000)) + 1
    strike = numpy.abs(_numbers(200_000, seed=1)) + 1

    def black_scholes(exp, log, sqrt, erf):
        def f(s, k):
            d1 = (log(s / k) + 0.07) / 0.3
            d2 = d1 - 0.3
            cdf = lambda z: 0.5 * (1 + erf(z / 2**0.5))
            return s * cdf(d1) - k * exp(-s * 0 - 0.05) * cdf(d2)

        return f

    def layer_norm(lib, np):
        def f(x, g, b):
            m = x.mean(-1, keepdims=True)
            v = ((x - m) ** 2).mean(-1, keepdims=True)
            return (x - m) / np.sqrt(v + 1e-5) * g + b

        return f

    return [
        Program("gelu", lambda lib, np: lambda x: lib.nn.gelu(x, approximate=False), lambda t, F: F.gelu, [x], (0,)),
        Program(
            "silu of a sum",
            lambda lib, np: lambda x, r: lib.nn.silu(x + r),
            lambda t, F: lambda x, r: F.silu(x + r),
            [x, row],
            (0, 1),
        ),
        Program(
            "six sines",
            lambda lib, np: lambda x: functools.reduce(lambda y, _: np.sin(y) * y + x, range(6), x),
            lambda t, F: lambda x: functools.reduce(lambda y, _: t.sin(y) * y + x, range(6), x),
            [x],
            (0,),
        ),
        Program(
            "Black-Scholes",
            lambda lib, np: black_scholes(np.exp, np.log, np.sqrt, lib.scipy.special.erf),
            lambda t, F: black_scholes(t.exp, t.log, t.sqrt, t.erf),
            [price, strike],
            (0, 1),
        ),
        Program(
            "layer norm",
            layer_norm,
            lambda t, F: lambda x, g, b: F.layer_norm(x, (1000,), g, b),
            [x, row, row],
            (0, 1, 2),
        ),
        Program(
            "masked mean",
            lambda lib, np: lambda x: np.where(x > 0, x, 0).sum(1) / (x > 0).sum(1),
            lambda t, F: lambda x: t.where(x > 0, x, 0).sum(1) / (x > 0).sum(1),
            [x],
        ),
        Program("softmax", lambda lib, np: lib.nn.softmax, lambda t, F: lambda x: F.softmax(x, -1), [x]),
        Program(
            "cross-entropy",
            lambda lib, np: lambda x, y: -np.take_along_axis(lib.nn.log_softmax(x), y[:, None], 1).mean(),
            lambda t, F: lambda x, y: F.cross_entropy(x, y.long()),
            [x, _indices(1000, 1000)],
            (0,),
        ),
    ]


def reductions() -> list[Program]:
    x = _numbers(2048, 2048)
    return [
        Program("sum of rows", lambda lib, np: lambda x: x.sum(1), lambda t, F: lambda x: x.sum(1), [x]),
        Program("sum of columns", lambda lib, np: lambda x: x.sum(0), lambda t, F: lambda x: x.sum(0), [x]),
        Program("maximum of columns", lambda lib, np: lambda x: x.max(0), lambda t, F: lambda x: t.amax(x, 0), [x]),
        Program("argmax of rows", lambda lib, np: lambda x: x.argmax(1), lambda t, F: lambda x: x.argmax(1), [x]),
        Program("argmax of columns", lambda lib, np: lambda x: x.argmax(0), lambda t, F: lambda x: x.argmax(0), [x]),
        Program(
            "variance of columns",
            lambda lib, np: lambda x: x.var(0),
            lambda t, F: lambda x: x.var(0, correction=0),
            [x],
        ),
        Program(
            "log-sum-exp",
            lambda lib, np: lambda x: lib.scipy.special.logsumexp(x, axis=1),
            lambda t, F: lambda x: t.logsumexp(x, 1),
            [x],
            (0,),
        ),
        Program("running sums", lambda lib, np: lambda x: np.cumsum(x, 1), lambda t, F: lambda x: t.cumsum(x, 1), [x]),
        Program(
            "sine and cosine",
            lambda lib, np: lambda x: np.sin(x) * np.cos(x) + np.cos(x),
            lambda t, F: lambda x: t.sin(x) * t.cos(x) + t.cos(x),
            [_numbers(1000, 1000)],
            (0,),
        ),
        Program(
            "functions of complex numbers",
            lambda lib, np: lambda z: abs(np.exp(z) * np.sqrt(z) + np.log(z)),
            lambda t, F: lambda z: t.abs(t.exp(z) * t.sqrt(z) + t.log(z)),
            [_numbers(200_000) + 1j * _numbers(200_000, seed=1)],
        ),
        Program(
            "norm",
            lambda lib, np: lambda x: np.sqrt((x * x).sum()),
            lambda t, F: lambda x: t.linalg.vector_norm(x),
            [x],
            (0,),
        ),
    ]


def products() -> list[Program]:
    def mlp(tanh):
        return lambda x, a, b, c: tanh(tanh(x @ a) @ b) @ c

    square = {n: [_numbers(n, n), _numbers(n, n, seed=1)] for n in (512, 1024, 2048)}
    layers = [_numbers(256, 512), _weights(512, 512), _weights(512, 512, seed=1), _weights(512, 64)]
    return [
        *(
            Program(f"product of order {n}", lambda lib, np: np.matmul, lambda t, F: t.matmul, x)
            for n, x in square.items()
        ),
        Program(
            "products, a stack",
            lambda lib, np: np.matmul,
            lambda t, F: t.bmm,
            [_numbers(64, 128, 128), _numbers(64, 128, 128, seed=1)],
            (0, 1),
        ),
        Program(
            "matrix times vector", lambda lib, np: np.matmul, lambda t, F: t.mv, [_numbers(2048, 2048), _numbers(2048)]
        ),
        Program("three layers", lambda lib, np: mlp(np.tanh), lambda t, F: mlp(t.tanh), layers, (1, 2, 3)),
        Program(
            "linear, bias, relu",
            lambda lib, np: lambda x, w, b: lib.nn.relu(x @ w + b),
            lambda t, F: lambda x, w, b: t.relu(t.addmm(b, x, w)),
            [layers[0], layers[1], _numbers(512)],
        ),
        Program(
            "Gram matrix", lambda lib, np: lambda x: x.T @ x, lambda t, F: lambda x: x.T @ x, [_numbers(2000, 500)]
        ),
        Program(
            "distances",
            lambda lib, np: lambda x, y: np.sqrt(((x[:, None] - y[None]) ** 2).sum(-1)),
            lambda t, F: lambda x, y: t.sqrt(((x[:, None] - y[None]) ** 2).sum(-1)),
            [_numbers(600, 16), _numbers(500, 16, seed=1)],
        ),
    ]


def convolutions() -> list[Program]:
    def conv(lib, padding="SAME", groups=1):
        return lambda x, w: lib.lax.conv_general_dilated(x, w, (1, 1), padding, feature_group_count=groups)

    def norm(np):
        def f(x, g, b):
            m = x.mean((0, 2, 3), keepdims=True)
            v = ((x - m) ** 2).mean((0, 2, 3), keepdims=True)
            return (x - m) / np.sqrt(v + 1e-5) * g[:, None, None] + b[:, None, None]

        return f

    def block(lib, np):
        c, n = conv(lib), norm(np)
        return lambda x, v, w, g, b: lib.nn.relu(x + n(c(lib.nn.relu(n(c(x, v), g, b)), w), g, b))

    def torch_block(t, F):
        n = lambda x, g, b: F.batch_norm(x, None, None, g, b, training=True)
        return lambda x, v, w, g, b: F.relu(
            x + n(F.conv2d(F.relu(n(F.conv2d(x, v, padding=1), g, b)), w, padding=1), g, b)
        )

    def lenet(lib, np):
        c = conv(lib, "VALID")
        pool = lambda x: lib.lax.reduce_window(x, -np.inf, lib.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

        def f(x, a, b, d, e):
            h = pool(lib.nn.relu(c(pool(lib.nn.relu(c(x, a))), b)))
            return lib.nn.relu(h.reshape(h.shape[0], -1) @ d) @ e

        return f

    def torch_lenet(t, F):
        def f(x, a, b, d, e):
            h = F.max_pool2d(F.relu(F.conv2d(F.max_pool2d(F.relu(F.conv2d(x, a)), 2), b)), 2)
            return F.relu(h.reshape(h.shape[0], -1) @ d) @ e

        return f

    image = _numbers(8, 64, 32, 32)
    scale = [numpy.ones(64, "float32"), numpy.zeros(64, "float32")]
    digits = [
        _numbers(64, 1, 28, 28),
        _weights(6, 1, 5, 5),
        _weights(16, 6, 5, 5),
        _weights(256, 120),
        _weights(120, 10),
    ]
    return [
        Program(
            "convolution 3x3",
            lambda lib, np: conv(lib),
            lambda t, F: lambda x, w: F.conv2d(x, w, padding=1),
            [image, _weights(64, 64, 3, 3)],
            (0, 1),
        ),
        Program(
            "depthwise convolution",
            lambda lib, np: conv(lib, groups=64),
            lambda t, F: lambda x, w: F.conv2d(x, w, padding=1, groups=64),
            [image, _weights(64, 1, 3, 3)],
            (0, 1),
        ),
        Program(
            "batch norm",
            lambda lib, np: norm(np),
            lambda t, F: lambda x, g, b: F.batch_norm(x, None, None, g, b, training=True),
            [image, *scale],
            (0, 1, 2),
            2e-2,
        ),
        Program(
            "ResNet block",
            block,
            torch_block,
            [image, _weights(64, 64, 3, 3), _weights(64, 64, 3, 3, seed=1), *scale],
            (0, 1, 2, 3, 4),
            2e-2,
        ),
        Program("LeNet", lenet, torch_lenet, digits, (1, 2, 3, 4)),
        Program(
            "mean of windows",
            lambda lib, np: (
                lambda x: lib.lax.reduce_window(x, 0.0, lib.lax.add, (1, 1, 2, 2), (1, 1, 2, 2), "VALID") / 4
            ),
            lambda t, F: lambda x: F.avg_pool2d(x, 2),
            [image],
        ),
    ]


def sequences() -> list[Program]:
    steps, rows, width = 32, 16, 64

    def lstm(lib, np):
        def f(xs, wx, wh, b):
            def step(carry, x):
                h, c = carry
                i, f, g, o = np.split(x @ wx.T + h @ wh.T + b, 4, -1)
                c = lib.nn.sigmoid(f) * c + lib.nn.sigmoid(i) * np.tanh(g)
                h = lib.nn.sigmoid(o) * np.tanh(c)
                return (h, c), h

            zero = np.zeros((xs.shape[1], wh.shape[1]), "float32")
            return lib.lax.scan(step, (zero, zero), xs)[1]

        return f

    def torch_lstm(t, F):
        def f(xs, wx, wh, b):
            zero = xs.new_zeros(1, xs.shape[1], wh.shape[1])
            return t.lstm(xs, (zero, zero), [wx, wh, b, t.zeros_like(b)], True, 1, 0.0, True, False, False)[0]

        return f

    def block(lib, np):
        def norm(x):
            m = x.mean(-1, keepdims=True)
            return (x - m) / np.sqrt(((x - m) ** 2).mean(-1, keepdims=True) + 1e-5)

        def f(x, q, k, v, o, up, down):
            b, t, w = x.shape
            heads = lambda a: a.reshape(b, t, 4, w // 4).transpose(0, 2, 1, 3)
            h = norm(x)
            p = lib.nn.softmax(heads(h @ q) @ heads(h @ k).swapaxes(-1, -2) / (w // 4) ** 0.5)
            x = x + (p @ heads(h @ v)).transpose(0, 2, 1, 3).reshape(x.shape) @ o
            return x + lib.nn.gelu(norm(x) @ up, approximate=False) @ down

        return f

    def torch_block(t, F):
        def f(x, q, k, v, o, up, down):
            b, n, w = x.shape
            heads = lambda a: a.reshape(b, n, 4, w // 4).transpose(1, 2)
            h = F.layer_norm(x, (w,))
            a = F.scaled_dot_product_attention(heads(h @ q), heads(h @ k), heads(h @ v))
            x = x + a.transpose(1, 2).reshape(x.shape) @ o
            return x + F.gelu(F.layer_norm(x, (w,)) @ up) @ down

        return f

    def of_rows(count):
        return [
            _numbers(steps, count, width),
            _numbers(4 * width, width, scale=0.1),
            _numbers(4 * width, width, scale=0.1, seed=1),
            _numbers(4 * width),
        ]

    model = [
        _numbers(4, 64, 128),
        *(_weights(128, 128, seed=i) for i in range(4)),
        _weights(128, 512),
        _weights(512, 128),
    ]
    return [
        Program("LSTM, 16 rows", lstm, torch_lstm, of_rows(rows), (1, 2, 3)),
        Program("LSTM, one row", lstm, torch_lstm, of_rows(1), (1, 2, 3)),
        Program("transformer block", block, torch_block, model, (1, 2, 3, 4, 5, 6)),
    ]


def others() -> list[Program]:
    table, places = _numbers(10_000, 64), _indices(10_000, 4096)
    spd = _numbers(300, 300) @ _numbers(300, 300).T + 300 * numpy.eye(300, dtype="float32")

    def forces(sum_, square_root):
        def f(x):
            d = x[:, None] - x[None]
            r = (d * d).sum(-1) + 1e-2
            return (d / (r * square_root(r))[..., None]).sum(1)

        return f

    def adam(square_root):
        def f(*x):
            n = len(x) // 4
            out = []
            for p, g, m, v in zip(x[:n], x[n : 2 * n], x[2 * n : 3 * n], x[3 * n :], strict=True):
                m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
                out += [p - 0.001 * (m / 0.1) / (square_root(v / 0.001) + 1e-8), m, v]
            return tuple(out)

        return f

    leaves = [numpy.abs(_numbers(200, 100, seed=i)) for i in range(40)]
    return [
        Program(
            "rows of a table",
            lambda lib, np: lambda x, i: x[i].sum(1),
            lambda t, F: lambda x, i: F.embedding(i, x).sum(1),
            [table, places],
            (0,),
        ),
        Program(
            "sums by segment",
            lambda lib, np: lambda x, i: np.zeros((10_000, 64), "float32").at[i].add(x),
            lambda t, F: lambda x, i: t.zeros(10_000, 64).index_add(0, i, x),
            [_numbers(4096, 64), places],
        ),
        Program(
            "sorting rows",
            lambda lib, np: lambda x: np.sort(x, 1),
            lambda t, F: lambda x: t.sort(x, 1)[0],
            [_numbers(500, 1000)],
        ),
        Program(
            "ten largest of rows",
            lambda lib, np: lambda x: lib.lax.top_k(x, 10)[0],
            lambda t, F: lambda x: t.topk(x, 10)[0],
            [_numbers(500, 1000)],
        ),
        Program(
            "forces of bodies",
            lambda lib, np: forces(np.sum, np.sqrt),
            lambda t, F: forces(t.sum, t.sqrt),
            [_numbers(500, 3)],
            (0,),
        ),
        Program(
            "Cholesky and solve",
            lambda lib, np: lambda a, b: lib.scipy.linalg.cho_solve(lib.scipy.linalg.cho_factor(a, lower=True), b),
            lambda t, F: lambda a, b: t.cholesky_solve(b, t.linalg.cholesky(a)),
            [spd, _numbers(300, 8)],
            (),
            2e-2,
        ),
        Program("Adam, ten leaves", lambda lib, np: adam(np.sqrt), lambda t, F: adam(t.sqrt), leaves),
    ]


def all_programs() -> list[Program]:
    return [*elementwise(), *reductions(), *products(), *convolutions(), *sequences(), *others()]
