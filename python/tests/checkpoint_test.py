"""checkpoint, its policies, names, and what a gradient says it saves."""

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft.ad_checkpoint import checkpoint_name, checkpoint_policies, print_saved_residuals, saved_residuals

P = checkpoint_policies


def mlp(name=checkpoint_name, np_=wnp):
    def f(w1, w2, x):
        h = name(np_.sin(x @ w1), "hidden")
        y = name(np_.tanh(h @ w2), "out")
        return (np_.exp(y) * y).sum()

    return f


W1, W2, X = (np.random.default_rng(0).normal(size=s).astype("float32") for s in ((3, 4), (4, 5), (2, 3)))

POLICIES = {
    "none": None,
    "everything": P.everything_saveable,
    "nothing": P.nothing_saveable,
    "dots": P.dots_saveable,
    "checkpoint_dots": P.checkpoint_dots,
    "plain dots": P.dots_with_no_batch_dims_saveable,
    "only hidden": P.save_only_these_names("hidden"),
    "names but hidden": P.save_any_names_but_these("hidden"),
    "anything but hidden": P.save_anything_except_these_names("hidden"),
    "both": P.save_from_both_policies(P.dots_saveable, P.save_only_these_names("out")),
    "function": lambda prim, *operands, **attributes: prim.name == "tanh",
    "function over a policy": lambda prim, *xs, **p: P.dots_saveable(prim, *xs, **p) or prim.name == "sin",
}


def kept(f, *args):
    """What is saved besides arguments: (shape, primitive or name)."""
    return sorted((r.shape, r.name or r.primitive) for r in saved_residuals(f, *args) if r.kind == "value")


def test_what_each_policy_saves():
    save = lambda policy: kept(weft.checkpoint(mlp(), policy=POLICIES[policy]), W1, W2, X)
    assert save("none") == save("nothing") == []
    dots = [((2, 4), "contract"), ((2, 5), "contract")]
    assert save("dots") == save("checkpoint_dots") == save("plain dots") == dots
    assert save("only hidden") == [((2, 4), "hidden")]
    assert save("names but hidden") == [((2, 5), "out")]
    assert save("both") == [*dots, ((2, 5), "out")]
    assert save("function") == [((2, 5), "tanh")]
    assert (
        save("function over a policy") == [dots[0], ((2, 4), "sin"), dots[1]] or save("function over a policy") == dots
    )
    anything = save("anything but hidden")
    assert ((2, 4), "hidden") not in anything and ((2, 4), "sin") not in anything
    assert any(shape == (2, 4) for shape, _ in anything), "the cosine, which has no name"
    assert save("everything") == kept(mlp(), W1, W2, X) != []


def test_the_same_as_jax_saves():
    jax = pytest.importorskip("jax")
    import jax.numpy as jnp
    from jax._src.ad_checkpoint import saved_residuals as jax_saved
    from jax.ad_checkpoint import checkpoint_name as jax_name

    def shapes(found):
        return sorted(tuple(aval.shape) for aval, source in found if "argument" not in source)

    for name in ("nothing_saveable", "dots_saveable", "dots_with_no_batch_dims_saveable"):
        theirs = shapes(
            jax_saved(jax.checkpoint(mlp(jax_name, jnp), policy=getattr(jax.checkpoint_policies, name)), W1, W2, X)
        )
        ours = sorted(shape for shape, _ in kept(weft.checkpoint(mlp(), policy=getattr(P, name)), W1, W2, X))
        assert ours == theirs, name
    for make in ("save_only_these_names", "save_any_names_but_these"):
        for names in (("hidden",), ("out",), ("hidden", "out"), ()):
            policy = getattr(jax.checkpoint_policies, make)(*names)
            theirs = shapes(jax_saved(jax.checkpoint(mlp(jax_name, jnp), policy=policy), W1, W2, X))
            policy = getattr(P, make)(*names)
            assert sorted(s for s, _ in kept(weft.checkpoint(mlp(), policy=policy), W1, W2, X)) == theirs, (make, names)


def transformer_like(name, np_, scan):
    def f(ws, x):
        def layer(x, w):
            h = name(np_.tanh(x @ w), "h")
            return x + h * np_.sin(x), (h**2).sum()

        x, ys = scan(layer, x, ws)
        return (x**2).sum() + ys.sum()

    return f


def test_inside_a_loop():
    ws, x = np.random.default_rng(1).normal(size=(6, 3, 3)).astype("float32"), X
    plain = transformer_like(checkpoint_name, wnp, weft.scan)
    shapes = lambda policy: sorted(
        r.shape for r in saved_residuals(weft.checkpoint(plain, policy=policy), ws, x) if r.kind == "value"
    )
    assert shapes(None) == []
    assert shapes(P.dots_saveable) == [(6, 2, 3)]
    [named] = [
        r
        for r in saved_residuals(weft.checkpoint(plain, policy=P.save_only_these_names("h")), ws, x)
        if r.kind == "value"
    ]
    assert named.name == "h" and named.repeats == "6 steps" and named.bytes == 6 * 2 * 3 * 4
    expected = weft.grad(plain)(ws, x)
    for policy in POLICIES.values():
        np.testing.assert_allclose(
            weft.grad(weft.checkpoint(plain, policy=policy))(ws, x), expected, rtol=2e-5, atol=1e-6
        )

    def branchy(x):
        y = weft.cond(x.sum() > 0, lambda: wnp.exp(checkpoint_name(wnp.sin(x), "s")), lambda: wnp.sin(wnp.cos(x)))
        return (y * y).sum()

    keep = weft.checkpoint(branchy, policy=P.save_only_these_names("s"))
    assert [r.shape for r in saved_residuals(keep, X) if r.kind == "value" and r.type != "bool[]"] == [(2, 3)]
    for x in (X, -X, abs(X), -abs(X)):
        np.testing.assert_allclose(weft.grad(keep)(x), weft.grad(branchy)(x), rtol=1e-6)


@pytest.mark.parametrize("policy", POLICIES)
def test_values_and_derivatives_of_every_policy(policy):
    f, plain = weft.checkpoint(mlp(), policy=POLICIES[policy]), mlp()
    rng = np.random.default_rng(2)
    v = [rng.normal(size=a.shape).astype("float32") for a in (W1, W2, X)]
    close = lambda a, b: [
        np.testing.assert_allclose(p, q, rtol=2e-4, atol=2e-5) for p, q in zip(weft.tree.leaves(a), weft.tree.leaves(b))
    ]
    all3 = (0, 1, 2)
    close(f(W1, W2, X), plain(W1, W2, X))
    close(weft.grad(f, all3)(W1, W2, X), weft.grad(plain, all3)(W1, W2, X))
    close(weft.jit(weft.grad(f, all3))(W1, W2, X), weft.grad(plain, all3)(W1, W2, X))
    close(weft.grad(weft.jit(f), all3)(W1, W2, X), weft.grad(plain, all3)(W1, W2, X))
    close(weft.jvp(f, (W1, W2, X), v), weft.jvp(plain, (W1, W2, X), v))
    close(weft.linearize(f, W1, W2, X)[1](*v), weft.jvp(plain, (W1, W2, X), v)[1])
    xs = np.stack([X, 2 * X, -X])
    each = lambda f: weft.vmap(weft.grad(f, all3), in_axes=(None, None, 0))(W1, W2, xs)
    close(each(f), each(plain))
    mapped = lambda f: weft.grad(lambda xs: weft.vmap(f, in_axes=(None, None, 0))(W1, W2, xs).sum())(xs)
    close(mapped(f), mapped(plain))
    twice = lambda f: weft.grad(lambda w: (weft.grad(f)(w, W2, X) * v[0]).sum())(W1)
    close(twice(f), twice(plain))
    close(
        weft.jvp(lambda w: weft.grad(f)(w, W2, X), (W1,), (v[0],)),
        weft.jvp(lambda w: weft.grad(plain)(w, W2, X), (W1,), (v[0],)),
    )
    nested = weft.checkpoint(lambda *a: wnp.sin(f(*a)) * f(*a), policy=POLICIES[policy])
    close(weft.grad(nested, all3)(W1, W2, X), weft.grad(lambda *a: wnp.sin(plain(*a)) * plain(*a), all3)(W1, W2, X))


def test_policies_in_the_program():
    for policy in POLICIES.values():
        if not isinstance(policy, weft.ad_checkpoint.Policy):
            continue
        ir = weft.make_ir(
            weft.grad(weft.checkpoint(lambda x: wnp.sin(wnp.sin(checkpoint_name(x, "h"))), policy=policy))
        )(1.0)
        ir = weft.make_ir(weft.checkpoint(lambda x: wnp.sin(wnp.sin(x)), policy=policy))(1.0)
        again = weft.parse_ir(ir.text)
        assert again == ir and again.eqns[0]["attrs"]["policy"] == policy.text
        assert len(saved_residuals(again, 1.0)) == len(saved_residuals(ir, 1.0))
    quoted = P.save_only_these_names('a"b', "c\\d,e)")
    f = weft.checkpoint(lambda x: wnp.exp(wnp.sin(checkpoint_name(wnp.cos(x), 'a"b'))), policy=quoted)
    assert kept(weft.parse_ir(weft.make_ir(f)(1.0).text), 1.0) == [((), 'a"b')]
    with pytest.raises(ValueError, match=r"'dots' is no policy.*dots_saveable"):
        weft.parse_ir('fn f(x: f32[]) { y = remat[policy="dots"] x (x: f32[]) { z = sin x; return z }; return y }')


def test_recomputation_is_not_merged_away():
    def f(x):
        for _ in range(4):
            x = wnp.sin(x)
        return x

    sines = lambda g: weft.make_ir(weft.value_and_grad(g))(1.0).stage("optimized").count("= sin ")
    assert sines(f) == 4 and sines(weft.checkpoint(f)) == 7
    assert sines(weft.checkpoint(f, prevent_cse=False)) == 4


def test_static_arguments_and_decorators():
    @weft.checkpoint
    def f(x):
        return wnp.sin(x)

    assert float(weft.grad(f)(0.0)) == 1 and f.__name__ == "f"

    def power(x, n, *, kind):
        assert isinstance(n, int) and isinstance(kind, str)
        return x**n if kind == "power" else x * n

    for g in (
        weft.checkpoint(power, static_argnums=1, static_argnames="kind"),
        weft.checkpoint(power, static_argnums=(-1,), static_argnames=("kind",)),
    ):
        assert float(weft.grad(lambda x: g(x, 2, kind="power"))(3.0)) == 6  # noqa: B023
        assert float(weft.grad(lambda x: g(x, 2, kind="times"))(3.0)) == 2  # noqa: B023
    h = weft.checkpoint(policy=P.dots_saveable)(lambda x: x * x)
    assert float(weft.grad(h)(3.0)) == 6
    assert weft.remat is weft.checkpoint


def test_errors():
    with pytest.raises(NotImplementedError, match="static_argnums"):
        weft.checkpoint(wnp.sin, concrete=True)
    with pytest.raises(NotImplementedError, match="one memory"):
        P.save_and_offload_only_these_names(
            names_which_can_be_saved=[],
            names_which_can_be_offloaded=[],
            offload_src="device",
            offload_dst="pinned_host",
        )
    with pytest.raises(NotImplementedError, match="one memory"):
        weft.checkpoint(wnp.sin, policy=P.offload_dot_with_no_batch_dims("device", "pinned_host"))
    with pytest.raises(TypeError, match="call it with the names"):
        weft.checkpoint(wnp.sin, policy=P.save_only_these_names)
    with pytest.raises(TypeError, match="policy is 3"):
        weft.checkpoint(wnp.sin, policy=3)
    with pytest.raises(ValueError, match="is no policy"):
        weft.grad(weft.checkpoint(wnp.sin, policy="some"))(1.0)
    with pytest.raises(TypeError, match="answered 'yes'"):
        weft.grad(weft.checkpoint(lambda x: wnp.sin(wnp.sin(x)), policy=lambda prim, *_, **__: "yes"))(1.0)
    with pytest.raises(ZeroDivisionError):
        weft.grad(weft.checkpoint(lambda x: wnp.sin(wnp.sin(x)), policy=lambda prim, *_, **__: 1 // 0))(1.0)
    with pytest.raises(TypeError, match="the name is a string"):
        checkpoint_name(1.0, 3)
    with pytest.raises(ValueError, match="static_argnums has 4"):
        weft.checkpoint(wnp.sin, static_argnums=4)(1.0)
    with pytest.raises(TypeError, match="prevent_cse"):
        weft.checkpoint(wnp.sin, prevent_cse=None)


def test_saved_by_line(capsys):
    def f(w, x):
        y = wnp.sin(x @ w)  # line A
        return checkpoint_name(wnp.exp(y), "e").sum()

    line = f.__code__.co_firstlineno + 1
    saved = saved_residuals(f, W1, X)
    assert {r.argument for r in saved if r.kind == "argument"} == {"w", "x"}
    values = [r for r in saved if r.kind == "value"]
    assert {r.primitive for r in values} == {"cos", "exp"} and all(r.bytes == 2 * 4 * 4 for r in values)
    [cosine] = [r for r in values if r.primitive == "cos"]
    assert (cosine.line, cosine.function, cosine.transforms) == (line, "test_saved_by_line.<locals>.f", ("jvp",))
    assert cosine.file.endswith("checkpoint_test.py")
    print_saved_residuals(f, W1, X)
    out = capsys.readouterr().out.splitlines()
    assert {"f32[2,3] from the argument x", "f32[3,4] from the argument w"} <= set(out)
    assert f"f32[2,4] output of cos from checkpoint_test.py:{line} (test_saved_by_line.<locals>.f) via jvp" in out
    assert out[-1] == "136 bytes in 4 values"
    symbolic = saved_residuals(f, weft.ShapeDtype(("n", 4), "float32"), weft.ShapeDtype((2, "n"), "float32"))
    assert {r.bytes for r in symbolic} == {"8*n", "16*n", 32}
    [tape] = [r for r in saved_residuals(lambda x: weft.while_loop(lambda c: c < 9, lambda c: c * c, x), 2.0) if r.tape]
    assert tape.bytes == 4 and tape.repeats == "every trip"
    big = wnp.ones(100)
    assert [r.source for r in saved_residuals(lambda x: (x * big).sum(), 2.0)] == ["from a constant"]
