"""weft.aot: forward and backward passes handed to compilers of one's own."""

import numpy as np
import pytest

import weft
import weft.numpy as wnp

P = weft.checkpoint_policies


class Compilers:
    """Keep what they are given; what they return counts its calls."""

    def __init__(self, make=lambda ir: ir):
        self.programs, self.calls, self.make = {"forward": [], "backward": []}, [], make

    def compiler(self, which):
        def compile_program(ir):
            self.programs[which].append(ir)
            run = self.make(ir)

            def counted(*args):
                self.calls.append(which)
                return run(*args)

            return counted

        return compile_program

    def aot(self, f, **how):
        return weft.aot(f, fw_compiler=self.compiler("forward"), bw_compiler=self.compiler("backward"), **how)


def f(w, x):
    y = wnp.sin(x @ w)
    return (y**2).sum()


W, X = (np.random.default_rng(0).normal(size=s).astype("float32") for s in ((3, 4), (2, 3)))


def by_numpy(ir):
    """A compiler that leaves Weft: an interpreter of the few operations of f's gradient on NumPy arrays."""
    contract = lambda x, y, spec: np.einsum(spec, x, y)
    rules = {
        "contract": lambda a, x, y: contract(x, y, a["spec"]),
        "sin": lambda a, x: np.sin(x),
        "cos": lambda a, x: np.cos(x),
        "mul": lambda a, x, y: x * y,
        "integer_pow": lambda a, x: x ** a["exponent"],
        "square": lambda a, x: x * x,
        "pow": lambda a, x, y: x**y,
        "reduce_sum": lambda a, x: x.sum(tuple(a["dims"])),
        "broadcast": lambda a, x: np.broadcast_to(x, a["shape"]),
        "transpose": lambda a, x: np.transpose(x, a["perm"]),
    }

    def run(*args):
        assert all(isinstance(a, (np.ndarray, weft.Array)) for a in args)
        values = {f"%{i}": np.asarray(a) for i, a in enumerate(args)}

        def read(text):
            name = text.partition(":")[0]
            return values[name] if name in values else np.float32(name)

        for e in ir.eqns:
            values[e["results"][0].split(":")[0]] = rules[e["name"]](
                e["attr_values"] | e["attrs"], *map(read, e["operands"])
            )
        return tuple(np.asarray(read(text), dtype="float32") for text in ir._fn.results)

    return run


@pytest.mark.parametrize("make", [lambda ir: ir, weft.jit, by_numpy], ids=["ir", "jit", "numpy"])
def test_every_program_once(make):
    c = Compilers(make)
    g = c.aot(f)
    expected = f(W, X)
    np.testing.assert_allclose(g(W, X), expected, rtol=1e-6)
    assert c.calls == ["forward"]
    for _ in range(3):
        np.testing.assert_allclose(weft.grad(g)(W, X), weft.grad(f)(W, X), rtol=1e-5)
    assert c.calls.count("backward") == 3
    value, (_, dx) = weft.value_and_grad(g, (0, 1))(2 * W, X)
    np.testing.assert_allclose(value, f(2 * W, X), rtol=1e-6)
    np.testing.assert_allclose(dx, weft.grad(f, 1)(2 * W, X), rtol=1e-5)
    np.testing.assert_allclose(weft.jit(weft.grad(g))(W, X), weft.grad(f)(W, X), rtol=1e-5)
    assert [len(p) for p in c.programs.values()] == [1, 1]
    g(W, X[:1])  # another signature
    assert [len(p) for p in c.programs.values()] == [2, 2]
    [forward, _], [backward, _] = c.programs.values()
    assert forward.num_results == 1 and forward.out_types[0] == "f32[]"
    residuals = forward.out_types[1:]
    assert backward.in_types == [*residuals, "f32[]"] and backward.out_types == ["f32[3,4]", "f32[2,3]"]
    assert backward.num_residuals == len(residuals)
    results = forward(W, X)
    np.testing.assert_allclose(backward(*results[1:], np.float32(1))[0], weft.grad(f)(W, X), rtol=1e-5)


def test_transforms_of_the_result():
    c = Compilers(weft.jit)
    g = c.aot(lambda x: wnp.sin(x) * wnp.exp(x))
    plain = lambda x: wnp.sin(x) * wnp.exp(x)
    x = 0.7
    assert float(weft.grad(g)(x)) == pytest.approx(float(weft.grad(plain)(x)), rel=1e-6)
    assert float(weft.grad(weft.grad(g))(x)) == pytest.approx(float(weft.grad(weft.grad(plain))(x)), rel=1e-5)
    assert float(weft.grad(weft.grad(weft.grad(g)))(x)) == pytest.approx(
        float(weft.grad(weft.grad(weft.grad(plain)))(x)), rel=1e-4
    )
    for a, b in zip(weft.jvp(g, (x,), (2.0,)), weft.jvp(plain, (x,), (2.0,))):
        assert float(a) == pytest.approx(float(b), rel=1e-6)
    assert float(weft.hessian(g)(x)) == pytest.approx(float(weft.hessian(plain)(x)), rel=1e-5)
    xs = np.linspace(-1, 1, 5).astype("float32")
    np.testing.assert_allclose(weft.vmap(g)(xs), plain(xs), rtol=1e-6)
    np.testing.assert_allclose(weft.vmap(weft.grad(g))(xs), weft.vmap(weft.grad(plain))(xs), rtol=1e-5)
    np.testing.assert_allclose(
        weft.grad(lambda v: weft.vmap(g)(v).sum())(xs), weft.vmap(weft.grad(plain))(xs), rtol=1e-5
    )
    total = lambda h: lambda x: weft.fori_loop(0, 3, lambda i, c: h(c) * 0.1, x)
    assert float(weft.grad(total(g))(x)) == pytest.approx(float(weft.grad(total(plain))(x)), rel=1e-5)


def test_trees_integers_and_several_results():
    def step(params, n, scale=1.0):
        return {"y": params["w"] * n * scale, "n": n + 1, "z": wnp.sin(params["b"])}

    c = Compilers()
    g = c.aot(step)
    params = {"w": wnp.arange(3.0), "b": wnp.asarray(0.5)}
    out, pullback = weft.vjp(lambda p, s: g(p, 2, scale=s), params, 3.0)
    assert out["n"].item() == 3 and out["y"].tolist() == [0, 6, 12]
    (dp, ds) = pullback({"y": wnp.ones(3), "n": np.zeros((), "bool"), "z": wnp.asarray(2.0)})
    assert dp["w"].tolist() == [6, 6, 6] and ds.item() == pytest.approx(6.0)
    assert dp["b"].item() == pytest.approx(2 * np.cos(0.5), rel=1e-6)
    assert [len(p) for p in c.programs.values()] == [1, 1]


def test_partitions():
    def deep(x):
        for _ in range(4):
            x = wnp.sin(x @ W[:, :3])
        return x.sum()

    saved, equations = {}, {}
    for name, policy in (
        ("all", None),
        ("nothing", P.nothing_saveable),
        ("dots", P.dots_saveable),
        ("everything", P.everything_saveable),
        ("function", lambda prim, *_, **__: prim.name == "sin"),
    ):
        c = Compilers()
        g = c.aot(deep, partition=policy)
        np.testing.assert_allclose(weft.grad(g)(X), weft.grad(deep)(X), rtol=1e-5)
        [forward], [backward] = c.programs.values()
        saved[name] = [r.primitive or r.kind for r in forward.residuals]
        equations[name] = backward._fn.num_eqns
        assert len(forward.residuals) == backward.num_residuals == len(forward.out_types) - 1
    assert saved["nothing"] == ["argument"] or set(saved["nothing"]) <= {"argument", "constant"}
    assert saved["dots"].count("contract") == 4 and set(saved["dots"]) <= {"contract", "argument", "constant"}
    assert saved["all"].count("cos") == 4 and saved["everything"].count("cos") == 4
    assert "sin" in saved["function"]
    assert equations["all"] < equations["dots"] < equations["nothing"]


def test_explain():
    g = weft.aot(f, fw_compiler=lambda ir: ir)
    g(W, X)
    line = f.__code__.co_firstlineno + 1
    text = g.explain()
    assert text.splitlines()[0] == "f(f32[3,4], f32[2,3])"
    assert f"saved: f32[2,4] output of cos from aot_test.py:{line} (f) via jvp" in text
    assert "saved: f32[2,3] from the argument x" in text and "bytes in" in text


def test_constants_and_errors():
    big = wnp.arange(100.0)
    g = weft.aot(lambda x: (x * big).sum(), fw_compiler=weft.jit)
    assert weft.grad(g)(2.0).item() == pytest.approx(4950) and g(2.0).item() == 9900
    with pytest.raises(TypeError, match="fw_compiler is 3"):
        weft.aot(f, 3)
    with pytest.raises(TypeError, match="bw_compiler returned None"):
        weft.aot(f, lambda ir: ir, lambda ir: None)(W, X)
    with pytest.raises(TypeError, match="returned 1 arrays, expected"):
        weft.aot(f, lambda ir: lambda *args: args[0])(W, X)
    with pytest.raises(TypeError, match=r"result 0 of the compiled forward pass is f32\[3,4\], expected f32\[\]"):
        weft.aot(lambda w: w.sum(), lambda ir: lambda w: w)(W)
    with pytest.raises(TypeError, match="make it an argument"):
        weft.grad(lambda x: weft.aot(lambda y: x * y, weft.jit)(2.0))(1.0)


def test_derivatives_of_one_number_are_those_of_the_function():
    """Whose own derivatives the transforms plan otherwise: the halves of aot go together all the same."""
    same = lambda f: weft.aot(f, fw_compiler=lambda ir: ir, bw_compiler=lambda ir: ir)
    x, one = np.float32(0.7), np.float32(1)
    assert float(weft.jvp(same(weft.grad(lambda x: x**3)), (x,), (one,))[1]) == pytest.approx(6 * 0.7)
    assert float(weft.linearize(same(weft.grad(lambda x: x**4)), x)[1](one)) == pytest.approx(12 * 0.7**2)
    assert float(weft.grad(same(weft.grad(lambda x: x**4)))(x)) == pytest.approx(12 * 0.7**2)
    batched = same(lambda x: weft.vmap(wnp.sin)(x * wnp.ones(3)).sum())
    assert float(weft.grad(batched)(0.5)) == pytest.approx(3 * np.cos(0.5))


def test_tapes_among_the_residuals():
    """Of loops of unknown length and of recursive functions: a compiler hands them on, and their derivatives are those
    of the function."""

    @weft.jit
    def recursive(n, x):
        return weft.cond(n <= 0, lambda: x, lambda: wnp.sin(recursive(n - 1, x * 1.1)))

    functions = {
        "while": lambda x: weft.while_loop(lambda c: c.sum() < 100, lambda c: c * c + 1, x),
        "nested": lambda x: weft.fori_loop(
            0,
            wnp.int32(weft.lax.stop_gradient(x[0])) + 1,
            lambda i, c: 0.1 * weft.while_loop(lambda s: s.sum() < 5, lambda s: s * s + x + 1, c),
            x,
        ),
        "recursion": lambda x: recursive(3, x),
    }
    compilers = {
        "ir": lambda ir: ir,
        "jit": weft.jit,
        "Python": lambda ir: lambda *args: ir(*args),
        "compiled in Python": lambda ir: lambda *args: weft.jit(ir)(*args),
    }
    x, v = np.float32([1.1, 0.9]), np.float32([0.5, -2])
    for what, f in functions.items():
        s = lambda x, f=f: f(x) @ v
        slope, hessian = weft.jacfwd(s)(x), weft.jacfwd(weft.jacfwd(s))(x)
        two = np.stack([x, x / 2])
        for how, compiler in compilers.items():
            counting = Compilers(compiler)
            g = counting.aot(f) if "Python" in how else weft.aot(f, fw_compiler=compiler)
            t = lambda x, g=g: g(x) @ v
            value, pull = weft.vjp(g, x)
            steps = lambda h: lambda x: weft.scan(lambda c, _: (weft.grad(h)(c) / 100, None), x, None, length=2)[0]
            for of, got, expected in (
                ("value", g(x), f(x)),
                ("jit", weft.jit(g)(x), f(x)),
                ("vjp", value, f(x)),
                ("pullback", pull(v)[0], slope),
                ("jit of the pullback", weft.jit(pull)(v)[0], slope),
                ("grad", weft.grad(t)(x), slope),
                ("jit of grad", weft.jit(weft.grad(t))(x), slope),
                ("jvp", weft.jvp(t, (x,), (v,))[1], slope @ v),
                ("vmap", weft.vmap(g)(two), weft.vmap(f)(two)),
                ("vmap of grad", weft.vmap(weft.grad(t))(two), weft.vmap(weft.grad(s))(two)),
                ("grad of vmap", weft.grad(lambda x, t=t: weft.vmap(t)(x).sum())(two), weft.vmap(weft.grad(s))(two)),
                ("grad in scan", steps(t)(x), steps(s)(x)),
                ("grad of grad", weft.grad(lambda x, t=t: weft.grad(t)(x) @ v)(x), hessian @ v),
                ("hessian", weft.hessian(t)(x), hessian),
                ("jit of hessian", weft.jit(weft.hessian(t))(x), hessian),
                ("jacrev of grad", weft.jacrev(weft.grad(t))(x), hessian),
            ):
                np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-4, err_msg=f"{what}, {how}: {of}")
            if "Python" in how:
                [forward], [backward] = counting.programs.values()
                assert "tape[]" in forward.out_types and "tape[]" in backward.in_types
                assert counting.calls.count("backward") > 3


def test_tapes_outlive_the_passes():
    """A compiler of the user's may keep what it was given or has made."""
    kept = []

    def keeping(ir):
        def run(*args):
            kept.append((args, ir(*args)))
            return kept[-1][1]

        return run

    g = weft.aot(lambda x: weft.while_loop(lambda c: c < 100, lambda c: c * c + 1, x), keeping)
    assert weft.jit(weft.grad(g))(1.0).item() == 4160
    (_, forward), (backward, _) = kept
    version = next(iter(g._versions.values()))
    residuals = [backward[:-1], forward[1:]]
    for _ in range(3):
        weft.jit(weft.grad(g))(2.0)  # other tapes
    for values in residuals:
        assert version.backward(*values, np.float32(1)).item() == 4160
