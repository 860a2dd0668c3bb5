"""Programs seen from Python: origins of equations, Python source of programs, and transforms of any program."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import _weft
from weft import primitives as prim


def f(x):
    y = wnp.sin(x)
    return y * y


LINE = f.__code__.co_firstlineno


def equations(fn):
    for e in fn.eqns:
        yield e
        for region in e["regions"]:
            yield from equations(region)


def test_every_equation_has_an_origin():
    h = weft.vmap(f)
    programs = {
        "grad of vmap": weft.make_ir(weft.grad(lambda x: h(x).sum()))(wnp.ones(3)),
        "vmap of grad": weft.make_ir(weft.vmap(weft.grad(f)))(wnp.ones(3)),
        "hessian": weft.make_ir(weft.hessian(lambda x: f(x).sum()))(wnp.ones(3)),
        "jvp of grad": weft.make_ir(lambda x: weft.jvp(weft.grad(f), (x,), (1.0,)))(1.0),
        "grad of grad": weft.make_ir(weft.grad(weft.grad(f)))(1.0),
        "loops": weft.make_ir(weft.grad(lambda x: weft.fori_loop(0, 9, lambda i, c: f(c), x, strategy="binomial(2)")))(
            1.0
        ),
        "while": weft.make_ir(weft.grad(lambda x: weft.while_loop(lambda c: c < 9, lambda c: c * 3, x)))(1.0),
        "remat": weft.make_ir(weft.grad(weft.checkpoint(f)))(1.0),
        "jit": weft.make_ir(weft.grad(weft.jit(f)))(1.0),
    }
    for what, ir in programs.items():
        for e in equations(ir._fn):
            origin = e["origin"]
            assert origin["file"].endswith("introspection_test.py") and origin["line"] > 0, (what, e["name"], origin)
            assert isinstance(origin["transforms"], tuple)
    mapped = {e["name"]: e["origin"] for e in programs["grad of vmap"].eqns}
    assert mapped["sin"]["line"] == LINE + 1 and mapped["sin"]["function"] == "f"
    assert mapped["sin"]["transforms"][0] == "vmap"
    assert mapped["cos"]["transforms"] == ("vmap", "jvp")
    assert any(e["origin"]["transforms"] == ("vmap", "jvp", "transpose") for e in programs["grad of vmap"].eqns)
    assert any(e["origin"]["transforms"][-1:] == ("vmap",) for e in programs["vmap of grad"].eqns)
    text = programs["grad of vmap"].text_with_locations()
    assert f"introspection_test.py:{LINE + 1} (f) via vmap, jvp" in text
    assert weft.parse_ir(text) == programs["grad of vmap"]
    assert f"introspection_test.py:{LINE + 1} (f) via vmap, jvp" in programs["grad of vmap"].to_python(locations=True)


def defined(source, name):
    scope = {}
    exec(compile(source, "<generated>", "exec"), scope)
    return scope[name]


def test_python_of_every_primitive():
    """From the registry: the source, run, is the same program; so it has the same results."""
    seen = set()
    for name, texts in _weft.sample_programs().items():
        for text in texts:
            ir = weft.parse_ir(text)
            source, function = prim.to_python(ir._fn)
            again = defined(source, function)
            if "results=types()]" in text and name == "pure_callback":
                continue  # an equation without results or effects is dead
            assert again == ir, f"{name}\n{text}\n{source}\n{again.text}"
            seen |= {e["name"] for e in equations(ir._fn)}
    missing = {p["name"] for p in _weft.primitives()} - seen
    # Made by transforms only, from loops and recursion; the programs below have them.
    for g, x in (
        (weft.grad(lambda x: weft.while_loop(lambda c: c < 9, lambda c: c * 3, x)), 2.0),
        (weft.grad(fact), 2.0),
        (
            weft.vmap(weft.grad(lambda x: weft.while_loop(lambda c: c < 9, lambda c: c * c, x) * fact(x))),
            wnp.ones(3) * 2,
        ),
    ):
        ir = weft.make_ir(g)(x)
        source, function = prim.to_python(ir._fn)
        assert defined(source, function) == ir
        seen |= {e["name"] for e in equations(ir._fn)}
    assert not missing - seen, missing - seen


@weft.jit
def fact(n):
    return weft.cond(n <= 1, lambda: 1.0, lambda: n * fact(n - 1))


def test_python_of_programs_runs():
    big = wnp.arange(100.0)
    w = np.random.default_rng(0).normal(size=(3, 3)).astype("float32")

    def model(x, n):
        y = weft.fori_loop(0, 3, lambda i, c: wnp.tanh(c @ w) + i, x)
        y = weft.cond(n > 2, lambda: y * 2, lambda: y - 1)
        return {"y": y, "s": (big * y.sum()).sum(), "n": n + 1}

    ir = weft.make_ir(weft.vmap(model, in_axes=(0, None)))(wnp.ones((2, 3)), 3)
    source = ir.to_python()
    again = defined(source, "model")
    x = np.random.default_rng(1).normal(size=(2, 3)).astype("float32")
    expected = weft.tree.leaves(ir(x, 3))
    for a, b in zip(again(x, np.int32(3), *ir.constants), expected):
        np.testing.assert_array_equal(a, b)
    assert "prim.constant('f32[100]')" in source and len(ir.constants) == 1
    g = weft.grad(lambda x: again(x, 3, *ir.constants)[1 if again.out_types[1] == "f32[2]" else 0].sum())
    assert g(x).shape == (2, 3)
    odd = (
        "fn for(lambda: f32[2], float: f32[2]) { a = add lambda float; "
        "return a, 0x7fc00001:f32, [(1,2)]:c64[1], [[1],[2]]:bf16[2,1] }"
    )
    ir = weft.parse_ir(odd)
    again = defined(ir.to_python(), "for_1")
    assert again == ir and again(np.ones(2, "f"), np.ones(2, "f"))[0].tolist() == [2, 2]
    symbolic = weft.make_ir(lambda x: (x @ x.T).reshape(-1))(weft.ShapeDtype(("n", 3), "float32"))
    assert defined(symbolic.to_python(), symbolic.__name__) == symbolic


def test_the_name_in_python_is_the_program_s_own():
    """... also where the functions of its branches have the same one, as those of lambdas do."""
    for f in (
        lambda x: weft.cond(x > 0, lambda v: v * 2, lambda v: v * 3, x),
        lambda x: weft.fori_loop(0, 3, lambda i, c: weft.cond(c > 9, lambda: c, lambda: c * 2), x),
    ):
        ir = weft.make_ir(f)(1.0)
        assert ir.to_python().count(f"def {ir.__name__}(") == 1
        again = defined(ir.to_python(), ir.__name__)
        assert again == ir and again(5.0) == f(5.0)


def test_programs_by_hand():
    @prim.function("f32[3]", "f32[]")
    def g(x, y):
        return prim.mul(prim.sin(x), prim.broadcast(y, shape=prim.sizes("3"), dims=[]))

    np.testing.assert_allclose(g(np.ones(3, "f"), 2.0), 2 * np.sin(np.ones(3)), rtol=1e-6)
    with pytest.raises(TypeError, match="mul: operand 1"):

        @prim.function("f32[3]", "f32[]")
        def h(x, y):
            return prim.mul(x, y)

    with pytest.raises(ValueError, match="no attribute 'shap'"):
        prim.function("f32[]")(lambda x: prim.broadcast(x, shap=prim.sizes("3"), dims=[]))
    with pytest.raises(AttributeError, match="no primitive 'sinn'"):
        prim.sinn  # noqa: B018
    with pytest.raises(ValueError, match="'f33' is no type"):
        prim.function("f33")(lambda x: x)
    with pytest.raises(TypeError, match="takes 2 parameters, but 1 types"):
        prim.function("f32[]")(lambda x, y: x)
    big = wnp.ones(100)
    with pytest.raises(TypeError, match="make it a parameter"):
        prim.function("f32[100]")(lambda x: prim.add(x, big))


def sources():
    """The same program as IR objects of every origin."""
    traced = weft.make_ir(f)(1.0)
    return {
        "traced": traced,
        "parsed": weft.parse_ir(traced.text),
        "deserialised": weft.deserialize_ir(traced.serialize()),
        "unpickled": pickle.loads(pickle.dumps(traced)),
        "python": defined(traced.to_python(), "f"),
        "of a gradient": weft.make_ir(lambda x: weft.value_and_grad(f)(x)[0])(1.0),
    }


@pytest.mark.parametrize("origin", sources())
def test_any_program_can_be_transformed(origin):
    ir = sources()[origin]
    x = 0.7
    s, c = np.sin(x), np.cos(x)
    assert float(ir(x)) == pytest.approx(s * s, rel=1e-6)
    assert float(weft.jit(ir)(x)) == pytest.approx(s * s, rel=1e-6)
    assert float(weft.grad(ir)(x)) == pytest.approx(2 * s * c, rel=1e-6)
    assert float(weft.jit(weft.grad(ir))(x)) == pytest.approx(2 * s * c, rel=1e-6)
    assert float(weft.value_and_grad(ir)(x)[1]) == pytest.approx(2 * s * c, rel=1e-6)
    assert float(weft.grad(weft.grad(ir))(x)) == pytest.approx(2 * (c * c - s * s), rel=1e-4)
    _, tangent = weft.jvp(ir, (x,), (3.0,))
    assert float(tangent) == pytest.approx(6 * s * c, rel=1e-6)
    _, pullback = weft.vjp(ir, x)
    assert float(pullback(2.0)[0]) == pytest.approx(4 * s * c, rel=1e-6)
    assert float(weft.linearize(ir, x)[1](1.0)) == pytest.approx(2 * s * c, rel=1e-6)
    xs = np.linspace(-1, 1, 4).astype("float32")
    np.testing.assert_allclose(weft.vmap(ir)(xs), np.sin(xs) ** 2, rtol=1e-6)
    np.testing.assert_allclose(weft.vmap(weft.grad(ir))(xs), np.sin(2 * xs), rtol=1e-5)
    np.testing.assert_allclose(weft.grad(lambda v: weft.vmap(ir)(v).sum())(xs), np.sin(2 * xs), rtol=1e-5)
    assert float(weft.jacfwd(ir)(x)) == float(weft.jacrev(ir)(x)) == pytest.approx(2 * s * c, rel=1e-6)
    assert float(weft.hessian(ir)(x)) == pytest.approx(2 * (c * c - s * s), rel=1e-4)
    assert float(weft.grad(weft.checkpoint(ir))(x)) == pytest.approx(2 * s * c, rel=1e-6)
    assert weft.eval_shape(ir, x).shape == ()
    assert weft.make_ir(weft.grad(ir))(x).out_types == ["f32[]"]
    assert float(weft.fori_loop(0, 2, lambda i, v: ir(v), x)) == pytest.approx(np.sin(s * s) ** 2, rel=1e-5)
    assert len(weft.saved_residuals(ir, x)) > 0


def test_damaged_bytes():
    data = weft.make_ir(f)(1.0).serialize()
    with pytest.raises(weft.ParseError):
        weft.deserialize_ir(data[:-3])
    with pytest.raises(weft.ParseError):
        weft.deserialize_ir(b"nonsense")


def test_python_of_a_region_with_the_name_of_a_value():
    def b(c):  # the second value of every function is called b, too
        return c < 10

    def f(x):
        return weft.while_loop(b, lambda a: a * 2, wnp.sin(x * x) * x + 1)

    for ir in (weft.make_ir(f)(1.3), weft.make_ir(lambda x: weft.vmap(f)(x * wnp.arange(1.0, 4.0)))(1.3)):
        source, namespace = ir.to_python(), {}
        exec(source, namespace)
        program = source.rsplit("def ", 1)[1].split("(")[0]
        assert np.array_equal(namespace[program](1.3), ir(1.3)), source


@weft.jit
def power(n, x):
    return weft.cond(n < 1, lambda: x, lambda: x * power(n - 1, x))


CONSTRUCTS = {
    "while": lambda x: weft.lax.while_loop(lambda c: c < 10, lambda c: c * 2, x),
    "while, recount": lambda x: weft.lax.while_loop(lambda c: c < 10, lambda c: c * 2, x, strategy="recount"),
    "scan": lambda x: weft.lax.scan(lambda c, _: (c * 2, c), x, None, length=4)[1].sum(),
    "binomial": lambda x: weft.lax.fori_loop(0, 10, lambda i, c: c * 2, x, strategy="binomial(3)"),
    "cond": lambda x: weft.lax.cond(x > 0, wnp.sin, wnp.cos, x),
    "associative_scan": lambda x: weft.lax.associative_scan(wnp.multiply, x * wnp.arange(1.0, 6)).sum(),
    "recursion": lambda x: power(3, x),
}


@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_every_equation_shows_where_it_is_from(construct):
    f, ones, count = CONSTRUCTS[construct], np.ones(3, "float32"), 0
    for transformed in (
        f,
        weft.grad(f),
        weft.grad(weft.grad(f)),
        lambda x: weft.vmap(f)(x * ones),
        lambda x: weft.vmap(weft.grad(f))(x * ones),
        lambda x: weft.jvp(f, (x,), (1.0,)),
    ):
        text = weft.make_ir(transformed)(1.0).text_with_locations()
        equations = [line for line in text.splitlines() if " = " in line]
        assert all("introspection_test.py" in line for line in equations), text
        count += len(equations)
    assert count >= 6


def test_names_of_parts_are_in_locations():
    @weft.named_scope("norm")
    def norm(x):
        return x / wnp.sqrt((x * x).sum())

    def block(x):
        with weft.named_scope("block"):
            y = norm(x * 2)
            with weft.named_scope("deep"):
                y = weft.named_call(norm)(y) + 1
        return y - 1

    scopes = lambda fn, *args: [op.location.scope for op in weft.make_ir(fn)(*args).walk()]
    x = wnp.arange(1.0, 4.0)
    assert list(dict.fromkeys(scopes(block, x))) == ["block", "block/norm", "block/deep/norm/norm", "block/deep", ""]
    assert set(scopes(weft.vmap(block), x[None])) == {
        "vmap(block)",
        "vmap(block)/norm",
        "vmap(block)/deep/norm/norm",
        "vmap(block)/deep",
        "",
    }
    inner = weft.named_scope("out")(lambda x: weft.vmap(norm)(x))
    assert set(scopes(inner, x[None])) == {"out/vmap(norm)"} and scopes(lambda x: inner(x).sum(), x[None])[-1] == ""
    found = set(scopes(weft.grad(lambda x: norm(x).sum()), x))
    assert {"jvp(norm)", "transpose(jvp(norm))"} <= found
    # In the body of a loop, in a jitted function, in another thread's program none of it.
    looped = weft.make_ir(weft.named_scope("loop")(lambda x: weft.fori_loop(0, 3, lambda i, c: norm(c), x)))(x)
    assert {op.location.scope for op in looped.walk()} >= {"loop", "loop/norm"}
    assert set(scopes(lambda x: weft.jit(norm)(x), x)) == {"norm"}
    with weft.named_scope("here"):
        with ThreadPoolExecutor() as pool:
            assert pool.submit(scopes, lambda x: x + 1, x).result() == [""]
        assert scopes(lambda x: x + 1, x) == ["here"]
    with pytest.raises(KeyError), weft.named_scope("lost"):
        raise KeyError
    assert scopes(lambda x: x + 1, x) == [""]
    # Text, bytes, and what errors and stacks say.
    ir = weft.make_ir(weft.vmap(block))(x[None])
    assert "via named_scope(block/norm), vmap" in ir.text_with_locations()
    again = weft.deserialize_ir(ir.serialize())
    assert [op.location.scope for op in again.walk()] == [op.location.scope for op in ir.walk()]
    assert all(op.location.transforms == ("vmap",) for op in ir.walk() if op.location.scope)
    stack = ir.walk()[1].location.stack
    assert "contextlib" not in stack and " at :" not in stack and "introspection_test.py" in stack
    with pytest.raises(TypeError, match="named_scope: name must be a string, got 3"):
        weft.named_scope(3)
