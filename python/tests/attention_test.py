"""Attention in blocks of rows: what it computes, of every order and under other transforms, and what it holds."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import weft
import weft.numpy as wnp

HEADS, TOKENS, FEATURES = 16, 1031, 8  # a prime number of rows; scores of 68 MB


def arrays(seed=0, tokens=TOKENS):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((HEADS, tokens, FEATURES)).astype(np.float32) for _ in range(3)]


def attention(q, k, v, causal):
    scores = wnp.einsum("hqd,hkd->hqk", q, k) * 0.5
    if causal:
        scores = wnp.where(wnp.tril(wnp.ones(scores.shape[-2:], dtype=bool)), scores, -1e30)
    return wnp.einsum("hqk,hkd->hqd", weft.nn.softmax(scores, axis=-1), v)


def with_numpy(q, k, v, causal):
    """Value, and cotangents of the sum of squares, in f64 (Dao et al. 2022, B.4)."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = np.einsum("hqd,hkd->hqk", q, k) * 0.5
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    y = weights @ v
    dy = 2 * y
    dv = np.swapaxes(weights, 1, 2) @ dy
    dw = dy @ np.swapaxes(v, 1, 2)
    ds = 0.5 * weights * (dw - (dw * weights).sum(-1, keepdims=True))
    return y, (ds @ k, np.swapaxes(ds, 1, 2) @ q, dv)


def close(ours, theirs, tolerance=2e-5):
    theirs = np.asarray(theirs)
    np.testing.assert_allclose(np.asarray(ours), theirs, rtol=0, atol=tolerance * np.abs(theirs).max())


@pytest.mark.parametrize("causal", [False, True])
def test_value_and_gradient(causal):
    q, k, v = arrays()
    y, gradient = with_numpy(q, k, v, causal)
    close(weft.jit(attention, static_argnums=3)(q, k, v, causal), y)
    loss = lambda q, k, v: (attention(q, k, v, causal) ** 2).sum()
    assert "scan[" in weft.make_ir(weft.grad(loss))(q, k, v).text
    for ours, theirs in zip(weft.jit(weft.grad(loss, argnums=(0, 1, 2)))(q, k, v), gradient, strict=True):
        close(ours, theirs)


def test_other_transforms():
    """Of two and three samples, forward over reverse, inside a scan and a branch: as without blocks."""
    q, k, v = arrays(1)
    loss = lambda q, k, v: (attention(q, k, v, True) ** 2).sum()
    gradient = weft.grad(loss)
    tangent = arrays(2)[0]

    def of_second_order(q):
        return weft.jvp(lambda q: gradient(q, k, v), (q,), (tangent,))[1]

    def in_loop(q):
        step = lambda c, _: (weft.lax.cond(c.sum() > -1e9, lambda c: attention(c, k, v, False), lambda c: c, c), None)
        return (weft.lax.scan(step, q, None, length=3)[0] ** 2).sum()

    stacks = [np.stack([x, x[::-1], -x]) for x in (q, k, v)]
    for f, args in (
        (of_second_order, (q,)),
        (weft.grad(in_loop), (q,)),
        (weft.vmap(weft.grad(loss)), stacks),
        (weft.vmap(gradient, in_axes=(0, None, None)), (stacks[0][:2], k, v)),
    ):
        exact = weft.jit(f, licence="exact")
        close(weft.jit(f)(*args), exact(*args), 1e-4)


def test_what_it_holds():
    """A new process grows by a third of the scores at most, in reverse mode too, which would hold them three times."""
    program = """
import json, pathlib, sys
sys.path[:0] = json.loads(sys.argv[1])
import attention_test, weft
run = weft.jit(weft.grad(lambda *x: (attention_test.attention(*x, True) ** 2).sum(), argnums=(0, 1, 2)))
weft.block_until_ready(run(*attention_test.arrays(0, 32)))
x = attention_test.arrays(0, 2048)
def peak():
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew: a child has its parent's
before = peak()
weft.block_until_ready(run(*x))
print(peak() - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps([str(pathlib.Path(__file__).parent), *sys.path])],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    scores = HEADS * 2048**2 * 4
    assert 0 < int(done.stdout) < scores / 3
