"""What made an operation, which rules applied, which of them changes a result; programs transformed and compiled."""

import contextlib
import os
import re
import subprocess
import sys
import threading

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft.__main__ import main


@weft.rewrite("tanh")
def identity(x):
    """Wrong on purpose."""
    return x


weft.register_pass("identity", identity)


def f(x):
    y = wnp.sin(x) * 1  # times one
    return wnp.tanh(y - -x) + wnp.tanh(0.1 * y)


def line_of(offset):
    return f.__code__.co_firstlineno + offset


def test_trail():
    ir = weft.make_ir(lambda x: x - -x)(wnp.ones(3)).optimized()
    trail = ir.trail()
    assert trail.operation == "add" and trail.through == ("sub-neg",) and "explanations_test.py" in trail.stack
    assert str(trail).splitlines()[:2] == ["add", "  by sub-neg: x - (-x) -> x + x"]
    both = weft.make_ir(weft.grad(lambda x: (x - -x).sum()))(wnp.ones(3))
    assert both.trail(both.walk()[-1].results[0]).through[-1] in ("jvp", "transpose")
    inside = weft.make_ir(lambda x: weft.fori_loop(0, 3, lambda i, c: weft.cond(c > 0, wnp.sin, wnp.cos, c), x))(1.0)
    for op in inside.walk():
        for value in op.results:
            assert inside.trail(value).operation == op.name
    with pytest.raises(ValueError, match="is a parameter"):
        inside.trail(inside.walk()[1].regions[0].parameters[0])
    assert identity(weft.make_ir(f)(np.float64(1.0))).optimized().trail().operation == "add"


def test_a_trail_names_the_operation_whose_derivative_it_is():
    ir = weft.make_ir(weft.grad(weft.grad(lambda x: 3 * wnp.sqrt(x))))(2.0)
    assert {op.location.derivative_of for op in ir.walk()} <= {"sqrt", "mul"}
    trail = ir.trail(0)
    assert trail.derivative_of == "sqrt" and f"{trail.operation} in the derivative of sqrt" in str(trail)
    assert weft.make_ir(wnp.sqrt)(2.0).trail(0).derivative_of == ""
    mapped = weft.make_ir(weft.vmap(weft.grad(wnp.tanh)))(wnp.ones(3))
    assert mapped.trail(0).derivative_of == "tanh"


def test_the_trail_of_an_operation():
    """In regions, too; it is that of what the operation gives."""
    ir = weft.make_ir(weft.grad(lambda x: weft.fori_loop(0, 3, lambda i, y: wnp.log(1 + wnp.exp(y)), x)))(1.0)
    ops = ir.walk()
    assert any(op.depth for op in ops)
    for op in ops:
        trail = ir.trail(op)
        assert trail.operation == op.primitive and str(trail) == str(ir.trail(op.results[0]))


def test_what_has_no_trail():
    ir, other = weft.make_ir(lambda x: (x, 1.0))(1.0), weft.make_ir(wnp.sin)(1.0)
    for value, message in [
        (0, "is a parameter"),
        (1, "is the number"),
        (2, "expected a weft.ir.Value"),
        ("x", "expected a weft.ir.Value"),
        (other.results[0], "expected a weft.ir.Value or Operation of this program"),
        (other.walk()[0], "expected a weft.ir.Value or Operation of this program"),
    ]:
        with pytest.raises(ValueError, match=message):
            ir.trail(value)


@pytest.mark.parametrize(
    "passes, disable, kind, message",
    [
        (("no-such",), (), ValueError, "there is no pass named 'no-such'"),
        ((3,), (), TypeError, "the name of a pass must be a string"),
        ((), ["no-such"], ValueError, "disable has 'no-such', which is no rule"),
        ((), [3], TypeError, "the name of a rule must be a string"),
        ((), "mul-one", TypeError, "must be a list of names of rules"),
    ],
)
def test_passes_and_rules_that_there_are_not(passes, disable, kind, message):
    ir = weft.make_ir(f)(wnp.ones(3))
    with pytest.raises(kind, match=message):
        ir.optimized(*passes, disable=disable)
    with pytest.raises(TypeError, match=r"bisect: expected a program"):
        weft.ir.bisect(f, [1.0], [1.0])


def test_rules_by_line():
    g = weft.jit(f)
    assert g.explain("rules") == []
    g(wnp.ones(3))
    g(wnp.ones(4))
    versions = g.explain("rules")
    assert [v["signature"] for v in versions] == ["f32[4]", "f32[3]"]
    for version in versions:
        lines = dict(version["rules"].keys())
        assert lines["mul-one"].endswith(f"explanations_test.py:{line_of(1)}")
        assert lines["sub-neg"].endswith(f"explanations_test.py:{line_of(2)}")
    h = weft.jit(f, disable=["mul-one"])
    h(wnp.ones(3))
    assert "mul-one" not in {rule for rule, _ in h.explain("rules")[0]["rules"]}
    assert g.explain()[0]["calls"] == 1
    with pytest.raises(ValueError, match=r"^explain: expected nothing or 'rules'"):
        g.explain("everything")


def test_what_a_rule_saves():
    a, b, v = (wnp.asarray(np.ones(shape, np.float32)) for shape in ((200, 300), (300, 100), (100,)))
    g = weft.jit(lambda a, b, v: (a @ b) @ v)
    g(a, b, v)
    saved = g.explain("rules")[0]["saved"]
    # (200 x 300) @ (300 x 100) and (200 x 100) @ v, against b @ v and a @ that.
    assert saved["product-order"][0] == 2 * (200 * 300 * 100 + 200 * 100) - 2 * (300 * 100 + 200 * 300)
    assert saved["product-order"][1] > 0
    h = weft.jit(lambda x: wnp.log(1 + wnp.exp(x)) * 1)
    h(wnp.ones(1000))
    saved = h.explain("rules")[0]["saved"]
    # By the model a softplus is what it is written as, in one operation.
    assert saved["softplus"] == (0, 0) and saved["mul-one"][0] == 1000
    assert weft.jit(lambda x: x).explain("rules") == []


def layer(w, x):
    h = x @ w  # line 1
    y = wnp.log(h * w[:2]) * 1  # line 2
    small = wnp.sum(wnp.asarray([1.0, 2.0]) * 3)  # line 3
    return weft.fori_loop(0, 3, lambda i, c: wnp.tanh(c @ w), y) + small * wnp.arange(4.0)  # line 4


def asked(question, offset=None, text=False):
    ir = weft.make_ir(layer)(wnp.ones((4, 4)), wnp.ones((2, 4)))
    line = None if offset is None else layer.__code__.co_firstlineno + offset
    return weft.ir.why(ir, question, f"explanations_test.py:{line}" if text else line)


@pytest.mark.parametrize("text", [False, True])
def test_why_two_operations_are_not_fused(text):
    (sentence,) = [s for s in asked("not fused", 4, text) if s.startswith("tanh")]  # inside of the loop
    assert " is not computed with contract at " in sentence and sentence.endswith("its operand comes from contract")
    assert sentence.count(place(4, True)) == 2
    assert asked("not fused", 3, text) == [f"no operation of {place(3, text)} is left in the optimized program"]
    everything = weft.make_ir(lambda x: wnp.tanh(x) * wnp.exp(x))(wnp.ones(3))
    assert weft.ir.why(everything, "not fused") == ["every operation of the program is computed with what it reads"]


def place(offset, text):
    line = layer.__code__.co_firstlineno + offset
    return f"explanations_test.py:{line}" if text else f"line {line}"


@pytest.mark.parametrize("question", ["not fused", "not folded"])
def test_a_line_without_operations(question):
    """A line that is none of the program's is not said to have been optimized away."""
    ir = weft.make_ir(f)(X)
    assert weft.ir.why(ir, question, 100000) == ["the program has no operation of line 100000"]
    assert weft.ir.why(ir, question, "other.py:3") == ["the program has no operation of other.py:3"]
    assert weft.ir.why(weft.make_ir(lambda x: x)(X), question) == ["the program has no operation"]


def test_why_an_operation_is_not_folded():
    (sentence,) = asked("not folded", 1)
    assert sentence.startswith("contract at ") and sentence.endswith("is not folded: its operand is parameter 'x'")
    assert asked("not folded", 3) == [f"no operation of {place(3, False)} is left in the optimized program"]
    ir = weft.make_ir(lambda x: (wnp.ones(100) * 2, x))(1.0)
    assert "has more than 1 elements" in weft.ir.why(ir, "not folded")[0]


def test_why_a_rule_did_not_apply():
    (sentence,) = asked("log-product", 2)
    assert "needs the licence 'no-nan'" in sentence and "weft.jit(f, licence='no-nan')" in sentence
    (sentence,) = asked("mul-one", 2)
    assert sentence == f"'mul-one' applies at {place(2, False)}, 1 time"
    (sentence,) = asked("mul-one", 1)
    assert sentence.endswith(f"finds nothing of its form at {place(1, False)}, where there is contract of x, w")
    (sentence,) = asked("mul-one", 900)
    assert "finds no operation" in sentence
    with weft.optimization(disable=["mul-one"]):
        assert asked("mul-one", 2) == ["'mul-one' is disabled here"]


def test_why_a_value_is_kept():
    ir = weft.make_ir(lambda w, x: wnp.sin(x @ w).sum())(wnp.ones((4, 4)), wnp.ones((2, 4)))
    kept = weft.ir.why(ir, "kept")
    assert len(kept) == 3 and all(", is kept: the backward pass reads it for " in sentence for sentence in kept)
    (cosine,) = [sentence for sentence in kept if "output of cos" in sentence]
    assert cosine.startswith("f32[2,4] output of cos") and "32 bytes" in cosine and "in the derivative of sin" in cosine
    assert weft.ir.why(ir, "kept", 1) == ["the gradient keeps nothing of line 1"]


def test_what_cannot_be_asked():
    with pytest.raises(ValueError, match="'not fused', 'not folded', 'kept' or the name of a rule, got 'why'"):
        asked("why")
    with pytest.raises(TypeError, match=r"expected a program \(weft.make_ir\), got 3"):
        weft.ir.why(3, "kept")


X = np.float32([0.1, 0.7, -0.3])


def test_bisect():
    ir = weft.make_ir(f)(X)
    expected = ir(X)
    assert weft.ir.bisect(ir, [X], expected).where == "nothing"
    assert weft.ir.bisect(ir, [X], expected + 1).where == "the program"
    found = weft.ir.bisect(ir, [X], expected, passes=["cse", "simplify", identity, "optimize"])
    assert (found.where, found.pass_, found.rule, found.operation) == ("a pass", "identity", "identity", "tanh")
    assert f"explanations_test.py:{line_of(2)}" in found.stack


def test_bisect_finds_the_application():
    """Of two that the rule makes the second is wrong."""
    applied = weft.ir.bisect(
        weft.make_ir(lambda x: wnp.tanh(x * 0) + wnp.tanh(x))(X), [X], [np.tanh(X)], passes=[identity], rtol=1e-3
    )
    assert applied.rule == "identity"

    def both(x):
        small = wnp.tanh(x * 0)
        return small + wnp.tanh(x)

    found = weft.ir.bisect(weft.make_ir(both)(X), [X], [np.tanh(X)], passes=[identity])
    assert f":{both.__code__.co_firstlineno + 2} in" in found.stack


def test_bisect_finds_a_pass_without_rules_and_rules_of_weft():
    def doubled(ir):
        if len(ir.out_types) == 1 and ir.walk() and ir.walk()[-1].name != "mul":
            return weft.make_ir(lambda x: 2 * ir(x))(X)
        return ir

    ir = weft.make_ir(lambda x: wnp.sin(x))(X)
    found = weft.ir.bisect(ir, [X], [np.sin(X)], passes=["cse", doubled])
    assert (found.where, found.pass_, found.rule) == ("a pass", "doubled", "")
    # A rule that may change the sign of a zero, where every bit counts.
    signed = set(weft.ir.rules())
    zero = weft.make_ir(lambda x: 0 - x)(X)
    negative = weft.ir.bisect(zero, [np.float32([0, 1, -0.0])], zero(np.float32([0, 1, -0.0])), exact=True)
    assert negative.where == "nothing" or negative.rule in signed


def test_bisect_names_a_registered_pass_and_the_rule_inside_of_it():
    """By the name that it was registered under, and whichever pass calls the rule."""

    @weft.rewrite("sin", once=True)
    def right(x):
        return 2 * wnp.sin(x / 2) * wnp.cos(x / 2)

    weft.register_pass("explanations-both", lambda ir: identity(right(ir)))

    def both(x):
        small = wnp.tanh(wnp.sin(x) * 0)
        return small + wnp.tanh(x)

    found = weft.ir.bisect(weft.make_ir(both)(X), [X], [np.tanh(X)], passes=["cse", "explanations-both"])
    assert (found.pass_, found.rule, found.operation) == ("explanations-both", "identity", "tanh")
    assert f":{both.__code__.co_firstlineno + 2} in" in found.stack


def test_bisect_counts_every_walk_of_a_rule():
    """What is wrong may be there only after the rule has applied to what it wrote."""

    @weft.rewrite("sin")
    def twice(x):
        return wnp.cos(x)

    @weft.rewrite("cos")
    def back(x):
        return x

    found = weft.ir.bisect(
        weft.make_ir(lambda x: wnp.sin(x) * 0 + x)(X), [X], [X], passes=[lambda ir: back(twice(ir)), "optimize"]
    )
    assert found.where == "nothing"
    found = weft.ir.bisect(weft.make_ir(wnp.cos)(X), [X], [np.cos(X)], passes=[lambda ir: back(twice(ir))])
    assert (found.rule, found.operation) == ("back", "cos")


def test_errors_name_a_registered_pass():
    weft.register_pass("explanations-throws", lambda ir: 1 / 0)
    with pytest.raises(ZeroDivisionError) as raised:
        weft.jit(f, passes=["explanations-throws"])(X)
    assert "raised by the pass 'explanations-throws'" in raised.value.__notes__[0]
    weft.register_pass("explanations-no-program", lambda ir: 3)
    with pytest.raises(TypeError, match="the pass 'explanations-no-program'"):
        weft.jit(f, passes=["explanations-no-program"])(X)


def test_bisect_refuses_what_does_not_fit():
    ir = weft.make_ir(f)(X)
    with pytest.raises(TypeError, match="expected has 2 results, the program 1"):
        weft.ir.bisect(ir, [X], [X, X])
    with pytest.raises(TypeError, match=r"has the shape \(2,\)"):
        weft.ir.bisect(ir, [X], [X[:2]])
    with pytest.raises(ValueError, match="passes has 'no-such'"):
        weft.ir.bisect(ir, [X], [f(X)], passes=["no-such"])


# The command.


def command(*arguments, folder, check=True):
    path = os.pathsep.join(p for p in sys.path if p)
    run = subprocess.run(
        [sys.executable, "-m", "weft", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        timeout=120,
    )
    assert not check or run.returncode == 0, run.stderr
    return run


MINE = """
import weft

@weft.rewrite("tanh")
def wrong(x):
    return x

weft.register_pass("wrong", wrong)
"""


RAISES = """
import weft

@weft.register_pass("boom")
def boom(ir):
    return {}["mine"]

@weft.rewrite("tanh")
def raises(x):
    return {}["mine"]

weft.register_pass("raises", raises)
"""


def test_the_command(tmp_path):
    ir = weft.make_ir(f)(X)
    (tmp_path / "f.weft").write_text(ir.text)
    (tmp_path / "f.bin").write_bytes(ir.serialize())
    (tmp_path / "mine.py").write_text(MINE)
    np.savez(tmp_path / "in.npz", x=X)
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "out.npz", ir(X))
    assert command("opt", "f.weft", folder=tmp_path).stdout == ir.optimized().text
    assert command("opt", "f.bin", "--passes=cse", folder=tmp_path).stdout == ir.text
    mapped = weft.transforms.vmap(weft.transforms.jvp(ir), 5)
    assert command("opt", "f.weft", "--passes=jvp,vmap(5)", folder=tmp_path).stdout == mapped.text
    optimized = command("opt", "f.weft", "--passes=cse,vmap(5),optimize", folder=tmp_path).stdout
    assert weft.parse_ir(optimized).in_types == ["f32[5,3]"]
    assert {"cse", "optimize"} < set(command("opt", "--list", folder=tmp_path).stdout.split())
    assert "tanh" not in command("opt", "f.weft", "--load=mine.py", "--passes=wrong", folder=tmp_path).stdout
    assert "mul" in command("opt", "f.weft", "--disable=mul-one", folder=tmp_path).stdout
    assert "tanh" in command("dump", "f.weft", "--stage=optimized", folder=tmp_path).stdout
    assert command("dump", "f.weft", "--stage=blocks", folder=tmp_path).stdout.startswith("entry(")
    assert " = parameter" in command("dump", "f.weft", "--stage=dataflow", folder=tmp_path).stdout
    assert command("ops", "sin", folder=tmp_path).stdout.startswith("sin (element-wise): ")
    assert "result 0: f32[3]" in command("run", "f.weft", "--inputs", "x.npy", folder=tmp_path).stdout
    for how in ([], ["--interpret"]):
        command("run", "f.weft", "--inputs", "in.npz", "--outputs", "results", *how, folder=tmp_path)
        np.testing.assert_allclose(np.load(tmp_path / "results" / "0.npy"), f(X), rtol=1e-6)
    command("export", "f.weft", "-o", "f.weftb", folder=tmp_path)
    assert (tmp_path / "f.weftb").read_bytes().startswith(b"weft bundle")
    files = ["f.weft", "--inputs", "in.npz", "--expect", "out.npz"]
    why = command("why", "f.weft", "mul-one", folder=tmp_path).stdout
    assert why == "'mul-one' applies in the program, 1 time\n"
    assert "parameter 'x'" in command("why", "f.weft", "not folded", "--line=2", folder=tmp_path).stdout
    assert command("bisect", *files, folder=tmp_path).stdout == "nothing changes the result\n"
    found = command("bisect", *files, "--load", "mine.py", "--passes=cse,wrong", folder=tmp_path, check=False)
    assert found.returncode == 1 and "its rule 'wrong', where it replaces 'tanh'" in found.stdout


@pytest.mark.parametrize(
    "arguments, status, message",
    [
        (["opt", "missing.weft"], 1, "missing.weft"),
        (["opt", "f.weft", "--passes=none-such"], 1, "'none-such'"),
        (["opt", "f.weft", "--passes=cse(1)"], 1, "cse(1): grad, jvp, vmap take arguments, passes do not"),
        (["opt", "f.weft", "--passes=grad(x)"], 1, "grad(x): expected numbers, as in grad(0)"),
        (["opt", "f.weft", "--passes=vmap"], 1, "vmap(): expected one size, as in vmap(8)"),
        (["opt", "f.weft", "--passes=grad(0"], 1, "expected names between commas"),
        (["opt", "f.weft", "--passes=grad"], 1, "must return one real floating-point scalar"),
        (["opt"], 2, "expected PROGRAM"),
        (["dump", "f.weft", "--stage=nil"], 1, "there are ir, optimized, fusion"),
        (["run", "f.weft"], 1, "takes 1 arrays"),
        (["dump", "f.weft", "--stage=none"], 1, "none"),
        (["ops", "no_such"], 1, "there is no operation"),
        (["sdk"], 1, "runs from its sources"),
        (["why", "f.weft", "because"], 1, "'not fused', 'not folded', 'kept' or the name of a rule, got 'because'"),
        (["opt", "broken.weft"], 1, "broken.weft:1"),
        (["opt", "f.weft", "--load=pattern.py"], 1, "--load pattern.py:2: rewrite: the pattern 'tanhh'"),
        (["opt", "f.weft", "--load=syntax.py"], 1, "--load syntax.py: SyntaxError"),
        (["ops", "--load=name.py"], 1, "--load name.py:1: NameError: name 'nothing'"),
        (
            ["opt", "f.weft", "--load=mine.py", "--passes=boom"],
            1,
            "KeyError: 'mine'\nraised by the pass 'boom' (mine.py:",
        ),
        (["opt", "f.weft", "--load=mine.py", "--passes=raises"], 1, "raised by the rewrite 'raises' (mine.py:"),
        (
            ["bisect", *["f.weft", "--inputs", "x.npy", "--expect", "x.npy", "--load=mine.py", "--passes=boom"]],
            1,
            "the program itself",
        ),
        ([], 2, "COMMAND"),
        (["dance"], 2, "dance"),
    ],
)
def test_the_command_refuses(arguments, status, message, tmp_path):
    (tmp_path / "f.weft").write_text(weft.make_ir(f)(X).text)
    (tmp_path / "broken.weft").write_text("fn broken( {")
    (tmp_path / "pattern.py").write_text("import weft\n@weft.rewrite('tanhh')\ndef wrong(x): return x\n")
    (tmp_path / "syntax.py").write_text("x = (\n")
    (tmp_path / "name.py").write_text("nothing\n")
    (tmp_path / "mine.py").write_text(RAISES)
    np.save(tmp_path / "x.npy", X)
    run = command(*arguments, folder=tmp_path, check=False)
    said = run.stderr + run.stdout
    assert run.returncode == status and message in said and "Traceback" not in said and "runpy" not in said


def test_the_command_takes_no_passes_and_operations_of_files(tmp_path):
    ir = weft.make_ir(f)(X)
    (tmp_path / "f.weft").write_text(ir.text)
    (tmp_path / "mine.py").write_text("import weft\ncube = weft.Primitive('cube', lower=lambda x: x * x * x)\n")
    assert command("opt", "f.weft", "--passes=", folder=tmp_path).stdout == ir.text
    assert command("ops", "cube", "--load=mine.py", folder=tmp_path).stdout.startswith("cube (weft.Primitive): ")


def test_errors_of_the_command_have_no_lines_of_what_calls_it(tmp_path, capsys):
    def console_script():
        return main(["ops", "no_such"])

    assert console_script() == 1
    assert capsys.readouterr().err == "weft: there is no operation 'no_such'\n"


def test_the_command_lays_out_memory(tmp_path):
    """Written, read back, run; and what is wrong is refused where it is checked."""
    (tmp_path / "f.weft").write_text(weft.make_ir(lambda x: wnp.exp(x @ x).sum(0))(wnp.ones((3, 3))).text)
    explicit = command("opt", "f.weft", "--passes=optimize,explicit-alloc", folder=tmp_path).stdout
    assert all(f"{word} " in explicit or f"{word}[" in explicit for word in ("allocate", "into", "free"))
    (tmp_path / "explicit.weft").write_text(explicit)
    x = np.float32([[0.1, 0.2, 0.3]] * 3)
    np.save(tmp_path / "x.npy", x)
    for how in ([], ["--interpret"]):
        command("run", "explicit.weft", "--inputs", "x.npy", "--outputs", "out", *how, folder=tmp_path)
        np.testing.assert_allclose(np.load(tmp_path / "out/0.npy"), np.exp(x @ x).sum(0), rtol=1e-6)
    program = weft.parse_ir(explicit, "explicit.weft")
    assert weft.ir.verify_memory(program) >= 36
    with pytest.raises(ValueError, match=r"nobody gives back the memory of 'allocate' at explicit\.weft:\d+"):
        weft.ir.verify_memory(weft.parse_ir(re.sub(r"  free .*\n", "", explicit), "explicit.weft"))
    with pytest.raises(TypeError, match=r"expected a program \(weft\.IR\), got 3"):
        weft.ir.verify_memory(3)
    with pytest.raises(NotImplementedError, match="symbolic sizes have no explicit memory form"):
        sized = weft.make_ir(wnp.sin)(weft.ShapeDtype(("n",), "float32"))
        sized.optimized("explicit-alloc")

    def looped(x):
        return weft.lax.fori_loop(0, x.astype("int32"), lambda i, c: wnp.sin(c) * x, x)

    with pytest.raises(
        NotImplementedError, match=r"record on tapes have no(.|\n)*explanations_test\.py:\d+ in .*looped"
    ):
        weft.make_ir(weft.grad(looped))(3.0).optimized("optimize", "explicit-alloc")


# What is run at once follows the plan around the call, too.


@pytest.mark.parametrize("size", [4, 20000])
@pytest.mark.parametrize("how", ["vmap", "value_and_grad", "scan", "jvp"])
def test_programs_outside_of_jit_follow_the_plan_around(how, size):
    naive = lambda v: wnp.log(1 + wnp.exp(v))
    run = {
        "vmap": lambda x: weft.vmap(naive)(x),
        "value_and_grad": lambda x: weft.value_and_grad(lambda v: naive(v).max())(x)[0],
        "scan": lambda x: weft.lax.scan(lambda c, v: (c, naive(v)), 0.0, x[None])[1],
        "jvp": lambda x: weft.jvp(naive, (x,), (x,))[0],
    }[how]
    x = wnp.full(size, 100.0)
    for _ in range(2):  # neither is the other's, whichever was first
        assert np.all(np.asarray(run(x)) == 100)
        with weft.optimization("none"):
            assert np.all(np.isinf(run(x)))
        with weft.optimization(passes=["cse", "dce"]):
            assert np.all(np.isinf(run(x)))


def test_threads_follow_the_plans_around_their_own_calls():
    naive = lambda v: wnp.log(1 + wnp.exp(v))
    wrong = []

    def run(plain):
        for i in range(20):
            x = wnp.full(4 + i % 7 + (20000 if i % 3 == 0 else 0), 100.0)
            with weft.optimization("none") if plain else contextlib.nullcontext():
                found = np.asarray(weft.vmap(naive)(x))
            if not (np.isinf(found) if plain else found == 100).all():
                wrong.append((plain, i))

    threads = [threading.Thread(target=run, args=(k % 2 == 0,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# Programs transformed and compiled (S0-02).


def test_s0_02_an_ir_is_differentiated_and_compiled():
    ir = weft.make_ir(lambda a, b: a * b)(1.0, 2.0)
    d = weft.transforms.grad(ir, wrt=0)
    assert isinstance(d, weft.IR) and "return b" in d.text
    g = weft.compile(d)
    assert float(g(1.5, 2.5)) == 2.5
    parsed = weft.compile(weft.transforms.grad(weft.parse_ir(ir.text), wrt=(0, 1)))
    assert [float(x) for x in parsed(1.5, 2.5)] == [2.5, 1.5]


def test_transforms_of_programs():
    ir = weft.make_ir(lambda p, *, by: (p["w"] ** 2).sum() * by)({"w": wnp.ones(3)}, by=2.0)
    gradient = weft.transforms.grad(ir)({"w": wnp.arange(3.0)}, by=2.0)
    np.testing.assert_allclose(gradient["w"], [0, 4, 8])
    value, slope = weft.compile(weft.transforms.value_and_grad(ir))({"w": wnp.ones(3)}, by=1.0)
    assert float(value) == 3 and list(slope["w"]) == [2, 2, 2]
    table = wnp.arange(100.0)
    captured = weft.make_ir(lambda x: (table * x).sum())(1.0)
    assert float(weft.compile(weft.transforms.grad(captured))(1.0)) == 4950
    assert weft.transforms.vmap(captured).out_types == ["f32[batch]"]
    assert weft.transforms.grad(weft.transforms.grad(weft.make_ir(lambda x: x**3)(1.0)))(2.0) == 12
    np.testing.assert_allclose(weft.transforms.jvp(weft.make_ir(wnp.sin)(1.0))(0.0, 2.0), (0.0, 2.0))


@pytest.mark.parametrize("wrt", [None, 1.5, "a", (0, "b"), {0}])
@pytest.mark.parametrize("transform", ["grad", "value_and_grad"])
def test_what_is_no_place_of_an_argument(transform, wrt):
    ir = weft.make_ir(lambda a, b: a * b)(1.5, 2.5)
    with pytest.raises(
        TypeError, match=rf"(?s)transforms.{transform}: wrt is .*the place of an argument.*_test.py:\d+"
    ):
        getattr(weft.transforms, transform)(ir, wrt=wrt)


@pytest.mark.parametrize("wrt, named", [(2, 2), (-3, -3), ((0, 7), 7), ([-9, 0], -9)])
@pytest.mark.parametrize("transform", ["grad", "value_and_grad"])
def test_a_place_that_there_is_not(transform, wrt, named):
    """The message names what was given, wrt, and the program."""
    ir = weft.make_ir(lambda a, b: a * b)(1.5, 2.5)
    with pytest.raises(ValueError, match=rf"transforms.{transform}: wrt has {named}, but 'f' takes 2 positional"):
        getattr(weft.transforms, transform)(ir, wrt=wrt)


@pytest.mark.parametrize("wrt", [0, 1, -1, np.int64(1), (0, 1), [1, 0], range(2)])
def test_places_of_arguments(wrt):
    d = weft.transforms.grad(weft.make_ir(lambda a, b: a * b)(1.5, 2.5), wrt=wrt)(1.5, 2.5)
    places = wrt if isinstance(wrt, (tuple, list, range)) else [wrt]
    assert [float(x) for x in (d if isinstance(d, tuple) else [d])] == [[2.5, 1.5][i] for i in places]


def test_what_is_no_program():
    for transform in (weft.transforms.grad, weft.transforms.vmap, weft.transforms.jvp, weft.compile):
        with pytest.raises(TypeError, match=r"expected a weft\.IR"):
            transform(wnp.sin)
    compiled = weft.compile(weft.make_ir(wnp.sin)(wnp.ones(3)))
    with pytest.raises(TypeError, match="compiled for argument"):
        compiled(wnp.ones(4))


def test_what_a_compiled_program_costs_is_what_its_rules_leave():
    A, v = np.ones((300, 300), np.float32), np.ones(300, np.float32)
    product = lambda a, b, x: (a @ b) @ x
    costs = {}
    for disabled in ((), ("product-order",)):
        lowered = weft.jit(product, disable=disabled).lower(A, A, v)
        costs[disabled] = [p.cost_analysis()["flops"] for p in (lowered, lowered.compile())]
    assert costs[()] == [2 * 2 * 300**2] * 2
    assert costs["product-order",] == [2 * 300**3 + 2 * 300**2] * 2
    exact = weft.jit(lambda x: wnp.log(1 + wnp.exp(x)), licence="exact").lower(v).cost_analysis()
    assert exact != weft.jit(lambda x: wnp.log(1 + wnp.exp(x))).lower(v).cost_analysis()


def naive(x):
    return wnp.log(1 + wnp.exp(x))  # line 1


def both_naive(x):
    y = wnp.log(1 + wnp.exp(x)) * 1  # line 1
    return y + (1 - wnp.tanh(2 * x) ** 2)  # line 2


NESTED = {
    "grad": weft.grad(naive),
    "value_and_grad": lambda x: weft.value_and_grad(naive)(x)[1],
    "grad of jit": weft.grad(weft.jit(naive)),
    "jit of grad": weft.jit(weft.grad(naive)),
    "grad of grad": weft.grad(weft.grad(naive)),
    "vjp": lambda x: weft.vjp(naive, x)[1](1.0)[0],
    "jvp": lambda x: weft.jvp(naive, (x,), (1.0,))[1],
    "linearize": lambda x: weft.linearize(naive, x)[1](1.0),
    "scan": lambda x: weft.scan(lambda c, _: (weft.grad(naive)(c), None), x, None, length=2)[0],
    "cond": lambda x: weft.cond(x > 0, weft.grad(naive), lambda x: x, x),
}


@pytest.mark.parametrize("name", NESTED)
def test_rules_before_a_derivative_are_explained_and_left_out(name):
    """`softplus` takes the place of log(1 + exp(x)) when a derivative is taken, before anything is compiled."""
    g = NESTED[name]
    where = f"explanations_test.py:{naive.__code__.co_firstlineno + 1}"
    usual = weft.jit(g)
    assert np.isfinite(usual(100.0))
    found = [line for rule, line in usual.explain("rules")[0]["rules"] if rule == "softplus"]
    assert [line.rpartition("/")[2] for line in found] == [where]
    ways = {
        "the rule": {"disable": ["softplus"]},
        "the pass": {"disable": ["stabilize", "softplus"]},
        "none": {"optimize": "none"},
        "passes": {"passes": []},
    }
    for way, given in ways.items():
        own = weft.jit(g, **given)
        with weft.optimization(**given):
            again = lambda x: g(x)
            in_block, block_ir = weft.jit(again), weft.make_ir(again)(1.0)
            values = own(100.0), in_block(100.0)
            texts = own.lower(1.0).as_text(), block_ir.text
            rules = [h.explain("rules")[0]["rules"] for h in (own, in_block)]
        assert not any(rule == "softplus" for found in rules for rule, _ in found), way
        assert not any("softplus" in text for text in texts), way
        if way in ("none", "passes"):  # others see exp(x) / (1 + exp(x)) in the derivative
            assert not np.any(np.isfinite(values)), way
    assert np.isfinite(usual(99.0)) and np.isfinite(weft.jit(lambda x: g(x))(100.0))


def test_rules_before_a_derivative_are_left_out_of_the_process(monkeypatch):
    monkeypatch.setattr(weft.config, "optimize", "none")
    assert "softplus" not in weft.make_ir(weft.grad(naive))(1.0).text
    assert not np.isfinite(weft.jit(weft.grad(naive))(100.0))
    monkeypatch.undo()
    assert "softplus" in weft.make_ir(lambda x: weft.vjp(naive, x)[0])(1.0).text
    assert weft.jit(weft.grad(lambda x: naive(x)))(100.0) == 1


@pytest.mark.parametrize("called", [False, True])
def test_what_was_there_is_said_of_jitted_functions(called):
    for g in (weft.jit(weft.grad(naive)), weft.jit(lambda x: weft.vmap(weft.grad(naive))(x[None]).sum())):
        if called:
            g(1.0)
        ir = weft.make_ir(g)(wnp.array(1.0))
        (found,) = [(a.before, a.after) for a in ir.opt_trail() if a.rule == "softplus"]
        assert found == ("log(1 + exp(x))", "softplus(x)")


def test_inner_functions_are_explained_wherever_they_were_traced_first():
    inner = weft.jit(weft.grad(naive))
    inner(1.0)  # traced here
    outer = weft.jit(lambda x: inner(x) * 2)
    outer(1.0)
    assert "softplus" in {rule for rule, _ in outer.explain("rules")[0]["rules"]}
    assert "softplus" in {rule for rule, _ in inner.explain("rules")[0]["rules"]}


def test_before_and_after():
    ir = weft.make_ir(weft.grad(both_naive))(0.5)
    first = both_naive.__code__.co_firstlineno
    trail = [(a.pass_, a.rule, a.before, a.after, int(a.line.rpartition(":")[2]) - first) for a in ir.opt_trail()]
    assert ("stabilize", "softplus", "log(1 + exp(x))", "softplus(x)", 1) in trail
    assert ("stabilize", "sech-squared", "1 - square(tanh(x))", "sech_squared(x)", 2) in trail or (
        "stabilize", "sech-squared", "1 - integer_pow[y=2](tanh(x))", "sech_squared(x)", 2) in trail  # fmt: skip
    after = weft.make_ir(both_naive)(0.5).optimized()
    assert {a.pass_ for a in after.opt_trail()} == {"simplify"}
    found = {a.rule: (a.before, a.after) for a in after.opt_trail()}
    assert found["mul-one"][0].endswith(" * 1") and found["softplus"] == ("log(1 + exp(x))", "softplus(x)")


def test_a_trail_says_what_its_rules_replaced():
    ir = weft.make_ir(weft.grad(naive))(0.5)
    of = [ir.trail(op.results[0]) for op in ir.walk()]
    trail = next(t for t in of if "softplus" in t.through)
    assert [(a.rule, a.before, a.after) for a in trail.rules] == [("softplus", "log(1 + exp(x))", "softplus(x)")]
    assert "  by softplus: log(1 + exp(x)) -> softplus(x)" in str(trail)
    second = weft.make_ir(weft.grad(weft.grad(naive)))(0.5).optimized()
    assert any("softplus" in second.trail(op.results[0]).through for op in second.walk())


@pytest.mark.parametrize("wrap", [lambda f: f, weft.vmap], ids=["alone", "vmap"])
def test_a_wider_type_is_a_rule(wrap):
    f = lambda x: x - wnp.sin(x)  # cancels near 0
    x = np.float32(1e-2) if wrap is not weft.vmap else np.full(3, 1e-2, np.float32)
    g = weft.jit(wrap(f))
    g(x)
    assert "wider-type" in {rule for rule, _ in g.explain("rules")[0]["rules"]}
    assert "wider-type" in weft.ir.rules()
    ir = weft.make_ir(wrap(f))(x).optimized()
    [applied] = [a for a in ir.opt_trail() if a.rule == "wider-type"]
    assert applied.before == "x - sin(x)" and applied.pass_ == "widen"
    assert any("wider-type" in op.location.transforms for op in ir.walk())
    h = weft.jit(wrap(f), disable=["wider-type"])
    h(x)
    assert "wider-type" not in {rule for rule, _ in h.explain("rules")[0]["rules"]}
    assert "f64" not in weft.make_ir(wrap(f))(x).optimized(disable=["wider-type"]).text
