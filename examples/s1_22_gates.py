"""The gates of an LSTM, eight products as it is written, are two calls (S1-22): weights that meet one operand lie side
by side. Counted forwards and backwards; the values are those of the program as it is written.

./bazelw run //examples:s1_22_gates
"""

import numpy as np

import weft
import weft.numpy as wnp

N = 64


def step(weights, x, state):
    h, c = state
    wi, wf, wg, wo, ui, uf, ug, uo = weights
    i, f = weft.nn.sigmoid(x @ wi + h @ ui), weft.nn.sigmoid(x @ wf + h @ uf)
    g, o = wnp.tanh(x @ wg + h @ ug), weft.nn.sigmoid(x @ wo + h @ uo)
    c = f * c + i * g
    return o * wnp.tanh(c), c


def layer(weights, xs):
    def trip(state, x):
        h, c = step(weights, x, state)
        return (h, c), h

    zero = wnp.zeros((2, N))
    return weft.lax.scan(trip, (zero, zero), xs)[1]


def products(f, *args) -> list[int]:
    """How many products a trip of each loop has, and how many there are outside of loops."""
    program = weft.make_ir(f)(*args).optimized()
    loops = [op for op in program.walk() if op.primitive == "scan"]
    inside = [sum(op.primitive == "contract" for op in loop.regions[0].walk()) for loop in loops]
    return [*inside, sum(op.primitive == "contract" for op in program.walk())]


def main() -> None:
    rng = np.random.default_rng(0)
    weights = [wnp.array(rng.standard_normal((N, N)).astype(np.float32) / 8) for _ in range(8)]
    xs = wnp.array(rng.standard_normal((32, 2, N)).astype(np.float32))
    forward = products(layer, weights, xs)
    print(f"forwards: {forward[0]} products in each of 32 trips, {forward[1]} outside; 8 are written")
    assert forward[0] <= 2
    loss = lambda weights, xs: (layer(weights, xs) ** 2).sum()
    backward = products(weft.grad(loss), weights, xs)
    print(f"value and gradient: {backward[:-1]} products in the trips of the loops, {backward[-1]} outside")
    assert max(backward[:-1]) <= 4
    for mine, written in zip(
        weft.tree.leaves(weft.jit(weft.grad(loss))(weights, xs)),
        weft.tree.leaves(weft.jit(weft.grad(loss), optimize="none")(weights, xs)),
    ):
        np.testing.assert_allclose(mine, written, rtol=2e-3, atol=1e-5)


if __name__ == "__main__":
    main()
