"""A table of embeddings cut by rows: each device looks up its own rows, and one all-reduce adds what they found.
Training moves the table's rows where they lie: nothing is sent for its gradient.

    WEFT_NUM_CPU_DEVICES=8 ./bazelw run //examples:sharded_embedding
"""

import os

os.environ.setdefault("WEFT_NUM_CPU_DEVICES", "8")

import numpy as np

import weft
import weft.debug
import weft.numpy as wnp
from weft import P

WORDS, WIDTH, CLASSES, BATCH, STEPS = 4096, 16, 4, 256, 30


def loss(params, words, labels):
    scores = wnp.take(params["table"], words, axis=0) @ params["out"]
    return (weft.nn.logsumexp(scores, axis=1) - wnp.take_along_axis(scores, labels[:, None], axis=1)[:, 0]).mean()


def step(params, words, labels):
    value, grads = weft.value_and_grad(loss)(params, words, labels)
    return value, weft.tree.map(lambda p, g: p - 20.0 * g, params, grads)


def train(params, batches):
    run, losses = weft.jit(step), []
    for words, labels in batches:
        value, params = run(params, words, labels)
        losses.append(float(value))
    return losses, params


def main():
    rng = np.random.default_rng(0)
    params = {
        "table": (0.1 * rng.standard_normal((WORDS, WIDTH))).astype(np.float32),
        "out": rng.standard_normal((WIDTH, CLASSES)).astype(np.float32),
    }
    drawn = rng.integers(0, 64, (STEPS, BATCH)).astype(np.int32) * (WORDS // 64)  # words from all over the table
    batches = [(words, (words // (WORDS // 64)) % CLASSES) for words in drawn]
    one, params_one = train(params, batches)

    mesh = weft.make_mesh((weft.device_count(),), ("rows",))
    cut = {**params, "table": weft.device_put(params["table"], weft.NamedSharding(mesh, P("rows")))}
    weft.debug.visualize_array_sharding(cut["table"])
    many, params_many = train(cut, batches)
    print(f"loss {many[0]:.4f} -> {many[-1]:.4f}; on one device {one[0]:.4f} -> {one[-1]:.4f}")
    np.testing.assert_allclose(many, one, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(params_many["table"], params_one["table"], rtol=1e-3, atol=1e-3)
    assert many[-1] < 0.5 * many[0]
    assert params_many["table"].sharding == cut["table"].sharding
    sent = weft.jit(step).lower(cut, *batches[0]).comms()
    print(*sent, sep="")
    assert [c.operation for c in sent] == ["psum"]
    assert sent[0].bytes < 2 * 4 * BATCH * WIDTH  # of what was looked up, whatever the size of the table


if __name__ == "__main__":
    main()
