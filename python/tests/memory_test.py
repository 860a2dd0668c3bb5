"""Memory that runs out, and sizes that no memory has: an error from the call, and the process goes on."""

import os
import subprocess
import sys

import numpy as np
import pytest

import weft
import weft.numpy as wnp

# Calls a function with more and more memory until it has enough. What is printed: what failed for lack of memory.
PROGRAM = """
import resource
import weft, weft.numpy as wnp
x = wnp.float32(1.0)
def function(n):
    grid = lambda *shape: wnp.broadcast_to(x, shape)
    return weft.jit(lambda x: {code})
function(300)(x)  # OpenBLAS keeps the buffers of its own that it takes now, and would wait for them
f = function({n})
f = f.lower(x).compile()
pages = lambda: int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
for megabytes in range(0, 2000, 8):
    resource.setrlimit(resource.RLIMIT_AS, (pages() + (megabytes << 20), -1))
    try:
        f(x)
        print("enough")
        break
    except (RuntimeError, MemoryError) as error:
        print(str(error).splitlines()[0])
"""
# Code and sizes. Several matrices are several threads' work.
WITH_WORKING_MEMORY = {
    "qr": ("wnp.linalg.qr(x + grid(100 * n, n // 3))[1].sum()", 400),
    "qr of several": ("wnp.linalg.qr(x + grid(8, 25 * n, n // 3))[1].sum()", 400),
    "fft": ("abs(wnp.fft.fft(x + grid(5000 * n + 3))).sum()", 200),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", WITH_WORKING_MEMORY)
def test_an_operation_without_room_to_work_in(name, threads):
    code, n = WITH_WORKING_MEMORY[name]
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM.replace("{code}", code).replace("{n}", str(n))],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "WEFT_NUM_THREADS": str(threads)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    *failures, last = done.stdout.splitlines()
    assert last == "enough" and all("emory" in f for f in failures), done.stdout
    if name != "qr of several":  # which with one thread needs less for its work than for its arrays
        assert any("an operation of the program has no room to work in" in f for f in failures), done.stdout


def test_sizes_beyond_64_bits():
    """Of symbolic sizes, which only a call tells."""
    square = weft.make_ir(lambda x: weft.lax.iota("int64", x.shape[0] * x.shape[0]).sum())(
        weft.ShapeDtype(("n", 0), "int8")
    )
    assert square(np.zeros((3, 0), np.int8)).item() == 36
    with pytest.raises(RuntimeError, match="beyond 2\\^63"):
        square(np.zeros((2**32, 0), np.int8))
    product = weft.make_ir(lambda x, y: x @ y)(
        weft.ShapeDtype(("n", 0), "float32"), weft.ShapeDtype((0, "m"), "float32")
    )
    assert not np.asarray(product(np.zeros((2, 0), "f"), np.zeros((0, 3), "f"))).any()
    with pytest.raises(RuntimeError, match="2\\^63"):
        product(np.zeros((2**31, 0), "f"), np.zeros((0, 2**31), "f"))
    with pytest.raises(RuntimeError, match="out of memory"):
        product(np.zeros((2**30, 0), "f"), np.zeros((0, 2**30), "f"))


def test_a_window_of_a_whole_dimension():
    """The size -1: nothing outside is read, wherever it begins."""
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    f = lambda x, i: weft.primitives.dynamic_slice(x, i, i, sizes=(-1, 2))
    for i in (-5, 0, 1, 7):
        want = x[:, np.clip(i, 0, 2) :][:, :2]
        np.testing.assert_array_equal(np.asarray(weft.jit(f)(x, i)), want)
        symbolic = weft.make_ir(f)(weft.ShapeDtype(("n", 4), np.float32), weft.ShapeDtype((), np.int32))
        np.testing.assert_array_equal(np.asarray(symbolic(x, np.int32(i))), want)


@pytest.mark.parametrize("name", ["exp", "exp2", "expm1"])
def test_an_overflow_before_a_difference(name):
    """Infinity less infinity is NaN, also where a product and a difference become one instruction."""
    f = getattr(wnp, name)
    for dtype in ("float32", "float64"):
        for x in (np.array(1e4, dtype), np.full(40, 1e4, dtype)):
            assert np.isnan(np.asarray(weft.jit(lambda v: f(v) - f(v + 1))(x))).all()
