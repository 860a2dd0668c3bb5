"""A layer pair cut over the devices of a mesh: the first matrix by columns, the second by rows (Shoeybi et al. 2019,
"Megatron-LM"). The program is written for whole arrays; what is sent is one all-reduce forwards and one backwards.

    WEFT_NUM_CPU_DEVICES=8 ./bazelw run //examples:tensor_parallel_mlp
"""

import os

os.environ.setdefault("WEFT_NUM_CPU_DEVICES", "8")

import numpy as np

import weft
import weft.numpy as wnp
from weft import P

BATCH, WIDTH, HIDDEN = 32, 64, 256


def mlp(params, x):
    return wnp.tanh(x @ params["up"]) @ params["down"]


def loss(params, x, target):
    return ((mlp(params, x) - target) ** 2).mean()


def main():
    rng = np.random.default_rng(0)
    shapes = {"up": (WIDTH, HIDDEN), "down": (HIDDEN, WIDTH)}
    whole = {name: (rng.standard_normal(s) / np.sqrt(s[0])).astype(np.float32) for name, s in shapes.items()}
    x, target = (rng.standard_normal((BATCH, WIDTH)).astype(np.float32) for _ in range(2))

    mesh = weft.make_mesh((weft.device_count(),), ("model",))
    cut = {"up": P(None, "model"), "down": P("model")}
    params = {name: weft.device_put(whole[name], weft.NamedSharding(mesh, spec)) for name, spec in cut.items()}
    print("each device holds", {name: p.addressable_shards[0].data.shape for name, p in params.items()})

    forward = weft.jit(mlp)
    np.testing.assert_allclose(forward(params, x), mlp(whole, x), rtol=1e-4, atol=1e-5)
    sent = forward.lower(params, x).comms()
    print(*sent, sep="")
    assert [c.operation for c in sent] == ["psum"]

    backward = weft.jit(weft.grad(loss, argnums=(0, 1)))
    grads, dx = backward(params, x, target)
    expected, expected_dx = weft.grad(loss, argnums=(0, 1))(whole, x, target)
    for name, spec in cut.items():
        assert grads[name].sharding == weft.NamedSharding(mesh, spec)  # nothing is sent for them
        np.testing.assert_allclose(grads[name], expected[name], rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(dx, expected_dx, rtol=1e-3, atol=1e-6)
    sent = backward.lower(params, x, target).comms()
    print(*sent, sep="")
    assert [c.operation for c in sent] == ["psum", "psum"]  # of the output, and of the cotangent of x


if __name__ == "__main__":
    main()
