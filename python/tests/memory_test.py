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
x = wnp.{dtype}(1.0)
def function(n):
    grid = lambda *shape: wnp.broadcast_to(x, shape)
    return weft.jit(lambda x: {code}, licence="accurate")  # products as they are written, of equal numbers too
{warm}
f = function({n})
f = f.lower(x).compile()
pages = lambda: int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
for megabytes in range(0, 2000, {step}):
    resource.setrlimit(resource.RLIMIT_AS, (pages() + (megabytes << 20), -1))
    try:
        f(x)
        print("enough")
        break
    except MemoryError as error:
        print((str(error) or "memory of Python").splitlines()[0])
"""


def with_more_and_more(program, threads=1):
    """What failed for lack of memory, and that it was enough in the end."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "WEFT_NUM_THREADS": str(threads),
            "WEFT_CACHE_DIR": "off",
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    *failures, last = done.stdout.splitlines()
    assert last == "enough" and all("memory" in f for f in failures), done.stdout
    return failures


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
    program = PROGRAM.replace("{code}", code).replace("{n}", str(n)).replace("{dtype}", "float32")
    failures = with_more_and_more(program.replace("{warm}", "function(300)(x)").replace("{step}", "8"), threads)
    if name != "qr of several":  # which with one thread needs less for its work than for its arrays
        assert any("an operation of the program has no room to work in" in f for f in failures), failures


# Operations of libraries that do not look whether they got memory, at their first call.
BY_LIBRARIES = {
    "product": ("wnp.matmul(grid({n}, {n}), grid({n}, {n}) + x).sum()", 300),
    "long product": ("wnp.matmul(grid(7, 100 * {n}), grid(100 * {n}, 7) + x).sum()", 300),
    "products": ("wnp.matmul(grid(40, {n}, {n}), grid(40, {n}, {n}) + x).sum()", 60),
    "inv": ("wnp.linalg.inv(grid({n}, {n}) + {n} * wnp.eye({n}, dtype=x.dtype)).sum()", 200),
    "svd": ("wnp.linalg.svd(grid({n}, {n}) + wnp.eye({n}, dtype=x.dtype))[1].sum()", 200),
    "eigh": ("wnp.linalg.eigh(grid({n}, {n}) + wnp.eye({n}, dtype=x.dtype))[0].sum()", 200),
    "eig": ("abs(wnp.linalg.eig(grid({n}, {n}) + wnp.eye({n}, dtype=x.dtype))[0]).sum()", 60),
    "cholesky": ("wnp.linalg.cholesky(grid({n}, {n}) + {n} * wnp.eye({n}, dtype=x.dtype)).sum()", 200),
    "cholesky of several": (
        "wnp.linalg.cholesky(grid(30, {n}, {n}) + {n} * wnp.eye({n}, dtype=x.dtype)).sum()",
        100,
    ),
    "convolution": (
        "weft.lax.conv(grid(4, 8, {n}, {n}), grid(8, 8, 3, 3) + x, (1, 1), 'SAME').sum()",
        60,
    ),
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("name", BY_LIBRARIES)
def test_libraries_that_do_not_look(name, dtype, threads):
    if name == "convolution" and dtype != "float32":
        pytest.skip("not by a library")
    code, n = BY_LIBRARIES[name]
    program = PROGRAM.replace("{code}", code).replace("{n}", str(n)).replace("{dtype}", dtype)
    failures = with_more_and_more(program.replace("{warm}", "").replace("{step}", "3"), threads)
    # Where threads compile, one of them has made oneDNN ready by then, and what a product lacks is its stack. What the
    # threads have left may be room enough.
    needs = ("oneDNN needs", "OpenBLAS needs", "a product needs")
    assert (threads > 1 and not failures) or any(need in f for f in failures for need in needs), failures


@pytest.mark.parametrize("equations", [3, 300])
@pytest.mark.parametrize("touched", [0, 1])
def test_the_compiler(equations, touched):
    """With and without an earlier compilation, and at ever other points of it. The next one begins afresh."""
    program = f"""
import resource
import numpy as np, weft, weft.numpy as wnp
weft._weft.finish_warm_up()
x = np.ones(3000, np.float32)
def compiled(k):
    def f(v):
        for i in range({equations}):
            v = wnp.sin(v) + k if i % 3 else wnp.cumsum(v)
        return v
    return weft.jit(f).lower(x).compile()
if {touched}:
    compiled(1.5)
pages = lambda: int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
for step in range(0, 2000):
    resource.setrlimit(resource.RLIMIT_AS, (pages() + (step << 18), -1))
    try:
        f = compiled(step)
        resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
        assert np.isfinite(np.asarray(f(x))).any()
        print("enough")
        break
    except MemoryError as error:
        print((str(error) or "memory of Python").splitlines()[0])
"""
    failures = with_more_and_more(program)
    assert any("the compiler" in f for f in failures), failures


def output_of(program):
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "WEFT_CACHE_DIR": "off"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0 and done.stdout.endswith("enough\n"), done.stdout + done.stderr
    return done.stdout


def test_programs_are_named():
    program = """
import resource
import numpy as np, weft, weft.numpy as wnp
x = np.ones(3000, np.float32)
@weft.jit
def train_step(v):
    return (v[:, None] * v).cumsum(0).sum()
train_step.lower(x).compile()
resource.setrlimit(resource.RLIMIT_AS, (int(open("/proc/self/statm").read().split()[0]) * 4096 + (20 << 20), -1))
for f in (train_step, lambda v: wnp.ones((5000, 5000)) + v[0]):
    try:
        f(x)
    except MemoryError as error:
        print(error)
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
print("enough")
"""
    said = output_of(program)
    assert "out of memory: 'train_step': a program needs 72" in said and said.count("in <module>") == 2, said
    assert "out of memory: an array f32[5000,5000] needs 100000000 bytes" in said, said


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
    with pytest.raises(MemoryError, match="out of memory"):
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
