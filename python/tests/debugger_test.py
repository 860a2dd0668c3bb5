"""weft.debug.breakpoint: what it shows, where programs open it."""

import io

import pytest

import weft
import weft.numpy as wnp

OUTSIDE = 7


def _session(*commands):
    return io.StringIO("\n".join(commands) + "\n"), io.StringIO()


def _answers(stdout):
    """What was said after each prompt."""
    return [part.strip("\n") for part in stdout.getvalue().split("(wdb) ")][1:]


def test_values_of_the_run_are_shown():
    stdin, stdout = _session("p y", "p kept['z'] + OUTSIDE", "p _text, number", "y * 2", "p nothing", "c")

    @weft.jit
    def f(x):
        y, _text, number = x + 1.0, "a text", 3
        kept = {"z": wnp.sum(y), "n": number}
        weft.debug.breakpoint(stdin=stdin, stdout=stdout)
        return y * kept["z"]

    assert f(wnp.array([1.0, 2.0])).tolist() == [10.0, 15.0]
    assert stdout.getvalue().startswith("Entering wdb:\n")
    assert _answers(stdout) == [
        "Array([2., 3.], dtype=float32)",
        "Array(12., dtype=float32)",
        "('a text', 3)",
        "Array([4., 6.], dtype=float32)",
        "*** NameError: name 'nothing' is not defined",
        "",
    ]


def test_frames_and_lines():
    stdin, stdout = _session("l", "u", "p x, inner", "u", "d", "d", "bt", "c")

    def g(inner):
        doubled = inner * 2
        weft.debug.breakpoint(stdin=stdin, stdout=stdout, num_frames=2)
        return doubled

    @weft.jit
    def f(x):
        inner = x + 1
        return g(inner)

    f(1)
    lines, up, values, top, down, bottom, trace, _ = _answers(stdout)
    assert "def g(inner):" in lines and "->          weft.debug.breakpoint" in lines and "debugger_test.py(" in lines
    assert "->          return g(inner)" in up and values == "(Array(1, dtype=int32), Array(2, dtype=int32))"
    assert top.startswith("At topmost frame.") and "weft.debug.breakpoint" in down
    assert bottom.startswith("At bottommost frame.")
    assert trace.splitlines()[2].strip() == "return g(inner)" and "weft.debug.breakpoint" in trace.splitlines()[4]


@pytest.mark.parametrize("kind", ["outside", "grad", "vmap", "scan", "cond"])
def test_transforms_and_loops(kind):
    stdin, stdout = _session(*["p float(y)", "c"] * 3)

    def f(x):
        y = x * 2
        weft.debug.breakpoint(stdin=stdin, stdout=stdout)
        return y

    run, expected = {
        "outside": (lambda: f(wnp.array(1.0)), ["2.0"]),
        "grad": (lambda: weft.jit(weft.grad(f))(1.0), ["2.0"]),
        "vmap": (lambda: weft.jit(weft.vmap(f))(wnp.arange(3.0)), ["0.0", "2.0", "4.0"]),
        "scan": (lambda: weft.scan(lambda c, _: (f(c), None), wnp.array(1.0), None, length=3), ["2.0", "4.0", "8.0"]),
        "cond": (lambda: weft.jit(lambda x: weft.cond(x > 0, f, lambda x: x, x))(1.0), ["2.0"]),
    }[kind]
    run()
    assert [answer for answer in _answers(stdout) if answer and "Entering" not in answer] == expected


def test_token_end_of_input_and_other_debuggers():
    stdin, stdout = _session("p x", "c")

    @weft.jit
    def f(x):
        return weft.debug.breakpoint(token={"x": x}, stdin=stdin, stdout=stdout)["x"] + 1

    assert f(1) == 2 and _answers(stdout)[0].startswith("Array(1")
    with pytest.raises(SystemExit):
        weft.jit(lambda x: (weft.debug.breakpoint(stdin=io.StringIO(), stdout=io.StringIO()), x)[1])(1)
    with pytest.raises(ValueError, match="backend must be None or 'cli'"):
        weft.debug.breakpoint(backend="web")
