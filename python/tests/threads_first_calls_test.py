"""Functions that several threads call for the first time: one of them traces and compiles, the others wait for it,
whatever happens to it."""

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
from weft import lax

SECONDS = 60


def in_threads(count, body):
    """Runs body(i) in threads that start together. Returns what they return, or the exception that they raise."""
    out, start = [None] * count, threading.Barrier(count)

    def run(i):
        start.wait(SECONDS)
        try:
            out[i] = body(i)
        except Exception as error:
            out[i] = error

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    return out


def compiled():
    return weft._weft.programs_compiled()


class Traced:
    """A function that counts how often it is traced, and is at it for a while."""

    def __init__(self, factor, pause=0.05):
        self.factor, self.pause, self.times = factor, pause, 0

    def __call__(self, x):
        self.times += 1
        time.sleep(self.pause)
        return wnp.cumsum(wnp.sin(x)) * self.factor


@pytest.mark.parametrize("count", [2, 3, 4])
def test_it_is_traced_and_compiled_once(count):
    model = Traced(1.0 + count)
    f, x = weft.jit(model), np.ones(100 + count, np.float32)
    before = compiled()
    out = in_threads(count, lambda _: np.asarray(f(x)))
    for got in out:
        np.testing.assert_allclose(got, np.cumsum(np.sin(x)) * (1.0 + count), rtol=1e-5)
    assert (model.times, compiled() - before, f._cache_size()) == (1, 1, 1)
    assert f.explain()[0]["calls"] == count


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("transform", ["grad", "vmap", "lower", "value_and_grad", "nested"])
def test_also_inside_of_transforms(count, transform):
    model = Traced(3.0)
    f, x = weft.jit(model), wnp.ones(50)
    uses = {
        "grad": lambda: weft.grad(lambda v: f(v).sum())(x),
        "value_and_grad": lambda: weft.value_and_grad(lambda v: f(v).sum())(x)[0],
        "vmap": lambda: weft.vmap(f)(x.reshape(5, 10)),
        "lower": lambda: f.lower(x).compile()(x),
        "nested": lambda: weft.jit(lambda v: f(v) + 1)(x),
    }
    want = np.asarray(uses[transform]())
    f.clear_cache()
    model.times = 0
    for got in in_threads(count, lambda _: np.asarray(uses[transform]())):
        np.testing.assert_array_equal(got, want)
    assert model.times == (count if transform == "lower" else 1)  # lower() is asked for a program of its own


@pytest.mark.parametrize("count", [2, 4])
def test_several_signatures_at_once(count):
    model = Traced(2.0, 0.01)
    f = weft.jit(model)

    def body(i):
        for n in range(5):
            assert f(wnp.ones(10 + (n + i) % 5)).shape == (10 + (n + i) % 5,)

    assert in_threads(count, body) == [None] * count
    assert model.times == 5


def test_operations_outside_of_jit_are_compiled_once():
    x = wnp.asarray(np.random.default_rng(0).normal(size=(1, 98_765)).astype(np.float32))
    before = compiled()
    out = in_threads(4, lambda _: np.asarray(wnp.sort(x)))
    assert compiled() - before == 1
    for got in out:
        np.testing.assert_array_equal(got, np.sort(np.asarray(x)))


@pytest.mark.parametrize("count", [2, 3, 4])
def test_programs_that_differ_in_a_number_share_one_code(count):
    """One thread makes it, also where all of them need it at once."""
    shape = 200 + count
    functions = [weft.jit(lambda x, k=k: wnp.cumsum(wnp.sin(x)) * (0.123 + 1.017 * k)) for k in range(count)]
    x, before, generated = np.ones(shape, np.float32), compiled(), weft._weft.codes_generated()
    out = in_threads(count, lambda i: np.asarray(functions[i](x)))
    for k, got in enumerate(out):
        np.testing.assert_allclose(got, np.cumsum(np.sin(x)) * (0.123 + 1.017 * k), rtol=1e-5)
    assert (compiled() - before, weft._weft.codes_generated() - generated) == (count, 1)


# --- What goes wrong --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failures", [1, 3])
def test_where_it_raises_the_others_try(failures):
    times = []

    def model(x):
        times.append(1)
        time.sleep(0.05)
        if len(times) <= failures:
            raise ArithmeticError(f"time {len(times)}")
        return x * 7

    f = weft.jit(model)
    out = in_threads(4, lambda _: f(wnp.ones(3)))
    assert sum(isinstance(got, ArithmeticError) for got in out) == failures
    assert [got.tolist() for got in out if not isinstance(got, Exception)] == [[7.0] * 3] * (4 - failures)
    assert len(times) == failures + 1


def test_where_it_cannot_be_compiled_all_are_told():
    mesh = weft.make_mesh((1,), ("x",))

    def model(x):
        time.sleep(0.05)
        y = weft.with_sharding_constraint(x, weft.NamedSharding(mesh, weft.P("x")))
        return wnp.linalg.svd(y.reshape(2, 2))[1]

    f = weft.jit(model, deterministic=True)
    out = in_threads(3, lambda _: f(wnp.ones(4)))
    kinds = {type(got) for got in out}
    assert len(kinds) == 1 and len({str(got).splitlines()[0] for got in out}) == 1, out


@pytest.mark.parametrize("count", [2, 3, 4])
def test_functions_that_call_each_other_while_they_are_traced(count):
    """Each thread traces one of them and needs the next, in a ring."""
    functions = []

    def model(i):
        def traced(x, depth):
            time.sleep(0.02)
            return x + 10**i if depth == 0 else functions[(i + 1) % count](x, depth - 1) * 2

        return traced

    functions += [weft.jit(model(i), static_argnums=1) for i in range(count)]
    depths = range(count + 1)

    def expected(i, depth):
        return 1.0 + 10**i if depth == 0 else expected((i + 1) % count, depth - 1) * 2

    out = in_threads(count, lambda i: [float(functions[i](1.0, d)) for d in reversed(depths)])
    assert out == [[expected(i, d) for d in reversed(depths)] for i in range(count)]


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_function_that_calls_itself(count):
    traced = []

    @weft.jit
    def factorial(n):
        traced.append(1)
        return lax.cond(n <= 1, lambda n: n * 0 + 1, lambda n: n * factorial(n - 1), n)

    @weft.jit
    def even(n):
        return lax.cond(n == 0, lambda n: True, lambda n: odd(n - 1), n)

    @weft.jit
    def odd(n):
        return lax.cond(n == 0, lambda n: False, lambda n: even(n - 1), n)

    out = in_threads(count, lambda i: (float(factorial(5.0)), bool((even, odd)[i % 2](7))))
    assert out == [(120.0, bool(i % 2)) for i in range(count)]
    factorial.clear_cache()
    alone = len(traced)
    factorial(5.0)
    assert alone <= len(traced) - alone or count == 1  # as often as one thread needs, which traces it anew


def test_a_lock_that_the_traced_function_needs():
    """A thread that holds a lock waits for a function, and who traces that one waits for the lock."""
    lock, tracing = threading.RLock(), threading.Event()

    def model(x):
        tracing.set()
        if threading.current_thread().name == "first":
            time.sleep(0.1)
        with lock:
            return x * 3

    f, out = weft.jit(model), []

    def second():
        with lock:
            assert tracing.wait(SECONDS)
            out.append(float(f(2.0)))

    weft._weft.set_patience_with_tracing(0.5)  # half a minute, otherwise
    try:
        threads = [threading.Thread(target=second)]
        threads[0].start()
        first = threading.Thread(target=lambda: out.append(float(f(2.0))), name="first")
        first.start()
        for thread in [*threads, first]:
            thread.join(SECONDS)
    finally:
        weft._weft.set_patience_with_tracing(30)
    assert out == [6.0, 6.0]


def test_a_child_that_was_forked_while_another_thread_traced():
    tracing, go_on = threading.Event(), threading.Event()

    def model(x):
        tracing.set()
        if os.getpid() == parent:
            go_on.wait(SECONDS)
        return x * 5

    parent, f = os.getpid(), weft.jit(model)
    thread = threading.Thread(target=f, args=(2.0,))
    thread.start()
    assert tracing.wait(SECONDS)
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        os._exit(0 if float(f(2.0)) == 10 else 1)
    go_on.set()
    thread.join(SECONDS)
    assert os.waitpid(child, 0)[1] == 0
    assert float(f(2.0)) == 10


def test_a_function_that_forks_while_it_is_traced():
    def model(x):
        child = os.fork()
        if child == 0:
            children.append(0)
        else:
            children.append(os.waitpid(child, 0)[1])
        return x * 5

    children = []
    f = weft.jit(model)
    got = float(f(2.0))
    if children == [0] and os.getpid() != PARENT:
        os._exit(0 if got == 10 else 1)
    assert (got, children) == (10.0, [0])


PARENT = os.getpid()


def test_an_interrupt_reaches_who_waits():
    program = """
import os, signal, threading, time, weft
tracing = threading.Event()
def model(x):
    tracing.set()
    time.sleep(20)
    return x
f = weft.jit(model)
threading.Thread(target=f, args=(1.0,), daemon=True).start()
tracing.wait()
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
begun = time.monotonic()
try:
    f(1.0)
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - begun < 10, flush=True)
os._exit(0)
"""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-P", "-c", program]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=SECONDS)
    assert done.stdout == "interrupted True\n", done.stderr


# --- What is kept -----------------------------------------------------------------------------------------------------


def test_the_most_recently_used_versions_are_kept():
    traced = []

    def model(x, n):
        traced.append(n)
        return x * n

    f = weft.jit(model, static_argnums=1)
    weft.make_ir(lambda x: [f(x, n) for n in range(4096)][-1])(1.0)
    assert f._cache_size() == 4096 and len(traced) == 4096
    weft.make_ir(lambda x: f(x, 0) + f(x, 5000))(1.0)  # 0 is used again, 1 is the oldest then
    assert f._cache_size() == 4096 and traced[4096:] == [5000]
    weft.make_ir(lambda x: f(x, 0) + f(x, 2))(1.0)
    assert traced[4097:] == []
    weft.make_ir(lambda x: f(x, 1))(1.0)
    assert traced[4097:] == [1] and f._cache_size() == 4096


def test_what_is_dropped_is_let_go():
    import gc
    import weakref

    class Static:
        pass

    kept = []

    def run():
        f = weft.jit(lambda x, s: x, static_argnums=1)

        def model(x):
            for _ in range(5000):
                s = Static()
                kept.append(weakref.ref(s))
                f(x, s)
            return x

        weft.make_ir(model)(1.0)
        gc.collect()
        assert 4000 < sum(k() is not None for k in kept) <= 4097

    run()
    gc.collect()
    assert sum(k() is not None for k in kept) == 0
