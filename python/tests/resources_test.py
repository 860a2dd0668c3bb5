"""Threads, memory, files and mappings that cannot be had, each call in turn: an error from the call that names what is
lacking, or the right numbers with less; and the process goes on.

tests/failing_calls.c makes the calls fail. Each failure happens in a child of its own, forked when all is warm.
"""

import os
import subprocess
import sys

import pytest

FAILING_CALLS = os.path.abspath("tests/libfailing_calls.so")
KINDS = {"memory": 1, "thread": 2, "file": 3, "mapping": 4}
# Whose calls fail, also those that the C++ library makes for it. Others' answers are not ours: oneDNN and OpenBLAS do
# not look at theirs, which is why memory_test.py takes memory from the whole process before they are called.
MODULE = b"/_weft.so"

# Runs in the process whose calls fail. `work()` does something and raises if it is wrong.
BEGIN = """
import ctypes, os, signal, sys, time
failing = ctypes.CDLL(os.environ["LD_PRELOAD"])
failing.counted_calls.restype = ctypes.c_long
failing.fail_calls.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_long, ctypes.c_long]
import numpy as np, weft, weft.numpy as wnp
weft._weft.finish_warm_up()
ALLOWED = (MemoryError, OSError, RuntimeError, ValueError)
x = np.linspace(0, 1, 20000, dtype=np.float32)
"""

END = """
def attempt(first, count):
    "In a child: what comes of work() when these calls fail, and whether it is well afterwards."
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        text = "wrong"
        signal.alarm(60)
        try:
            failing.fail_calls(KIND, MODULE, first, count)
            try:
                work()
                text = "well"
            except ALLOWED as error:
                failing.fail_calls(0, MODULE, 0, 0)
                text = f"{type(error).__name__}: {error}"
                if isinstance(error, weft.InternalError):
                    text = "wrong: " + text
            finally:
                failing.fail_calls(0, MODULE, 0, 0)
            work()
        except BaseException as error:
            text = f"wrong, then {type(error).__name__}: {error}, after: {text}"
        os.write(writing, text.encode()[:4000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read().decode()
    _, status = os.waitpid(pid, 0)
    return text if status == 0 else f"wrong: the process ended with {status}"

failing.fail_calls(KIND, MODULE, 0, 0)
work()
calls = failing.counted_calls()
failing.fail_calls(0, MODULE, 0, 0)
print("calls", calls)
MOST = 40
which = range(1, calls + 1) if calls <= MOST else sorted({1 + i * (calls - 1) // (MOST - 1) for i in range(MOST)})
for first in which:
    for count in (1, -1):
        print(f"{first} {count}", repr(attempt(first, count)), flush=True)
"""

WORK = {
    "compile": """
made = 0
def work():
    global made
    made += 1
    f = weft.jit(lambda v: wnp.sin(v) * (made + 2) + wnp.cumsum(v)[-1])
    np.testing.assert_allclose(np.asarray(f(x)), np.sin(x) * (made + 2) + x.sum(), rtol=1e-3)
""",
    "run": """
f = weft.jit(lambda v: (wnp.sin(v), v.reshape(200, 100).sum(0), wnp.sort(-v)[::-1]))
f(x)
def work():
    a, b, c = f(x)
    np.testing.assert_allclose(np.asarray(a), np.sin(x), rtol=1e-5)
    np.testing.assert_allclose(np.asarray(b), x.reshape(200, 100).sum(0), rtol=1e-4)
    np.testing.assert_allclose(-np.asarray(c), x, rtol=1e-5)
""",
    "run eager": """
small = np.arange(6, dtype=np.float32).reshape(2, 3)
def work():
    y = wnp.array(small) * 2 + 1
    np.testing.assert_allclose(np.asarray(y.sum(0)), (small * 2 + 1).sum(0))
""",
    "differentiate": """
step = lambda c: (c[0] + 1, wnp.sin(c[1]))
f = weft.jit(weft.grad(lambda v: weft.lax.while_loop(lambda c: c[0] < 5, step, (0, v))[1].sum()))
f(x)
want = np.asarray(f(x))
def work():
    np.testing.assert_allclose(np.asarray(f(x)), want)
""",
    "call back": """
f = weft.jit(lambda v: weft.pure_callback(lambda a: np.asarray(a) * 2, weft.ShapeDtype((20000,), "float32"), v) + 1)
f(x)
def work():
    np.testing.assert_allclose(np.asarray(f(x)), x * 2 + 1)
""",
    "read": """
text = weft.make_ir(lambda v: wnp.sin(v) * 2)(x).text
data = weft.make_ir(lambda v: wnp.sin(v) * 2)(x).serialize()
import pickle
pickled = pickle.dumps(wnp.array(x))
def work():
    assert weft.parse_ir(text).text == text and weft.deserialize_ir(data).text == text
    np.testing.assert_array_equal(np.asarray(pickle.loads(pickled)), x)
""",
}


def run(program, **environment):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "LD_PRELOAD": FAILING_CALLS}
    env |= {"WEFT_CACHE_DIR": "off", "WEFT_NUM_THREADS": "3", "OPENBLAS_NUM_THREADS": "1"} | environment
    return subprocess.run([sys.executable, "-P", "-c", program], env=env, capture_output=True, text=True, timeout=280)


def outcomes(kind, work, **environment):
    """What each failure led to."""
    done = run(BEGIN + f"KIND, MODULE = {KINDS[kind]}, {MODULE!r}\n" + WORK[work] + END, **environment)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    first, *lines = done.stdout.splitlines()
    assert first.startswith("calls ")
    wrong = [line for line in lines if "wrong" in line]
    assert not wrong, "\n".join(wrong[:10]) + "\n" + done.stderr[-2000:]
    return int(first.split()[1]), lines


@pytest.mark.parametrize("work", WORK)
def test_memory(work):
    calls, lines = outcomes("memory", work)
    assert calls > 3 and any("MemoryError" in line and "out of memory" in line for line in lines)
    # Whatever fails is said to be memory.
    assert all("'well'" in line or "emory" in line for line in lines), lines


@pytest.mark.parametrize("work", ["compile", "call back"])
def test_files(work, tmp_path):
    calls, lines = outcomes("file", work, WEFT_CACHE_DIR=str(tmp_path / "cache"))
    if work == "compile":
        # Those of the cache alone, which programs do without.
        assert calls > 3 and all("'well'" in line for line in lines), lines


def test_descriptors_of_the_whole_process():
    """With none left programs are compiled and run."""
    program = (
        BEGIN
        + """
import resource
weft.jit(lambda v: wnp.sin(v))(x)
weft.jit(lambda v: wnp.tan(v)).lower(x).compile()  # modules that are imported then
np.testing.assert_allclose(1, 1)
first = max(map(int, os.listdir("/proc/self/fd")))
hold = []
resource.setrlimit(resource.RLIMIT_NOFILE, (first + 40, first + 40))
try:
    while True:
        hold.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
for k in range(3):
    f = weft.jit(lambda v: wnp.sin(v) * (k + 2) + wnp.cumsum(v)[k])
    np.testing.assert_allclose(np.asarray(f(x)), np.sin(x) * (k + 2) + x.cumsum()[k], rtol=1e-5, atol=1e-5)
print("well")
"""
    )
    done = run(program)
    assert done.returncode == 0 and done.stdout == "well\n", done.stdout + done.stderr


@pytest.mark.parametrize("work", ["compile", "run"])
def test_mappings(work):
    outcomes("mapping", work)


PARALLEL = """
f = weft.jit(lambda v: wnp.sin(v) * 2)
big = np.linspace(0, 1, 3000000, dtype=np.float32)
for _ in range(3):
    np.testing.assert_allclose(np.asarray(f(big)), np.sin(big) * 2, rtol=1e-5)
print(len(os.listdir("/proc/self/task")))
"""


@pytest.mark.parametrize("first", [1, 2, 3, 4])
def test_threads_of_the_pool(first):
    """None, one, two or all three of them; then the work goes on, with those that there are."""
    start = BEGIN + f"failing.fail_calls({KINDS['thread']}, {MODULE!r}, {first}, -1)\n"
    done = run(start + PARALLEL, WEFT_NUM_THREADS="4")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == first
    said = f"weft: {first - 1} of 3 threads could be started"
    assert (said in done.stderr and "programs run on" in done.stderr) == (first < 4), done.stderr


def test_importing_without_a_thread_to_spare():
    """The compiler is loaded by a thread that begins with the import; without it, by the first compilation."""
    program = """
import ctypes, os, resource, numpy as np
import sys
class Finder:  # at the moment when the native module is there and has not begun
    def find_spec(self, name, path=None, target=None):
        if name == "weft._weft":
            resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, 8 << 20))
            failing = ctypes.CDLL(os.environ["LD_PRELOAD"])
            failing.fail_calls.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_long, ctypes.c_long]
            failing.fail_calls(2, b"libstdc++", 1, -1)  # whatever asks it for one
        return None
sys.meta_path.insert(0, Finder())
import weft, weft.numpy as wnp
print(np.asarray(weft.jit(lambda v: wnp.sin(v))(np.zeros(30000, np.float32))).sum())
"""
    done = run(program, WEFT_NUM_THREADS="1")
    assert done.returncode == 0 and done.stdout == "0.0\n", done.stderr


def test_a_program_takes_one_mapping():
    program = """
import numpy as np, weft, weft.numpy as wnp
count = lambda: sum(1 for _ in open("/proc/self/maps"))
x = np.ones(30000, np.float32)
functions = [weft.jit(lambda v, k=k: (wnp.sin(v) * k + v @ v, wnp.sort(v))) for k in range(41)]
functions[0](x)
before = count()
for f in functions[1:]:
    f(x)
print(count() - before)
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "WEFT_CACHE_DIR": "off"}
    done = subprocess.run([sys.executable, "-P", "-c", program], env=env, capture_output=True, text=True, timeout=200)
    # Memory of the compiler's takes some, too, whatever the number of programs.
    assert done.returncode == 0 and int(done.stdout) < 60, done.stdout + done.stderr


def test_mappings_of_the_whole_process():
    """As many as the system allows: the message says so, and with some given back it goes on."""
    with open("/proc/sys/vm/max_map_count") as file:
        most = int(file.read())
    if most > 200000:
        pytest.skip("the system allows very many mappings")
    program = """
import mmap
import numpy as np, weft, weft.numpy as wnp
weft.jit(lambda v: wnp.sin(v))(np.zeros(30000, np.float32))
most = int(open("/proc/sys/vm/max_map_count").read())
count = lambda: sum(1 for _ in open("/proc/self/maps"))
kept = []
room = most - count()
try:
    while len(kept) < room:  # neighbours of different rights are not joined
        kept.append(mmap.mmap(-1, 4096, prot=mmap.PROT_READ if len(kept) % 2 else mmap.PROT_READ | mmap.PROT_WRITE))
except OSError:
    pass
made = []
try:
    for k in range(100):
        made.append(weft.jit(lambda v: wnp.sin(v) * (k + 2)))
        made[-1](np.ones(30000, np.float32))
    print("no failure")
except Exception as error:
    print(type(error).__name__, str(error).splitlines()[0])
del kept[:100]
f = weft.jit(lambda v: wnp.cos(v) * 3)
print(float(f(np.zeros(30000, np.float32))[0]))
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "WEFT_CACHE_DIR": "off"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    failure, number = done.stdout.splitlines()
    assert "mappings of memory; the system allows" in failure or failure.startswith("OutOfMemoryError"), failure
    assert not failure.startswith("InternalError") and number == "3.0"
