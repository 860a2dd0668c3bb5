"""Ctrl-C, and other signals that Python handles, while a long program is compiled: what the handler raises ends the
compilation, and the next one begins anew."""

import os
import signal
import threading
import time

os.environ["WEFT_CACHE_DIR"] = "off"

import numpy as np
import pytest

import weft
import weft.numpy as wnp

SECONDS = 60
STEPS = 150
numbers = iter(range(1000))


def new_number():
    return 1.01 + next(numbers) * 0.0123


def long_program(number=None):
    """A function that takes long to compile; another one for each number."""
    number = number or new_number()

    @weft.jit
    def f(x):
        for i in range(STEPS):
            x = wnp.tanh(wnp.tanh(x @ x) * (number + i) + wnp.cumsum(x, 0)) - wnp.roll(x, i % 7, 0) / 9
        return x.sum()

    return f


X = np.full((8, 8), 0.01, np.float32)
weft._weft.finish_warm_up()


@pytest.fixture(scope="module")
def seconds():
    """How long it takes to compile one where nothing else runs, at most."""

    def once():
        lowered = long_program().lower(X)
        start = time.monotonic()
        lowered.compile()
        return time.monotonic() - start

    return min(once() for _ in range(4))


class Alarm(Exception):
    pass


class Handled:
    """While it lives, SIGALRM runs this, so many seconds after the next compilation has begun (`at_once`: after now).

    Tracing comes first and takes as long as the machine lets it, so a time after the call would say nothing."""

    def __init__(self, handler, after, at_once=False):
        self._handler, self._after, self._at_once = handler, after, at_once
        self._ended = threading.Event()

    def __enter__(self):
        self._before = signal.signal(signal.SIGALRM, lambda number, frame: self._handler())
        self._sender = threading.Thread(target=self._send, args=(compiled(), threading.get_ident()))
        self._sender.start()

    def _send(self, count, receiver):
        while not self._at_once and compiled() == count and not self._ended.wait(0.001):
            pass
        if not self._ended.wait(self._after):
            signal.pthread_kill(receiver, signal.SIGALRM)

    def __exit__(self, *_):
        self._ended.set()
        self._sender.join()
        signal.signal(signal.SIGALRM, self._before)


def raise_alarm():
    raise Alarm


def compiled():
    return weft._weft.programs_compiled()


def once_in_five(attempt):
    """On a machine with much else to do a compilation may be over before it notices the signal. `attempt` returns
    whether it did notice."""
    assert any(attempt() for _ in range(5))


@pytest.mark.parametrize("part", [0.05, 0.15, 0.3])
def test_it_ends_and_begins_anew(seconds, part):
    def attempt():
        f, before = long_program(), compiled()
        for times in (1, 2):
            with pytest.raises(Alarm), Handled(raise_alarm, part * seconds):
                f(X)
            if compiled() - before != times:
                return False
        # It was not there: the handler did not wait until it was made.
        assert np.isfinite(f(X))
        if compiled() - before != 3:
            return False
        assert np.isfinite(f(X)) and compiled() - before == 3
        return True

    once_in_five(attempt)


def test_the_keyboard(seconds):
    def attempt():
        f, before = long_program(), compiled()
        with pytest.raises(KeyboardInterrupt), Handled(lambda: signal.raise_signal(signal.SIGINT), 0.3 * seconds):
            f(X)
        assert np.isfinite(f(X))
        return compiled() - before == 2

    once_in_five(attempt)


def test_programs_that_are_asked_for(seconds):
    def attempt():
        lowered, before = long_program().lower(X), compiled()
        with pytest.raises(Alarm), Handled(raise_alarm, 0.3 * seconds):
            lowered.compile()
        assert np.isfinite(lowered.compile()(X))
        with pytest.raises(Alarm), Handled(raise_alarm, 0.3 * seconds, at_once=True):
            lowered.as_text("asm")
        assert ".text" in lowered.as_text("asm")
        return compiled() - before >= 2

    once_in_five(attempt)


@pytest.mark.parametrize("part", [0.05, 0.15, 0.3])
def test_handlers_that_raise_nothing(seconds, part):
    """They may compile and run programs, and fork; the compilation goes on, in the child too."""
    f, got = long_program(), []

    def handler():
        number = new_number()
        got.append(float(weft.jit(lambda x: wnp.cumsum(wnp.sin(x))[-1] * number)(X[0])) / number)
        child = os.fork()
        if child == 0:
            signal.alarm(SECONDS)
        children.append(child)

    children, here = [], os.getpid()
    with Handled(handler, part * seconds):
        value = f(X)
    if os.getpid() != here:
        os._exit(0 if np.isfinite(value) and len(got) == 1 else 1)
    assert got == [pytest.approx(np.sin(X[0]).sum(), rel=1e-5)]
    assert np.isfinite(value) and os.waitpid(children[0], 0)[1] == 0


@pytest.mark.parametrize("count", [1, 2, 3])
def test_while_other_threads_compile(seconds, count):
    """They are not disturbed; and who waits for one of them stops waiting."""
    number, before = new_number(), compiled()
    others = [long_program(number)] + [long_program() for _ in range(count - 1)]
    threads = [threading.Thread(target=f, args=(X,)) for f in others]
    for thread in threads:
        thread.start()
    while compiled() - before < count:
        time.sleep(0.001)
    with pytest.raises(Alarm), Handled(raise_alarm, 0.1 * seconds, at_once=True):
        long_program(number)(X)
    assert compiled() - before == count
    with pytest.raises(Alarm), Handled(raise_alarm, 0.1 * seconds):
        long_program()(X)
    for thread in threads:
        thread.join(SECONDS)
    for f in [*others, long_program(number)]:
        assert np.isfinite(f(X))
    assert compiled() - before == count + 1


def test_forks_while_handlers_run(seconds):
    """While a handler is asked, another thread may fork: the child compiles the same."""
    f, statuses, begun = long_program(), [], threading.Event()

    def fork():
        begun.wait(SECONDS)
        child = os.fork()
        if child == 0:
            signal.alarm(SECONDS)
            os._exit(0 if np.isfinite(f(X)) else 1)
        statuses.append(os.waitpid(child, 0)[1])

    def handler():
        begun.set()
        time.sleep(0.2)
        raise Alarm

    thread = threading.Thread(target=fork)
    thread.start()
    with pytest.raises(Alarm), Handled(handler, 0.3 * seconds):
        f(X)
    assert np.isfinite(f(X))
    thread.join(SECONDS)
    assert statuses == [0]
