"""A program as a user writes it who checks types: mypy --strict accepts it (typing_test.py), and it runs."""

from __future__ import annotations

from typing import assert_type

import numpy as np

import weft
import weft.numpy as wnp
from weft import lax, nn, random
from weft.typing import ArrayLike, Jitted

Params = dict[str, weft.Array]


def predict(params: Params, x: weft.Array) -> weft.Array:
    hidden = nn.relu(x @ params["w1"] + params["b1"])
    return nn.log_softmax(hidden @ params["w2"], axis=-1)


def loss(params: Params, x: weft.Array, labels: weft.Array, *, decay: float = 0.0) -> weft.Array:
    chosen = wnp.take_along_axis(predict(params, x), labels[:, None], axis=1)
    return -wnp.mean(chosen) + decay * sum(wnp.sum(w**2) for w in params.values())


@weft.jit
def step(params: Params, x: weft.Array, labels: weft.Array, rate: float = 0.1) -> tuple[Params, weft.Array]:
    value, gradient = weft.value_and_grad(loss)(params, x, labels, decay=1e-4)
    assert_type(value, weft.Array)
    assert_type(gradient, Params)
    return {name: params[name] - rate * gradient[name] for name in params}, value


@weft.jit(static_argnames="power")
def raised(x: weft.Array, power: int) -> weft.Array:
    return x**power


class Scaled:
    def __init__(self, by: float) -> None:
        self.by = by

    @weft.jit(static_argnums=0)
    def times(self, x: weft.Array) -> weft.Array:
        return x * self.by


@weft.custom_jvp
def log1pexp(x: weft.Array) -> weft.Array:
    return wnp.log(1 + wnp.exp(x))


@log1pexp.defjvp
def log1pexp_jvp(primals: tuple[weft.Array], tangents: tuple[weft.Array]) -> tuple[weft.Array, weft.Array]:
    (x,), (t,) = primals, tangents
    return log1pexp(x), (1 - 1 / (1 + wnp.exp(x))) * t


def mean_and_size(x: weft.Array) -> tuple[weft.Array, int]:
    return wnp.mean(x), x.size


def total(x: ArrayLike) -> weft.Array:
    return wnp.sum(wnp.asarray(x))


def main() -> list[float]:
    keys = random.split(random.key(0), 3)
    params: Params = {
        "w1": random.normal(keys[0], (4, 8)),
        "b1": wnp.zeros(8),
        "w2": nn.initializers.glorot_uniform()(keys[1], (8, 3)),
    }
    x, labels = random.normal(keys[2], (16, 4)), wnp.arange(16) % 3

    assert_type(step(params, x, labels)[1], weft.Array)
    losses: list[float] = []
    for _ in range(20):
        params, value = step(params, x, labels, rate=0.5)
        losses.append(float(value))

    # Functions of functions keep signatures and results.
    signature: Jitted[[weft.Array], weft.Array] = weft.jit(wnp_sin)
    assert_type(signature(x), weft.Array)
    assert_type(raised(x, power=2), weft.Array)
    assert_type(weft.grad(lambda_free)(wnp.ones(3)), weft.Array)
    assert_type(weft.grad(loss)(params, x, labels), Params)
    assert_type(weft.grad(mean_and_size, has_aux=True)(x), tuple[weft.Array, int])
    assert_type(weft.vmap(lambda_free)(wnp.ones((2, 3))), weft.Array)
    assert_type(weft.checkpoint(lambda_free)(wnp.ones(3)), weft.Array)
    assert_type(weft.jvp(lambda_free, (x,), (x,)), tuple[weft.Array, weft.Array])
    assert_type(weft.vjp(lambda_free, x)[0], weft.Array)
    assert_type(weft.linearize(lambda_free, x)[0], weft.Array)
    assert_type(log1pexp(x), weft.Array)
    assert_type(weft.stop_gradient(params), Params)
    assert_type(Scaled(2.0).times(x), weft.Array)

    # Control flow has the type of what the functions return.
    assert_type(weft.cond(x.sum() > 0, lambda_free, lambda_free, x), weft.Array)
    assert_type(weft.while_loop(lambda v: v < 10, double, wnp.ones(())), weft.Array)
    assert_type(weft.fori_loop(0, 3, add_index, wnp.ones(())), weft.Array)
    assert_type(weft.scan(running, wnp.zeros(4), x), tuple[weft.Array, weft.Array])

    # Arrays, their operators and methods; NumPy's arrays and numbers go where arrays do.
    assert_type(x.sum(axis=(0, 1)), weft.Array)
    assert_type(x.at[0].set(1.0), weft.Array)
    assert_type(2.0 * x + np.ones(4, np.float32), weft.Array)
    assert_type(wnp.maximum(x, 0), weft.Array)
    assert_type(lax.add(x, np.float32(1)), weft.Array)
    assert_type(wnp.linalg.norm(x), weft.Array)
    assert_type(nn.layer_norm(x, np.ones(4, np.float32), axis=1), weft.Array)
    assert_type(x.astype(wnp.promote_types("int8", x.dtype)), weft.Array)
    assert_type(x.shape, tuple[int, ...])
    assert_type(total([1.0, 2.0][0]), weft.Array)

    ir = weft.make_ir(loss)(params, weft.ShapeDtype(("n", 4), "float32"), weft.ShapeDtype(("n",), "int32"))
    assert_type(ir, weft.IR)
    assert_type(ir.text, str)
    return losses


def wnp_sin(x: weft.Array) -> weft.Array:
    return wnp.sin(x)


def lambda_free(x: weft.Array) -> weft.Array:
    return wnp.sum(x**2)


def double(x: weft.Array) -> weft.Array:
    return x * 2


def add_index(i: weft.Array, x: weft.Array) -> weft.Array:
    return x + i


def running(carry: weft.Array, row: weft.Array) -> tuple[weft.Array, weft.Array]:
    return carry + row, wnp.sum(carry)


if __name__ == "__main__":
    print(main()[-1])
