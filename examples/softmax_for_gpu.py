"""A softmax becomes one GPU kernel: its PTX, and its results by running that kernel's threads on the CPU.

./bazelw run //examples:softmax_for_gpu
"""

import numpy as np

import weft
import weft.numpy as wnp


def softmax(x):
    e = wnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def main():
    x = wnp.asarray(np.random.default_rng(0).normal(size=(4, 2048)).astype(np.float32))
    gpu = weft.jit(softmax).lower(x, target="cuda:sm_90a")
    ptx = gpu.stage("ptx")
    print(ptx)
    print(gpu.stage("schedule"))
    assert ptx.count(".entry") == 1, "one kernel"
    assert "ld.global.nc.v4.f32" in ptx, "sixteen bytes at a time"
    got, want = gpu.emulate(x), weft.jit(softmax)(x)
    worst = float(wnp.abs(got - want).max())
    print(f"largest difference from the CPU: {worst:.1e}")
    assert worst < 1e-8


if __name__ == "__main__":
    main()
