"""What went wrong once for a JAX user: captures of custom rules, effects that happen twice, numbers beside arrays."""

import contextlib
import functools
import io

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft._core.closures import traced_values

A = np.arange(1, 13, dtype=np.float32).reshape(3, 4)


def printed(function, *args) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        function(*args)
    return out.getvalue()


# --- Numbers beside arrays --------------------------------------------------------------------------------------------

PARTNERS = [
    (p["name"], place)
    for p in weft._weft.primitives()
    if p["elementwise"] and p["num_operands"] == 2 and p["name"] not in ("complex", "nextafter")
    for place in (0, 1)
]


@pytest.mark.parametrize("name,place", PARTNERS)
def test_derivatives_beside_a_number(name, place):
    """A number beside an array has the derivative of an array of that number."""
    bind = weft._weft.bind_elementwise

    def with_number(x):
        return bind(name, (x, 0.75) if place == 0 else (0.75, x), {})

    def with_array(x):
        full = wnp.full(x.shape, 0.75, "float32")
        return bind(name, (x, full) if place == 0 else (full, x), {})

    try:
        inexact = np.issubdtype(with_number(A).dtype, np.floating)
    except TypeError:
        return  # not for floats
    if inexact:
        for transform in (
            weft.grad,
            lambda f: weft.jit(weft.grad(f)),
            lambda f: weft.grad(lambda x: weft.grad(f)(x).sum()),
        ):
            got, want = (transform(lambda x, f=f: f(x).sum())(A) for f in (with_number, with_array))
            np.testing.assert_allclose(got, want, rtol=1e-5)


def test_index_made_by_a_full_reduction():
    f = lambda s, v: v[wnp.sum((s < 0.5).astype("int32"))]
    s = np.array([0.1, 0.2, 0.7, 0.9], np.float32)
    assert weft.jit(f)(s, np.arange(4.0, dtype=np.float32)) == 2.0


def test_random_numbers_from_a_key_that_is_known_inside_jit():
    draw = lambda x: weft.random.normal(weft.random.key(3), x.shape) + 0 * x
    np.testing.assert_array_equal(weft.jit(draw)(A), draw(A))


# --- Custom rules that capture ----------------------------------------------------------------------------------------


def scaled_jvp(y):
    @weft.custom_jvp
    def f(x):
        return x * y.sum()

    f.defjvp(lambda p, t: (f(*p), t[0] * y.sum() * 10))
    return f


def scaled_vjp(y):
    @weft.custom_vjp
    def f(x):
        return x * y.sum()

    f.defvjp(lambda x: (x * y.sum(), None), lambda _, ct: (ct * y.sum() * 10,))
    return f


@pytest.mark.parametrize("make", [scaled_jvp, scaled_vjp])
def test_rules_capture_large_arrays_and_traced_values(make):
    big = wnp.arange(1000.0)
    total = 1000 * 999 / 2
    assert make(big)(2.0) == 2 * total
    assert weft.grad(make(big))(2.0) == 10 * total
    assert weft.jit(weft.grad(make(big)))(2.0) == 10 * total
    traced = lambda y: weft.grad(make(y))(2.0)
    assert weft.jit(traced)(big) == 10 * total
    np.testing.assert_allclose(weft.vmap(traced)(A), 10 * A.sum(1))
    np.testing.assert_allclose(weft.jit(weft.vmap(traced))(A), 10 * A.sum(1))
    looped = lambda y: weft.scan(lambda c, _: (c + weft.grad(make(y))(c), None), 0.0, None, length=3)[0]
    assert weft.jit(looped)(big) == 30 * total


@pytest.mark.parametrize("make", [scaled_jvp, scaled_vjp])
def test_derivatives_with_respect_to_captures_are_an_error(make):
    with pytest.raises(weft.DerivativeError, match="captured"):
        weft.grad(lambda y: make(y)(2.0))(wnp.asarray(A))


def test_nondiff_argument_may_capture_traced_values():
    @functools.partial(weft.custom_vjp, nondiff_argnums=(0,))
    def apply(f, x):
        return f(x)

    apply.defvjp(lambda f, x: (f(x), x), lambda f, x, ct: (ct * f(x) * 2,))
    at = weft.jit(lambda y: weft.grad(lambda x: apply(lambda z: z * y, x))(3.0))
    assert at(5.0) == 30.0


class Guarded:
    """Says itself what attributes it has, as modules of libraries do."""

    def __init__(self, value):
        object.__setattr__(self, "value", value)

    def __getattribute__(self, name):
        raise AssertionError(f"asked for {name}")


class Proxy:
    """Is of the class of what it stands for."""

    __class__ = property(lambda self: type(self.whole))
    __closure__ = property(lambda self: self.whole.__closure__)
    __defaults__ = __kwdefaults__ = None

    def __init__(self, whole):
        self.whole = whole


@pytest.mark.parametrize(
    "hold", [Guarded, lambda y: [Guarded({"a": (y,)})], lambda y: Proxy(lambda: y), lambda y: {1: y}]
)
def test_captures_are_found_without_running_code_of_their_holders(hold):
    found = []

    def f(y):
        found.append(len(traced_values(functools.partial(print, hold(y)), [hold(3.0)])))
        return y

    weft.make_ir(f)(1.0)
    assert found == [1]


# --- Effects ----------------------------------------------------------------------------------------------------------


def test_a_demanded_callback_runs_once():
    calls = []

    def callback(x):
        calls.append(float(x))
        return np.asarray(x) * 2

    def f(x):
        first = weft.io_callback(callback, weft.ShapeDtype((), "float32"), weft.stop_gradient(x) + 1)
        y = weft.io_callback(callback, weft.ShapeDtype((), "float32"), weft.stop_gradient(x))
        return y * x + first if y > 3 else x

    value, gradient = weft.value_and_grad(f)(2.0)
    assert calls == [3.0, 2.0]  # in their order, and once
    assert (value, gradient) == (14.0, 4.0)
    with pytest.raises(weft.TracerError, match="io_callback"):
        weft.jit(lambda x: weft.grad(f)(3.0) * x)(1.0)


def test_a_demanded_callback_runs_once_a_call_of_a_recorded_function():
    calls = []

    def callback(x):
        calls.append(float(x))
        return np.asarray(x)

    def f(x):
        y = weft.io_callback(callback, weft.ShapeDtype((), "float32"), x)
        return x if y > 0 else -x

    recorded = weft.jit(f, capture="auto")
    assert [float(recorded(x)) for x in (1.0, 1.0, -2.0)] == [1.0, 1.0, 2.0]
    assert calls == [1.0, 1.0, -2.0]
    slope = weft.jit(weft.grad(lambda x: x * f(weft.stop_gradient(x))), capture="auto")
    calls.clear()
    assert [float(slope(x)) for x in (1.0, 1.0, -2.0)] == [1.0, 1.0, 2.0]
    assert calls == [1.0, 1.0, -2.0]


def test_prints_before_a_demanded_callback_come_first():
    def f(x):
        weft.debug.print("before {}", x)
        y = weft.io_callback(lambda v: (print("called"), np.asarray(v))[1], weft.ShapeDtype((), "float32"), x)
        weft.debug.print("after {}", x)
        return x if float(y) > 0 else -x

    want = "before 1.5\ncalled\nafter 1.5\n"
    for x in (1.5, np.float32(1.5), wnp.float32(1.5)):
        assert printed(weft.vmap(lambda a, x: a * f(x), in_axes=(0, None)), A[0], x) == want
    assert printed(weft.vmap(lambda a: a * f(1.5)), A[0]) == want


def test_debug_print_formats():
    rng = np.random.default_rng(0)
    numbers = [0.0, 1.5, -2.25, 1234567.891, 1e-7, float("nan"), float("inf"), -3e20, 0.1]
    for _ in range(200):
        spec = "".join(
            rng.choice(o)
            for o in (
                ["", "<", "^", ">", "*<", "=", "0>"],
                ["", "+", " ", "-"],
                ["", "0"],
                ["", "5", "12"],
                ["", ".0", ".2", ".5"],
                list("feg%FEG"),
            )
        )
        x = float(np.float32(rng.choice(numbers)))
        assert printed(weft.debug.print, "{:" + spec + "}", x) == format(x, spec) + "\n", (spec, x)
        spec = "".join(rng.choice(o) for o in (["", "<", "^", "*>"], ["", "+"], ["", "0"], ["", "9"], list("dxXbo")))
        n = int(rng.choice([0, 5, -7, 123456]))
        assert printed(weft.debug.print, "{:" + spec + "}", n) == format(n, spec) + "\n", (spec, n)
    show = weft.jit(lambda x: weft.debug.print("{x:.1f} {} {{}}", 3, x=x[0, :2]))
    assert printed(show, A) == "[1.0 2.0] 3 {}\n"
    for bad, error in [("{:zz}", ValueError), ("{} {}", IndexError), ("{y}", KeyError), ("{2}", IndexError)]:
        with pytest.raises(error):
            weft.debug.print(bad, 1.0)


# --- Places in arrays -------------------------------------------------------------------------------------------------


def test_at_out_of_bounds_with_known_indices():
    x = wnp.arange(4.0)
    np.testing.assert_array_equal(x.at[9].set(1.0), x)
    np.testing.assert_array_equal(x.at[-9].add(1.0), x)
    assert x.at[9].get() == 3.0
    assert x.at[9].get(mode="fill", fill_value=-1) == -1.0
    assert np.isnan(x.at[5].get(mode="fill"))


def test_at_with_a_mask_inside_jit():
    x = np.arange(4, dtype=np.float32)
    m = np.arange(8, dtype=np.float32).reshape(4, 2)
    both = lambda f: (weft.jit(f)(x, m), f(wnp.asarray(x), wnp.asarray(m)))
    for f in [
        lambda x, m: x.at[x > 1].set(7.0),
        lambda x, m: x.at[x > 1].add(1),
        lambda x, m: x.at[x > 1].multiply(2.0),
        lambda x, m: x.at[x > 1].max(2.5),
        lambda x, m: x.at[x > 1].apply(wnp.sqrt),
        lambda x, m: m.at[x > 1].set(wnp.array([1.0, 2.0])),
        lambda x, m: m.at[m > 3].min(0),
    ]:
        inside, outside = both(f)
        np.testing.assert_allclose(inside, outside)
    with pytest.raises(TypeError, match="where"):
        weft.jit(lambda x: x.at[x > 1].set(wnp.ones(2)))(x)


def test_assignment_says_what_to_write():
    with pytest.raises(TypeError, match=r"x\.at\[index\]\.set"):
        wnp.ones(3)[0] = 1  # type: ignore[index]


# --- Control flow without compilation, and programs ahead of time -----------------------------------------------------


def test_disable_jit_runs_control_flow_in_python():
    seen = []

    def step(carry, x):
        seen.append(float(x))
        return carry + x if x > 1 else carry, -x

    with weft.disable_jit():
        total, ys = weft.scan(step, 0.0, wnp.arange(4.0), reverse=True)
        assert weft.while_loop(lambda c: bool(c < 10), lambda c: c * 2 if c > 0 else c, 1) == 16
        assert weft.cond(wnp.array(False), lambda: 1, lambda: 2) == 2
        assert weft.switch(7, [lambda: 1, lambda: 2]) == 2
        assert weft.fori_loop(0, 3, lambda i, c: c + int(i), 0) == 3
    assert seen == [3.0, 2.0, 1.0, 0.0] and total == 5.0
    np.testing.assert_array_equal(ys, [0, -1, -2, -3])


OF_UNKNOWN_VALUES = {
    "while_loop": lambda x: weft.while_loop(lambda c: c < 10, lambda c: c * 2, x),
    "cond": lambda x: weft.cond(x > 1.5, lambda y: y * 2, lambda y: y * 3, x),
    "switch": lambda x: weft.switch((x > 1.5).astype("int32"), [lambda y: y * 3, lambda y: y * 2], x),
    "fori_loop": lambda x: weft.fori_loop(0, (x * 2).astype("int32"), lambda i, c: c * 2, x),
    "scan of a cond": lambda x: weft.scan(
        lambda c, y: (weft.cond(c > 2, lambda c: c * 2, lambda c: c + y, c), None), x, wnp.ones(3)
    )[0],
}


@pytest.mark.parametrize("name", OF_UNKNOWN_VALUES)
def test_disable_jit_leaves_to_the_program_what_python_cannot_decide(name):
    f = OF_UNKNOWN_VALUES[name]
    x, xs = wnp.float32(2.0), wnp.arange(1.0, 3.0)
    ways = {
        "vmap": lambda: weft.vmap(f)(xs),
        "grad": lambda: weft.grad(f)(x),
        "grad of vmap": lambda: weft.grad(lambda v: weft.vmap(f)(v).sum())(xs),
        "vmap of grad": lambda: weft.vmap(weft.grad(f))(xs),
        "jvp": lambda: wnp.stack(weft.jvp(f, (x,), (x,))),
        "eval_shape": lambda: wnp.zeros(weft.eval_shape(f, x).shape),
        "make_ir": lambda: len(str(weft.make_ir(f)(x))) > 0,
    }
    for way, run in ways.items():
        want = run()
        with weft.disable_jit():
            np.testing.assert_array_equal(run(), want, err_msg=way)


def test_lower_and_compile():
    f = weft.jit(lambda x, n: {"a": x**n}, static_argnums=1)
    compiled = f.lower(A, 2).compile()
    np.testing.assert_array_equal(compiled(A)["a"], A**2)
    assert "kernel" in compiled.as_text() and "fn" in f.lower(A, 2).as_text()
    with pytest.raises(TypeError, match=r"f32\[3,4\], got f32\[2\]"):
        compiled(A[0, :2])


def test_known_bounds_of_a_loop_differentiate():
    n = wnp.array(3)
    assert weft.grad(lambda x: weft.fori_loop(0, n, lambda i, c: c * x, 1.0))(2.0) == 12.0


def test_messages_tell_lambdas_apart():
    with pytest.raises(TypeError, match=r"result of true_fun is f32\[3,4\], of false_fun f32\[\]"):
        weft.cond(True, lambda x: x, lambda x: x.sum(), A)
    with pytest.raises(TypeError, match="branch 1"):
        weft.switch(0, [lambda x: x, lambda x: (x, x)], A)
    with pytest.raises(weft.TracerError, match="static_argnums"):
        weft.jit(lambda n: wnp.arange(n))(3)


# --- Distributions, beside SciPy --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "draw,cdf",
    [
        (lambda k, s: weft.random.gamma(k, 0.4, s), ("gamma", (0.4,))),
        (lambda k, s: weft.random.gamma(k, 3.0, s), ("gamma", (3.0,))),
        (lambda k, s: weft.random.beta(k, 2.0, 0.7, s), ("beta", (2.0, 0.7))),
        (lambda k, s: weft.random.chisquare(k, 5.0, s), ("chi2", (5.0,))),
        (lambda k, s: weft.random.t(k, 4.0, s), ("t", (4.0,))),
        (lambda k, s: weft.random.dirichlet(k, wnp.array([1.0, 2.0, 3.0]), s)[..., 1], ("beta", (2.0, 4.0))),
        (lambda k, s: weft.random.ball(k, 2, shape=s)[..., 0], ("semicircular", ())),
        (lambda k, s: weft.random.f(k, 5.0, 7.0, s), ("f", (5.0, 7.0))),
        (lambda k, s: weft.random.generalized_normal(k, 1.5, s), ("gennorm", (1.5,))),
        (lambda k, s: weft.random.wald(k, 2.0, s), ("invgauss", (2.0,))),
        (lambda k, s: abs(weft.random.double_sided_maxwell(k, 1.0, 2.0, s) - 1.0), ("maxwell", (0.0, 2.0))),
    ],
)
def test_distributions(draw, cdf):
    stats = pytest.importorskip("scipy.stats")
    sample = np.asarray(weft.jit(lambda k: draw(k, (20000,)))(weft.random.key(1)))
    name, args = cdf
    assert stats.kstest(sample, getattr(stats, name)(*args).cdf).pvalue > 1e-3


@pytest.mark.parametrize(
    "draw,name,args",
    [
        (lambda k, s: weft.random.poisson(k, 0.3, s), "poisson", (0.3,)),
        (lambda k, s: weft.random.poisson(k, 9.9, s), "poisson", (9.9,)),
        (lambda k, s: weft.random.poisson(k, 10.0, s), "poisson", (10.0,)),
        (lambda k, s: weft.random.poisson(k, 250.0, s), "poisson", (250.0,)),
        (lambda k, s: weft.random.binomial(k, 7, 0.2, s), "binom", (7, 0.2)),
        (lambda k, s: weft.random.binomial(k, 40, 0.9, s), "binom", (40, 0.9)),
        (lambda k, s: weft.random.binomial(k, 1000, 0.3, s), "binom", (1000, 0.3)),
        (lambda k, s: weft.random.binomial(k, 100000, 0.001, s), "binom", (100000, 0.001)),
    ],
)
def test_counts(draw, name, args):
    stats = pytest.importorskip("scipy.stats")
    sample = np.asarray(weft.jit(lambda k: draw(k, (20000,)))(weft.random.key(2)))
    assert (sample == np.round(sample)).all()
    law = getattr(stats, name)(*args)
    # Bins that hold at least 20 of the sample each, the outermost ones open.
    edges = np.unique(law.ppf(np.linspace(0.001, 0.999, 25)))
    counts = np.bincount(np.searchsorted(edges, sample), minlength=len(edges) + 1)
    expected = np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]])) * len(sample)
    keep = expected > 5
    statistic = ((counts - expected)[keep] ** 2 / expected[keep]).sum()
    assert stats.chi2(keep.sum() - 1).sf(statistic) > 1e-3, (counts, expected)


def test_counts_at_the_edges():
    key = weft.random.key(0)
    assert weft.random.poisson(key, wnp.array([0.0, -1.0, wnp.nan])).tolist() == [0, -1, -1]
    out = weft.random.binomial(key, wnp.array([5, 5, 0, -1, 5]), wnp.array([0.0, 1.0, 0.5, 0.5, 1.5]))
    assert out[:3].tolist() == [0.0, 5.0, 0.0] and np.isnan(np.asarray(out[3:])).all()
    assert weft.random.binomial(key, 5, 0.5, (3,), "int32").dtype == np.int32
    assert weft.random.poisson(key, 3.0, (0,)).shape == (0,)


def test_random_numbers_of_a_dtype_that_they_do_not_have():
    key = weft.random.key(0)
    for f in (
        lambda: weft.random.randint(key, (2,), 0, 5, "float32"),
        lambda: weft.random.bits(key, (2,), "int32"),
        lambda: weft.random.normal(key, (2,), "int32"),
    ):
        with pytest.raises(TypeError, match=r"random\.\w+: an? .* dtype is needed, got"):
            f()


def test_more_special_functions_as_scipy():
    special = pytest.importorskip("scipy.special")
    ours = weft.scipy.special
    x, y = np.array([0.3, 1.7, 4.2]), np.array([2.0, -0.6, 0.0])
    for name, args in {
        "gammasgn": (np.array([2.0, -0.5, -1.5, 0.0]),),
        "poch": (x, np.array([3.0, 0.5, 0.0])),
        "boxcox": (x, y),
        "boxcox1p": (x, y),
    }.items():
        np.testing.assert_allclose(
            np.asarray(getattr(ours, name)(*args)), getattr(special, name)(*args), rtol=1e-10, err_msg=name
        )
    np.testing.assert_allclose(np.asarray(ours.multigammaln(x + 2, 3)), special.multigammaln(x + 2, 3), rtol=1e-12)


def test_scipy_factorisations():
    linalg = pytest.importorskip("scipy.linalg")
    a = np.random.default_rng(0).standard_normal((4, 3))
    for mode in ("full", "economic"):
        q, r = weft.scipy.linalg.qr(a, mode=mode)
        assert q.shape == linalg.qr(a, mode=mode)[0].shape
        np.testing.assert_allclose(np.asarray(q @ r), a, atol=1e-12)
    assert weft.scipy.linalg.qr(a, mode="r")[0].shape == linalg.qr(a, mode="r")[0].shape
    np.testing.assert_allclose(np.asarray(weft.scipy.linalg.svd(a, compute_uv=False)), linalg.svdvals(a), rtol=1e-10)
    s = a.T @ a
    np.testing.assert_allclose(
        np.asarray(weft.scipy.linalg.eigh(np.tril(s), eigvals_only=True)), linalg.eigvalsh(s), rtol=1e-8
    )
    np.testing.assert_allclose(np.asarray(weft.scipy.linalg.eigh(np.triu(s), lower=False)[0]), linalg.eigvalsh(s))


# --- What scripts set up ----------------------------------------------------------------------------------------------


def test_settings_that_scripts_make():
    config = weft.config
    for name in ("jax_platform_name", "jax_platforms"):
        config.update(name, weft.default_backend())
        config.update(name, f"{weft.default_backend()},other")
        config.update(name, None)
        with pytest.raises(ValueError, match=f"{name} must be '{weft.default_backend()}', .* got 'tpu'"):
            config.update(name, "tpu")
        assert config.read(name) == weft.default_backend()
    for precision in (None, "default", "high", "highest", "bfloat16", "tensorfloat32", "float32"):
        config.update("jax_default_matmul_precision", precision)
    with pytest.raises(ValueError, match=r"default_matmul_precision must be one of .* got 'exact'"):
        config.update("jax_default_matmul_precision", "exact")
    assert config.jax_enable_x64 is config.read("jax_enable_x64") is config.x64 is False
    with weft.enable_x64():
        assert config.jax_enable_x64 is config.read("jax_enable_x64") is True
    assert config.jax_debug_nans is config.read("jax_debug_nans") is False
    assert config.jax_disable_jit is False
    with weft.disable_jit():
        assert config.read("jax_disable_jit") is True
    with pytest.raises(ValueError, match="there is no setting 'update'"):
        config.read("update")


def test_small_names_that_scripts_use():
    from weft.experimental import io_callback

    assert io_callback is weft.io_callback
    seen = []
    weft.jit(lambda x: weft.debug.callback(seen.append, x))(1.0)
    weft.effects_barrier()
    assert seen == [1.0]

    types = []
    weft.jit(lambda x, n: types.extend([weft.typeof(x), weft.typeof(n)]))(wnp.ones((2, 3), "bfloat16"), 1)
    assert types == [weft.ShapeDtype((2, 3), "bfloat16"), weft.ShapeDtype((), "int32", weak_type=True)]
    with pytest.raises(TypeError, match="typeof: x must be an array or a number, got 'a' of type 'str'"):
        weft.typeof("a")

    assert weft.random.key_impl(weft.random.split(weft.random.key(0))) == "threefry2x32"
    assert weft.random.key_impl(weft.random.PRNGKey(0)) == "threefry2x32"
    with pytest.raises(TypeError):
        weft.random.key_impl(1.0)

    ir, shape = weft.make_jaxpr(lambda x: {"a": x @ x.T, "b": 1}, return_shape=True)(wnp.ones((2, 3)))
    assert shape == {"a": weft.ShapeDtype((2, 2), "float32"), "b": weft.ShapeDtype((), "int32", weak_type=True)}
    assert ir.out_types == ["f32[2,2]", "i32[]"]


@pytest.mark.parametrize("axes", [(0,), (1, 2), (-1, 0), (0, 1, 2), ()])
def test_exclusive_or_over_axes(axes):
    for dtype in ("int32", "uint8", "bool"):
        x = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 200, (5, 3, 8)).astype(dtype)
        wanted = np.bitwise_xor.reduce(x, axis=tuple(axes))
        for function in (weft.lax.reduce_xor, weft.jit(weft.lax.reduce_xor, static_argnums=1)):
            got = function(x, axes)
            assert got.dtype == dtype
            np.testing.assert_array_equal(got, wanted)
    assert not weft.lax.reduce_xor(x[:0], (0,)).any()
    with pytest.raises(TypeError, match="xor"):
        weft.lax.reduce_xor(wnp.ones(1), (0,))


def test_arguments_of_debug_print_without_a_field_are_refused():
    for arguments, named, unused in [
        (("a", 1), {}, "0"),
        (("{}", 1, 2, 3), {}, "1, 2"),
        (("{1}", 1, 2), {}, "0"),
        (("{x}",), {"x": 1, "y": 2}, "'y'"),
    ]:
        with pytest.raises(ValueError, match=f"no field for argument {unused};"):
            weft.debug.print(*arguments, **named)
