"""Trains a classifier of handwritten digits on 1, 2, 4 and 8 devices, each with its share of every batch: the same loss
curve. The program is that of one device; what makes it data-parallel is how its arguments lie.

    WEFT_NUM_CPU_DEVICES=8 ./bazelw run //examples:digits_data_parallel
    WEFT_NUM_CPU_DEVICES=8 ./bazelw run //examples:digits_data_parallel -- --deterministic     # the same bits

On two processes with four devices each, which compare their curve with that of one device:

    ./bazelw build //examples:digits_data_parallel
    WEFT_NUM_CPU_DEVICES=4 mpirun -n 2 bazel-bin/examples/digits_data_parallel
"""

import os
import sys

os.environ.setdefault("WEFT_NUM_CPU_DEVICES", "8")

import numpy as np
from sklearn.datasets import load_digits

import weft
import weft.numpy as wnp
from weft import P

HIDDEN, BATCH, STEPS, RATE = 64, 128, 12, 0.5


def loss(params, images, labels):
    hidden = wnp.tanh(images @ params["w1"] + params["b1"])
    scores = hidden @ params["w2"] + params["b2"]
    return (weft.nn.logsumexp(scores, axis=1) - wnp.take_along_axis(scores, labels[:, None], axis=1)[:, 0]).mean()


def epoch(params, images, labels):
    """One step of gradient descent for each batch: images [STEPS, BATCH, 64], labels [STEPS, BATCH]."""

    def step(params, batch):
        value, grads = weft.value_and_grad(loss)(params, *batch)
        return weft.tree.map(lambda p, g: p - RATE * g, params, grads), value

    return weft.scan(step, params, (images, labels))


def main(epochs=15, deterministic=False):
    weft.distributed.initialize()
    data = load_digits()
    count = BATCH * STEPS
    images = (data.data[:count] / 16).astype(np.float32).reshape(STEPS, BATCH, 64)
    labels = data.target[:count].astype(np.int32).reshape(STEPS, BATCH)
    rng = np.random.default_rng(0)
    start = {
        "w1": (rng.standard_normal((64, HIDDEN)) / 8).astype(np.float32),
        "b1": np.zeros(HIDDEN, np.float32),
        "w2": (rng.standard_normal((HIDDEN, 10)) / 8).astype(np.float32),
        "b2": np.zeros(10, np.float32),
    }
    run = weft.jit(epoch, deterministic=deterministic)
    curves = {}
    alone = weft.process_count() == 1
    for devices in (1, 2, 4, 8) if alone else (1, weft.device_count()):
        among = weft.devices() if devices > 1 else weft.local_devices()
        mesh = weft.make_mesh((devices,), ("data",), devices=among)
        batches = weft.device_put((images, labels), weft.NamedSharding(mesh, P(None, "data")))
        params = weft.device_put(start, weft.NamedSharding(mesh, P()))
        curve = []
        for _ in range(epochs):
            params, losses = run(params, *batches)
            curve += np.asarray(losses).tolist()
        curves[devices] = curve
        if weft.process_index() == 0:
            print(f"{devices} devices: loss {curve[0]:.6f} -> {curve[-1]:.6f}")
        assert params["w1"].sharding.is_fully_replicated
        sent = run.lower(params, *batches).comms()
        # The loss and the gradients of the four arrays of weights, in every step.
        assert [c.operation for c in sent] == ["psum"] * (5 if devices > 1 else 0), sent
    if alone:
        print(*sent, sep="")
    for curve in curves.values():
        np.testing.assert_allclose(curve, curves[1], rtol=0 if deterministic else 1e-4)
    assert curves[1][-1] < 0.25 * curves[1][0]


if __name__ == "__main__":
    main(deterministic="--deterministic" in sys.argv)
