"""What reverse mode keeps between its passes under each policy, in bytes: of the program as it is written, and after
simplification; beside the memory that the compiled gradient takes for temporaries, and its operations. All give the
same gradient.

./bazelw run //examples:s1_04_residuals
"""

import numpy as np

import weft
import weft.numpy as wnp
from weft.ad_checkpoint import checkpoint_name

P = weft.checkpoint_policies


def layer(w, x):
    """As people write it: the same product twice, a factor of 1, a quotient by 1."""
    hidden = checkpoint_name(wnp.tanh(x @ w * 1), "hidden")
    gate = wnp.tanh(x @ w) * wnp.exp(x * 0.0)
    return x + hidden * gate - wnp.exp(-(hidden**2)) / 1.0


def model(wrap):
    def loss(ws, x):
        for w in ws:
            x = wrap(layer)(w, x)
        return (x**2).mean()

    return loss


WAYS = {
    "no policy": lambda f: f,
    "everything_saveable": lambda f: weft.checkpoint(f, policy=P.everything_saveable),
    "dots_saveable": lambda f: weft.checkpoint(f, policy=P.dots_saveable),
    "save_only_these_names": lambda f: weft.checkpoint(f, policy=P.save_only_these_names("hidden")),
    "nothing_saveable": weft.checkpoint,
}


def kept(f, *args) -> int:
    """Bytes of values; arguments are kept by the caller anyway."""
    return sum(r.bytes for r in weft.saved_residuals(f, *args) if r.kind == "value")


def main() -> None:
    rng = np.random.default_rng(0)
    ws = [wnp.array(rng.standard_normal((64, 64)).astype(np.float32) / 8) for _ in range(4)]
    x = wnp.array(rng.standard_normal((128, 64)).astype(np.float32))
    print(f"{'policy':24}{'as written':>12}{'simplified':>12}{'temporaries':>14}{'operations':>12}")
    rows, gradients = [], []
    for name, wrap in WAYS.items():
        gradient = weft.jit(weft.grad(model(wrap)))
        gradients.append(weft.tree.leaves(gradient(ws, x)))
        [facts] = gradient.explain()
        operations = gradient.lower(ws, x).as_text("optimized").count(" = ")
        with weft.optimization("none"):
            as_written = kept(model(wrap), ws, x)
        rows.append((as_written, kept(model(wrap), ws, x), facts["arena_bytes"], operations))
        print(f"{name:24}{as_written:12,}{rows[-1][1]:12,}{rows[-1][2]:14,.0f}{operations:12}")
    raw, saved, temporaries, _ = zip(*rows)
    assert raw[0] > saved[0] and all(a >= b for a, b in zip(raw, saved))
    assert saved[0] > saved[2] > saved[-1] == min(saved)
    assert temporaries[-1] == min(temporaries)
    for other in gradients[1:]:
        for a, b in zip(gradients[0], other):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-6)


if __name__ == "__main__":
    main()
