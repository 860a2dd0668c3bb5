"""Programs as StableHLO: XLA runs what is written, and read again it computes the same; what cannot be is refused."""

import contextlib
import re

import numpy as np
import pytest

import weft
import weft.numpy as wnp
from weft import _weft, lax
from weft._stablehlo.expansions import EXPANSIONS
from weft._stablehlo.operations import COMPARISONS, ELEMENTWISE, IDENTITIES
from weft._stablehlo.writing_rules import REASONS, RULES

RNG = np.random.default_rng(1)
V = RNG.standard_normal(6).astype("float32")
M = RNG.standard_normal((4, 6)).astype("float32")
S = RNG.standard_normal((4, 4)).astype("float32")
SPD = (S @ S.T + 4 * np.eye(4)).astype("float32")
I = np.array([3, 0, 5, 1], "int32")
Z = (V + 1j * V[::-1]).astype("complex64")
IMAGES = RNG.standard_normal((2, 3, 8, 8)).astype("float32")
KERNELS = RNG.standard_normal((4, 3, 3, 3)).astype("float32")
W1 = RNG.standard_normal((6, 5)).astype("float32")
W2 = RNG.standard_normal((5, 3)).astype("float32")
Y = np.array([0, 2, 1, 0], "int32")


def _loss(params, x, y):
    w1, w2 = params
    logits = wnp.tanh(x @ w1) @ w2
    return -weft.nn.log_softmax(logits)[wnp.arange(len(y)), y].mean()


def _lstm(w, x):
    def step(state, x):
        h, c = state
        i, f, g, o = wnp.split(wnp.concatenate([x, h]) @ w, 4)
        c = weft.nn.sigmoid(f) * c + weft.nn.sigmoid(i) * wnp.tanh(g)
        h = weft.nn.sigmoid(o) * wnp.tanh(c)
        return (h, c), h

    return (weft.scan(step, (wnp.zeros(3), wnp.zeros(3)), x)[1] ** 2).sum()


def _convolutional(k, x):
    y = lax.conv_general_dilated(x, k, (1, 1), "SAME")
    y = lax.reduce_window(weft.nn.relu(y), -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return (y.mean((2, 3)) ** 2).sum()


@weft.custom_jvp
def _clipped(x):
    return wnp.clip(x, -0.5, 0.5)


_clipped.defjvp(lambda p, t: (_clipped(*p), t[0]))

PROGRAMS = {
    "arithmetic": (lambda x, y: (x + y, x * 2 - y / 3, -x % 2, x**3, x // 2, abs(x)), V, V[::-1] + 4),
    "literals": (lambda x: x * wnp.array([1.5, np.inf, -0.0, 1e-30, 1e30, 0.1]) + 1, V),
    "nan": (lambda x: wnp.where(x > 0, x, np.nan), V),
    "convert": (
        lambda x: (x.astype("int8"), x.astype(bool), x.astype("bfloat16").astype("float32"), x.astype("float64")),
        V,
    ),
    "integers": (lambda x: (x >> 1, x << 2, x & 3, x | 4, x ^ 5, ~x, x // 3, x % 3, x > 2), I),
    "small_integers": (lambda x: x.astype("int4").astype("int32") + 1, I),
    "complex": (lambda z: (z * z, wnp.conj(z), abs(z), z.real, wnp.exp(z), z.astype(bool)), Z),
    "bitcast": (lambda x: lax.bitcast_convert_type(x, "int32"), V),
    "round": (lambda x: (wnp.round(x), lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO), wnp.trunc(x)), V * 3),
    "captured": (lambda x: x @ np.arange(60, dtype="float32").reshape(6, 10), M),
    "captured_kinds": (
        lambda x: (
            x
            + wnp.arange(100).astype("bfloat16").astype("float32")
            + np.where(np.arange(100) % 3 == 0, 1, 0).astype("float32")
            + wnp.where(np.arange(100) % 7 < 3, np.arange(100, dtype="int16"), np.int16(5)).astype("float32")
        ),
        np.ones(100, "float32"),
    ),
    "captured_small": (
        lambda x: x + wnp.asarray(np.arange(100) % 16 - 8).astype("int4").astype("int32"),
        np.ones(100, "int32"),
    ),
    "signs_of_zeros": (
        lambda x: (
            1 / (x * wnp.array([0.0, -0.0])),
            wnp.array([complex(0.0, 0.0), complex(-0.0, 0.0), complex(0.0, -0.0)], "complex64")
            + 0 * x[0].astype("int32"),
        ),
        np.ones(2, "float32"),
    ),
    "empty": (lambda x: (x[:0].sum(), x[:0]), V),
    # Shapes.
    "of_one_type": (
        # Operations whose short forms say more than one type, of operands and results that have one.
        lambda x: (
            wnp.where(x > 0, x < 1, x > 2),
            _weft.bind("reshape", [x], {"shape": [6]})[0] * 2,
            lax.clamp(x, x * 2, x * 3),
            lax.bitcast_convert_type(x, "float32"),
            weft.checkpoint(lambda a, b: wnp.sin(a) * b)(x, x + 1),
        ),
        V,
    ),
    "shapes": (lambda x: (x.T, x.reshape(3, 8), x[1:4:2, ::3], x[::-1], wnp.concatenate([x, x], 1), x[:, None]), M),
    "pad": (lambda x: lax.pad(x, np.float32(2), [(1, 2, 1), (-1, 0, 0)]), M),
    "iota": (lambda x: x + wnp.arange(6) + wnp.tril(x), M),
    # Products.
    "products": (lambda x: (x @ x.T, wnp.einsum("ij,ik->jki", x, x), wnp.tensordot(x, x, 2)), M),
    "batched": (lambda x: wnp.einsum("bij,bkj->bik", x, x), M.reshape(2, 2, 6)),
    "wider_product": (lambda x: lax.dot(x, x, preferred_element_type="int32"), np.full((3, 3), 100, "int8")),
    "convolution": (lambda x, k: lax.conv_general_dilated(x, k, (2, 1), "SAME", rhs_dilation=(1, 2)), IMAGES, KERNELS),
    "grouped": (
        lambda x, k: lax.conv_general_dilated(x, k, (1,), "SAME", feature_group_count=2),
        IMAGES[:, :2, 0],
        KERNELS[:, :1, 0],
    ),
    "convolution_gradient": (weft.grad(_convolutional, (0, 1)), KERNELS, IMAGES),
    # Reductions.
    "reductions": (
        lambda x: (x.sum(), x.prod(1), x.max(0), x.min((0, 1)), x.mean(), x.var(1), (x > 0).all(), (x > 0).any()),
        M,
    ),
    "integer_reductions": (lambda x: (x.sum(), x.max(), x.min(), x.prod()), I),
    "arguments": (lambda x: (wnp.argmax(x, 1), wnp.argmin(x, 0), wnp.argmax(x)), M),
    "arguments_nan": (lambda x: (wnp.argmax(x), wnp.argmin(x)), np.array([1, np.nan, 3, np.nan], "float32")),
    "cumulative": (lambda x: (wnp.cumsum(x, 1), wnp.cumprod(x, 0), lax.cummax(x, 1), lax.cummin(x, 0, True)), M),
    "cumlogsumexp": (lambda x: lax.cumlogsumexp(x, 1, True), M * 50),
    "logsumexp": (lambda x: weft.nn.logsumexp(x, 1), M * 50),
    "windows": (
        lambda x: lax.reduce_window(x, np.float32(0), lax.add, (2, 3), (1, 2), [(1, 0), (0, 2)], (2, 1), (1, 2)),
        M,
    ),
    # Indexing.
    "take": (lambda x, i: (x[i], x[:, i], wnp.take(x, i, 0, mode="clip")), S, I[:2]),
    "take_out_of_bounds": (lambda x, i: (x[i], wnp.take(x, i, 0)), S, np.array([9, -1, -9], "int32")),
    "take_integers": (lambda x, i: wnp.take(x, i, mode="fill"), I, np.array([9, -1, -9], "int32")),
    "take_batched": (weft.vmap(lambda x, i: x[i]), M, np.array([5, 0, 2, 9], "int32")),
    "scatter": (lambda x, i: (x.at[i].set(7), x.at[i].add(1), x.at[i].max(0.5), x.at[i].mul(2), x.at[i].min(0)), V, I),
    "scatter_clip": (lambda x, i: (x.at[i].set(2.0, mode="clip"), x.at[i].add(2.0)), V, I * 3),
    "scatter_batched": (weft.vmap(lambda x, i: x.at[i].add(2.0)), M, np.array([5, 0, 2, 9], "int32")),
    "dynamic": (
        lambda x, i: (lax.dynamic_slice(x, (i, i - 9), (2, 3)), lax.dynamic_update_slice(x, x[:2, :2] * 9, (i, i))),
        M,
        np.int32(3),
    ),
    # Order.
    "sort": (lambda x: (wnp.sort(x, 0), wnp.argsort(x, 1)), M),
    "sort_special": (wnp.sort, np.array([3, np.nan, -0.0, 0.0, -np.inf, 1], "float32")),
    "sort_by_two": (lambda x, y: lax.sort((x, y, x + y), num_keys=2), np.array([1, 0, 1, 0, 1], "int32"), V[:5]),
    "sort_complex": (wnp.sort, Z),
    "top_k": (lambda x: lax.top_k(x, 3), M),
    # Control.
    "while": (lambda x: weft.while_loop(lambda c: c[0].sum() < 10, lambda c: (c[0] * 2 + x, c[1] + 1), (x, 0)), abs(V)),
    "cond": (lambda x, k: weft.cond(x.sum() > 0, lambda: x * k, lambda: x - k), V, np.float32(2)),
    "switch": (
        lambda x, i: [weft.switch(k, [wnp.sin, wnp.cos, wnp.exp], x) for k in (i - 9, i, i + 9)],
        V,
        np.int32(1),
    ),
    "scan": (lambda x: weft.scan(lambda c, r: (c + r, (c * r, r > 0)), x[0], x), M),
    "scan_reversed": (lambda x: weft.scan(lambda c, r: (c + r, c * r), x[0], x, reverse=True), M),
    "scan_of_nothing": (lambda x: weft.scan(lambda c, r: (c + r, c * r), x[0], x[:0]), M),
    "fori": (lambda x: weft.fori_loop(0, 5, lambda i, c: c * x + i, x), V),
    "nested": (
        lambda x: weft.fori_loop(0, 3, lambda i, c: weft.fori_loop(0, i, lambda j, d: d * 0.5 + j, c) + i, x),
        V,
    ),
    "map": (lambda x: weft.map(lambda r: weft.cond(r.sum() > 0, wnp.sin, wnp.cos, r), x), M),
    "custom": (lambda x: _clipped(x) + weft.checkpoint(lambda y: wnp.sin(wnp.sin(y)))(x), V),
    "checkpoint_gradient": (weft.grad(lambda x: weft.checkpoint(lambda y: wnp.sin(wnp.sin(y)))(x).sum()), V),
    # Linear algebra, FFT.
    "cholesky": (wnp.linalg.cholesky, SPD),
    "triangular": (
        lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True, transpose_a=True),
        SPD,
        S,
    ),
    "fft": (lambda z: (wnp.fft.fft(z), wnp.fft.ifft(z), wnp.fft.rfft(z.real), wnp.fft.irfft(z)), Z),
    # Random numbers.
    "random": (
        lambda k: (weft.random.uniform(k, (5,)), weft.random.normal(k, (5,)), weft.random.split(k)),
        weft.random.key(3),
    ),
    "keys": (
        lambda k: (weft.random.split(k, 4)[1:3], weft.random.bits(weft.random.fold_in(k, 7), (3,))),
        weft.random.key(3),
    ),
    "captured_key": (lambda x: weft.random.normal(weft.random.key(1), x.shape) + x, V),
    # Networks.
    "gradient": (weft.value_and_grad(_loss), (W1, W2), M, Y),
    "hessian": (weft.hessian(lambda x: wnp.prod(wnp.sin(x))), V[:4]),
    "lstm_gradient": (weft.grad(_lstm), RNG.standard_normal((6, 12)).astype("float32"), M.reshape(8, 3)),
    "activations": (lambda x: (weft.nn.gelu(x), weft.nn.silu(x), weft.nn.softplus(x), weft.nn.elu(x)), V),
}


def _plain(x):
    """Keys as their words, as StableHLO programs take and give them."""
    x = wnp.asarray(x)
    return np.asarray(weft.random.key_data(x) if str(x.dtype) == "key" else x)


def _close(found, expected, tolerance=2e-5):
    assert len(found) == len(expected)
    for got, want in zip(found, expected):
        got, want = _plain(got), _plain(want)
        assert got.dtype == want.dtype and got.shape == want.shape
        if want.dtype.kind in "fc" and tolerance:
            scale = np.max(np.abs(want[np.isfinite(want)]), initial=1.0)
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale)
        else:
            np.testing.assert_array_equal(got, want)


def _by_xla(text, args):
    """What JAX's compiler makes of a text."""
    jax = pytest.importorskip("jax")
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jax._src.lib.mlir import ir

    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        assert module.operation.verify()
        code = mlir.module_to_bytecode(module)
    device = jax.devices("cpu")[:1]
    program = device[0].client.compile_and_load(code, device, xla_client.CompileOptions())
    with jax.enable_x64(True):
        given = [jax.device_put(a, device[0]) for a in args]
        out = program.execute_sharded(given).disassemble_into_single_device_arrays()
        return [np.asarray(o[0]) for o in out]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    function, *args = PROGRAMS[name]
    ir = weft.make_ir(function)(*args)
    leaves = weft.tree.leaves(args)
    expected = weft.tree.leaves(weft.jit(function)(*args))
    text = weft.ir.to_stablehlo(ir)
    plain = [_plain(x) for x in leaves]
    back = weft.ir.from_stablehlo(text)
    _close(weft.tree.leaves(weft.jit(back)(*plain)), expected)
    # What was read is written as what computes the same.
    again = weft.ir.from_stablehlo(weft.ir.to_stablehlo(back))
    _close(weft.tree.leaves(weft.jit(again)(*plain)), expected)
    _close(_by_xla(text, plain), expected, 2e-4 if name == "cumlogsumexp" else 2e-5)


SAFE = {"acosh": 2.0, "log": 1.0, "digamma": 1.0}
DTYPES = ["bool", "i8", "i32", "i64", "u8", "u32", "f16", "bf16", "f32", "f64", "c64", "c128"]
PYTHON = {"i8": "int8", "i32": "int32", "i64": "int64", "u8": "uint8", "u32": "uint32"}
PYTHON |= {"f16": "float16", "f32": "float32", "f64": "float64", "c64": "complex64", "c128": "complex128"}


def _operands(dtype, count):
    rng = np.random.default_rng(7)
    if dtype == "bool":
        return [rng.random(9) < 0.5 for _ in range(count)]
    if dtype[0] in "iu":
        return [rng.integers(1, 7, 9).astype(PYTHON[dtype]) for _ in range(count)]
    values = [
        rng.uniform(0.1, 0.9, 9) + (1j * rng.uniform(0.1, 0.9, 9) if dtype[0] == "c" else 0) for _ in range(count)
    ]
    if dtype == "bf16":
        return [wnp.asarray(v).astype("bfloat16") for v in values]
    return [v.astype(PYTHON[dtype]) for v in values]


@pytest.mark.parametrize(
    "name",
    sorted(
        {
            *ELEMENTWISE,
            *COMPARISONS,
            "trigamma",
            "softplus",
            "exp2",
            "log2",
            "log10",
            "trunc",
            "logistic_density",
            "sech_squared",
        }
    ),
)
def test_every_element_wise_operation(name):
    """Of every dtype that it takes: written, run by XLA, and read as the same operation."""
    about = {p["name"]: p for p in _weft.primitives()}[name]
    for dtype in DTYPES:
        if dtype not in about["dtypes"].split("|"):
            continue
        args = _operands(dtype, about["num_operands"])
        if name == "acosh":
            args = [a + 1 for a in args]
        ir = weft.make_ir(lambda *x: _weft.bind(name, list(x), {})[0])(*args)
        expected = [weft.jit(ir)(*args)]
        text = weft.ir.to_stablehlo(ir)
        back = weft.ir.from_stablehlo(text)
        # Some are of floats alone, or of signed numbers, there.
        instead = (
            dtype == "bool" or (dtype[0] == "u" and name in ("abs", "sign")) or (dtype[0] in "iu" and name == "square")
        )
        if not instead:
            assert [op.name for op in back.walk()] == [name], dtype
        _close([weft.jit(back)(*args)], expected, 0)
        if dtype != "bf16":
            tolerance = {"f16": 4e-3, "f64": 1e-12, "c128": 1e-12}.get(dtype, 1e-5)
            if name in ("lgamma", "digamma", "trigamma", "erf_inv") and dtype == "f64":
                tolerance = 1e-8
            _close(_by_xla(text, args), expected, tolerance)


def test_every_operation_is_written_or_refused():
    known = {*ELEMENTWISE, *COMPARISONS, *IDENTITIES, *RULES, *EXPANSIONS, *REASONS}
    assert known == {p["name"] for p in _weft.primitives()}


def test_composites_are_read_as_what_they_name():
    ir = weft.make_ir(
        lambda x: (wnp.argmax(x), wnp.cumsum(x), wnp.sort(x), x.at[wnp.array([3, 9])].set(1.0, mode="clip"))
    )(V)
    text = weft.ir.to_stablehlo(ir)
    names = [op.name for op in weft.ir.from_stablehlo(text).walk()]
    assert {"argmax", "cumsum", "sort", "scatter"} <= {*names} and "while" not in names
    # Readers that do not know them take their decompositions.
    foreign = re.sub(r'program = "([^"]*)"', "", text)
    names = [op.name for op in weft.ir.from_stablehlo(foreign).walk()]
    assert not {"argmax", "cumsum"} & {*names}
    _close(weft.ir.from_stablehlo(foreign)(V), ir(V))


def test_composites_of_programs():
    scaled = weft.lax.composite(lambda x, factor: x * factor, "my.scaled", version=2)
    ir = weft.make_ir(lambda x: scaled(x, factor=3.0) + scaled(x, factor=4.0) + scaled(x, factor=3.0))(V)
    text = weft.ir.to_stablehlo(ir)
    lines = [line for line in text.splitlines() if 'stablehlo.composite "my.scaled"' in line]
    assert (
        len(lines) == 3 and sum("composite_attributes = {factor = 3.000000e+00 : f64}" in line for line in lines) == 2
    )
    assert all("version = 2 : i32" in line for line in lines) and text.count("func.func private @my.scaled") == 2
    _close(weft.ir.from_stablehlo(text)(V), ir(V))
    f = lambda x: scaled(wnp.sin(x), factor=3.0).sum()
    _close(weft.grad(f)(V), 3 * np.cos(np.asarray(V)))
    with pytest.raises(TypeError, match=r"the attribute 'factor' of 'my\.scaled' is of type 'object'"):
        weft.make_ir(lambda x: scaled(x, factor=object()))(V)


def test_functions_that_are_called_twice_are_written_once():
    @weft.jit
    def f(x):
        return weft.fori_loop(0, 40, lambda i, c: wnp.sin(c) * x, x)

    ir = weft.make_ir(lambda x: f(x) + f(x + 1) + f(x + 2))(V)
    text = weft.ir.to_stablehlo(ir)
    calls = len(re.findall(r"func\.call @f\b", text))
    assert text.count("stablehlo.sine") == (1 if calls else 3)
    _close([weft.ir.from_stablehlo(text)(V)], [ir(V)])


def test_text_of_a_loop_does_not_grow_with_its_length():
    text = lambda n: weft.ir.to_stablehlo(
        weft.make_ir(weft.grad(lambda x: weft.fori_loop(0, n, lambda i, c: wnp.sin(c), x)))(1.0)
    )
    assert abs(len(text(1000)) - len(text(10))) < 60


REFUSED = {
    "eigh": (wnp.linalg.eigh, SPD),
    "svd": (wnp.linalg.svd, S),
    "debug_print": (lambda x: weft.debug.print("{}", x), V),
    "pure_callback": (lambda x: weft.pure_callback(lambda y: y, weft.ShapeDtype((6,), "float32"), x), V),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_stablehlo_lacks(name):
    function, *args = REFUSED[name]
    with pytest.raises(
        NotImplementedError, match=rf"to_stablehlo: StableHLO has nothing for '{name}'(.|\n)*stablehlo_test.py:\d+"
    ):
        weft.ir.to_stablehlo(weft.make_ir(function)(*args))


def test_types_that_stablehlo_lacks():
    loop = weft.grad(lambda x: weft.while_loop(lambda c: c < 10, lambda c: c * c + 1, x))
    with pytest.raises(NotImplementedError, match=r"tape(.|\n)*a known length"):
        weft.ir.to_stablehlo(weft.make_ir(loop)(1.0))
    with pytest.raises(NotImplementedError, match="symbolic size"):
        weft.ir.to_stablehlo(weft.make_ir(lambda x: x + 1)(weft.ShapeDtype(("n",), "float32")))
    with pytest.raises(TypeError, match=r"expected a weft\.IR"):
        weft.ir.to_stablehlo(lambda x: x)


def _module(*lines, types="tensor<3xf32>"):
    return "\n".join([f"func.func @main(%x: {types}) -> tensor<3xf32> {{", *lines, "  return %y : tensor<3xf32>", "}"])


WRONG = {
    # name: (text, error, message)
    "unknown operation": (
        _module("  %y = stablehlo.rng %x, distribution = UNIFORM : tensor<3xf32>"),
        NotImplementedError,
        r"wrong.mlir:2: stablehlo.rng is an operation that Weft has nothing for",
    ),
    "unknown value": (
        _module("  %y = stablehlo.add %x, %z : tensor<3xf32>"),
        ValueError,
        r"wrong.mlir:2: stablehlo.add reads %z",
    ),
    "wrong type": (
        _module("", "  %y = stablehlo.add %x, %x : tensor<4xf32>"),
        ValueError,
        r"wrong.mlir:3: stablehlo.add gives tensor<3xf32>, the text says tensor<4xf32>",
    ),
    "another result": (
        'func.func @main(%x: tensor<3xf32>) -> (tensor<4xf32> {a = ""}) {\n  return %x : tensor<3xf32>\n}',
        ValueError,
        "wrong.mlir:2: return returns tensor<3xf32>, the text says tensor<4xf32>",
    ),
    "another type of a result": (
        _module("  %y = stablehlo.add %x, %x : tensor<3xf32>").replace("%y : tensor<3xf32>", "%y : tensor<3xf64>"),
        ValueError,
        "wrong.mlir:3: return returns tensor<3xf32>, the text says tensor<3xf64>",
    ),
    "no result": (
        "func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {\n  return\n}",
        ValueError,
        "wrong.mlir:2: return returns 0 values, the text says 1",
    ),
    "more results": (
        "func.func @main(%x: tensor<f32>) -> tensor<f32> {\n  return %x, %x : tensor<f32>, tensor<f32>\n}",
        ValueError,
        "wrong.mlir:2: return returns 2 values, the text says 1",
    ),
    "a name twice": (
        _module("  %y = stablehlo.add %x, %x : tensor<3xf32>", "  %y = stablehlo.negate %y : tensor<3xf32>"),
        ValueError,
        "wrong.mlir:3: stablehlo.negate gives %y, which something before it is called",
    ),
    "a parameter's name": (
        _module("  %x = stablehlo.add %x, %x : tensor<3xf32>", "  %y = stablehlo.negate %x : tensor<3xf32>"),
        ValueError,
        "wrong.mlir:2: stablehlo.add gives %x, which something before it is called",
    ),
    "wrong operands": (
        _module("  %c = stablehlo.constant dense<1> : tensor<3xi32>", "  %y = stablehlo.add %x, %c : tensor<3xf32>"),
        TypeError,
        r"wrong.mlir:3: stablehlo.add is refused: add: ",
    ),
    "element type": (_module(types="tensor<3xf6E2M3FN>"), ValueError, r"wrong.mlir:1: expected an element type"),
    "quantized": (
        _module(types="tensor<3x!quant.uniform<i8:f32, 1.0>>"),
        ValueError,
        r"wrong.mlir:1: expected an element type",
    ),
    "unknown size": (
        _module("  %y = stablehlo.negate %x : tensor<?xf32>", types="tensor<?xf32>"),
        NotImplementedError,
        "wrong.mlir:1: a parameter",
    ),
    "no function": ("module {}", ValueError, "wrong.mlir:1: expected a function"),
    "no end": ("func.func @main(%x: tensor<f32>) {", ValueError, "and the text ends"),
    "no main": (
        "func.func @f() { return }\nfunc.func @g() { return }",
        ValueError,
        "has no function 'main'.*it has f, g",
    ),
    "call of nothing": (
        _module("  %y = func.call @g(%x) : (tensor<3xf32>) -> tensor<3xf32>"),
        ValueError,
        "calls 'g', which the text does not define",
    ),
    "calls itself": (
        _module("  %y = func.call @main(%x) : (tensor<3xf32>) -> tensor<3xf32>"),
        NotImplementedError,
        "'main' calls itself",
    ),
    "attribute": (
        _module('  %y = "stablehlo.reverse"(%x) : (tensor<3xf32>) -> tensor<3xf32>'),
        ValueError,
        "wrong.mlir:2: stablehlo.reverse .*'dims' is missing",
    ),
    "elements": (
        _module("  %y = stablehlo.constant dense<[1.0, 2.0]> : tensor<3xf32>"),
        ValueError,
        "wrong.mlir:2: .*has 3 elements, the text 2",
    ),
    "bytes": (
        _module('  %y = stablehlo.constant dense<"0x0000803F0000803F"> : tensor<3xf32>'),
        ValueError,
        "wrong.mlir:2: .*3 elements of 4 bytes",
    ),
    "custom call": (
        _module("  %y = stablehlo.custom_call @cudnn(%x) : (tensor<3xf32>) -> tensor<3xf32>"),
        NotImplementedError,
        "wrong.mlir:2: .*'cudnn', a function of another compiler's runtime",
    ),
    "types": (
        _module("  %y = stablehlo.add %x, %x", "  %z = stablehlo.add %x, %x : tensor<3xf32>"),
        ValueError,
        "wrong.mlir:3: expected",
    ),
    "results": (
        _module("  %y, %z = stablehlo.negate %x : tensor<3xf32>"),
        ValueError,
        "wrong.mlir:2: stablehlo.negate has 1 results, the text names 2",
    ),
    "window": (
        _module(
            "  %y = stablehlo.convolution(%x, %x) dim_numbers = [b, f]x[o, i]->[b, f], window = {sride = [1]} : "
            "(tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>"
        ),
        ValueError,
        "wrong.mlir:2: stablehlo.convolution: there is no 'sride' of a window",
    ),
    "too deep": (_module('  %y = "stablehlo.negate"(%x) {a = ' + "[" * 100000), ValueError, "wrong.mlir:2: .*too deep"),
    "inside a call": (
        _module("  %y = func.call @g(%x) : (tensor<3xf32>) -> tensor<3xf32>")
        + "\nfunc.func private @g(%x: tensor<3xf32>) -> tensor<3xf32> {\n  %y = chlo.nothing %x : tensor<3xf32>\n"
        + "  return %y : tensor<3xf32>\n}",
        NotImplementedError,
        "wrong.mlir:6: chlo.nothing is an operation that Weft has nothing for",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_texts(name):
    text, kind, message = WRONG[name]
    with pytest.raises(kind, match=message):
        weft.ir.from_stablehlo(text, "wrong.mlir")


def test_a_text_that_is_cut_off_or_changed_is_refused_or_read():
    """Whatever becomes of a text, the answer is a program or an error of the kinds that are said."""
    text = weft.ir.to_stablehlo(weft.make_ir(PROGRAMS["sort_by_two"][0])(*PROGRAMS["sort_by_two"][1:]))
    rng = np.random.default_rng(0)
    for trial in range(150):
        at = int(rng.integers(len(text)))
        changed = text[:at] if trial % 2 else text[:at] + chr(rng.integers(32, 127)) + text[at + 1 :]
        with contextlib.suppress(ValueError, TypeError, NotImplementedError):
            weft.ir.from_stablehlo(changed)


def test_one_function_of_several():
    text = "func.func @f(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }\n"
    text += "func.func @g(%x: tensor<f32>) -> tensor<f32> {\n%y = stablehlo.negate %x : tensor<f32>\n"
    text += "return %y : tensor<f32> }"
    assert weft.ir.from_stablehlo(text, function="g")(2.0) == -2.0
    with pytest.raises(ValueError, match="no function 'h'; it has f, g"):
        weft.ir.from_stablehlo(text, function="h")


def test_names_of_parameters():
    text = weft.ir.to_stablehlo(weft.make_ir(lambda weights, x: weights * x)(V, V))
    assert [p.name for p in weft.ir.from_stablehlo(text).parameters] == ["weights", "x"]
    text = "func.func @main(%0: tensor<f32>, %if: tensor<f32>) -> tensor<f32> { return %if : tensor<f32> }"
    ir = weft.ir.from_stablehlo(text)
    assert [p.name for p in ir.parameters] == ["arg0", "arg1"] and ir(1.0, 2.0) == 2.0


def test_command_line(tmp_path, capsys):
    from weft.__main__ import main

    program, arrays = tmp_path / "f.weft", tmp_path / "in.npz"
    program.write_text(weft.make_ir(lambda x: wnp.sin(x) * 2)(V).text)
    np.savez(arrays, x=V)
    assert main(["dump", str(program), "--stage=stablehlo"]) == 0
    text = capsys.readouterr().out
    assert "stablehlo.sine" in text
    other = tmp_path / "f.mlir"
    other.write_text(text)
    assert main(["run", str(other), "--inputs", str(arrays), "--outputs", str(tmp_path / "out")]) == 0
    np.testing.assert_allclose(np.load(tmp_path / "out" / "0.npy"), np.sin(V) * 2, rtol=1e-6)
    other.write_text(text.replace("sine", "sinus"))
    assert main(["run", str(other), "--inputs", str(arrays)]) == 1
    assert "f.mlir:3: stablehlo.sinus" in capsys.readouterr().err


def test_lowered_text():
    lowered = weft.jit(lambda x: wnp.sin(x) * 2).lower(V)
    assert lowered.as_text("stablehlo") == weft.ir.to_stablehlo(weft.make_ir(lambda x: wnp.sin(x) * 2)(V)).replace(
        "@f ", "@f "
    )
    assert lowered.as_text().startswith("fn ") and "# " in lowered.as_text(debug_info=True)
