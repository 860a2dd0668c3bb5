"""Mistakes: each raises the right exception, says what was given and expected, and names the user's line."""

import threading

import numpy as np
import pytest

import weft
import weft.numpy as wnp


def line_of(text):
    with open(__file__) as file:
        for number, line in enumerate(file, 1):
            if line.rstrip().endswith("# " + text):
                return f"errors_test.py:{number}"
    raise AssertionError(text)


def test_shapes():
    with pytest.raises(TypeError, match=r"\(2,\) and \(3,\) do not broadcast"):
        wnp.ones(2) + wnp.ones(3)
    with pytest.raises(TypeError, match=r"matmul.*2 columns against 3 rows"):
        wnp.ones((2, 2)) @ wnp.ones((3, 2))
    with pytest.raises(TypeError, match=r"reshape.*6 elements"):
        wnp.ones((2, 3)).reshape(4)
    with pytest.raises(IndexError, match="axis 2"):
        wnp.ones((2, 3)).sum(axis=2)
    with pytest.raises(TypeError, match="concatenate: array 1"):
        wnp.concatenate([wnp.ones((2, 2)), wnp.ones((2, 3))])
    with pytest.raises(ValueError, match=r"einsum.*names 1 operands, got 2"):
        wnp.einsum("ij->i", wnp.ones((2, 2)), wnp.ones(2))
    with pytest.raises(TypeError, match=r"index 'j'|index '"):
        wnp.einsum("ij,jk->ik", wnp.ones((2, 3)), wnp.ones((2, 2)))


def test_user_line_while_tracing():
    def model(x):
        y = wnp.sin(x)
        return y @ wnp.ones((7, 2))  # bad product

    with pytest.raises(TypeError, match="matmul") as info:
        weft.jit(model)(wnp.ones(3))
    assert line_of("bad product") in str(info.value)


def test_tracer_as_bool():
    def model(x):
        if x.sum() > 0:  # bad if
            return x
        return -x

    for transform in [weft.jit, weft.make_ir, weft.vmap]:
        with pytest.raises(weft.TracerError, match=r"weft.cond") as info:
            transform(model)(wnp.ones((2, 3)))
        assert line_of("bad if") in str(info.value) and "argument 'x'" in str(info.value)
        assert isinstance(info.value, TypeError)


def test_tracer_as_number():
    for f in [
        float,
        int,
        complex,
        lambda x: range(x.astype(int)),
        lambda x: x.item(),
        np.asarray,
        lambda x: np.sin(x),
        lambda x: x.tolist(),
    ]:
        with pytest.raises(weft.TracerError):
            weft.jit(lambda x: f(x) and x)(1.0)  # noqa: B023
    with pytest.raises(weft.TracerError, match="static"):
        weft.jit(lambda n: wnp.zeros(n))(3)


def test_escaped_tracer():
    kept = []

    def leak(x):
        kept.append(x * 2)  # leaked
        return x

    weft.jit(leak)(wnp.ones(3))
    for use in [
        lambda v: v + 1,
        lambda v: weft.jit(lambda x: x + v)(1.0),
        float,
        lambda v: wnp.sin(v),
        lambda v: v[0],
        bool,
    ]:
        with pytest.raises(weft.TracerError, match=r"escaped|ended") as info:
            use(kept[0])
        assert line_of("leaked") in str(info.value) and "'leak'" in str(info.value)
    assert repr(kept[0]) == "Tracer<f32[3]>" and kept[0].shape == (3,)


def test_arguments_that_are_no_arrays():
    with pytest.raises(TypeError, match=r"'abc' of type 'str'.*static"):
        weft.jit(lambda x: x)("abc")
    with pytest.raises(TypeError, match=r"argument x\['a'\] of 'g' is 'abc'"):

        def g(x):
            return 1.0

        weft.grad(g)({"a": "abc"})
    with pytest.raises(TypeError, match=r"result.*of '<lambda>'|result"):
        weft.jit(lambda x: "text")(1.0)
    with pytest.raises(TypeError, match=r"\[1\]"):
        weft.jit(lambda x: (x, object()))(1.0)
    with pytest.raises(TypeError, match="expected a function"):
        weft.jit(3)


def test_traces_close_after_an_error():
    def bad(x):
        raise RuntimeError("mine")

    for transform in [weft.jit, weft.grad, weft.vmap, weft.make_ir]:
        with pytest.raises(RuntimeError, match="mine"):
            transform(bad)(wnp.ones(3))
    assert not weft._weft.is_tracing()
    assert isinstance(wnp.ones(3) + 1, weft.Array) and not isinstance(wnp.ones(3) + 1, weft.Tracer)


def test_bad_dtypes():
    with pytest.raises(TypeError, match="'float99'"):
        wnp.ones(3, "float99")
    with pytest.raises(TypeError):
        ~wnp.ones(3)
    with pytest.raises(TypeError):
        wnp.ones(3) & 1
    with pytest.raises(TypeError):
        _ = wnp.asarray(1j) < 2


def test_empty_and_nan():
    with pytest.raises(ValueError, match="no elements"):
        wnp.zeros((0,)).max()
    with pytest.raises(ValueError):
        wnp.argmax(wnp.zeros((0,)))
    assert wnp.zeros((0,)).sum().item() == 0 and wnp.zeros((0, 3)).sum(0).tolist() == [0, 0, 0]
    assert np.isnan(wnp.asarray([1.0, np.nan]).max().item()) and np.isnan(wnp.zeros((0,)).mean().item())
    assert (wnp.zeros((2, 0)) @ wnp.zeros((0, 3))).tolist() == [[0] * 3] * 2
    assert weft.grad(lambda x: (x * wnp.zeros((0,))).sum())(2.0).item() == 0


def test_no_derivative():
    with pytest.raises((weft.DerivativeError, TypeError)):
        weft.grad(lambda x: wnp.nextafter(x, x + 1))(1.0)


def test_operations_count_their_arguments():
    with pytest.raises(TypeError, match="sin: takes 1 argument, got 2"):
        wnp.sin(1.0, 2.0)
    with pytest.raises(TypeError, match="positional"):
        wnp.sin(x=1.0)


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("call", [weft.pure_callback, weft.io_callback])
@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_in_a_callback_stays_one(interrupt, call, jitted):
    def callback(x):
        raise interrupt("stop", 7)

    def f(x):
        return weft.fori_loop(0, 3, lambda i, c: call(callback, weft.ShapeDtype((), "float32"), c), x)

    with pytest.raises(interrupt) as caught:
        (weft.jit(f) if jitted else f)(1.0)
    assert caught.value.args == ("stop", 7)
    assert caught.traceback[-1].name == "callback"
    # An ordinary exception is reported, afterwards too.
    with pytest.raises(RuntimeError, match="a callback raised ZeroDivisionError"):
        weft.jit(lambda x: call(lambda v: 1 / 0, weft.ShapeDtype((), "float32"), x))(1.0)


def test_an_interrupt_in_one_thread_is_none_of_anothers():
    def callback(x):
        raise KeyboardInterrupt(float(x)) if x % 2 else ValueError(float(x))

    f = weft.jit(lambda x: weft.pure_callback(callback, weft.ShapeDtype((), "float32"), x))
    seen = {}

    def run(i):
        try:
            f(np.float32(i))
        except BaseException as error:
            seen[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(8):
        assert type(seen[i]) is (KeyboardInterrupt if i % 2 else RuntimeError)
        assert str(float(i)) in str(seen[i])
