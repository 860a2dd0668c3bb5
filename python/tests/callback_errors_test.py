"""What a callback raises reaches who called the program, as it is: the same object, with the lines of the program that
calls the callback, however compiled code, loops, devices and processes lie between."""

import gc
import os
import shutil
import sys
import threading
import traceback
import weakref

os.environ.setdefault("WEFT_NUM_CPU_DEVICES", "4")

import numpy as np
import pytest
import several_processes

import weft
import weft.numpy as wnp
from weft import P, lax

SCALAR = weft.ShapeDtype((), "float32")
MESH = weft.make_mesh((4,), ("x",))


class OwnError(Exception):
    def __init__(self, a, b):  # takes what no message can give
        super().__init__(f"{a} and {b}")
        self.parts = a, b


class OwnInterrupt(BaseException):
    pass


EXCEPTIONS = {
    "ValueError": lambda: ValueError("bad value"),
    "KeyError": lambda: KeyError("key"),
    "ZeroDivisionError": lambda: ZeroDivisionError("zero"),
    "StopIteration": lambda: StopIteration(3),
    "own": lambda: OwnError(1, "two"),
    "group": lambda: ExceptionGroup("two", [ValueError(1), KeyError(2)]),
    "TracerError": lambda: weft.TracerError("said by the user"),
    "KeyboardInterrupt": lambda: KeyboardInterrupt("now"),
    "SystemExit": lambda: SystemExit(5),
    "GeneratorExit": lambda: GeneratorExit(),
    "own interrupt": lambda: OwnInterrupt(7),
}


class Raises:
    """A callback that raises in its n-th call."""

    def __init__(self, error, after=0):
        self.error, self.left, self.calls = error, after, 0

    def __call__(self, v):
        self.calls += 1
        if self.left == 0:
            self.deep()
        self.left -= 1
        return np.asarray(v)

    def deep(self):
        raise self.error from ArithmeticError("its cause")


def pure(callback, x):
    return weft.pure_callback(callback, SCALAR, x)  # the line of pure_callback


def io(callback, x):
    return weft.io_callback(callback, SCALAR, x)  # the line of io_callback


def with_gradient(callback):
    f = weft.custom_jvp(lambda x: pure(callback, x))
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    return f


def on_devices(callback, inside=lambda f, v: f(v)):
    f = weft.shard_map(lambda v: inside(lambda u: pure(callback, u[0])[None], v), MESH, P("x"), P("x"))
    return lambda: weft.jit(f)(wnp.ones(4))


WAYS = {
    "eager": lambda c: lambda: pure(c, 1.0),
    "eager, large": lambda c: (
        lambda: weft.pure_callback(lambda v: c(v[0]) * v, weft.ShapeDtype((20000,), "float32"), wnp.ones(20000))
    ),
    "io": lambda c: lambda: io(c, 1.0),
    "jit": lambda c: lambda: weft.jit(lambda x: pure(c, x) + 1)(1.0),
    "jit of io": lambda c: lambda: weft.jit(lambda x: io(c, x) + 1)(1.0),
    "jit in jit": lambda c: lambda: weft.jit(lambda x: weft.jit(lambda y: pure(c, y))(x) * 2)(1.0),
    "vmap": lambda c: lambda: weft.vmap(lambda x: pure(c, x))(wnp.ones(3)),
    "jit of vmap": lambda c: lambda: weft.jit(weft.vmap(lambda x: pure(c, x)))(wnp.ones(3)),
    "grad": lambda c: lambda: weft.grad(lambda x: with_gradient(c)(x) * x)(1.0),
    "jit of grad": lambda c: lambda: weft.jit(weft.grad(lambda x: with_gradient(c)(x) * x))(1.0),
    "vjp": lambda c: lambda: weft.vjp(lambda x: pure(c, lax.stop_gradient(x)) * x, 1.0)[1](1.0),
    "scan": lambda c: lambda: weft.jit(lambda x: lax.scan(lambda s, _: (pure(c, s), s), x, None, 5))(1.0),
    "while": lambda c: lambda: weft.jit(lambda x: lax.while_loop(lambda s: s < 5, lambda s: pure(c, s) + 1, x))(0.0),
    "condition of while": lambda c: (
        lambda: weft.jit(lambda x: lax.while_loop(lambda s: pure(c, s) < 5, lambda s: s + 1, x))(0.0)
    ),
    "fori": lambda c: lambda: weft.jit(lambda x: weft.fori_loop(0, 5, lambda i, s: pure(c, s), x))(0.0),
    "cond": lambda c: lambda: weft.jit(lambda x: lax.cond(x > 0, lambda v: pure(c, v), lambda v: v, x))(1.0),
    "loop in a loop": lambda c: (
        lambda: weft.jit(
            lambda x: weft.fori_loop(0, 3, lambda i, s: weft.fori_loop(0, 3, lambda j, t: pure(c, t), s), x)
        )(0.0)
    ),
    "checkpoint": lambda c: (
        lambda: weft.jit(weft.value_and_grad(weft.checkpoint(lambda x: with_gradient(c)(wnp.sin(x)))))(1.0)
    ),
    "devices": lambda c: on_devices(c),
    "loop on devices": lambda c: on_devices(c, lambda f, v: weft.fori_loop(0, 3, lambda i, s: f(s), v)),
    "devices that meet": lambda c: on_devices(c, lambda f, v: lax.psum(f(v), "x") + f(v)),
    "pmap": lambda c: lambda: weft.pmap(lambda x: pure(c, x))(wnp.ones(4)),
    "partitioned": lambda c: (
        lambda: weft.jit(lambda x: pure(c, x.sum()) + x, out_shardings=weft.NamedSharding(MESH, P("x")))(wnp.ones(8))
    ),
    "recursion": lambda c: lambda: recursive(c)(3.0),
    "recorded": lambda c: lambda: weft.jit(lambda x: pure(c, x) if x > 0 else x, capture="auto")(1.0),
    "debug.callback": lambda c: lambda: weft.jit(lambda x: weft.debug.callback(c, x) or x)(1.0),
    "lowered": lambda c: lambda: weft.jit(lambda x: pure(c, x)).lower(1.0).compile()(1.0),
    "ir": lambda c: lambda: weft.make_ir(lambda x: pure(c, x))(1.0)(1.0),
    "disable_jit": lambda c: lambda: without_jit(lambda: weft.jit(lambda x: pure(c, x))(1.0)),
    "print after it": lambda c: lambda: weft.jit(lambda x: weft.debug.print("never: {}", io(c, x)) or x)(1.0),
}


def without_jit(f):
    with weft.disable_jit():
        return f()


def recursive(callback):
    @weft.jit
    def f(n):
        return lax.cond(n < 1, lambda n: pure(callback, n), lambda n: f(n - 1) + 1, n)

    return f


@pytest.mark.parametrize("after", [0, 2])
@pytest.mark.parametrize("kind", ["own", "KeyboardInterrupt"])
@pytest.mark.parametrize("way", WAYS)
def test_ways(way, kind, after, capsys):
    error = EXCEPTIONS[kind]()
    callback = Raises(error, after)
    run = WAYS[way](callback)
    with pytest.raises(type(error)) as caught:
        for _ in range(after + 1):  # those that call it once
            run()
    assert caught.value is error and isinstance(error.__cause__, ArithmeticError)
    assert callback.calls == after + 1  # nothing happens afterwards
    frames = [f.name for f in traceback.extract_tb(error.__traceback__)]
    assert "deep" in frames and "test_ways" in frames and frames.index("test_ways") < frames.index("deep")
    # Where the program calls it.
    line = {"io": "io_callback", "jit of io": "io_callback", "print after it": "io_callback"}.get(way, "pure_callback")
    if way not in ("eager, large", "debug.callback"):
        [note] = error.__notes__
        assert f"that {line} calls\n  at {__file__}:" in note and f" in {line.split('_')[0]}" in note
    assert capsys.readouterr().out == "never: 1.0\n" * after * (way == "print after it")
    # The program can be used again.
    callback.error, callback.left = None, 10**6
    run()


@pytest.mark.parametrize("kind", EXCEPTIONS)
@pytest.mark.parametrize("way", ["eager", "jit", "scan", "devices that meet", "recursion"])
def test_kinds(way, kind):
    error = EXCEPTIONS[kind]()
    with pytest.raises(type(error)) as caught:
        WAYS[way](Raises(error))()
    assert caught.value is error


def test_the_same_object_twice():
    error = ValueError("one for all")
    f = weft.jit(lambda x: pure(Raises(error), x))
    for _ in range(3):
        with pytest.raises(ValueError, match="one for all") as caught:
            f(1.0)
        assert caught.value is error and len(error.__notes__) == 1


def test_a_callback_that_runs_programs_with_callbacks():
    error = KeyError("inner")
    inner = weft.jit(lambda x: pure(Raises(error), x))

    def outer(v):
        try:
            inner(v)
        except KeyError as e:
            raise OwnError(1, 2) from e

    with pytest.raises(OwnError) as caught:
        weft.jit(lambda x: pure(outer, x))(1.0)
    assert caught.value.__cause__ is error
    fine = weft.jit(lambda x: pure(lambda v: np.float32(4) if raises(lambda: inner(v)) else v, x))
    assert fine(1.0) == 4


def raises(f):
    try:
        f()
    except KeyError:
        return True
    return False


@pytest.mark.parametrize("count", [2, 3])
def test_each_thread_gets_its_own(count):
    f = weft.jit(lambda x: pure(choose, x) + 1)
    errors = [OwnError(i, i) for i in range(count)]

    def choose(v):
        raise errors[int(v)]

    def body(i):
        for _ in range(50):
            try:
                f(float(i))
            except OwnError as e:
                wrong.append(i) if e is not errors[i] else None

    wrong = []
    threads = [threading.Thread(target=body, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_nothing_is_kept():
    class Local(Exception):
        pass

    def fails(v):
        raise Local

    def run(f):
        with pytest.raises(Local) as caught:
            f(1.0)
        return weakref.ref(caught.value)

    for f in (weft.jit(lambda x: pure(fails, x)), lambda x: pure(fails, x)):
        reference = run(f)
        gc.collect()
        assert reference() is None


def test_what_a_callback_must_not_return_stays_an_error_of_the_program():
    with pytest.raises(RuntimeError, match="result 0 of a callback is"):
        weft.jit(lambda x: pure(lambda v: np.ones(3, np.float32), x))(1.0)
    with pytest.raises(TypeError, match="the callback returned a"):
        weft.jit(lambda x: pure(lambda v: (v, v), x))(1.0)


def test_a_print_that_is_interrupted(monkeypatch):
    class Out:
        def write(self, text):
            raise KeyboardInterrupt

        def flush(self):
            pass

    f = weft.jit(lambda x: weft.debug.print("{}", x) or x)
    monkeypatch.setattr(sys, "stdout", Out())
    with pytest.raises(KeyboardInterrupt):
        f(1.0)


def test_on_two_processes():
    """A process gets what its own callback raises; the job ends."""
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is missing (Debian's package openmpi-bin)")
    program = """
import numpy as np, weft, weft.numpy as wnp
from weft import P
weft.distributed.initialize()
mesh = weft.make_mesh((2,), ("x",))
class OwnError(Exception): pass
def callback(v):
    if weft.process_index() == 1:
        raise OwnError("of rank 1")
    return v
def body(v):
    return weft.pure_callback(callback, weft.ShapeDtype((2,), "float32"), v) + weft.lax.psum(v, "x")
x = weft.device_put(np.ones(4, np.float32), weft.NamedSharding(mesh, P("x")))
try:
    weft.jit(weft.shard_map(body, mesh, P("x"), P("x")))(x)
except OwnError as e:
    print("rank", weft.process_index(), "got", e, flush=True)
    raise
"""
    done = several_processes.run(2, ["-c", program], devices=1, timeout=60, WEFT_DEADLINE="3")
    assert done.returncode != 0
    assert "rank 1 got of rank 1" in done.stdout and "OwnError: of rank 1" in done.stderr, done.stdout + done.stderr
