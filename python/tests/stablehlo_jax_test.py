"""StableHLO that JAX writes, read by Weft: the program that comes out computes what JAX computes."""

import numpy as np
import pytest

import weft

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

RNG = np.random.default_rng(0)
V = RNG.standard_normal(6).astype("float32")
M = RNG.standard_normal((4, 6)).astype("float32")
S = RNG.standard_normal((4, 4)).astype("float32")
SPD = (S @ S.T + 4 * np.eye(4)).astype("float32")
I = np.array([3, 0, 5, 1], "int32")
Z = (V + 1j * V[::-1]).astype("complex64")
B = V > 0
IMAGES = RNG.standard_normal((2, 3, 8, 8)).astype("float32")
KERNELS = RNG.standard_normal((4, 3, 3, 3)).astype("float32")


def _loss(params, x, y):
    w1, w2 = params
    h = jnp.tanh(x @ w1)
    return -jnp.mean(jax.nn.log_softmax(h @ w2)[jnp.arange(len(y)), y])


W1 = RNG.standard_normal((6, 5)).astype("float32")
W2 = RNG.standard_normal((5, 3)).astype("float32")
Y = np.array([0, 2, 1, 0], "int32")


def _convolutional(k, x):
    y = lax.conv_general_dilated(x, k, (1, 1), "SAME")
    y = lax.reduce_window(jax.nn.relu(y), -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return (jnp.mean(y, (2, 3)) ** 2).sum()


def _lstm(w, x):
    def step(state, x):
        h, c = state
        i, f, g, o = jnp.split(jnp.concatenate([x, h]) @ w, 4)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    return (lax.scan(step, (jnp.zeros(3), jnp.zeros(3)), x)[1] ** 2).sum()


def _attention(q, k, v):
    scores = jnp.einsum("qd,kd->qk", q, k) / 2
    mask = jnp.tril(jnp.ones(scores.shape, bool))
    return jax.nn.softmax(jnp.where(mask, scores, -1e9)) @ v


ELEMENTWISE = [
    *(
        [
            "abs",
            "ceil",
            "cos",
            "cosh",
            "exp",
            "expm1",
            "floor",
            "log1p",
            "sign",
            "sin",
            "sinh",
            "sqrt",
            "tan",
            "tanh",
            "square",
            "negative",
            "logistic",
            "rint",
        ]
    ),
    *(["arcsinh", "arctan", "cbrt", "exp2", "isfinite", "isnan", "isinf", "trunc", "reciprocal", "i0e", "sinc"]),
]
UNIT = ["arcsin", "arccos", "arctanh", "log", "log2", "log10", "erf", "erfc", "erf_inv", "lgamma", "digamma"]
BINARY = ["add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "arctan2", "fmod", "remainder"]
BINARY += ["floor_divide", "hypot", "logaddexp", "nextafter", "copysign", "heaviside"]
INTEGERS = ["add", "multiply", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "maximum"]
INTEGERS += ["floor_divide", "remainder", "gcd", "less", "equal"]


def _of(name):
    return getattr(jnp, name, None) or getattr(lax, name, None) or getattr(jax.scipy.special, name)


PROGRAMS = {
    **{name: (_of(name), np.abs(V) if name in ("log", "sqrt", "i0e") else V) for name in ELEMENTWISE},
    **{name: (_of(name), np.abs(np.tanh(V)) + 0.01) for name in UNIT},
    **{name: (_of(name), np.abs(V), V[::-1] + 3) for name in BINARY},
    **{f"int_{name}": (_of(name), I, np.array([1, 2, 1, 3], "int32")) for name in INTEGERS},
    "unsigned": (lambda x: (x >> 1, x * 3, -x, x // 2, lax.clz(x), lax.population_count(x)), I.astype("uint8")),
    "int8": (lambda x: (x * x, x // 3, x % 3, abs(x), ~x), np.array([-128, -7, 0, 7, 127], "int8")),
    "bool": (lambda x, y: (x & y, x | y, x ^ y, ~x, x == y, x < y, x.sum(), x.any(), x.all()), B, B[::-1]),
    "bf16": (lambda x: (x.astype(jnp.bfloat16) * 1.5 + 2).astype("float32"), V),
    "f16": (lambda x: jnp.exp(x.astype("float16")).astype("float32"), V),
    "float8": (lambda x: x.astype(jnp.float8_e4m3fn).astype("float32"), V),
    "int4": (lambda x: x.astype(jnp.int4).astype("int32") * 2, I),
    "complex": (lambda z: (z * z, jnp.conj(z), jnp.abs(z), z.real, z.imag, jnp.exp(z), jnp.angle(z), z / (z + 2)), Z),
    "convert": (lambda x: (x.astype("int32"), x.astype(bool), (x > 0).astype("float32"), x.astype("complex64")), V * 3),
    "bitcast": (lambda x: lax.bitcast_convert_type(x, jnp.int32), V),
    "bitcast_narrower": (lambda x: lax.bitcast_convert_type(x, jnp.uint8), V),
    "bitcast_wider": (lambda x: lax.bitcast_convert_type(x, jnp.uint32), np.arange(8, dtype="uint8").reshape(2, 4)),
    "clamp": (lambda x: jnp.clip(x, -0.5, 0.5), V),
    "select_n": (lambda x: lax.select_n(x.astype("int32") % 3, x, x + 1, x * 2), np.abs(V) * 5),
    "where": (lambda x: jnp.where(x > 0, x, jnp.exp(x)), M),
    "integer_pow": (lambda x: (x**3, x**-2, x**0), V),
    "reduce_precision": (lambda x: lax.reduce_precision(x, 5, 10), V),
    "round": (
        lambda x: (lax.round(x), lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)),
        np.array([0.5, 1.5, -2.5], "float32"),
    ),
    "next": (lambda x: jnp.ldexp(*jnp.frexp(x)), V),
    # Shapes.
    "transpose": (lambda x: jnp.transpose(x, (2, 0, 1)), M.reshape(2, 3, 4)),
    "reshape": (lambda x: x.reshape(3, 8), M),
    "broadcast": (lambda x, y: x[:, None] + y, I, M),
    "pad": (lambda x: lax.pad(x, np.float32(2), [(1, 2, 1), (-1, 0, 0)]), M),
    "slice": (lambda x: x[1:4:2, ::3], M),
    "reverse": (lambda x: x[::-1, ::-1], M),
    "concatenate": (lambda x: jnp.concatenate([x, x * 2], 1), M),
    "iota": (lambda x: jnp.arange(6) + lax.broadcasted_iota("int32", (4, 6), 0) + x, M),
    "tile": (lambda x: jnp.tile(x, (2, 1, 2)), M),
    "roll": (lambda x: jnp.roll(x, 2, 1), M),
    "diagonal": (lambda x: (jnp.diag(x), jnp.trace(x), jnp.tril(x)), S),
    "captured": (lambda x: x @ np.arange(60, dtype="float32").reshape(6, 10) + np.float32(0.1) * np.arange(10), M),
    "captured_bools": (lambda x: jnp.where(np.arange(200) % 3 == 0, x, -x), np.arange(200, dtype="float32")),
    "captured_bf16": (lambda x: x * jnp.arange(100, dtype=jnp.bfloat16).astype("float32"), np.ones(100, "float32")),
    # Products.
    "dot": (lambda x, y: x @ y.T, M, M),
    "dot_batched": (lambda x, y: jnp.einsum("bij,bkj->bik", x, y), M.reshape(2, 2, 6), M.reshape(2, 2, 6)),
    "dot_many": (lambda x: jnp.tensordot(x, x, ((0, 2), (2, 0))), M.reshape(2, 6, 2)),
    "dot_int8": (lambda x: lax.dot(x, x, preferred_element_type=jnp.int32), np.full((3, 3), 100, "int8")),
    "conv": (lambda x, k: lax.conv_general_dilated(x, k, (2, 1), "SAME"), IMAGES, KERNELS),
    "conv_dilated": (
        lambda x, k: lax.conv_general_dilated(x, k, (1, 1), [(1, 2), (0, 3)], lhs_dilation=(2, 1), rhs_dilation=(1, 2)),
        IMAGES,
        KERNELS,
    ),
    "conv_channels_last": (
        lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
        IMAGES.transpose(0, 2, 3, 1),
        KERNELS.transpose(2, 3, 1, 0),
    ),
    "conv_groups": (
        lambda x, k: lax.conv_general_dilated(x, k, (1,), "SAME", feature_group_count=2),
        IMAGES[:, :2, 0],
        KERNELS[:, :1, 0],
    ),
    "conv_gradient": (jax.grad(_convolutional), KERNELS, IMAGES),
    "conv_gradient_of_images": (jax.grad(_convolutional, 1), KERNELS, IMAGES),
    # Reductions.
    "reductions": (lambda x: (x.sum(), x.sum(0), x.prod(1), x.max(0), x.min((0, 1)), x.mean(), x.var(1)), M),
    "int_reductions": (lambda x: (x.sum(), x.max(), x.min(), x.prod()), I),
    "argmax": (lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0), jnp.argmax(x)), M),
    "argmax_nan": (lambda x: (jnp.argmax(x), jnp.argmin(x)), np.array([1, np.nan, 3, np.nan], "float32")),
    "argmax_ints": (lambda x: (jnp.argmax(x), jnp.argmin(x)), I),
    "reduce_any_function": (lambda x: lax.reduce(x, np.float32(0), lambda a, b: jnp.sqrt(a * a + b * b), (1,)), M),
    "reduce_several": (
        lambda x: lax.reduce((x, x * 2), (np.float32(1), np.float32(0)), lambda a, b: (a[0] * b[0], a[1] + b[1]), (0,)),
        M,
    ),
    "cumulative": (lambda x: (jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x, 1), lax.cummin(x, 0, True)), M),
    "cumlogsumexp": (lambda x: lax.cumlogsumexp(x, 1), M),
    "logsumexp": (lambda x: jax.nn.logsumexp(x, 1), M * 50),
    "reduce_window": (lambda x: lax.reduce_window(x, np.float32(0), lax.add, (2, 3), (1, 2), "SAME"), M),
    "reduce_window_max": (
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), [(1, 0), (0, 1)], (2, 1), (1, 2)),
        M,
    ),
    "reduce_window_from_1": (lambda x: lax.reduce_window(x, np.float32(1), lax.add, (2, 3), (1, 2), "VALID"), M),
    "max_pool_gradient": (
        jax.grad(lambda x: (lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "SAME") ** 2).sum()),
        M,
    ),
    # Indexing.
    "take": (lambda x, i: (x[i], x[:, i], jnp.take(x, i, 0, mode="clip")), S, I[:2]),
    "take_out_of_bounds": (
        lambda x, i: (x[i], jnp.take(x, i, 0), x.at[i].get(mode="clip")),
        S,
        np.array([9, -1, -9], "int32"),
    ),
    "take_pairs": (lambda x, i: x[i, i[::-1]], S, np.array([3, 0, 2], "int32")),
    "take_along": (lambda x: jnp.take_along_axis(x, jnp.argsort(x, 1), 1), M),
    "gather_batched": (jax.vmap(lambda x, i: x[i]), M, np.array([5, 0, 2, 9], "int32")),
    "scatter": (lambda x, i: (x.at[i].set(7), x.at[i].add(1), x.at[i].max(0.5), x.at[i].mul(2)), V, I),
    "scatter_more": (lambda x, i: (x.at[i].min(0), x.at[i].subtract(1), x.at[i].add(2, mode="clip")), V, I * 3),
    "scatter_rows": (lambda x, i: x.at[:, i].add(jnp.ones((4, 3))), M, np.array([0, 5, 9], "int32")),
    "scatter_batched": (jax.vmap(lambda x, i: x.at[i].add(2.0)), M, np.array([5, 0, 2, 9], "int32")),
    "dynamic_slice": (lambda x, i: lax.dynamic_slice(x, (i, i - 9), (2, 3)), M, np.int32(3)),
    "dynamic_update": (lambda x, i: lax.dynamic_update_slice(x, x[:2, :2] * 9, (i, i)), M, np.int32(9)),
    # Order.
    "sort": (lambda x: (jnp.sort(x, 0), jnp.argsort(x, 1), jnp.sort(x, descending=True)), M),
    "sort_nan": (jnp.sort, np.array([3, np.nan, -0.0, 0.0, -np.inf, 1], "float32")),
    "sort_by_two": (
        lambda x, y: lax.sort((x, y, x + y), num_keys=2),
        np.array([1, 0, 1, 0, 1], "int32"),
        np.arange(5, dtype="int32")[::-1],
    ),
    "sort_complex": (jnp.sort, Z),
    "sort_bools": (jnp.sort, B),
    "top_k": (lambda x: lax.top_k(x, 3), M),
    "unique": (lambda x: jnp.unique(x, size=4), np.array([3, 1, 3, 2, 1], "int32")),
    "searchsorted": (lambda x, v: jnp.searchsorted(jnp.sort(x), v), V, M[0]),
    "median": (lambda x: (jnp.median(x), jnp.quantile(x, 0.3, axis=0)), M),
    # Control.
    "while": (
        lambda x: lax.while_loop(lambda c: c[0] < 10, lambda c: (c[0] * 2 + 1, c[1] + 1), (x, 0)),
        np.float32(0.5),
    ),
    "fori": (lambda x: lax.fori_loop(0, 5, lambda i, c: c * x + i, x), V),
    "cond": (lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), V),
    "switch": (
        lambda x, i: [lax.switch(k, [jnp.sin, jnp.cos, jnp.exp], x) for k in (i - 9, i, i + 1, i + 9)],
        V,
        np.int32(1),
    ),
    "scan": (lambda x: lax.scan(lambda c, r: (c + r, c * r), x[0], x, reverse=True), M),
    "map": (lambda x: lax.map(lambda r: r / r.sum(), x), M),
    "nested_loops": (
        lambda x: lax.fori_loop(0, 3, lambda i, c: lax.fori_loop(0, i, lambda j, d: d * 0.5 + j, c) + i, x),
        V,
    ),
    "associative_scan": (lambda x: lax.associative_scan(jnp.multiply, x), V),
    "calls": (lambda x: jax.jit(lambda y: y * 2)(x) + jax.jit(lambda y: y * 2)(x + 1), V),
    "checkpoint": (jax.grad(lambda x: jax.checkpoint(lambda y: jnp.sin(jnp.sin(y)))(x).sum()), V),
    # Linear algebra, FFT.
    "cholesky": (jnp.linalg.cholesky, SPD),
    "cholesky_indefinite": (jnp.linalg.cholesky, -SPD),
    "solve": (lambda a, b: (jnp.linalg.solve(a, b), jnp.linalg.inv(a), jnp.linalg.det(a)), SPD, S),
    "triangular": (lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True, trans=1), SPD, S),
    "eigenvalues": (lambda a: jnp.linalg.eigvalsh(a), SPD),
    "singular_values": (lambda a: jnp.linalg.svd(a, compute_uv=False), M),
    "pseudoinverse": (lambda a: (jnp.linalg.pinv(a), jnp.linalg.matrix_rank(a)), M),
    "fft": (lambda z: (jnp.fft.fft(z), jnp.fft.ifft(z), jnp.fft.rfft(z.real), jnp.fft.irfft(z)), Z),
    "fft2": (lambda x: jnp.abs(jnp.fft.fft2(x)), M),
    # Random numbers.
    "uniform": (lambda s: jax.random.uniform(jax.random.key(s), (5,)), np.int32(3)),
    "random": (
        lambda s: (jax.random.normal(jax.random.key(s), (5,)), jax.random.permutation(jax.random.key(s), 10)),
        np.int32(3),
    ),
    "random_split": (lambda s: jax.random.bits(jax.random.split(jax.random.key(s), 3)[1], (4,)), np.int32(3)),
    "categorical": (lambda x: jax.random.categorical(jax.random.PRNGKey(1), x), M),
    # Gradients of networks.
    "gradient": (jax.value_and_grad(_loss), (W1, W2), M, Y),
    "hessian": (jax.hessian(lambda x: jnp.prod(jnp.sin(x))), V[:4]),
    "lstm_gradient": (jax.grad(_lstm), RNG.standard_normal((6, 12)).astype("float32"), M.reshape(8, 3)),
    "attention_gradient": (jax.grad(lambda q, k, v: (_attention(q, k, v) ** 2).sum(), (0, 1, 2)), M, M, M),
    "layer_norm": (jax.nn.standardize, M),
    "gelu": (lambda x: (jax.nn.gelu(x), jax.nn.silu(x), jax.nn.softplus(x), jax.nn.elu(x)), V),
    "special": (
        lambda x: (
            jax.scipy.special.gammainc(2.0, x),
            jax.scipy.special.zeta(x + 2, 1.0),
            jax.scipy.special.polygamma(2, x),
        ),
        np.abs(V) + 0.5,
    ),
    "betainc": (lambda x: jax.scipy.special.betainc(2.0, 3.0, x), np.abs(np.tanh(V))),
}
# Where both round an operation that is far from exact, or sum in another order.
TOLERANCE = {"bf16": 1e-2, "f16": 1e-3}  # inside a kernel numbers of 16 bits keep the digits of f32


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_jax_writes(name):
    function, *args = PROGRAMS[name]
    lowered = jax.jit(function).lower(*args)
    expected = jax.tree_util.tree_leaves(jax.jit(function)(*args))
    ir = weft.ir.from_stablehlo(lowered.as_text(), f"{name}.mlir")
    leaves = [a for a, kept in zip(jax.tree_util.tree_leaves(args), _kept(lowered, args)) if kept]
    found = weft.jit(ir)(*leaves)
    found = found if isinstance(found, tuple) else (found,)
    assert len(found) == len(expected)
    for got, want in zip(found, expected):
        got, want = np.asarray(got), np.asarray(want)
        assert got.dtype == want.dtype and got.shape == want.shape
        tolerance = TOLERANCE.get(name, 2e-5)
        if want.dtype.kind in "fc" and tolerance:
            scale = np.max(np.abs(want[np.isfinite(want)]), initial=1.0)
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale)
        else:
            np.testing.assert_array_equal(got, want)


def _kept(lowered, args):
    """JAX leaves out arguments that nothing reads."""
    kept = lowered._lowering.compile_args.get("kept_var_idx")
    count = len(jax.tree_util.tree_leaves(args))
    return [kept is None or i in kept for i in range(count)]


@pytest.mark.parametrize("name", ["gradient", "lstm_gradient", "sort_by_two", "captured", "calls", "scatter"])
def test_generic_form(name):
    """The same operations as MLIR prints them without short forms."""
    function, *args = PROGRAMS[name]
    lowered = jax.jit(function).lower(*args)
    module = lowered.compiler_ir("stablehlo")
    text = module.operation.get_asm(print_generic_op_form=True)
    one, other = (weft.ir.from_stablehlo(t) for t in (lowered.as_text(), text))
    assert one == other


def test_locations_are_passed_over():
    text = jax.jit(lambda x: jnp.where(x > 0, jnp.sin(x), x).sum()).lower(V).as_text(debug_info=True)
    assert "loc(" in text
    np.testing.assert_allclose(weft.ir.from_stablehlo(text)(V), np.where(V > 0, np.sin(V), V).sum(), rtol=1e-6)


def test_derivatives_of_what_is_read():
    """A program that was read is one like any: it is differentiated, mapped and compiled."""
    ir = weft.ir.from_stablehlo(jax.jit(lambda w: _loss((w, W2), M, Y)).lower(W1).as_text())
    expected = jax.grad(lambda w: _loss((w, W2), M, Y))(W1)
    np.testing.assert_allclose(weft.jit(weft.grad(ir))(W1), expected, rtol=1e-4, atol=1e-6)
    both = np.stack([W1, W1 * 2])
    np.testing.assert_allclose(weft.vmap(ir)(both), jax.vmap(lambda w: _loss((w, W2), M, Y))(both), rtol=1e-5)


def test_loops_of_known_length_are_read_as_such():
    """So the derivative of a scan that JAX wrote can be written as StableHLO again, which has no loops that record."""
    w, x = PROGRAMS["lstm_gradient"][1:]
    ir = weft.ir.from_stablehlo(jax.jit(_lstm).lower(w, x).as_text())
    assert [op.trips for op in ir.walk() if op.trips is not None] == [8]
    assert "while" not in {op.name for op in ir.walk()}
    gradient = weft.make_ir(weft.grad(ir))(w, x)
    back = weft.ir.from_stablehlo(weft.ir.to_stablehlo(gradient))
    np.testing.assert_allclose(back(w, x), jax.grad(_lstm)(w, x), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "loop",
    [
        lambda x: lax.fori_loop(3, 7, lambda i, c: c * x + i, x),
        lambda x: lax.fori_loop(7, 3, lambda i, c: c * x + i, x),
        lambda x: lax.while_loop(lambda c: c[1] < 9, lambda c: (c[0] + c[1], c[1] + 1), (x, 2)),
        lambda x: lax.while_loop(lambda c: c[1] < 9, lambda c: (c[0] + c[1], c[1] + 2), (x, 2)),
        lambda x: lax.while_loop(lambda c: c[1] <= 9, lambda c: (c[0] + c[1], c[1] + 1), (x, 2)),
        lambda x: lax.while_loop(lambda c: c[1] < c[2], lambda c: (c[0] + c[1], c[1] + 1, c[2] - 1), (x, 2, 9)),
        lambda x: lax.while_loop(lambda c: c[1] < 9, lambda c: (c[0] + c[1], c[2] + 1, c[1]), (x, 2, 5)),
    ],
)
def test_what_counts(loop):
    """Loops that count, and loops that nearly do."""
    x = np.float32(1.25)
    ir = weft.ir.from_stablehlo(jax.jit(loop).lower(x).as_text())
    expected = jax.tree_util.tree_leaves(jax.jit(loop)(x))
    for got, want in zip(weft.tree.leaves(ir(x)), expected, strict=True):
        np.testing.assert_array_equal(got, want)


def test_exported_programs_and_shardings():
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    exported = jax.export.export(jax.jit(lambda x: jnp.sin(x) * 2))(V)
    np.testing.assert_allclose(weft.ir.from_stablehlo(exported.mlir_module())(V), np.sin(V) * 2, rtol=1e-6)
    mesh = Mesh(np.array(jax.devices()[:1]), ("i",))
    f = lambda x: lax.with_sharding_constraint(x * 2, NamedSharding(mesh, PartitionSpec("i"))) + 1
    text = jax.jit(f, in_shardings=NamedSharding(mesh, PartitionSpec("i"))).lower(V).as_text()
    assert "shard" in text
    np.testing.assert_allclose(weft.ir.from_stablehlo(text)(V), V * 2 + 1, rtol=1e-6)


def test_bits_of_a_generator():
    f = lambda k: lax.rng_bit_generator(k, (3, 5), "uint64", lax.RandomAlgorithm.RNG_THREE_FRY)
    state = np.array([5, 2**32 - 3], "uint64")
    with jax.enable_x64(True):
        text = jax.jit(f).lower(state).as_text()
        expected = jax.jit(f)(state)
    for got, want in zip(weft.ir.from_stablehlo(text)(state), expected, strict=True):
        np.testing.assert_array_equal(got, want)
    with pytest.raises(NotImplementedError, match="THREE_FRY of ui64"):
        weft.ir.from_stablehlo(text.replace("THREE_FRY", "PHILOX"))
