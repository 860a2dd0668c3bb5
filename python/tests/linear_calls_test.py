"""linear_call: linear functions that come with their transpose, under every transform, beside JAX."""

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft.custom_derivatives import linear_call


def divide(x, y):
    return linear_call(lambda y, x: x / y, lambda y, ct: ct / y, y, x)


def scaled(tree, c):
    """Two results of two linear arguments and two residuals."""
    fun = lambda r, l: {"sum": r[0] * l[0] + l[1], "other": r[1] @ l[1]}
    back = lambda r, ct: (r[0] * ct["sum"], ct["sum"] + r[1].T @ ct["other"])
    return linear_call(fun, back, c, tree)


def test_values_and_derivatives_in_both_modes():
    x, y = np.float32(6), np.float32(3)
    for compute in (lambda f: f, weft.jit):
        assert compute(divide)(x, y) == 2
        assert compute(weft.grad(divide))(x, y) == np.float32(1) / 3
        assert (
            compute(lambda x, t: weft.jvp(lambda x: divide(x, y), (x,), (t,))[1])(x, np.float32(2)) == np.float32(2) / 3
        )
        np.testing.assert_allclose(compute(weft.grad(divide, argnums=1))(x, y), -6 / 9, rtol=1e-6)
        np.testing.assert_allclose(
            compute(weft.grad(weft.grad(divide, argnums=1), argnums=1))(x, y), 12 / 27, rtol=1e-6
        )
        (transposed,) = compute(lambda ct: weft.linear_transpose(lambda x: divide(x, y), x)(ct))(np.float32(5))
        np.testing.assert_allclose(transposed, 5 / 3, rtol=1e-6)


def test_trees_of_two_and_three():
    rng = np.random.default_rng(0)
    c = (rng.standard_normal(3).astype(np.float32), rng.standard_normal((2, 3)).astype(np.float32))
    tree = tuple(rng.standard_normal((2, 3)).astype(np.float32))
    plain = lambda tree, c: {"sum": c[0] * tree[0] + tree[1], "other": c[1] @ tree[1]}
    total = lambda f: lambda tree, c: sum(wnp.sum(wnp.sin(leaf)) for leaf in weft.tree.leaves(f(tree, c)))
    for argnums in (0, 1):
        for transform in (lambda f: f, weft.jit, lambda f: weft.jit(weft.checkpoint(f))):
            got = transform(weft.grad(total(scaled), argnums))(tree, c)
            want = weft.grad(total(plain), argnums)(tree, c)
            weft.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), got, want)
    # Batched in one, in the other, and in both; twice.
    many = weft.tree.map(lambda v: np.stack([v, 2 * v, -v]), (tree, c))
    for axes in ((0, None), (None, 0), (0, 0)):
        given = tuple(m if a == 0 else o for m, o, a in zip(many, (tree, c), axes))
        for f in (lambda g: g, weft.grad):
            got = weft.jit(weft.vmap(f(total(scaled)), in_axes=axes))(*given)
            want = weft.vmap(f(total(plain)), in_axes=axes)(*given)
            weft.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), got, want)


def test_the_given_transpose_is_used():
    """In reverse mode, in loops and branches too; what both capture counts as residuals."""
    scale = wnp.array(2.0)

    def f(x):
        return linear_call(lambda _, x: scale * x, lambda _, ct: 100 * scale * ct, (), x)

    assert weft.jit(f)(3.0) == 6 and weft.jit(weft.grad(f))(3.0) == 200
    looped = lambda x: weft.scan(lambda c, _: (f(c), None), x, None, length=3)[0]
    assert weft.jit(looped)(1.0) == 8 and weft.jit(weft.grad(looped))(1.0) == 200**3
    branch = lambda x: weft.cond(x > 0, f, lambda x: x, x)
    assert weft.jit(weft.grad(branch))(1.0) == 200 and weft.jit(weft.grad(branch))(-1.0) == 1
    text = weft.make_ir(weft.grad(looped))(1.0).text
    assert weft.parse_ir(text).text == text


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: linear_call(lambda r, x: x, lambda r, ct: ct, (), 1), "linear_args has i32"),
        (lambda: linear_call(lambda r, x: x > 0, lambda r, ct: ct, (), 1.0), "returns bool"),
        (
            lambda: linear_call(lambda r, x: x, lambda r, ct: (ct, ct), (), 1.0),
            "fun_transpose returns .*linear_args is",
        ),
        (lambda: linear_call(lambda r, x: x, lambda r, ct: wnp.ones(3), (), 1.0), "where linear_args has f32"),
        (lambda: linear_call(lambda x: x, lambda r, ct: ct, (), 1.0), "positional argument"),
        (lambda: linear_call(3, lambda r, ct: ct, (), 1.0), "fun"),
    ],
)
def test_what_does_not_fit(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_as_in_jax():
    jax = pytest.importorskip("jax")
    from jax.custom_derivatives import linear_call as theirs

    f = lambda call: lambda x, y: call(lambda y, x: x / y, lambda y, ct: ct / y, y, x)
    for transform in ("grad", "value_and_grad"):
        got = getattr(weft, transform)(f(linear_call))(6.0, 3.0)
        want = getattr(jax, transform)(f(theirs))(6.0, 3.0)
        np.testing.assert_array_equal(got, want)
