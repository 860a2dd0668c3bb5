"""jit(donate_argnums=, donate_argnames=): memory is reused, donated arrays are gone, and numbers are never wrong."""

import gc
import warnings

import numpy as np
import pytest

import weft
import weft.lax
import weft.numpy as wnp


@pytest.fixture(autouse=True)
def warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def address(x) -> int:
    return np.asarray(x).ctypes.data  # the view is gone when this returns


def fresh(*shape) -> weft.Array:
    return wnp.array(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))


def facts(f) -> dict:
    return f.explain()[0]


def test_an_elementwise_result_takes_the_memory_of_its_argument():
    f = weft.jit(lambda x, y: x * 2 + y, donate_argnums=0)
    x, y = fresh(1000), fresh(1000)
    before = address(x)
    z = f(x, y)
    assert address(z) == before
    assert x.is_deleted() and not y.is_deleted()
    np.testing.assert_array_equal(np.asarray(z), np.arange(1000) * 3)
    assert facts(f)["donated"] == 1 and facts(f)["arena_bytes"] == 0


@pytest.mark.parametrize(
    "update",
    [
        lambda x, i: x.at[3].set(9),
        lambda x, i: x.at[i].set(9),
        lambda x, i: x.at[i].add(9),
        lambda x, i: x.at[2:5].set(9),
        lambda x, i: x.at[wnp.array([1, 3])].add(9),
        lambda x, i: x.at[i].set(9).at[i + 1].set(x.shape[0]).at[0].mul(3),
        lambda x, i: weft.lax.fori_loop(0, 5, lambda k, x: x.at[k].add(i), x),
        lambda x, i: weft.lax.scan(lambda x, k: (x.at[k].set(k), None), x, wnp.arange(4))[0],
    ],
)
def test_updates_copy_nothing(update):
    f = weft.jit(update, donate_argnums=0)
    kept = weft.jit(update)
    x = fresh(4096)
    want = np.asarray(kept(x, 7))
    assert facts(kept)["bytes_copied"] >= 4 * 4096
    before = address(x)
    y = f(x, 7)
    assert address(y) == before
    assert facts(f)["bytes_copied"] < 64
    np.testing.assert_array_equal(np.asarray(y), want)


def test_a_tree_of_arguments_and_results_keeps_its_memory():
    @weft.jit
    def plain(state, g):
        return {"w": state["w"] - 0.1 * g, "m": state["m"] * 0.9 + g, "t": state["t"] + 1}

    step = weft.jit(plain.__wrapped__, donate_argnames="state")
    state = {"w": fresh(8, 8), "m": fresh(8, 8) * 2, "t": wnp.zeros(())}
    g = fresh(8, 8)
    want = plain(state, g)
    addresses = sorted(address(state[k]) for k in ("w", "m"))
    out = step(state, g=g)
    assert sorted(address(out[k]) for k in ("w", "m")) == addresses
    for k in want:
        np.testing.assert_array_equal(np.asarray(out[k]), np.asarray(want[k]))
    for _ in range(3):
        out, want = step(out, g=g), plain(want, g)
    np.testing.assert_array_equal(np.asarray(out["m"]), np.asarray(want["m"]))
    assert [e["donated"] for e in step.explain()] == [3]


def test_arguments_handed_back_in_another_order():
    f = weft.jit(lambda a, b: (b, a), donate_argnums=(0, 1))
    a, b = fresh(10), fresh(10) * 2
    at = address(b), address(a)
    c, d = f(a, b)
    assert (address(c), address(d)) == at
    np.testing.assert_array_equal(np.asarray(c), np.arange(10) * 2)
    np.testing.assert_array_equal(np.asarray(d), np.arange(10))


def test_one_argument_for_two_results():
    f = weft.jit(lambda x: (x, x, x + 1), donate_argnums=0)
    for y, want in zip(f(fresh(10)), (0, 0, 1)):
        np.testing.assert_array_equal(np.asarray(y), np.arange(10) + want)


def test_memory_serves_temporaries():
    def f(x, w):
        for _ in range(3):
            x = wnp.tanh(x @ w)
        return x.sum()

    donating = weft.jit(f, donate_argnums=0)
    w = fresh(64, 64) / 4096
    want = float(weft.jit(f)(fresh(64, 64), w))
    assert float(donating(fresh(64, 64), w)) == want
    kept = weft.jit(f)
    kept(fresh(64, 64), w)
    assert facts(donating)["donated"] == 1
    assert facts(donating)["arena_bytes"] <= facts(kept)["arena_bytes"] - 64 * 64 * 4


def test_using_a_donated_array_says_where_it_went():
    @weft.jit
    def ignore(x):
        return x

    def step(state):
        return {"w": state["w"] + 1}

    f = weft.jit(step, donate_argnums=0)
    state = {"w": fresh(3)}
    f(state)
    x = state["w"]
    for use in (
        lambda: x + 1,
        lambda: x[0],
        lambda: np.asarray(x),
        lambda: memoryview(x),
        lambda: ignore(x),
        lambda: f(state),
        lambda: x.at[0].set(1),
        lambda: x.block_until_ready(),
        lambda: wnp.sum(x),
        lambda: weft.grad(lambda y: y.sum())(x),
        lambda: bool(x[0]),
        lambda: x.__dlpack__(),
        lambda: list(x),
        lambda: len(x),
    ):
        with pytest.raises(
            (RuntimeError, BufferError), match=r"f32\[3\] was donated as argument state\['w'\] of 'step'"
        ) as e:
            use()
        assert "donation_test.py" in str(e.value)
    assert x.shape == (3,) and x.dtype == np.float32 and x.ndim == 1 and x.size == 3 and x.nbytes == 12
    assert repr(x) == str(x) == f"{x}" == "Array<f32[3], deleted>"


def test_delete():
    x = fresh(5)
    view = np.asarray(x)
    x.delete()
    x.delete()
    assert x.is_deleted()
    with pytest.raises(RuntimeError, match=r"deleted by delete\(\)"):
        x + 1
    np.testing.assert_array_equal(view, np.arange(5))


@pytest.mark.parametrize(
    "view",
    [
        np.asarray,
        memoryview,
        np.from_dlpack,
        lambda x: x.__dlpack__(max_version=(1, 0)),
        lambda x: x.__array_interface__,
    ],
)
def test_memory_that_somebody_sees_is_not_given_away(view):
    f = weft.jit(lambda x: x + 1, donate_argnums=0)
    x = fresh(10)
    held = view(x)
    with pytest.warns(UserWarning, match=r"argument x of '<lambda>', f32\[10\], was not donated"):
        y = f(x)
    assert not x.is_deleted()
    np.testing.assert_array_equal(np.asarray(y), np.arange(10) + 1)
    np.testing.assert_array_equal(np.asarray(x), np.arange(10))
    del held


def test_an_array_that_is_not_copied_is_itself():
    x = fresh(10)
    same = wnp.array(x, copy=False)
    assert same is x and wnp.asarray(x) is x
    weft.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert same.is_deleted()


def test_views_that_are_gone_do_not_matter():
    f = weft.jit(lambda x: x + 1, donate_argnums=0)
    x = fresh(10)
    np.asarray(x), memoryview(x), np.from_dlpack(x)
    gc.collect()
    f(x)
    assert x.is_deleted()


def test_foreign_memory_is_never_written():
    f = weft.jit(lambda x: x + 1, donate_argnums=0)
    mine = np.arange(10, dtype=np.float32)
    np.testing.assert_array_equal(np.asarray(f(mine)), np.arange(10) + 1)  # a NumPy array: copied, without a warning
    borrowed = wnp.from_dlpack(mine)
    with pytest.warns(UserWarning, match="was not donated"):
        f(borrowed)
    np.testing.assert_array_equal(mine, np.arange(10))


def test_constants_are_not_written():
    x = fresh(100)
    f = weft.jit(lambda y: x + y, donate_argnums=0)
    np.testing.assert_array_equal(np.asarray(f(fresh(100))), np.arange(100) * 2)
    with pytest.warns(UserWarning, match="shares its memory"):
        y = f(x)
    np.testing.assert_array_equal(np.asarray(y), np.arange(100) * 2)
    np.testing.assert_array_equal(np.asarray(x), np.arange(100))


@pytest.mark.parametrize("number", [3, 5.5, 1j], ids=str)
def test_arrays_of_numbers_have_memory_of_their_own(number):
    # A state of training counts its steps in one.
    first, other = wnp.array(number), wnp.array(number)
    assert first.unsafe_buffer_pointer() != other.unsafe_buffer_pointer()
    result = weft.jit(lambda x: x * 1, donate_argnums=0)(first)
    assert first.is_deleted() and not other.is_deleted() and result == other


def test_passing_an_array_twice_is_an_error():
    x = fresh(4)
    for donate in (0, 1, (0, 1)):
        with pytest.raises(ValueError, match="same array is also passed"):
            weft.jit(lambda a, b: a + b, donate_argnums=donate)(x, x)
    assert not x.is_deleted()


def test_donating_for_nothing_warns_once():
    f = weft.jit(lambda x: x[:1], donate_argnums=0)
    with pytest.warns(UserWarning, match=r"donating argument x of '<lambda>', f32\[10\], brings nothing"):
        f(fresh(10))
    f(fresh(10))


def test_wrong_names():
    def f(x, y):
        return x + y

    with pytest.raises(ValueError, match="donate_argnums has 2, but 'f' takes 2"):
        weft.jit(f, donate_argnums=2)
    with pytest.raises(ValueError, match="donate_argnames has 'z'"):
        weft.jit(f, donate_argnames="z")
    with pytest.raises(ValueError, match="cannot be both static and donated"):
        weft.jit(f, static_argnums=0, donate_argnames="x")


def test_without_effect_inside_other_transforms():
    f = weft.jit(lambda x: x * x, donate_argnums=0)
    x = fresh(10)
    np.testing.assert_array_equal(np.asarray(weft.jit(lambda x: f(x) + f(x))(x)), 2 * np.arange(10) ** 2)
    np.testing.assert_array_equal(np.asarray(weft.vmap(f)(x)), np.arange(10) ** 2)
    weft.grad(lambda x: f(x).sum())(x)
    with weft.disable_jit():
        f(x)
    assert not x.is_deleted()


def test_donated_while_the_function_is_traced():
    x = fresh(5)

    def outer(y):
        x.delete()
        return y * 2

    with pytest.raises(RuntimeError, match=r"deleted by delete\(\)"):
        weft.jit(outer)(x)  # deleted between the look at the arguments and the run


def test_jax_agrees():
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def step(xp):
        def f(s, k):
            a, b = s
            a = a.at[k].set(b.sum())
            b = xp.where(b > a, a, b) + a[::-1]
            return (b, a), (a * b).sum()

        return f

    ours, theirs = weft.jit(step(wnp), donate_argnums=0), jax.jit(step(jnp))
    s = (fresh(16), fresh(16) * 0.5)
    t = tuple(jnp.asarray(np.asarray(a).copy()) for a in s)
    for k in range(5):
        s, x = ours(s, k)
        t, y = theirs(t, k)
        np.testing.assert_allclose(float(x), float(y), rtol=1e-5)
    for a, b in zip(s, t):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5)


def test_everything_is_read_before_memory_is_overwritten():
    f = weft.jit(lambda x, y: (y * 2, x + 1), donate_argnums=0)
    for shape in ((), (3,), (64, 64)):
        x, y = wnp.ones(shape) * 5, wnp.ones(shape) * 7
        a, b = f(x, y)
        np.testing.assert_array_equal(np.asarray(a), np.full(shape, 14))
        np.testing.assert_array_equal(np.asarray(b), np.full(shape, 6))
    # Strided stores: the transposed result of one part in the memory of the other.
    g = weft.jit(lambda x, y: (y.T * 2, x.T + 1, (x + y).sum(1)), donate_argnums=0)
    x, y = fresh(40, 40), fresh(40, 40) * 3
    with pytest.warns(UserWarning, match="brings nothing"):
        a, b, c = g(x, y)
    want = np.arange(1600.0).reshape(40, 40)
    np.testing.assert_array_equal(np.asarray(a), want.T * 6)
    np.testing.assert_array_equal(np.asarray(b), want.T + 1)
    np.testing.assert_allclose(np.asarray(c), (want * 4).sum(1))


def test_softmax_in_place():
    def f(x):
        e = wnp.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    donating, plain = weft.jit(f, donate_argnums=0), weft.jit(f)
    x = fresh(100, 33) / 1000
    want, before = np.asarray(plain(x)), address(x)
    y = donating(x)
    assert address(y) == before
    np.testing.assert_array_equal(np.asarray(y), want)


def test_a_carry_that_starts_in_a_result_leaves_donated_memory_alone():
    """The loop's start lies where the result will be; that is no donated memory which is still to be read."""

    def f(x):
        return weft.vmap(lambda v: weft.scan(lambda c, s: (wnp.tanh(s * s + 0 * c), None), wnp.zeros((2, 2)), v)[0])(x)

    x = fresh(2, 4) / 8
    want = np.tanh(np.asarray(x)[:, -1] ** 2)[:, None, None] * np.ones((1, 2, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = weft.jit(f, donate_argnums=0)(x)
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6)


def test_results_of_one_loop_do_not_share_donated_memory():
    """The count, which nobody reads, and the value are two carries; either fits the memory that is given away."""

    def f(x, y):
        return weft.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, wnp.sin(s[1])), (0, y))[1] * 2 + 0 * y

    want = np.sin(np.sin(np.sin(0.7))) * 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = weft.jit(f, donate_argnums=0)(fresh(3), wnp.array(0.7, dtype="float64"))
    np.testing.assert_allclose(float(got), want, rtol=1e-12)


DONATING = {
    "one": ({"donate_argnums": 0}, {0}),
    "two": ({"donate_argnums": (0, 2)}, {0, 2}),
    "by name": ({"donate_argnames": ("y",)}, {1}),
    "beside a static one": ({"donate_argnums": 2, "static_argnames": "n"}, {2}),
}


@pytest.mark.parametrize("name", DONATING)
def test_programs_that_are_lowered_donate_as_the_function_does(name):
    """Looked at and compiled ahead of its calls, it is the program that a call runs."""
    options, given = DONATING[name]
    f = weft.jit(lambda x, y, z, n=2: tuple(v * n for v in (x, y, z)), **options)
    static = {"n": 3} if "static_argnames" in options else {}
    lowered = f.lower(fresh(500), fresh(500), z=fresh(500), **static)
    buffers = lowered.as_text("buffers")
    assert buffers.count("in place, taken") == len(given)
    assert buffers.count("the operand is not ours to write") == 3 - len(given)
    assert "the operand is not ours to write" in weft.jit(lambda x: x * 2).lower(fresh(500)).as_text("buffers")
    before = weft._weft.programs_compiled()
    compiled = lowered.compile()
    arguments = [fresh(500) for _ in range(3)]
    addresses = [address(x) for x in arguments]
    results = compiled(arguments[0], arguments[1], z=arguments[2])
    assert weft._weft.programs_compiled() == before + 1
    for i, (x, result) in enumerate(zip(arguments, results)):
        assert x.is_deleted() == (i in given) == (address(result) == addresses[i])
        np.testing.assert_array_equal(np.asarray(result), np.arange(500) * static.get("n", 2))


@pytest.mark.parametrize("jax_mode", [False, True])
@pytest.mark.parametrize("where", [(0,), (1,), (0, 1), (0, 2), (0, 1, 2)])
def test_an_array_that_is_donated_and_passed_again(jax_mode, where):
    f = weft.jit(lambda x, y, z: (x + 1, y + 1, z + 1), donate_argnums=where)
    x = fresh(3)
    arguments = [x if i in where or i == 1 else fresh(3) for i in range(3)]
    if sum(a is x for a in arguments) == 1:
        arguments[2] = x
    with weft.jax_semantics(jax_mode), pytest.raises(RuntimeError if jax_mode else ValueError, match="is donated, and"):
        f(*arguments)
    assert not x.is_deleted()
