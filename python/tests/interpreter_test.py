"""weft.ir.Interpreter, and programs as objects."""

from typing import NamedTuple

import numpy as np
import pytest

import weft
import weft.numpy as wnp


class Plain(weft.ir.Interpreter):
    """Computes what the program says."""

    def default(self, op, *values):
        return op.bind(*values)


class Pair(NamedTuple):
    value: weft.Array
    twice: weft.Array


class Pairs(weft.ir.Interpreter):
    """Two computations side by side, which branch and loop alike."""

    value_type = Pair

    def lift(self, x):
        return Pair(wnp.asarray(x), wnp.asarray(x))

    def default(self, op, *pairs):
        both = [op.bind(*[p[i] for p in pairs]) for i in (0, 1)]
        return Pair(*both) if len(op.results) == 1 else [Pair(a, b) for a, b in zip(*both)]


@weft.custom_jvp
def with_rule(x):
    return wnp.sin(x)


with_rule.defjvp(lambda primals, tangents: (with_rule(*primals), 2 * tangents[0]))

PROGRAMS = {
    "plain": lambda x: wnp.sin(x) * x + 2,
    "number": lambda x: 3.0,
    "argument": lambda x: x,
    "several": lambda x: weft.lax.top_k(wnp.stack([x, 2 * x, -x]), 2)[0].sum(),
    "call": lambda x: weft.jit(wnp.sin)(weft.jit(wnp.sin)(x)),
    "rule": lambda x: with_rule(x) * 2,
    "checkpoint": lambda x: weft.checkpoint(lambda x: wnp.sin(wnp.sin(x)))(x),
    "cond": lambda x: weft.cond(x > 0.2, lambda x: wnp.sin(x), lambda x: x * 2, x),
    "switch": lambda x: weft.switch(wnp.astype(x * 3, "int32"), [lambda x: x, lambda x: wnp.exp(x), lambda x: -x], x),
    "scan": lambda x: weft.scan(lambda c, y: (c * y, c + y), x, wnp.arange(1.0, 4.0))[1].sum(),
    "reverse": lambda x: weft.scan(lambda c, y: (c * y, c - y), x, wnp.arange(1.0, 4.0), reverse=True)[1].sum(),
    "fori": lambda x: weft.fori_loop(0, 3, lambda i, c: c * x + i, x),
    "while": lambda x: weft.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + x, c[1] * 2), (x, 1.0))[1] * x,
    "nested": lambda x: weft.fori_loop(
        0, 2, lambda i, c: weft.cond(c > 1, lambda: c, lambda: weft.fori_loop(0, 2, lambda j, d: d + x, c)), x
    ),
    "gradient": lambda x: weft.grad(lambda x: weft.fori_loop(0, 3, lambda i, c: wnp.sin(c) * x, x))(x),
    "captured": lambda x: (x * TABLE).sum(),
}
TABLE = wnp.arange(100.0)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("interpreter", [Plain, Pairs])
def test_programs_mean_the_same(name, interpreter):
    f, x = PROGRAMS[name], wnp.array(0.5)
    expected = np.asarray(f(x))

    def first(v):
        return wnp.asarray(v.value if isinstance(v, Pair) else v)

    g = interpreter()(f)
    np.testing.assert_allclose(first(g(x)), expected, rtol=1e-5)
    np.testing.assert_allclose(first(weft.jit(g)(x)), expected, rtol=1e-5)
    xs = wnp.array([0.5, 0.1, 0.9])
    np.testing.assert_allclose(first(weft.vmap(g)(xs)), [np.asarray(f(v)) for v in xs], rtol=1e-5)
    if name not in ("number", "rule"):  # the rule is of no account for who computes otherwise
        slope = weft.grad(lambda x: first(g(x)) * 1.0)(x)
        np.testing.assert_allclose(slope, weft.grad(lambda x: f(x) * 1.0)(x), rtol=1e-4)


def test_numbers_beside_arrays_without_jit():
    """A number of the program is one when its operation is computed at once, too, whatever its operands are."""
    x = np.array([1.0, -2.0, 3.0], np.float32)
    for f in (
        lambda v: v + 1,
        lambda v: 2 - v,
        lambda v: wnp.where(v > 0, v, 7),
        lambda v: wnp.maximum(wnp.arange(3.0), 1),
    ):
        np.testing.assert_array_equal(Plain()(f)(x), f(x))


def test_an_interpreter_of_an_interpreted_function():
    g = Pairs()(lambda x: Plain()(PROGRAMS["scan"])(x))
    np.testing.assert_allclose(g(0.5).twice, PROGRAMS["scan"](0.5), rtol=1e-6)


def test_structure_of_arguments_and_results():
    f = lambda args, *, by: {"sum": args[0] + by, "both": (args[1], by)}
    out = Pairs()(f)([1.0, Pair(wnp.array(2.0), wnp.array(3.0))], by=4.0)
    assert float(out["sum"].value) == 5 and float(out["both"][0].twice) == 3


def test_rules_are_inherited_and_overridden():
    class Base(Plain):
        @weft.ir.rule("sin", "cos")
        def one(self, op, x):
            return x * 0 + 1

    class Derived(Base):
        @weft.ir.rule("cos")
        def two(self, op, x):
            return x * 0 + 2

    f = lambda x: wnp.sin(x) + 10 * wnp.cos(x)
    assert float(Base()(f)(3.0)) == 11 and float(Derived()(f)(3.0)) == 21


def test_a_missing_rule_names_operation_and_line():
    def f(x):
        return weft.fori_loop(0, 2, lambda i, c: wnp.tanh(c), x)  # this line

    with pytest.raises(
        NotImplementedError, match=r"(?s)Signs has no rule for the operation 'tanh'.*interpreter_test.py:\d+ in"
    ):

        class Signs(weft.ir.Interpreter):
            @weft.ir.rule("add")
            def add(self, op, x, y):
                return x + y

        Signs()(f)(1.0)


def test_what_is_wrong_with_a_rule():
    with pytest.raises(ValueError, match="there is no operation 'no_such'"):
        weft.ir.rule("no_such")
    with pytest.raises(TypeError, match="expected the names"):
        weft.ir.rule(lambda self, op, x: x)

    class Few(Plain):
        @weft.ir.rule("top_k")
        def top_k(self, op, x):
            return x

    with pytest.raises(NotImplementedError, match="must return 2 values"):
        Few()(lambda x: weft.lax.top_k(x, 2))(wnp.ones(3))

    class Wrong(Plain):
        @weft.ir.rule("sin")
        def sin(self, op, x):
            """Forgets to return."""

        @weft.ir.rule("cos")
        def cos(self, op, x):
            raise KeyError("mine")

        @weft.ir.rule("tan")
        def tan(self, op):
            return 1.0

    with pytest.raises(TypeError, match=r"the rule of 'sin' must return a value, got None\n.*interpreter_test.py:\d+"):
        Wrong()(lambda x: wnp.sin(x))(1.0)
    for f, kind in ((wnp.cos, KeyError), (wnp.tan, TypeError)):
        for inside in (f, lambda x, f=f: weft.fori_loop(0, 2, lambda i, c: weft.jit(f)(c), x)):
            with pytest.raises(kind) as caught:
                Wrong()(lambda x, g=inside: g(x))(1.0)
            (note,) = caught.value.__notes__
            assert f"raised by Wrong's rule of '{f.__name__}'\n" in note and "interpreter_test.py:" in note
    with pytest.raises(TypeError, match="takes 1 values, got 2"):
        Plain().run(weft.make_ir(wnp.sin)(1.0), 1.0, 2.0)
    with pytest.raises(NotImplementedError, match="differentiate the interpreted function"):
        Plain()(weft.grad(lambda x: weft.while_loop(lambda c: c < 5, lambda c: c * 2, x)))(1.0)


def test_locations_of_what_is_interpreted():
    ir = weft.make_ir(Plain()(lambda x: wnp.sin(x)))(1.0)
    assert "via Plain" in str(ir.walk()[0].location) and "interpreter_test.py" in ir.walk()[0].location.file


# Programs as objects.


def test_walk():
    def f(x):
        y = weft.scan(lambda c, v: (wnp.sin(c) + v, c), x.sum(), x)[0]
        return weft.cond(y > 0, wnp.exp, wnp.log, y)

    ir = weft.make_ir(f)(wnp.ones(3))
    ops = ir.walk()
    assert [(op.name, op.depth) for op in ops] == [
        ("reduce_sum", 0), ("scan", 0), ("sin", 1), ("add", 1), ("gt", 0), ("cond", 0), ("log", 1), ("exp", 1)
    ]  # fmt: skip
    assert [op.name for op in ir.walk(regions=False)] == ["reduce_sum", "scan", "gt", "cond"]
    scan = ops[1]
    assert scan.trips == 3 and scan.attributes["num_carry"] == 1 and isinstance(scan.regions[0], weft.IR)
    assert ops[2].parent is scan and ops[0].parent is None
    total = ops[0]
    assert total.operands[0] is ir.parameters[0] and ir.parameters[0].users == [total, scan]
    assert scan.operands[0] is total.results[0] and total.results[0].definition is total
    assert total.operands[0].type.shape == (3,) and total.operands[0].type.dtype == np.float32
    assert ops[4].operands[1].array == 0 and ops[4].operands[1].type == "f32[]"
    assert total.location.file.endswith("interpreter_test.py") and total.location.function.endswith("f")
    assert ir.results[0].definition.name == "cond"
    assert total.flops == 3 and total.bytes == 16


def test_types_of_symbolic_sizes():
    ir = weft.make_ir(lambda x: x.sum(0))(weft.ShapeDtype(("n", 3), "float32"))
    assert ir.parameters[0].type.shape == (weft.Dim("n"), 3)
    assert ir.parameters[0].type == ir.walk()[0].operands[0].type != ir.results[0].type
    assert len({ir.parameters[0].type, ir.walk()[0].operands[0].type}) == 1


def test_every_primitive_can_be_looked_at_and_bound_again():
    for name, texts in weft._weft.sample_programs().items():
        for text in texts[:2]:
            ir = weft.parse_ir(text)
            assert name in [op.name for op in ir.walk()], name
            for op in ir.walk():
                assert op.location is not None and isinstance(repr(op), str) and op.flops >= 0


def test_cost_by_line():
    def f(x):
        y = wnp.exp(x)
        return weft.fori_loop(0, 10, lambda i, c: c * x, y)

    ir = weft.make_ir(f)(wnp.ones(100))
    first = f.__code__.co_firstlineno
    lines = {line - first: flops for (_, line), (flops, _) in ir.cost_by_line().items()}
    assert lines[2] >= 10 * 100 and lines[1] == next(op for op in ir.walk() if op.name == "exp").flops
