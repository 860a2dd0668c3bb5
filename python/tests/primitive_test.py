"""weft.Primitive: operations that a program defines, under every transform."""

import os
import re
import shutil
import subprocess

import numpy as np
import pytest

os.environ.setdefault("WEFT_NUM_CPU_DEVICES", "4")

import weft
import weft.numpy as wnp


def same(x, **params):
    return weft.ShapeDtype(x.shape, x.dtype)


def cube_jvp(p):
    return lambda primals, tangents: (p(*primals), 3 * primals[0] ** 2 * tangents[0])


def in_python():
    p = weft.Primitive("cube", infer=same, lower=lambda x: x * x * x)
    p.def_jvp(cube_jvp(p))
    return p


def on_host():
    p = weft.Primitive("cube", infer=same, eval=lambda x: x**3)
    p.def_jvp(cube_jvp(p))
    return p


def with_batch():
    p = on_host()
    p.def_batch(lambda operands, axes: (p(*operands), axes[0]))
    return p


def by_lowering():
    return weft.Primitive("cube", lower=lambda x: x * x * x)


def later_axis():
    p = in_python()
    p.def_batch(lambda operands, axes: (wnp.moveaxis(p(*operands), 0, -1), -1))
    return p


CUBES = {f.__name__: f() for f in (in_python, on_host, with_batch, by_lowering, later_axis)}

# Each of a function f and a number gives a number; and the same of x**3 by hand.
USES = {
    "eager": lambda f, x: f(x),
    "jit": lambda f, x: weft.jit(f)(x),
    "grad": lambda f, x: weft.grad(f)(x),
    "grad of jit": lambda f, x: weft.grad(weft.jit(f))(x),
    "jit of grad": lambda f, x: weft.jit(weft.grad(f))(x),
    "second": lambda f, x: weft.grad(weft.grad(f))(x),
    "third": lambda f, x: weft.jit(weft.grad(weft.grad(weft.grad(f))))(x),
    "jvp": lambda f, x: weft.jvp(f, (x,), (x,))[1],
    "vjp": lambda f, x: weft.vjp(f, x)[1](x)[0],
    "linearize": lambda f, x: weft.linearize(f, x)[1](x),
    "hessian": lambda f, x: weft.hessian(f)(x),
    "forward over reverse": lambda f, x: weft.jvp(weft.grad(f), (x,), (x,))[1],
    "jet": lambda f, x: sum(weft.jet(f, (x,), ([x, x * 2, x * 3],))[1]),
    "vmap": lambda f, x: weft.vmap(f)(wnp.stack([x, 2 * x])).sum(),
    "vmap of vmap": lambda f, x: weft.vmap(weft.vmap(f))(wnp.stack([x, 2 * x, 3 * x, x]).reshape(2, 2)).sum(),
    "vmap of grad": lambda f, x: weft.vmap(weft.grad(f))(wnp.stack([x, 2 * x])).sum(),
    "grad of vmap": lambda f, x: weft.grad(lambda v: weft.vmap(f)(v).sum())(wnp.stack([x, 2 * x])).sum(),
    "grad of vmap of vmap": lambda f, x: weft.grad(lambda v: weft.vmap(weft.vmap(f))(v).sum())(
        wnp.ones((2, 3)) * x
    ).sum(),
    "grad of vmap, shared": lambda f, x: weft.grad(lambda x: weft.vmap(lambda y: f(x) * y)(wnp.arange(3.0)).sum())(x),
    "scan": lambda f, x: weft.scan(lambda c, y: (f(c) + y, c), x, wnp.arange(2.0))[0],
    "grad of scan": lambda f, x: weft.grad(lambda x: weft.scan(lambda c, y: (f(c) + y, c), x, wnp.arange(2.0))[0])(x),
    "cond": lambda f, x: weft.cond(x > 0, f, lambda x: x, x),
    "grad of cond": lambda f, x: weft.grad(lambda x: weft.cond(x > 0, f, lambda x: x, x))(x),
    "vmap of cond": lambda f, x: weft.vmap(lambda x: weft.cond(x > 0.6, f, lambda x: x, x))(
        wnp.stack([x, 2 * x])
    ).sum(),
    "while": lambda f, x: weft.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, f(c[1])), (0, x))[1],
    "grad of while": lambda f, x: weft.grad(
        lambda x: weft.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, f(c[1])), (0, x))[1]
    )(x),
    "checkpoint": lambda f, x: weft.grad(weft.checkpoint(lambda x: wnp.sin(f(x))))(x),
    "rewritten": lambda f, x: weft.rewrite("sin")(lambda x: f(x))(lambda x: wnp.sin(x))(x),
    "interpreted": lambda f, x: Plain()(f)(x),
    "autograph": lambda f, x: weft.autograph(lambda x: f(x))(x),
    "shard_map": lambda f, x: weft.shard_map(f, weft.make_mesh((2,), ("i",)), weft.P("i"), weft.P("i"))(
        wnp.stack([x, 2 * x])
    ).sum(),
    "sharded": lambda f, x: weft.jit(f)(
        weft.device_put(wnp.stack([x, 2 * x]), weft.NamedSharding(weft.make_mesh((2,), ("i",)), weft.P("i")))
    ).sum(),
    "grad, sharded": lambda f, x: weft.jit(weft.grad(lambda v: f(v).sum()))(
        weft.device_put(wnp.stack([x, 2 * x]), weft.NamedSharding(weft.make_mesh((2,), ("i",)), weft.P("i")))
    ).sum(),
    "unoptimised": lambda f, x: weft.jit(weft.grad(f), optimize="none")(x),
    "interpreter": lambda f, x: weft.jit(weft.grad(f), backend="interpreter")(x),
}


class Plain(weft.ir.Interpreter):
    def default(self, op, *values):
        return op.bind(*values)


@pytest.mark.parametrize("cube", CUBES)
@pytest.mark.parametrize("use", USES)
def test_every_transform(cube, use):
    x = wnp.array(0.5)
    expected = USES[use](lambda x: x * x * x, x)
    np.testing.assert_allclose(USES[use](CUBES[cube], x), expected, rtol=1e-5)


@pytest.mark.parametrize(
    "make",
    [lambda: weft.Primitive("p", infer=same, eval=lambda x: x), lambda: weft.Primitive("p", lower=lambda x: x)],
)
def test_the_rules_are_asked(make):
    """The derivative is the rule's, not that of what it computes."""
    p = make()
    p.def_jvp(lambda primals, tangents: (p(*primals), 7 * tangents[0]))
    p.def_batch(lambda operands, axes: (operands[0] * 100, axes[0]))
    x = wnp.ones(2)
    assert float(weft.grad(p)(1.0)) == 7
    assert list(weft.vmap(p)(x)) == [100, 100]
    assert list(weft.vmap(weft.grad(p))(x)) == [7, 7]
    assert list(weft.grad(lambda x: weft.vmap(p)(x).sum())(x)) == [100, 100]
    assert float(weft.jit(lambda x: weft.fori_loop(0, 2, lambda i, c: weft.grad(p)(c), x))(1.0)) == 7


def dot(w):
    """x -> w * x with a transposition of its own; w is a parameter."""
    p = weft.Primitive("scaled", infer=same, eval=lambda x, by: x * np.float32(by))
    asked = []

    @p.def_transpose
    def transpose(ct, x, *, by):
        assert isinstance(x, weft.Linear) and x.shape == ct.shape
        asked.append(by)
        return (p(ct, by=by),)

    return lambda x: p(x, by=w), asked


@pytest.mark.parametrize(
    "use",
    [
        "grad",
        "jit of grad",
        "vmap of grad",
        "grad of vmap",
        "grad of vmap of vmap",
        "vjp",
        "linearize",
        "jvp",
        "grad of scan",
        "grad of cond",
        "grad of while",
        "second",
    ],
)
def test_a_linear_primitive_needs_a_transpose_rule_alone(use):
    f, asked = dot(3.0)
    np.testing.assert_allclose(USES[use](f, wnp.array(0.5)), USES[use](lambda x: 3 * x, wnp.array(0.5)), rtol=1e-6)
    assert use in ("linearize", "jvp", "second") or asked


def test_a_primitive_of_several_operands_and_results():
    p = weft.Primitive("polar", infer=lambda r, t: [same(r), same(t)], eval=lambda r, t: (r * np.cos(t), r * np.sin(t)))

    @p.def_jvp
    def jvp(primals, tangents):
        (r, t), (dr, dt) = primals, tangents
        x, y = p(r, t)
        return [x, y], [dr * wnp.cos(t) - y * dt, dr * wnp.sin(t) + x * dt]

    plain = lambda r, t: [r * wnp.cos(t), r * wnp.sin(t)]
    for transform in (weft.jacfwd, weft.jacrev, lambda f, a: weft.jit(weft.jacrev(f, a))):
        got, want = (transform(lambda r, t, f=f: sum(f(r, t)), (0, 1))(2.0, 0.3) for f in (p, plain))
        np.testing.assert_allclose(got, want, rtol=1e-5)
    rs, ts = wnp.array([1.0, 2.0]), wnp.array([0.1, 0.2])
    np.testing.assert_allclose(weft.vmap(p, (0, None))(rs, 0.3), weft.vmap(plain, (0, None))(rs, 0.3), rtol=1e-5)
    slope = lambda f: weft.grad(lambda t: sum(weft.vmap(f, (0, None))(rs, t)).sum())(0.3)
    np.testing.assert_allclose(slope(p), slope(plain), rtol=1e-5)
    np.testing.assert_allclose(weft.vmap(weft.grad(lambda r, t: p(r, t)[1], 1))(rs, ts), rs * wnp.cos(ts), rtol=1e-5)


def test_bilinear_by_transposition():
    """A derivative of one operand at a time, each linear, as a product has it."""
    p = weft.Primitive("times", infer=lambda x, y: same(x), eval=lambda x, y: x * y)
    p.def_jvp(lambda primals, tangents: (p(*primals), p(tangents[0], primals[1]) + p(primals[0], tangents[1])))

    @p.def_transpose
    def transpose(ct, x, y):
        linear_x = isinstance(x, weft.Linear)
        return (p(ct, y), None) if linear_x else (None, p(x, ct))

    np.testing.assert_allclose(weft.grad(p, (0, 1))(2.0, 3.0), (3.0, 2.0))
    np.testing.assert_allclose(weft.hessian(p, (0, 1))(2.0, 3.0), [[0, 1], [1, 0]])
    xs = wnp.arange(3.0)
    np.testing.assert_allclose(weft.grad(lambda y: weft.vmap(p, (0, None))(xs, y).sum())(2.0), 3.0)
    np.testing.assert_allclose(weft.vmap(weft.grad(p, (0, 1)), (0, None))(xs, 2.0), ([2, 2, 2], [0, 1, 2]))


def test_rules_match_primitives():
    cube = weft.Primitive("cubed", lower=lambda x: x * x * x)

    @weft.rewrite("log(cubed(x))")
    def log_of_cube(x):
        return 3 * wnp.log(x)

    @weft.rewrite("cubed")
    def as_power(x):
        return x**3

    @weft.rewrite("mul(x, y)", once=True)
    def lost(x, y):
        return x

    f = lambda x: wnp.log(cube(x)) + cube(x)
    assert [op.primitive for op in log_of_cube(weft.make_ir(f)(2.0)).walk(regions=False)].count("cubed") == 1
    assert as_power(weft.make_ir(lambda x: cube(by_lowering()(x)))(2.0)) and as_power.applied == 1
    np.testing.assert_allclose(weft.jit(f, passes=[log_of_cube, as_power, "optimize"])(2.0), f(2.0), rtol=1e-6)
    assert float(lost(cube)(2.0)) == 2.0  # what it computes is a program, too


def test_batch_rules_with_results_that_are_not_mapped():
    p = weft.Primitive("both", lower=lambda x, y: [x + y, y * 2])

    @p.def_batch
    def batch(operands, axes):
        assert axes == (0, None)
        return p(*operands), [0, None]

    x = wnp.arange(3.0)
    out = weft.vmap(p, (0, None))(x, 1.0)
    assert list(out[0]) == [1, 2, 3] and list(out[1]) == [2, 2, 2]
    slope = weft.grad(lambda y: sum(r.sum() for r in weft.vmap(p, (0, None))(x, y)))(1.0)
    assert float(slope) == 3 + 6


def test_a_tangent_of_none_is_zero():
    p = weft.Primitive(
        "split", infer=lambda x: [same(x), weft.ShapeDtype((), "int32")], eval=lambda x: (x, np.int32(x))
    )
    p.def_jvp(lambda primals, tangents: (p(*primals), [2 * tangents[0], None]))
    assert float(weft.grad(lambda x: p(x)[0])(3.0)) == 2
    q = weft.Primitive("flat", infer=same, eval=np.floor)
    q.def_jvp(lambda primals, tangents: (q(*primals), None))
    assert float(weft.grad(lambda x: q(x) + x)(3.5)) == 1


def test_parameters_that_are_equal_and_not_the_same():
    p = weft.Primitive("typed", lower=lambda x, by: x)
    p.def_jvp(lambda primals, tangents, by: (p(*primals, by=by), len(type(by).__name__) * tangents[0]))
    programs = [weft.make_ir(lambda x, by=by: p(x, by=by))(1.0) for by in (1, True, 1.0)]  # all there at once
    assert [float(weft.grad(program)(1.0)) for program in programs] == [3, 4, 5]


def test_named_axes():
    p = weft.Primitive("summed", lower=lambda x: weft.lax.psum(x, "i"))
    q = weft.Primitive("summed_by_rule", lower=lambda x: weft.lax.psum(x, "i"))
    q.def_jvp(lambda primals, tangents: (q(*primals), q(*tangents)))
    for f in (p, q):
        assert list(weft.vmap(f, axis_name="i")(wnp.arange(3.0))) == [3, 3, 3]
        assert list(weft.vmap(weft.grad(lambda x, f=f: f(x)), axis_name="i")(wnp.arange(3.0))) == [3, 3, 3]


def test_recursion_symbolic_sizes_and_no_operands():
    cube = on_host()
    cube.def_lower(lambda x: x**3)

    @weft.jit
    def factorial(n):
        return weft.cond(n > 1, lambda: n * factorial(cube(n) - n**3 + n - 1), lambda: n)

    assert float(factorial(4.0)) == 24 and float(weft.grad(factorial)(4.0)) == 50
    for p in (cube, opaque()):
        assert weft.make_ir(weft.vmap(p))(weft.ShapeDtype(("n", 3), "float32")).out_types == ["f32[n,3]"]
    constant = weft.Primitive("constant", lower=lambda: wnp.ones(2))
    assert weft.vmap(lambda x: constant() * x)(wnp.arange(3.0)).shape == (3, 2)


def test_symbolic_zeros():
    seen = []
    p = weft.Primitive("first", lower=lambda x, y: x + 0 * y, symbolic_zeros=True)

    @p.def_jvp
    def jvp(primals, tangents):
        seen.append([type(t).__name__ for t in tangents])
        return p(*primals), tangents[0]

    assert float(weft.grad(p)(1.0, 2.0)) == 1
    assert seen[-1][1] == "SymbolicZero"


def test_programs_show_the_primitive():
    p = weft.Primitive("scaled", lower=lambda x, by: x * by)
    ir = weft.make_ir(lambda x: p(x, by=3))(1.0)
    assert 'primitive[name="scaled", params="by=3"] x' in ir.text.replace(", opaque=true", "")
    assert [op.primitive for op in ir.walk(regions=False)] == ["scaled"]
    assert weft.parse_ir(ir.text)(2.0) == 6 and weft.deserialize_ir(ir.serialize())(2.0) == 6
    assert ir == weft.make_ir(lambda x: p(x, by=3))(1.0) != weft.make_ir(lambda x: p(x, by=4))(1.0)


def test_calls_compile_once():
    cube = on_host()
    f = weft.jit(lambda x: weft.grad(cube)(x))
    f(1.0)
    before = weft._weft.programs_compiled()
    for _ in range(3):
        f(2.0)
        weft.jit(lambda x: weft.grad(cube)(x))(2.0)
    assert weft._weft.programs_compiled() == before


def test_the_rule_goes_where_the_program_goes():
    p = weft.Primitive("p", lower=lambda x: x * 1)
    p.def_jvp(lambda primals, tangents: (p(*primals), 7 * tangents[0]))
    moved = weft.deserialize_ir(weft.make_ir(p)(1.0).serialize())
    assert float(weft.grad(moved)(1.0)) == 7


def test_bundles(tmp_path):
    f = weft.jit(lambda x: by_lowering()(x) + 1)
    f.lower(wnp.ones(3)).export(tmp_path / "f.weftb")
    host = on_host()
    for g in (host, lambda x: x * weft.value_and_grad(lambda x: host(x).sum())(x)[0], weft.vmap(host)):
        scanned = lambda x, g=g: weft.scan(lambda c, _: (g(c), None), x, None, length=2)[0]
        branches = lambda x, g=g: weft.cond(x.sum() > 0, g, lambda x: x, x)
        for use in (g, scanned, branches):
            message = r"(?s)export: the primitive 'cube' is computed by .*lower=\.\.\.\).*primitive_test.py:\d+"
            with pytest.raises(NotImplementedError, match=message):
                weft.jit(use).lower(wnp.ones(3)).export(tmp_path / "g.weftb")
    with pytest.raises(NotImplementedError, match="export: pure_callback calls a function of this process"):
        weft.jit(lambda x: weft.pure_callback(lambda x: x, x, x)).lower(1.0).export(tmp_path / "g.weftb")


def test_what_the_host_computes_is_no_stablehlo():
    for make in (on_host, by_lowering):
        p = make()
        ir = weft.make_ir(lambda x, p=p: weft.fori_loop(0, 2, lambda i, c: p(c), x))(wnp.ones(3))
        if make is by_lowering:
            assert weft.ir.from_stablehlo(weft.ir.to_stablehlo(ir))(2 * wnp.ones(3)).tolist() == [512.0] * 3
            continue
        with pytest.raises(NotImplementedError, match=r"(?s)nothing for 'cube'.*lower=\.\.\..*primitive_test.py:\d+"):
            weft.ir.to_stablehlo(ir)


def test_captured_arrays_of_a_lowering():
    table = wnp.arange(100.0)
    p = weft.Primitive("looked_up", lower=lambda i: table[i])
    assert float(weft.jit(p)(3)) == 3
    assert list(weft.vmap(p)(wnp.array([3, 5]))) == [3, 5]
    q = weft.Primitive("summed", lower=lambda x: (table * x).sum())
    assert float(weft.jit(weft.grad(q))(1.0)) == 4950

    def f(x):
        return weft.Primitive("inner", lower=lambda y: x * y)(x)

    with pytest.raises(weft.TracerError, match="lowering uses a traced value"):
        weft.jit(f)(1.0)


# What is missing or wrong is one error that names the primitive, the rule and the line.


def opaque():
    return weft.Primitive("opaque", infer=same, eval=lambda x: np.abs(x))


@pytest.mark.parametrize(
    "use", ["grad", "jvp", "jit of grad", "vmap of grad", "grad of vmap", "grad of scan", "grad of cond", "jet"]
)
def test_a_missing_jvp_rule(use):
    with pytest.raises(
        weft.DerivativeError, match=r"(?s)primitive 'opaque' has no jvp rule.*jvp=.*primitive_test.py:\d+"
    ):
        USES[use](lambda x: opaque()(x), wnp.array(0.5))


def test_a_missing_transpose_rule():
    p = weft.Primitive("forward", infer=same, eval=lambda x: 2 * x)
    p.def_jvp(lambda primals, tangents: (p(*primals), p(*tangents)))
    assert float(weft.jvp(p, (1.0,), (3.0,))[1]) == 6
    with pytest.raises(
        weft.DerivativeError, match=r"(?s)primitive 'forward' has no transpose rule.*primitive_test.py:\d+"
    ):
        weft.grad(lambda x: p(x))(1.0)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: weft.Primitive("p", eval=lambda x: x), "has no infer rule"),
        (lambda: weft.Primitive("p", infer=same), "nothing says what it computes"),
        (lambda: weft.Primitive("p"), "nothing says what it computes"),
        (lambda: weft.Primitive("p", infer=lambda x: 3, eval=lambda x: x), "infer must return weft.ShapeDtype"),
        (lambda: weft.Primitive("p", infer=same, lower=lambda x: wnp.ones(3)), "infer says that result 0 is"),
        (lambda: weft.Primitive("p", infer=lambda x: [same(x)] * 2, lower=lambda x: [x]), "infer says 2 results"),
        (lambda: weft.Primitive("not a word"), "must be a word"),
        (lambda: weft.Primitive("sin"), "is an operation of Weft's"),
        (lambda: weft.Primitive("p", jvp=3), "jvp must be a function"),
        (lambda: weft.Primitive("p", lower="libm.so"), "expected a function"),
        (lambda: weft.Primitive("p", lower=("no-such-library.so", "f")), "cannot be loaded"),
        (lambda: weft.Primitive("p", lower=("libm.so.6", "no_such_symbol")), "has no symbol 'no_such_symbol'"),
        (lambda: weft.Primitive("p", lower=("libm.so.6",)), "expected .library, symbol"),
        (lambda: weft.Primitive("p", lower=0), "address of the function is 0"),
        (lambda: weft.Primitive("p", lower=("libm.so.6", "sin")), "has no infer rule, which says .* C function"),
        (
            lambda: weft.Primitive("p", lower=lambda x: None),
            "lower must return an array, or a list of them, got NoneType",
        ),
        (lambda: weft.Primitive("p", lower=lambda x: {"a": x}), "lower must return an array, .* got dict"),
        (lambda: weft.Primitive("p", lower=lambda x: [x, "a"]), "lower must return an array, .* got str"),
        (
            lambda: weft.Primitive("p", infer=same, eval=lambda x: np.ones(2)),
            r"infer says .*\[\], and eval gives .*\[2\]",
        ),
        (
            lambda: weft.Primitive("p", infer=lambda x: weft.ShapeDtype((), "int32"), eval=lambda x: x),
            "int32.*, and eval",
        ),
        (lambda: weft.Primitive("p", infer=same, eval=lambda x: (x, x)), "infer says 1 results, and eval gives 2"),
        (
            lambda: weft.Primitive("p", infer=same, eval=lambda x: None),
            "eval must return arrays of numbers, result 0 is None",
        ),
        (
            lambda: weft.Primitive("p", infer=same, eval=lambda x: "a"),
            "eval must return arrays of numbers, result 0 is 'a'",
        ),
    ],
)
def test_primitives_that_are_none(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()(1.0)


def test_rules_that_give_something_else():
    def with_rules(**rules):
        return weft.Primitive("p", infer=same, eval=lambda x: x, **rules)

    with pytest.raises(TypeError, match=r"must return .value, tangent"):
        weft.grad(with_rules(jvp=lambda primals, tangents: primals[0]))(1.0)
    with pytest.raises(TypeError, match=r"float32\[2\], expected float32\[\]"):
        weft.grad(with_rules(jvp=lambda primals, tangents: (primals[0], wnp.ones(2))))(1.0)
    with pytest.raises(TypeError, match="must return 1 cotangents"):
        weft.grad(with_rules(transpose=lambda ct, x: (ct, ct)))(1.0)
    with pytest.raises(TypeError, match=r"float32\[2\], expected float32\[\]"):
        weft.grad(with_rules(transpose=lambda ct, x: (wnp.ones(2),)))(1.0)
    with pytest.raises(TypeError, match=r"must return .result, axis"):
        weft.vmap(with_rules(batch=lambda operands, axes: operands[0]))(wnp.ones(3))
    with pytest.raises(TypeError, match="transpose rule of 'p' must return cotangents"):
        weft.grad(with_rules(transpose=lambda ct, x: None))(1.0)
    for axis in (7, -3, "x", 0.5):
        with pytest.raises(TypeError, match=f"batch rule says that axis {axis!r} of an array of 1 dimensions"):
            weft.vmap(with_rules(batch=lambda operands, axes, axis=axis: (operands[0], axis)))(wnp.ones(3))
    with pytest.raises(TypeError, match="batch rule gives 1 results and 2 axes"):
        weft.vmap(with_rules(batch=lambda operands, axes: ([operands[0]], [0, 0])))(wnp.ones(3))
    with pytest.raises(TypeError, match="batch rule must return arrays, got str"):
        weft.vmap(with_rules(batch=lambda operands, axes: ("a", 0)))(wnp.ones(3))
    with pytest.raises(TypeError, match="must be hashable"):
        with_rules()(1.0, by=[1])
    with pytest.raises(TypeError, match="must be one array"):
        with_rules()((1.0, 2.0))
    for nothing in (None, "a", [], {}):
        with pytest.raises(TypeError, match="operand 1 must be one array, got"):
            weft.Primitive("p", lower=lambda x, y: x)(1.0, nothing)


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("kind", ["infer", "eval", "lower", "jvp", "transpose", "batch"])
def test_what_a_rule_raises_names_the_rule(kind, jitted):
    def throws(*args, **params):
        raise KeyError("mine")

    rules = {"infer": same, "eval": lambda x: x} if kind != "lower" else {}
    p = weft.Primitive("p", **{**rules, kind: throws})
    use = {"jvp": weft.grad(p), "transpose": weft.grad(p), "batch": lambda x: weft.vmap(p)(wnp.stack([x, x]))}.get(
        kind, p
    )
    with pytest.raises(KeyError, match="mine") as caught:
        (weft.jit(use) if jitted else use)(1.0)
    note = caught.value.__notes__[0]
    assert note.startswith(f"raised by the {kind} rule of the primitive 'p' (") and "primitive_test.py:" in note


SOURCE = r"""
#include <stdint.h>
typedef struct { void* data; int64_t rank; const int64_t* dims; } weft_buffer;
static int64_t size(const weft_buffer* b) {
  int64_t n = 1;
  for (int64_t d = 0; d < b->rank; ++d) n *= b->dims[d];
  return n;
}
int cube(int64_t n_in, const weft_buffer* in, int64_t n_out, weft_buffer* out) {
  if (n_in != 1 || n_out != 1) return 2;
  for (int64_t i = 0; i < size(in); ++i) {
    float x = ((const float*)in->data)[i];
    ((float*)out->data)[i] = x * x * x;
  }
  return 0;
}
int fails(int64_t n_in, const weft_buffer* in, int64_t n_out, weft_buffer* out) { return 7; }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("library")
    (folder / "cube.c").write_text(SOURCE)
    subprocess.run(["cc", "-shared", "-fPIC", folder / "cube.c", "-o", folder / "libcube.so"], check=True)
    return folder / "libcube.so"


@pytest.mark.parametrize(
    "use", ["eager", "jit", "vmap", "grad", "vmap of grad", "grad of vmap", "scan", "grad of scan", "sharded"]
)
def test_c_functions(library, use):
    import ctypes

    x = wnp.array(0.5)
    loaded = ctypes.CDLL(str(library))
    address = ctypes.cast(loaded.cube, ctypes.c_void_p).value
    for lower in ((library, "cube"), loaded.cube, address):
        p = weft.Primitive("cube", infer=same, lower=lower)
        p.def_jvp(cube_jvp(p))
        np.testing.assert_allclose(USES[use](p, x), USES[use](lambda x: x * x * x, x), rtol=1e-5)


def test_c_functions_that_fail(library):
    p = weft.Primitive("fails", infer=same, lower=(library, "fails"))
    with pytest.raises(RuntimeError, match="'fails': its C function returned 7"):
        weft.jit(p)(1.0)
    with pytest.raises(TypeError, match="takes no parameters, got by"):
        p(1.0, by=3)


def test_arrays_captured_after_an_operation_without_results():
    nothing = weft.Primitive("nothing_at_all")
    nothing.def_eval(lambda *arrays: [])
    nothing.def_infer(lambda *types: [])
    first, second = (np.arange(400, dtype=np.float32) + start for start in (0, 1))

    def f(x):
        nothing(x, first)
        weft.debug.check(x >= 0, "{} {}", x, second)
        return x + 1

    # The check reads the array that was captured last, which has no equation before it.
    text = str(weft.make_ir(f)(wnp.float32(1.0)))
    names = re.findall(r"const (\w+): f32\[400\]", text)
    assert re.search(r"assert\[.*\] \w+ x (\w+)", text)[1] == names[1]
