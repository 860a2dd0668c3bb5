"""Ctrl-C, and other signals that Python handles, while compiled code runs: the call raises what the handler raises,
soon, and the program can be used again."""

import os
import signal
import subprocess
import sys
import threading
import time

os.environ.setdefault("WEFT_NUM_CPU_DEVICES", "4")

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import P, lax

SECONDS = 60
MOST = 10**12  # trips of loops that nobody waits for
MESH = weft.make_mesh((4,), ("x",))


def forever(body, x):
    return lax.while_loop(lambda c: c[0] < MOST, lambda c: (c[0] + 1.0, body(c[1])), (wnp.float32(0), x))[1]


def on_devices(body):
    return weft.jit(weft.shard_map(body, MESH, P("x"), P("x")))


def recursion():
    @weft.jit
    def f(n):
        return lax.cond(n < 1, lambda n: forever(lambda v: v + 1, n), lambda n: f(n - 1) + 1, n)

    return f


# Programs that take hours, and an argument.
PROGRAMS = {
    "while of numbers": (lambda: weft.jit(lambda x: forever(lambda v: v + 1, x)), 1.0),
    "fori": (lambda: weft.jit(lambda x: weft.fori_loop(0, 2**31 - 1, lambda i, c: wnp.sin(c) + i, x)), np.ones(7)),
    "scan": (
        lambda: weft.jit(
            lambda x: lax.scan(
                lambda c, _: (lax.scan(lambda d, _: (wnp.cos(d), None), c, None, 10**6)[0], None), x, None, 10**6
            )[0]
        ),
        1.0,
    ),
    "scan backwards": (
        lambda: weft.jit(
            lambda x: weft.fori_loop(
                0,
                10**9,
                lambda i, c: c + lax.scan(lambda d, r: (wnp.cos(d) + r, d), c, wnp.ones(50), reverse=True)[1].sum(),
                x,
            )
        ),
        1.0,
    ),
    "large bodies": (lambda: weft.jit(lambda x: forever(lambda v: wnp.tanh(v) + wnp.cos(v), x)), np.ones(2_000_000)),
    "many steps": (lambda: weft.jit(lambda x: forever(many_steps, x)), np.ones(300)),
    "products": (lambda: weft.jit(lambda x: forever(lambda v: v @ v, x)), np.eye(400)),
    "sorts": (lambda: weft.jit(lambda x: forever(lambda v: wnp.sort(v), x)), np.ones(1000)),
    "factors": (lambda: weft.jit(lambda x: forever(lambda v: wnp.linalg.inv(v), x)), np.eye(50)),
    "gradient of while": (
        lambda: weft.jit(lambda x: weft.jvp(lambda v: forever(lambda u: wnp.sin(u), v), (x,), (x,))[1]),
        1.0,
    ),
    "batch": (lambda: weft.jit(weft.vmap(lambda x: forever(lambda v: wnp.sin(v) + 1, x))), np.ones(5)),
    "in a branch": (
        lambda: weft.jit(lambda x: lax.cond(x > 0, lambda v: forever(lambda u: u + 1, v), lambda v: v, x)),
        1.0,
    ),
    "inside of an inner loop": (
        lambda: weft.jit(lambda x: weft.fori_loop(0, 3, lambda i, c: forever(lambda v: v + 1, c), x)),
        1.0,
    ),
    "recursion": (recursion, 3.0),
    "devices": (lambda: on_devices(lambda v: forever(lambda u: wnp.sin(u), v)), np.ones(8)),
    "devices that meet": (lambda: on_devices(lambda v: forever(lambda u: lax.psum(u, "x") / 4, v)), np.ones(8)),
    "devices after each other": (
        lambda: on_devices(lambda v: lax.psum(forever(lambda u: wnp.cos(u), v), "x") + v),
        np.ones(8),
    ),
    "partitioned": (
        lambda: weft.jit(
            lambda x: weft.with_sharding_constraint(forever(lambda v: wnp.sin(v), x), weft.NamedSharding(MESH, P("x")))
        ),
        np.ones(16),
    ),
    "outside of jit": (lambda: lambda x: lax.fori_loop(0, 2**31 - 1, lambda i, c: wnp.sin(c), x), wnp.ones(3)),
    "loop after a loop": (
        lambda: weft.jit(lambda x: forever(lambda v: v * 2, forever(lambda v: v + 1, x)) + wnp.arange(3)),
        1.0,
    ),
    "records": (
        lambda: weft.jit(
            weft.grad(
                lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, inner_forever(c[1])), (0, x))[1]
            )
        ),
        1.0,
    ),
}


def inner_forever(x):
    return x * lax.stop_gradient(forever(lambda v: v + 1, lax.stop_gradient(x)))


def many_steps(v):
    for i in range(100):
        v = wnp.cumsum(wnp.sin(v)) * (1.0 + i)
    return v


class Alarm(Exception):
    pass


def interrupted(call, after=0.4, kind=signal.SIGINT):
    """How long the call went on after the signal."""
    sent = []

    def send():
        time.sleep(after)
        sent.append(time.monotonic())
        os.kill(os.getpid(), kind)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt if kind == signal.SIGINT else Alarm):
            call()
        return time.monotonic() - sent[0]
    finally:
        thread.join()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_takes_hours(name):
    make, x = PROGRAMS[name]
    f, x = make(), wnp.asarray(x, "float32")
    f.lower(x).compile() if hasattr(f, "lower") else None
    for _ in range(2 if name in ("fori", "devices that meet", "recursion") else 1):
        assert interrupted(lambda: f(x), after=0.6) < 10
    # What ran it is as it was.
    assert float(weft.jit(lambda v: weft.fori_loop(0, 5000, lambda i, c: c + 1.0, v))(0.0)) == 5000


def test_the_program_itself_can_be_used_again():
    f = weft.jit(lambda x, n: weft.fori_loop(0, n, lambda i, c: c + 1.0, x))
    assert interrupted(lambda: f(0.0, 2**31 - 1)) < 10
    assert f(0.0, 3000) == 3000
    g = on_devices(
        lambda v: weft.fori_loop(0, lax.pmax(v[0], "x").astype("int32"), lambda i, c: lax.psum(c, "x") / 4, v)
    )
    assert interrupted(lambda: g(wnp.full(4, 2.0e9))) < 10
    np.testing.assert_array_equal(g(wnp.full(4, 10.0)), np.full(4, 10.0))


@pytest.mark.parametrize("name", ["fori", "devices that meet", "products"])
def test_other_handlers(name):
    make, x = PROGRAMS[name]
    f, x, seen = make(), wnp.asarray(x, "float32"), []

    def handler(number, frame):
        seen.append(number)
        if len(seen) == 2:
            raise Alarm
        signal.setitimer(signal.ITIMER_REAL, 0.3)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1.0)
        with pytest.raises(Alarm):
            f(x)
        assert seen == [signal.SIGALRM] * 2
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_handlers_may_run_programs():
    f, g = (
        weft.jit(lambda x: forever(lambda v: v + 1, x)),
        weft.jit(lambda x: weft.fori_loop(0, 9000, lambda i, c: c + 1.0, x)),
    )
    got = []

    def handler(number, frame):
        got.append(float(g(0.0)))
        raise Alarm

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(Alarm):
            f(1.0)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert got == [9000.0]


def test_after_a_handler_that_took_long():
    """The next signal is seen as soon as any."""
    f = weft.jit(lambda x: forever(lambda v: v + 1, x))
    rounds = []

    def handler(number, frame):
        rounds.append(time.monotonic())
        if len(rounds) == 2:
            raise Alarm
        time.sleep(1.0)
        signal.setitimer(signal.ITIMER_REAL, 0.2)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(Alarm):
            f(1.0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert rounds[1] - rounds[0] < 30  # 100 times the handler's time would be 100 s


def test_while_other_threads_run_python_and_programs():
    """Signals are the first thread's; others go on."""
    stop, rounds = threading.Event(), [0, 0]
    step = weft.jit(lambda x: weft.fori_loop(0, 2000, lambda i, c: wnp.sin(c), x))

    def python():
        while not stop.is_set():
            rounds[0] += sum(range(1000)) > 0

    def program():
        while not stop.is_set():
            np.testing.assert_array_equal(step(wnp.zeros(3)), np.zeros(3))
            rounds[1] += 1

    threads = [threading.Thread(target=body) for body in (python, program)]
    for thread in threads:
        thread.start()
    try:
        f = weft.jit(lambda x: forever(lambda v: v + 1, x))
        assert interrupted(lambda: f(1.0), after=1.0) < 10
        before = list(rounds)
        time.sleep(0.5)
        assert all(now > then for now, then in zip(rounds, before))
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_in_a_child():
    f, x = weft.jit(lambda x: forever(lambda v: wnp.sin(v), x)), wnp.ones(3)
    assert interrupted(lambda: f(x)) < 10
    done = []

    def fork():  # from another thread, which is the child's first
        child = os.fork()
        if child == 0:
            status = 1
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.5)
                f(x)
            except Alarm:
                status = 0
            finally:
                os._exit(status)
        done.append(os.waitpid(child, 0)[1])

    def handler(number, frame):
        raise Alarm

    before = signal.signal(signal.SIGALRM, handler)
    try:
        thread = threading.Thread(target=fork)
        thread.start()
        thread.join(SECONDS)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert done == [0]


def test_interpreted():
    program = """
import os, signal, threading, weft
f = weft.jit(lambda x: weft.lax.while_loop(lambda c: c >= 0, lambda c: c + 1, x))
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    f(1.0)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "WEFT_INTERPRET": "1"}
    command = [sys.executable, "-P", "-c", program]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=SECONDS)
    assert done.stdout == "interrupted\n", done.stderr


def test_what_comes_after_a_loop_that_was_cut_short_does_not_happen(capsys):
    seen = []

    def model(x):
        y = forever(lambda v: v + 1, x)
        weft.debug.print("{}", y)
        weft.debug.callback(seen.append, y)
        return weft.fori_loop(0, 3, lambda i, c: c + weft.pure_callback(lambda v: seen.append(v) or v, SHAPE, c), y)

    SHAPE = weft.ShapeDtype((), "float32")
    assert interrupted(lambda: weft.jit(model)(wnp.float32(1.0))) < 10
    assert seen == [] and capsys.readouterr().out == ""


def test_a_loop_over_rows_stops_where_it_fails():
    """Not after all of its trips."""
    calls = []

    def callback(v):
        calls.append(1)
        raise KeyError("first")

    shape = weft.ShapeDtype((), "float32")
    f = weft.jit(lambda x: lax.scan(lambda c, _: (weft.pure_callback(callback, shape, c), c), x, None, 10**9)[0])
    begun = time.monotonic()
    with pytest.raises(KeyError, match="first"):
        f(1.0)
    assert calls == [1] and time.monotonic() - begun < 30


# Libraries compute these, in code of their own: products of all layouts and dtypes, convolutions, factorisations.
LIBRARIES = """
import signal, sys, threading, time
import numpy as np
import weft, weft.numpy as wnp
from weft import lax
arrived = 0
def handler(number, frame):
    global arrived
    arrived += 1
signal.signal(signal.SIGPROF, handler)
signal.setitimer(signal.ITIMER_PROF, 0.0005, 0.0005)
rng = np.random.default_rng(0)
array = lambda *shape, dtype="float32": rng.standard_normal(shape).astype(dtype)
calls = {}
for n in (60, 128, 400):
    for dtype in ("float32", "float64", "complex64", "float16"):
        a, b = array(n, n, dtype=dtype), array(n, n, dtype=dtype)
        calls[f"product {n} {dtype}"] = lambda a=a, b=b: wnp.matmul(a, b)
        calls[f"transposed {n} {dtype}"] = lambda a=a, b=b: wnp.matmul(a.T, b.T)
x, w = array(2, 16, 30, 30), array(32, 16, 3, 3)
calls["convolution"] = lambda: lax.conv(x, w, (1, 1), "SAME")
calls["strides"] = lambda: lax.conv(x, w, (2, 3), "VALID")
v = array(16, 1, 3, 3)
calls["groups"] = lambda: lax.conv_general_dilated(x, v, (1, 1), "SAME", feature_group_count=16)
calls["gradient"] = lambda: weft.grad(lambda w: lax.conv(x, w, (1, 1), "SAME").sum())(w)
s = array(150, 150)
calls["solve"] = lambda: wnp.linalg.solve(s, s)
calls["eigenvalues"] = lambda: wnp.linalg.eigh(s + s.T)[0]
calls["singular values"] = lambda: wnp.linalg.svd(s)[1]
def run(seconds):
    for call in calls.values():
        first, end = np.asarray(call()), time.time() + seconds
        while time.time() < end:
            assert np.array_equal(np.asarray(call()), first, equal_nan=True)
others = [threading.Thread(target=run, args=(0.1,)) for _ in range(2)]
for thread in others:
    thread.start()
run(0.1)
for thread in others:
    thread.join()
signal.setitimer(signal.ITIMER_PROF, 0)
print(arrived > 20, "done")
"""


def test_signals_while_libraries_compute():
    """Their code may use the stack pointer for something else: a handler that ran then wrote over the heap."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", LIBRARIES], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0 and done.stdout == "True done\n", (done.returncode, done.stdout, done.stderr[-3000:])
