"""jit(capture=...): recordings of the path that Python took, and when they are used again."""

import functools
import math

import numpy as np
import pytest

import weft
import weft.numpy as wnp


def counted(function):
    """The function, and a list that grows with each of its runs in Python."""
    runs = []

    def f(*args):
        runs.append(args)
        return function(*args)

    return f, runs


def branchy(x):
    if x > 0:
        y = x * 2
        while y < 10:
            y = y + x
        return y
    return -x


def test_a_recording_is_used_where_the_decisions_agree():
    f, runs = counted(branchy)
    g = weft.jit(f, capture="auto")
    for x, python_runs in [(3.0, 1), (2.9, 1), (2.8, 1), (-1.0, 2), (-5.0, 2), (3.1, 2), (1.0, 3), (2.7, 3), (1.05, 3)]:
        np.testing.assert_allclose(float(g(x)), branchy(x), rtol=1e-6)
        assert len(runs) == python_runs, (x, g.explain())
    assert "Python ran 3 times" in g.explain() and "f32[]" in g.explain()


def test_never_the_wrong_path():
    g = weft.jit(branchy, capture="auto")
    for x in np.random.default_rng(0).uniform(-3, 12, 200):
        np.testing.assert_allclose(float(g(float(x))), branchy(float(np.float32(x))), rtol=1e-5)


def test_numbers_taken_out_are_decisions():
    f, runs = counted(lambda x: x * float(x.sum()))
    g = weft.jit(f, capture="auto")
    for values in ([1.0, 2.0], [2.0, 1.0], [1.0, 3.0]):
        x = np.array(values, np.float32)
        np.testing.assert_allclose(np.asarray(g(x)), x * x.sum())
    assert len(runs) == 2


def test_signatures_static_arguments_and_containers():
    def f(params, mode, scale=1.0):
        w = params["w"]
        total = w.sum() * scale
        if mode == "signed" and total < 0:
            return {"total": -total, "n": len(w)}
        return {"total": total, "n": len(w)}

    g = weft.jit(f, capture="auto", static_argnums=1)
    for n in (2, 3):
        for sign in (1, -1):
            for mode in ("signed", "plain"):
                w = sign * np.ones(n, np.float32)
                out = g({"w": w}, mode, scale=2.0)
                assert out["total"].item() == (2 * n if mode == "signed" else 2 * n * sign) and out["n"].item() == n


def test_many_paths():
    f, runs = counted(lambda x: x * int(x))
    g = weft.jit(f, capture="auto")
    for x in list(range(30)) * 2:
        assert g(x + 0.5).item() == (x + 0.5) * x
    assert len(runs) == 60  # more paths than are kept


def test_inside_others():
    g = weft.jit(branchy, capture="auto")
    assert float(weft.grad(g)(3.0)) == 4 and float(weft.grad(g)(-3.0)) == -1
    with pytest.raises(weft.TracerError):
        weft.jit(lambda x: g(x))(1.0)
    with weft.disable_jit():
        assert g(3.0) == 12
    h = weft.jit(weft.value_and_grad(branchy), capture="auto")
    for x in (3.0, 2.9, -1.0, 0.7):
        value, slope = h(x)
        np.testing.assert_allclose(float(value), branchy(x), rtol=1e-6)
        np.testing.assert_allclose(float(slope), (branchy(x + 1e-6) - branchy(x - 1e-6)) / 2e-6, rtol=1e-5)


def test_effects_run_once_a_call(capfd):
    def f(x):
        weft.debug.print("x = {}", x)
        return x if x > 0 else -x

    g = weft.jit(f, capture="auto")
    for x in (1.0, -2.0, 3.0):
        assert g(x).item() == abs(x)
    assert capfd.readouterr().out.split() == ["x", "=", "1.0", "x", "=", "-2.0", "x", "=", "3.0"]


def test_static_arguments():
    def f(x, s):
        return x * (2 if s is True else 3 if isinstance(s, float) else 4 if s == 1 else 5)

    def signed(x, s):
        return x if math.copysign(1.0, s) > 0 else -x

    for make in (functools.partial(weft.jit, capture="auto"), weft.jit):
        g = make(f, static_argnums=1)
        assert [g(1.0, s).item() for s in (True, 1, 1.0, 7, True, 1)] == [2, 4, 3, 5, 2, 4]
        with pytest.raises(ValueError, match="static argument 1 of 'f' is of type 'list', which is not hashable"):
            g(1.0, [1])
    h = weft.jit(signed, capture="auto", static_argnames="s")
    assert [h(1.0, 0.0).item(), h(1.0, s=-0.0).item(), h(1.0, 0.0).item()] == [1, -1, 1]


def test_script_is_autograph():
    scripted = weft.jit(branchy, capture="script")
    traced = weft.jit(lambda x: wnp.abs(x), capture="trace")
    assert scripted(3.0).item() == 12 and scripted(-2.0).item() == 2 and traced(-2.0).item() == 2
    assert weft.make_ir(scripted)(1.0) == weft.make_ir(weft.autograph(branchy))(1.0)
    with pytest.raises(ValueError, match="'trace', 'script' or 'auto', got 'eager'"):
        weft.jit(branchy, capture="eager")
    with pytest.raises(ValueError, match="donated"):
        weft.jit(branchy, capture="auto", donate_argnums=0)
