"""Threads, forks, signals and the end of the process."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import weft
import weft.numpy as wnp

SECONDS = 60  # within which anything below ends, also on a busy machine


# Another thread compiles while this one sets a handler, again and again, and sees whether it is still there later.
SIGNALS_WHILE_COMPILING = """
import signal, threading, time, weft, weft.numpy as wnp
done, seen = threading.Event(), []
def compile_many():
    i = 0
    while not done.is_set():
        i += 1
        weft.jit(lambda x: wnp.sin(x) * (1.5 + i))(wnp.ones(3))
thread = threading.Thread(target=compile_many)
thread.start()
for n in range(100):
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    time.sleep(0.006)
    signal.signal(signal.SIGUSR1, lambda *_: seen.append(n))
    time.sleep(0.006)
    signal.raise_signal(signal.SIGUSR1)
done.set()
thread.join()
print(len(seen))
"""


def repeat(n):
    """A function that computes for long in one call: n times the sine of all elements."""
    return weft.jit(lambda x: weft.fori_loop(0, n, lambda _, c: wnp.sin(c) + 1, x))


def in_threads(count, body):
    """Runs body(i) in threads that start together; raises what one of them raises."""
    errors, start = [], threading.Barrier(count)

    def run(i):
        try:
            start.wait(SECONDS)
            body(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if errors:
        raise errors[0]


def in_child(body):
    """Forks; the child runs body and must end well."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            body()
            status = 0
        except BaseException as error:
            print(f"in the child: {error!r}", file=sys.stderr, flush=True)
        finally:
            os._exit(status)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            assert status == 0
            return
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    pytest.fail("the child hangs")


# --- Threads ----------------------------------------------------------------------------------------------------------


def test_importing_starts_no_thread_that_stays():
    # ThreadSanitizer starts a thread of its own beside the first one that is started, whoever starts it.
    script = """
import os, threading, numpy
threading.Thread(target=int).start()
before, settings = set(os.listdir("/proc/self/task")), dict(os.environ)
import weft
weft._weft.finish_warm_up()
assert dict(os.environ) == settings
print(len(set(os.listdir("/proc/self/task")) - before))
with open("/proc/self/maps") as maps:
    print(*sorted({line.split("/")[-1].strip() for line in maps if "libLLVM" in line or "libMLIR" in line}))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=SECONDS, check=True)
    threads, libraries = done.stdout.splitlines()
    assert threads == "0"  # a BLAS with threads of its own has them wait by spinning
    assert libraries == ""  # their names take as long to look up as everything else that importing does


def test_threads_share_a_function_that_none_has_called_yet():
    traced = []

    def model(x):
        traced.append(threading.get_ident())
        return wnp.cumsum(x) * 2

    f = weft.jit(model)

    def body(i):
        for n in range(1, 8):
            assert np.asarray(f(wnp.ones(n + 100))).tolist() == [2.0 * (k + 1) for k in range(n + 100)]

    in_threads(6, body)
    assert len(set(traced)) >= 1 and f._cache_size() >= 7


def test_linear_algebra_in_threads_has_the_bits_of_one():
    a = np.random.RandomState(0).randn(60, 60)
    inverse, singular = np.asarray(wnp.linalg.inv(a)), np.asarray(wnp.linalg.svd(a)[1])

    def body(_):
        for _ in range(200):
            np.testing.assert_array_equal(wnp.linalg.inv(a), inverse)
        np.testing.assert_array_equal(wnp.linalg.svd(a)[1], singular)

    in_threads(8, body)


def test_threads_trace_and_compile_different_functions():
    def body(i):
        for k in range(4):
            scale = i * 10 + k
            x = np.linspace(0, 1, 5000 + k, dtype=np.float32)
            np.testing.assert_allclose(weft.jit(lambda v: wnp.sin(v) * scale)(x), np.sin(x) * scale, rtol=1e-5)  # noqa: B023
            assert weft.grad(lambda v: (v**2).sum() * scale)(np.float32([i]))[0] == 2 * i * scale  # noqa: B023
            assert weft.vmap(lambda v: v * scale)(wnp.ones(3)).tolist() == [scale] * 3  # noqa: B023

    in_threads(6, body)


def test_errors_stay_in_their_thread():
    def body(i):
        for _ in range(20):
            if i % 2:
                with pytest.raises(TypeError, match=r"\(5,\) and \(6,\) do not broadcast"):
                    weft.jit(lambda v: v + wnp.ones(6))(wnp.ones(5))
            else:
                assert weft.jit(lambda v: v + wnp.ones(6))(wnp.ones(6)).sum() == 12
            assert not weft._weft.is_tracing()

    in_threads(6, body)


def test_python_goes_on_while_compiled_code_runs():
    f, x = repeat(2000), wnp.ones(400_000)
    np.asarray(f(x))
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.wait(0.002):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        # The call alone, with a pause before and after that must not count.
        start = time.monotonic()
        f(x)
        end = time.monotonic()
    finally:
        stop.set()
        thread.join()
    during = [t for t in ticks if start < t < end]
    assert end - start > 0.02, "too short to tell"
    # With the lock held there would be none, except at the edges.
    assert len(during) >= 4 and max(during) - min(during) > (end - start) / 3


def test_garbage_collection_of_functions_that_run_in_threads():
    def body(i):
        for k in range(30):
            f = weft.jit(lambda v: v * (i * 100 + k))  # noqa: B023
            assert f(wnp.ones(3))[0] == i * 100 + k
            f.clear_cache()
            assert f(wnp.ones(3))[0] == i * 100 + k

    in_threads(4, body)


# --- Forks ------------------------------------------------------------------------------------------------------------


def test_children_run_and_compile():
    x = np.random.default_rng(0).normal(size=(300, 300)).astype(np.float32)
    functions = {
        "elementwise": weft.jit(lambda a: wnp.sin(a) * 2),
        "product": weft.jit(lambda a: a @ a),
        "product in f64": weft.jit(lambda a: a.astype("float64") @ a.astype("float64")),
        "library": weft.jit(lambda a: wnp.linalg.svd(a[:20, :20])[1]),
        "loop": weft.jit(lambda a: weft.fori_loop(0, 5, lambda _, c: wnp.tanh(c), a)),
    }
    wants = {name: np.asarray(f(x)) for name, f in functions.items()}

    def body():
        for name, f in functions.items():
            assert np.array_equal(f(x), wants[name]), name
        np.testing.assert_allclose(weft.jit(lambda a: wnp.exp(-a * a) + 3)(x), np.exp(-x * x) + 3, rtol=1e-5)
        in_child(lambda: functions["product"](x))  # and their children

    in_child(body)
    for name, f in functions.items():  # the parent goes on
        assert np.array_equal(f(x), wants[name])


def test_fork_while_other_threads_run_and_compile():
    stop = threading.Event()

    def compile_on():
        k = 0
        while not stop.is_set():
            k += 1
            weft.jit(lambda a: wnp.cos(a) * k)(wnp.ones(5000 + k % 50))  # noqa: B023

    def run_on():
        f, x = weft.jit(lambda a: wnp.sin(a) * 2), wnp.ones(1_000_000)
        while not stop.is_set():
            f(x)

    threads = [threading.Thread(target=body) for body in (compile_on, compile_on, run_on)]
    for thread in threads:
        thread.start()
    try:
        x = np.ones(100_000, np.float32)
        known = weft.jit(lambda a: a * 3)
        known(x)
        for i in range(8):
            time.sleep(0.03)

            def body(i=i):
                assert known(x)[0] == 3
                assert weft.jit(lambda a: a * i + 1)(x)[7] == i + 1

            in_child(body)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", ["inv", "svd", "eigh", "qr", "solve", "product"])
def test_fork_while_other_threads_run_linear_algebra(name, threads):
    """A child is forked whatever the libraries are at, and may use them."""
    a = np.random.default_rng(0).normal(size=(60, 60)).astype(np.float32) + 60 * np.eye(60, dtype=np.float32)
    function = {
        "inv": wnp.linalg.inv,
        "svd": lambda v: wnp.linalg.svd(v)[1],
        "eigh": lambda v: wnp.linalg.eigh(v + v.T)[0],
        "qr": lambda v: wnp.linalg.qr(v)[1],
        "solve": lambda v: wnp.linalg.solve(v, v),
        "product": lambda v: v @ v,
    }[name]
    batch, other = weft.jit(weft.vmap(function)), weft.jit(function)
    many = np.stack([a] * 6)
    want = np.asarray(other(a))
    batch(many)
    stop = threading.Event()

    def run_on():
        while not stop.is_set():
            batch(many)

    running = [threading.Thread(target=run_on) for _ in range(threads)]
    for thread in running:
        thread.start()

    def body():
        for _ in range(2):
            np.testing.assert_allclose(np.asarray(batch(many))[0], want, rtol=1e-3, atol=1e-3)
            np.testing.assert_allclose(np.asarray(other(a)), want, rtol=1e-3, atol=1e-3)

    try:
        for i in range(6):
            time.sleep(0.002 * i)
            in_child(body)
    finally:
        stop.set()
        for thread in running:
            thread.join()


def _work(k):
    return float(weft.jit(lambda x: wnp.cos(x).sum() * k)(wnp.zeros(100_000)))


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_multiprocessing(method):
    weft.jit(lambda x: wnp.sin(x) + 1)(wnp.ones(1_000_000))  # the pool of threads exists
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map_async(_work, range(4)).get(2 * SECONDS) == [0, 100_000, 200_000, 300_000]


# --- Signals and the end ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["before", "after"])
def test_signals_stay_what_the_program_made_them(when):
    """What is inside the compiler may take none of them for itself."""
    script = f"""
import os, signal, sys
take = lambda: signal.signal(signal.SIGUSR1, lambda *_: print("mine", flush=True))
if "{when}" == "before": take()
import weft, weft.numpy as wnp
if "{when}" == "after": take()
weft.jit(lambda x: x * {time.time_ns() % 1000003})(wnp.ones(3))  # compiled here, not read from the disk
for _ in range(2):
    os.kill(os.getpid(), signal.SIGUSR1)
os.kill(os.getpid(), getattr(signal, sys.argv[1]))
print("alive", flush=True)
"""
    # A sanitizer's runtime, put in front of Python, reports what would crash.
    deadly = [] if "san.so" in os.environ.get("LD_PRELOAD", "") else ["SIGSEGV", "SIGABRT"]
    for name in ["SIGUSR2", "SIGTERM", *deadly]:
        done = subprocess.run([sys.executable, "-c", script, name], capture_output=True, text=True, timeout=SECONDS)
        assert done.stdout == "mine\nmine\n", (name, done.stdout, done.stderr)
        assert done.returncode == -getattr(signal, name)


def test_signals_stay_what_the_program_made_them_while_it_compiles():
    done = subprocess.run(
        [sys.executable, "-c", SIGNALS_WHILE_COMPILING], capture_output=True, text=True, timeout=SECONDS
    )
    assert (done.returncode, done.stdout) == (0, "100\n"), done.stderr


def test_an_interrupt_while_tracing_closes_the_trace():
    def model(x):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(100):
            x = x + 1
        return x

    with pytest.raises(KeyboardInterrupt):
        weft.jit(model)(1.0)
    assert not weft._weft.is_tracing()
    assert weft.jit(lambda x: x + 1)(1.0) == 2


PROGRAMS = {
    "runs": """
f, x = weft.jit(lambda x: weft.fori_loop(0, 3000, lambda i, c: wnp.sin(c) + 1, x)), wnp.ones(200000)
def body(k):
    while True: f(x)
""",
    "compiles": """
def body(k):
    i = 0
    while True:
        i += 1
        weft.jit(lambda a: wnp.cos(a) * (i + k * 1000))(wnp.ones(5000))
""",
    "compiles for long": """
def chain(x):
    for i in range(150): x = wnp.cumsum(wnp.sin(x[:-1]) * i) + wnp.sort(x[:-1])
    return x
def body(k):
    weft.jit(chain)(wnp.ones(5000 + k))
""",
    "multiplies": """
f, x = weft.jit(lambda x: weft.fori_loop(0, 10**6, lambda i, c: c @ c, x)), wnp.eye(500)
def body(k):
    f(x)
""",
    "calls Python": """
f = weft.jit(lambda x: weft.fori_loop(
    0, 10**9, lambda i, c: weft.pure_callback(lambda v: v, weft.ShapeDtype((), "float32"), c), x))
def body(k):
    f(1.0)
""",
    "prints": """
f = weft.jit(lambda x: weft.fori_loop(0, 10**9, lambda i, c: (weft.debug.print("{}", c), c + 1)[1], x))
sys.stdout = open(os.devnull, "w")
def body(k):
    f(1.0)
""",
}


@pytest.mark.parametrize("what", PROGRAMS)
@pytest.mark.parametrize("seconds", [0.3, 0], ids=["", "begins"])
def test_the_process_ends_while_a_thread(what, seconds):
    """Also when it has only begun: what libraries set up at their first use is destroyed at exit."""
    program = f"""
import os, sys, threading, time, weft, weft.numpy as wnp
{PROGRAMS[what]}
for k in range(3): threading.Thread(target=body, args=(k,), daemon=True).start()
time.sleep({seconds})
"""
    for _ in range(2 if seconds else 4):
        done = subprocess.run(
            [sys.executable, "-P", "-c", program],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_static_arguments_that_take_long_to_compare():
    """Comparing them runs Python, and so other calls of the function, which may make another entry the last one."""

    class Slow:
        def __init__(self, value):
            self.value = value

        def __hash__(self):
            return 7

        def __eq__(self, other):
            time.sleep(0.0002)
            return self.value == other.value

    f = weft.jit(lambda x, s: x * s.value, static_argnums=1)
    values = range(4)
    for v in values:
        f(1.0, Slow(v))
    wrong = []

    def calls(v):
        wrong.extend((v, got) for _ in range(50) if (got := float(f(1.0, Slow(v)))) != v)

    threads = [threading.Thread(target=calls, args=(v,)) for v in values]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
