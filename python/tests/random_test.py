"""The same numbers as jax.random for the same key."""

import numpy as np
import pytest

import weft
import weft.numpy as wnp
import weft.random as wr

jax = pytest.importorskip("jax")


@pytest.fixture(autouse=True)
def partitionable():
    with jax.threefry_partitionable(True):
        yield


@pytest.mark.parametrize("seed", [0, 1, 42, 2**31 - 1])
def test_keys_and_bits(seed):
    jk, wk, wp = jax.random.key(seed), wr.key(seed), wr.PRNGKey(seed)
    np.testing.assert_array_equal(np.asarray(wr.key_data(wk)), np.asarray(jax.random.key_data(jk)))
    np.testing.assert_array_equal(np.asarray(wp), np.asarray(jax.random.PRNGKey(seed)))
    np.testing.assert_array_equal(
        np.asarray(wr.key_data(wr.split(wk, 3))), np.asarray(jax.random.key_data(jax.random.split(jk, 3)))
    )
    np.testing.assert_array_equal(np.asarray(wr.split(wp)), np.asarray(jax.random.split(jax.random.PRNGKey(seed))))
    np.testing.assert_array_equal(
        np.asarray(wr.fold_in(wp, 7)), np.asarray(jax.random.fold_in(jax.random.PRNGKey(seed), 7))
    )
    np.testing.assert_array_equal(
        np.asarray(wr.fold_in(wp, 2**32 - 1)), np.asarray(jax.random.fold_in(jax.random.PRNGKey(seed), 2**32 - 1))
    )
    for shape in [(), (1,), (7,), (3, 5)]:
        np.testing.assert_array_equal(np.asarray(wr.bits(wk, shape)), np.asarray(jax.random.bits(jk, shape)))
        np.testing.assert_array_equal(np.asarray(wr.uniform(wk, shape)), np.asarray(jax.random.uniform(jk, shape)))
        # JAX's compiler may fuse the product and the sum of the range.
        np.testing.assert_allclose(
            np.asarray(wr.uniform(wp, shape, minval=-2.0, maxval=3.0)),
            np.asarray(jax.random.uniform(jk, shape, minval=-2.0, maxval=3.0)),
            atol=5e-7,
        )
        np.testing.assert_array_equal(
            np.asarray(wr.randint(wk, shape, -3, 100)), np.asarray(jax.random.randint(jk, shape, -3, 100))
        )
        np.testing.assert_allclose(
            np.asarray(wr.normal(wk, shape)), np.asarray(jax.random.normal(jk, shape)), rtol=5e-6, atol=1e-7
        )
        np.testing.assert_array_equal(
            np.asarray(wr.bernoulli(wk, 0.3, shape)), np.asarray(jax.random.bernoulli(jk, 0.3, shape))
        )


def test_other_widths():
    jk, wk = jax.random.key(3), wr.key(3)
    for dtype in ["uint8", "uint16"]:
        np.testing.assert_array_equal(
            np.asarray(wr.bits(wk, (9,), dtype)), np.asarray(jax.random.bits(jk, (9,), dtype))
        )
    np.testing.assert_array_equal(
        np.asarray(wr.uniform(wk, (9,), "float16")), np.asarray(jax.random.uniform(jk, (9,), "float16"))
    )
    with jax.enable_x64(True):
        np.testing.assert_array_equal(
            np.asarray(wr.uniform(wk, (9,), "float64")), np.asarray(jax.random.uniform(jk, (9,), "float64"))
        )
        np.testing.assert_array_equal(
            np.asarray(wr.bits(wk, (9,), "uint64")), np.asarray(jax.random.bits(jk, (9,), "uint64"))
        )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_derivatives_to_the_limits_of_truncated_normal_numbers(dtype):
    def total(lib, key):
        return lambda limits: lib.truncated_normal(key, limits[0], limits[1], (200,), dtype).sum()

    limits = np.array([-1, 2], dtype)
    with jax.enable_x64(True):
        jax_total = total(jax.random, jax.random.key(0))
        first, second = np.asarray(jax.grad(jax_total)(limits)), np.asarray(jax.hessian(jax_total)(limits))
    ours = total(wr, wr.key(0))
    np.testing.assert_allclose(np.asarray(weft.grad(ours)(limits)), first, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(weft.jit(weft.jacfwd(ours))(limits)), first, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(weft.hessian(ours)(limits)), second, rtol=1e-4)


def test_derived():
    jk, wk = jax.random.key(5), wr.key(5)
    np.testing.assert_array_equal(np.asarray(wr.permutation(wk, 20)), np.asarray(jax.random.permutation(jk, 20)))
    x = np.arange(12.0, dtype=np.float32).reshape(4, 3)
    np.testing.assert_array_equal(np.asarray(wr.permutation(wk, x)), np.asarray(jax.random.permutation(jk, x)))
    np.testing.assert_allclose(
        np.asarray(wr.exponential(wk, (50,))), np.asarray(jax.random.exponential(jk, (50,))), rtol=1e-5
    )
    np.testing.assert_allclose(
        np.asarray(wr.gumbel(wk, (50,))), np.asarray(jax.random.gumbel(jk, (50,))), rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(
        np.asarray(wr.truncated_normal(wk, -1.0, 2.0, (50,))),
        np.asarray(jax.random.truncated_normal(jk, -1.0, 2.0, (50,))),
        rtol=1e-4,
        atol=1e-6,
    )
    logits = np.log(np.float32([0.1, 0.2, 0.7]))
    np.testing.assert_array_equal(
        np.asarray(wr.categorical(wk, logits, shape=(40,))), np.asarray(jax.random.categorical(jk, logits, shape=(40,)))
    )
    np.testing.assert_array_equal(np.asarray(wr.choice(wk, 10, (6,))), np.asarray(jax.random.choice(jk, 10, (6,))))


def test_under_transforms():
    keys = wr.split(wr.key(0), 4)
    both = weft.vmap(lambda k: wr.normal(k, (3,)))(keys)
    one = weft.jit(lambda k: wr.normal(k, (3,)))
    for i in range(4):
        np.testing.assert_array_equal(np.asarray(both[i]), np.asarray(one(keys[i])))


def test_logits_broadcast_to_the_shape_that_is_drawn():
    logits = np.log(np.array([[0.1, 0.2, 0.3, 0.4]], "float32"))
    got = wr.categorical(wr.key(3), logits, shape=(2, 5))
    np.testing.assert_array_equal(
        np.asarray(got), np.asarray(jax.random.categorical(jax.random.key(3), logits, shape=(2, 5)))
    )


def test_a_key_is_shown_by_its_words():
    assert repr(wr.key(7)) == str(wr.key(7)) == f"{wr.key(7)}" == "Array(shape=(), dtype=key) of the words\n[0 7]"


def test_errors():
    with pytest.raises(TypeError, match="key"):
        wr.normal(0, (3,))
    with pytest.raises(TypeError, match="one integer"):
        wr.key(1.5)
    with pytest.raises(TypeError, match="vmap"):
        wr.normal(wr.split(wr.key(0)), (3,))


# Distributions by rejection: a parameter for which no candidate is ever accepted must not keep them drawing.
OUTSIDE = {
    "gamma": lambda k, v: wr.gamma(k, v),
    "loggamma": lambda k, v: wr.loggamma(k, v),
    "beta": lambda k, v: wr.beta(k, v, 1.0),
    "beta of b": lambda k, v: wr.beta(k, 1.0, v),
    "dirichlet": lambda k, v: wr.dirichlet(k, wnp.stack([v, wnp.ones_like(v)], -1))[..., 0],
    "chisquare": lambda k, v: wr.chisquare(k, v),
    "t": lambda k, v: wr.t(k, v, v.shape),
    "f": lambda k, v: wr.f(k, v, 3.0),
    "generalized_normal": lambda k, v: wnp.abs(wr.generalized_normal(k, v, v.shape)),
    "poisson": lambda k, v: wr.poisson(k, v),
    "binomial of n": lambda k, v: wr.binomial(k, v, 0.5),
    "binomial of p": lambda k, v: wr.binomial(k, 7, v),
}
NAN, INF = float("nan"), float("inf")
# For -1, NaN, inf, 0 and 3, which is an ordinary one ("in": any number will do).
WANTED = {
    "gamma": [NAN, NAN, INF, 0, "in"],
    "loggamma": [NAN, NAN, INF, -INF, "in"],
    "beta": [NAN, NAN, NAN, 0, "in"],
    "beta of b": [NAN, NAN, NAN, 1, "in"],
    "dirichlet": [NAN, NAN, NAN, 0, "in"],
    "chisquare": [NAN, NAN, INF, 0, "in"],
    "t": [NAN, NAN, NAN, NAN, "in"],
    "f": [NAN, NAN, NAN, NAN, "in"],
    "generalized_normal": [NAN, NAN, 1, INF, "in"],
    "poisson": [-1, -1, -1, 0, "in"],
    "binomial of n": [NAN, NAN, INF, 0, "in"],
    "binomial of p": [NAN, NAN, NAN, 0, NAN],
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_parameters_outside_end_at_once(name):
    values = wnp.array([-1.0, np.nan, np.inf, 0.0, 3.0])
    for draw in (OUTSIDE[name], weft.jit(OUTSIDE[name])):
        drawn = np.asarray(draw(wr.key(0), values))
        for number, wanted in zip(drawn, WANTED[name], strict=True):
            if wanted == "in":
                assert np.isfinite(number)
            else:
                np.testing.assert_equal(float(number), wanted)


def test_keys_are_compared_word_by_word():
    a, b = weft.random.split(weft.random.key(0), 3), weft.random.split(weft.random.key(1), 3)
    theirs = jax.random.split(jax.random.key(0), 3), jax.random.split(jax.random.key(1), 3)
    mixed, same = (
        weft.random.wrap_key_data(wnp.stack([weft.random.key_data(a)[0], *weft.random.key_data(b)[1:]])),
        a[:1],
    )
    for run in (lambda f: f, weft.jit):
        assert run(lambda x, y: x == y)(a, a).tolist() == (theirs[0] == theirs[0]).tolist() == [True] * 3
        assert run(lambda x, y: x == y)(a, b).tolist() == (theirs[0] == theirs[1]).tolist() == [False] * 3
        assert run(lambda x, y: x == y)(a, mixed).tolist() == [True, False, False]
        assert run(lambda x, y: x != y)(a, mixed).tolist() == [False, True, True]
        assert run(lambda x, y: wnp.equal(x, y))(a, same).tolist() == [True, False, False]
        assert bool(run(lambda x: x == x)(weft.random.key(7)))
    assert weft.vmap(lambda x, y: x == y)(a, mixed).tolist() == [True, False, False]
    with pytest.raises(TypeError):
        a < b  # noqa: B015
    with pytest.raises(TypeError):
        a == 1  # noqa: B015


SHAPES = [(257,), (300, 2), (3, 1, 513), (1 << 20,), (256,), (0, 400)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_numbers_outside_of_jit_are_those_inside(shape, dtype):
    """Outside, one program serves all sizes."""
    with weft.enable_x64(dtype == "float64"):
        for key in (wr.key(3), wr.PRNGKey(3)):
            for draw in (
                lambda k: wr.normal(k, shape, dtype),
                lambda k: wr.uniform(k, shape, dtype),
                lambda k: wr.uniform(k, shape, dtype, -1.5, 2.0),
                lambda k: wr.truncated_normal(k, -1.0, 2.0, shape, "float32"),
                lambda k: wr.bits(k, shape, "uint64" if dtype == "float64" else "uint8"),
                lambda k: wr.bits(k, shape, "uint16"),
            ):
                outside, inside = draw(key), weft.jit(draw)(key)
                assert outside.shape == shape and outside.dtype == inside.dtype
                np.testing.assert_array_equal(np.asarray(outside), np.asarray(inside))


def test_random_numbers_of_another_size_compile_nothing():
    key, other = wr.key(0), wr.key(1)
    for draw in (wr.normal, wr.bits, wr.exponential, lambda key, shape: wr.uniform(key, shape, minval=-1.0)):
        draw(key, (30, 100))
        compiled = weft._weft.programs_compiled()
        draw(other, (20, 101)), draw(other, (1013,))
        assert weft._weft.programs_compiled() == compiled


def test_derivatives_of_the_ends_of_an_interval():
    unit = wr.uniform(wr.key(0), (400,))
    slope = weft.grad(lambda high: wr.uniform(wr.key(0), (400,), minval=0.0, maxval=high).sum())(2.0)
    np.testing.assert_allclose(slope, unit.sum(), rtol=1e-5)


def test_float_is_what_the_setting_says_however_often_it_changes():
    for wide in (False, True, False):
        with weft.enable_x64(wide):
            for draw in (wr.uniform, wr.normal):
                assert draw(wr.key(0), (400,)).dtype == ("float64" if wide else "float32")
    with pytest.raises(TypeError):
        wr.uniform(wr.key(0), (400,), "int32")
