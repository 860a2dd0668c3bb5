"""Choosing what reverse mode keeps: policies, snapshots, and passes compiled by a function of one's own.

./bazelw run //examples:memory
"""

import weft
import weft.numpy as wnp
from weft.ad_checkpoint import checkpoint_name

P = weft.checkpoint_policies


def layer(w, x):
    hidden = checkpoint_name(wnp.tanh(x @ w), "hidden")
    return x + wnp.sin(hidden) * hidden


def network(wrap):
    def loss(ws, x):
        for i in range(4):
            x = wrap(layer)(ws[i], x)
        return (x**2).sum()

    return loss


def saved_bytes(f, *args):
    return sum(r.bytes for r in weft.saved_residuals(f, *args) if r.kind == "value")


def main() -> None:
    ws, x = wnp.ones((4, 64, 64)) / 64, wnp.ones((32, 64))
    print("what four layers keep, besides their arguments:")
    sizes, gradients = [], []
    for name, wrap in {
        "everything": lambda f: f,
        "products": lambda f: weft.checkpoint(f, policy=P.dots_saveable),
        "by name": lambda f: weft.checkpoint(f, policy=P.save_only_these_names("hidden")),
        "layers' inputs": weft.checkpoint,
    }.items():
        gradient = weft.jit(weft.grad(network(wrap)))(ws, x)
        sizes.append(saved_bytes(network(wrap), ws, x))
        gradients.append(float(wnp.abs(gradient).sum()))
        print(f"  {name:15} {sizes[-1]:7} bytes, |gradient| = {gradients[-1]:.4f}")
    assert sizes[0] > sizes[1] and max(sizes[1:3]) > sizes[3], sizes
    assert max(gradients) - min(gradients) < 1e-4 * max(gradients)
    print("\none layer, by line:")
    weft.print_saved_residuals(weft.checkpoint(layer, policy=P.save_only_these_names("hidden")), ws[0], x)

    def simulate(strategy):
        step = lambda i, v: v + 0.01 * wnp.sin(v) * (1 - v)
        return weft.jit(weft.grad(lambda v: weft.fori_loop(0, 1000, step, v, strategy=strategy).sum()))

    print("\na thousand steps:")
    memory, totals = [], []
    for strategy in ("tape", "binomial(10)"):
        g = simulate(strategy)
        total = float(g(wnp.linspace(0, 1, 1024)).sum())
        [version] = g.explain()
        print(f"  {strategy:13} {version['arena_bytes']:9} bytes, gradient {total:.5f}")
        memory.append(version["arena_bytes"])
        totals.append(total)
        print(*(f"    {line.split(': ')[1]}" for line in version["loops"]), sep="\n")

    assert memory[1] < memory[0] / 50 and abs(totals[0] - totals[1]) < 1e-3 * abs(totals[0])

    print("\npasses given to compilers:")
    f = weft.aot(network(lambda f: f), fw_compiler=weft.jit, bw_compiler=weft.jit, partition=P.dots_saveable)
    weft.grad(f)(ws, x)
    print(f.explain())


if __name__ == "__main__":
    main()
