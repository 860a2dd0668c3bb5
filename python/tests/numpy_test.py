"""weft.numpy against NumPy: values, shapes, and (where JAX agrees with NumPy) kinds of dtype."""

import warnings

import numpy as np
import pytest

import weft
import weft.numpy as wnp

RNG = np.random.default_rng(0)
A = RNG.standard_normal((3, 4)).astype(np.float32)
B = RNG.standard_normal((3, 4)).astype(np.float32)
C = RNG.standard_normal((4, 5)).astype(np.float32)
V = RNG.standard_normal(4).astype(np.float32)
T = RNG.standard_normal((2, 3, 4)).astype(np.float32)
I = np.array([[3, -1, 2], [0, 5, -4]], np.int32)
U = np.abs(A) * 0.9 / np.abs(A).max()
N = np.where(A > 1, np.nan, A)
Z = (A + 1j * B).astype(np.complex64)

CASES = [
    # Element-wise.
    *[
        (name, (A,))
        for name in [
            "negative",
            "sign",
            "floor",
            "ceil",
            "trunc",
            "exp",
            "exp2",
            "expm1",
            "sin",
            "cos",
            "tan",
            "arctan",
            "sinh",
            "cosh",
            "tanh",
            "arcsinh",
            "square",
            "cbrt",
            "absolute",
            "fabs",
            "rint",
            "isfinite",
            "isnan",
            "isinf",
            "isposinf",
            "isneginf",
            "reciprocal",
            "deg2rad",
            "rad2deg",
            "radians",
            "degrees",
            "sinc",
            "signbit",
            "positive",
            "real",
            "imag",
            "conjugate",
            "logical_not",
            "nan_to_num",
        ]
    ],
    *[(name, (U,)) for name in ["log", "log2", "log10", "log1p", "sqrt", "arcsin", "arccos", "arctanh", "arctan"]],
    *[(name, (U + 1,)) for name in ["arccosh", "log"]],
    *[
        (name, (A, B))
        for name in [
            "add",
            "subtract",
            "multiply",
            "true_divide",
            "divide",
            "floor_divide",
            "remainder",
            "mod",
            "maximum",
            "minimum",
            "fmax",
            "fmin",
            "arctan2",
            "hypot",
            "logaddexp",
            "logaddexp2",
            "copysign",
            "fmod",
            "heaviside",
            "equal",
            "not_equal",
            "less",
            "less_equal",
            "greater",
            "greater_equal",
            "logical_and",
            "logical_or",
            "logical_xor",
        ]
    ],
    ("power", (U, B)),
    ("float_power", (U, B)),
    ("power", (I, 2)),
    ("power", (A, 3)),
    ("fmax", (N, B)),
    ("nan_to_num", (N,)),
    ("ldexp", (A, I[0, 0])),
    *[
        (name, (I, np.int32(3)))
        for name in [
            "add",
            "floor_divide",
            "remainder",
            "bitwise_and",
            "bitwise_or",
            "bitwise_xor",
            "left_shift",
            "right_shift",
            "maximum",
            "minimum",
        ]
    ],
    ("invert", (I,)),
    ("divmod", (A, B)),
    ("modf", (A,)),
    ("clip", (A, -0.5, 0.5)),
    ("clip", (I, 0, None)),
    ("where", (A > 0, A, B)),
    ("where", (A > 0, 1.0, B[0])),
    ("round", (A, 2)),
    ("round", (I,)),
    ("select", ([A > 0, A < -1], [A, B], 7.0)),
    ("exp", (Z,)),
    ("absolute", (Z,)),
    ("conjugate", (Z,)),
    ("imag", (Z,)),
    ("multiply", (Z, A)),
    ("isclose", (A, A + 1e-7)),
    ("allclose", (A, A)),
    ("array_equal", (A, A)),
    ("array_equal", (A, V)),
    # Reductions.
    *[
        (name, (x,), kw)
        for name in [
            "sum",
            "prod",
            "max",
            "min",
            "mean",
            "std",
            "var",
            "any",
            "all",
            "argmax",
            "argmin",
            "ptp",
            "count_nonzero",
            "median",
        ]
        for x, kw in [(A, {}), (A, {"axis": 0}), (A, {"axis": -1}), (T, {"axis": 1})]
    ],
    *[(name, (T,), {"axis": (0, 2), "keepdims": True}) for name in ["sum", "max", "mean", "std", "any"]],
    ("sum", (I,)),
    ("sum", (A > 0,)),
    ("prod", (I, 0)),
    ("mean", (I,)),
    ("var", (A,), {"ddof": 1}),
    ("cumsum", (A,)),
    ("cumsum", (A, 1)),
    ("cumprod", (A, 0)),
    ("cumsum", (A > 0,)),
    ("average", (A,), {"weights": np.abs(B)}),
    ("average", (A, 1), {"weights": np.abs(V)}),
    ("diff", (A,)),
    ("diff", (A, 2, 0)),
    ("ediff1d", (A,)),
    ("gradient", (V,)),
    ("trapezoid", (A,)),
    ("trapezoid", (A, V)),
    *[
        (name, (N,), {"axis": 1})
        for name in ["nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd", "nanargmax", "nanargmin"]
    ],
    ("quantile", (A, 0.3)),
    ("quantile", (A, np.array([0.1, 0.9]), 1)),
    ("percentile", (A, 30, 0)),
    ("median", (N,)),
    ("cov", (A,)),
    ("corrcoef", (A,)),
    ("cov", (A, B)),
    ("bincount", (np.array([0, 3, 3, 1], np.int32),)),
    ("bincount", (np.array([0, 2], np.int32), np.array([0.5, 2], np.float32))),
    ("histogram", (A.ravel(), 5), {"weights": np.ones(12, np.float32)}),
    ("interp", (np.float32([0.5, 2.5, -1, 9]), np.float32([0, 1, 2, 3]), np.float32([0, 10, 20, 15]))),
    # Shapes.
    ("reshape", (A, (2, 6))),
    ("reshape", (A, -1)),
    ("reshape", (A, (4, 3), "F")),
    ("ravel", (T,)),
    ("transpose", (T,)),
    ("transpose", (T, (1, 0, 2))),
    ("moveaxis", (T, 0, -1)),
    ("moveaxis", (T, (0, 1), (2, 0))),
    ("swapaxes", (T, 0, 2)),
    ("rollaxis", (T, 2)),
    ("rollaxis", (T, 0, 2)),
    ("expand_dims", (A, 1)),
    ("expand_dims", (A, (0, -1))),
    ("squeeze", (A[None, :, None],)),
    ("squeeze", (A[None, :, None], 0)),
    ("broadcast_to", (V, (3, 4))),
    ("concatenate", ([A, B],)),
    ("concatenate", ([A, B], 1)),
    ("concatenate", ([A, V], None)),
    ("append", (A, V)),
    ("stack", ([A, B], 1)),
    ("stack", ([A, B], -1)),
    ("vstack", ([A, V],)),
    ("hstack", ([A, B],)),
    ("hstack", ([V, V],)),
    ("dstack", ([A, B],)),
    ("column_stack", ([V, V],)),
    ("flip", (T,)),
    ("flip", (T, (0, 2))),
    ("flipud", (A,)),
    ("fliplr", (A,)),
    *[("rot90", (A, k)) for k in range(4)],
    ("roll", (A, 2)),
    ("roll", (A, -1, 1)),
    ("roll", (A, (1, 2), (0, 1))),
    ("tile", (A, 2)),
    ("tile", (A, (2, 1, 3))),
    ("repeat", (A, 2)),
    ("repeat", (A, 3, 1)),
    ("repeat", (A, [1, 0, 2], 0)),
    ("resize", (V, (2, 3))),
    *[("pad", (A, ((1, 2), (0, 3)), mode)) for mode in ["constant", "edge", "reflect", "symmetric", "wrap"]],
    ("pad", (A, 1), {"constant_values": 5.0}),
    ("kron", (A, C)),
    ("delete", (A, 1, 0)),
    ("insert", (V, 2, 9.0)),
    ("atleast_1d", (np.float32(1),)),
    ("atleast_2d", (V,)),
    ("atleast_3d", (A,)),
    ("split", (T, 2, 2)),
    ("split", (A, [1, 3], 1)),
    ("array_split", (V, 3)),
    ("array_split", (V, np.array([1, 3]))),
    ("setdiff1d", (np.array([5, 3, 3, 1, 2]), np.array([2, 9]), True)),
    ("vsplit", (A, 3)),
    ("hsplit", (A, 2)),
    ("meshgrid", (V, A[0])),
    ("tril", (A,)),
    ("triu", (A, 1)),
    ("diag", (V,)),
    ("diag", (V, 1)),
    ("diag", (V, -2)),
    ("diag", (A,)),
    ("diag", (A, 1)),
    ("diagonal", (T, 0, 1, 2)),
    ("trace", (A,)),
    ("vander", (V, 3)),
    # Products.
    ("matmul", (A, C)),
    ("matmul", (T, C)),
    ("matmul", (A, V)),
    ("matmul", (V, C)),
    ("matmul", (V, V)),
    ("matmul", (T, np.swapaxes(T, 1, 2))),
    ("matmul", (T[:, None], T.swapaxes(1, 2)[None])),
    ("matmul", (V, np.swapaxes(T, 1, 2))),
    ("matmul", (T[:1], np.swapaxes(T, 1, 2))),
    ("dot", (A, C)),
    ("dot", (V, V)),
    ("dot", (2.0, A)),
    ("dot", (T, C)),
    ("dot", (A, np.swapaxes(T, 1, 2))),
    ("vdot", (A, B)),
    ("inner", (A, B)),
    ("outer", (V, V)),
    ("tensordot", (T, T, ([0, 1], [0, 1]))),
    ("tensordot", (A, C, 1)),
    ("tensordot", (A, B, 2)),
    ("cross", (A[:, :3], B[:, :3])),
    *[("convolve", (A.ravel(), V, mode)) for mode in ("full", "same", "valid")],
    ("correlate", (A.ravel(), V, "full")),
    ("polyval", (V, A)),
    *[
        ("einsum", case)
        for case in [
            ("ij,jk->ik", A, C),
            ("ij,jk", A, C),
            ("ij->ji", A),
            ("ij->", A),
            ("ii->i", T[:, :2, 0]),
            ("ii", T[:, :2, 0]),
            ("bij,bij->b", T, T),
            ("i,j->ij", V, V),
            ("...j,jk->...k", T, C),
            ("ij,jk,kl->il", A, C, C.T),
            ("ij,ij->ij", A, B),
            ("i->", V),
            ("ij,kj->ik", A, B),
            ("ijk->kji", T),
            ("...->...", A),
            ("b...,b...->...", T, T),
            ("ij,k->jk", A, V),
        ]
    ],
    # Order.
    ("sort", (A,)),
    ("sort", (A, 0)),
    ("sort", (A, None)),
    ("argsort", (A,)),
    ("argsort", (I, 1)),
    ("searchsorted", (np.sort(V), A)),
    ("searchsorted", (np.sort(V), V, "right")),
    ("sort", (N, 1)),
    ("unique", (I,)),
    ("digitize", (V, np.float32([-1, 0, 1]))),
    ("lexsort", ((I[0], I[1]),)),
    # Indexing.
    ("take", (A, np.array([0, 5]))),
    ("take", (A, np.array([[0, 2]]), 1)),
    ("take_along_axis", (A, np.argsort(A, 1), 1)),
    ("nonzero", (I,)),
    ("argwhere", (I,)),
    ("flatnonzero", (I,)),
    ("extract", (A > 0, A)),
    ("compress", ([True, False, True], A, 0)),
    ("isin", (I, [0, 2])),
    ("unravel_index", (np.array([5, 7], np.int32), (3, 4))),
    ("choose", (np.array([0, 1, 0, 1], np.int32), [V, V * 2])),
    # Creation.
    ("arange", (5,)),
    ("arange", (2, 9, 3)),
    ("arange", (5, 0, -2)),
    ("arange", (0.0, 1.0, 0.25)),
    ("linspace", (0.0, 1.0, 7)),
    ("linspace", (0, 1, 4), {"endpoint": False}),
    ("linspace", (V, V + 1, 3)),
    ("logspace", (0.0, 2.0, 5)),
    ("geomspace", (1.0, 1000.0, 4)),
    ("geomspace", (-1.0, 1.0, 4)),
    ("geomspace", (1 + 1j, 16 + 16j, 5)),
    ("geomspace", (-1j, 8.0, 4, False)),
    ("eye", (3,)),
    ("eye", (3, 4, 1)),
    ("identity", (3,)),
    ("tri", (3, 4, 1)),
    ("full", ((2, 3), 7)),
    ("zeros", ((2, 3),)),
    ("ones", (4,)),
    ("zeros_like", (I,)),
    ("ones_like", (A,)),
    ("full_like", (I, 4)),
    ("indices", ((2, 3),)),
    ("tril_indices", (3,)),
    ("diagflat", (V,)),
]


def close(got, want, message):
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want), message
        for g, w in zip(got, want):
            close(g, w, message)
        return
    want = np.asarray(want)
    got = np.asarray(got)
    assert got.shape == want.shape, (message, got.shape, want.shape)
    assert got.dtype.kind == want.dtype.kind or (got.dtype.kind in "iu" and want.dtype.kind in "iu"), (
        message,
        got.dtype,
        want.dtype,
    )
    np.testing.assert_allclose(got, want, rtol=3e-5, atol=3e-6, err_msg=message)


@pytest.mark.parametrize("n", range(len(CASES)))
def test_like_numpy(n):
    name, args, kwargs = (*CASES[n], {})[:3]
    message = f"{name}{tuple(getattr(a, 'shape', a) for a in args)} {kwargs}"
    with np.errstate(all="ignore"):
        want = getattr(np, name)(*args, **kwargs)
    close(getattr(wnp, name)(*args, **kwargs), want, message)


JITTED = [
    n
    for n, case in enumerate(CASES)
    if all(isinstance(a, np.ndarray) and a.dtype == np.float32 for a in case[1])
    and case[0] not in ("array_equal", "unique", "nonzero", "extract", "histogram")
]


@pytest.mark.parametrize("n", JITTED)
def test_jitted(n):
    name, args, kwargs = (*CASES[n], {})[:3]
    with np.errstate(all="ignore"):
        want = getattr(np, name)(*args, **kwargs)
    close(weft.jit(lambda *a: getattr(wnp, name)(*a, **kwargs))(*args), want, name)


@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
def test_variance_of_complex_numbers_in_a_real_dtype(name):
    x = np.array([1 + 1j, 2 - 3j, -2j])
    for dtype in (np.float32, np.float64):
        given = getattr(wnp, name)(x, dtype=dtype)
        assert given.dtype == dtype
        np.testing.assert_allclose(np.asarray(given), getattr(np, name)(x), rtol=1e-6)


def test_geomspace_from_or_to_zero():
    assert np.isnan(np.asarray(wnp.geomspace(0.0, 1.0, 4))).all()
    given = np.asarray(wnp.geomspace(wnp.array([1.0, 1.0]), wnp.array([0.0, 4.0]), 3))
    np.testing.assert_allclose(given, [[np.nan, 1], [np.nan, 2], [np.nan, 4]], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "float64", "complex64"])
def test_files(tmp_path, dtype):
    x = wnp.array([[1, 0], [1, 1]], dtype)
    wnp.save(tmp_path / "x.npy", x)
    y = wnp.load(tmp_path / "x.npy")
    assert isinstance(y, weft.Array) and y.dtype == x.dtype and wnp.array_equal(x, y)
    wnp.savez(tmp_path / "x", x, name=x + x)
    with wnp.load(tmp_path / "x.npz") as file:
        assert sorted(file) == ["arr_0", "name"] and file["name"].shape == (2, 2)


def test_files_refuse(tmp_path):
    with pytest.raises(weft.TracerError, match="numbers are not known"):
        weft.jit(lambda x: wnp.save(tmp_path / "x.npy", x))(wnp.ones(2))
    (tmp_path / "text.npy").write_text("no array")
    with pytest.raises(ValueError):
        wnp.load(tmp_path / "text.npy")
    wnp.save(tmp_path / "x.npy", wnp.ones(9))
    (tmp_path / "x.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:-5])
    with pytest.raises(ValueError):
        wnp.load(tmp_path / "x.npy")


def test_at_least_120_functions():
    assert len({case[0] for case in CASES}) >= 120, len({case[0] for case in CASES})


def test_every_function_says_what_it_does():
    for name in wnp.__all__:
        f = getattr(wnp, name)
        if callable(f) and not isinstance(f, type):
            assert f.__doc__ and len(f.__doc__) > 5, name


def weighted(f):
    return lambda x: (f(x) * x).sum()


def test_nn():
    jax = pytest.importorskip("jax")
    x = np.linspace(-5, 5, 24, dtype=np.float32).reshape(4, 6)
    for name in [
        "relu",
        "relu6",
        "sigmoid",
        "silu",
        "softplus",
        "log_sigmoid",
        "soft_sign",
        "elu",
        "celu",
        "selu",
        "leaky_relu",
        "gelu",
        "glu",
        "mish",
        "hard_tanh",
        "hard_sigmoid",
        "hard_silu",
        "softmax",
        "log_softmax",
        "logsumexp",
        "standardize",
        "swish",
    ]:
        np.testing.assert_allclose(
            np.asarray(getattr(weft.nn, name)(x)),
            np.asarray(getattr(jax.nn, name)(x)),
            rtol=2e-5,
            atol=1e-5,
            err_msg=name,
        )
        if name != "glu":
            got = weft.grad(weighted(getattr(weft.nn, name)))(x)
            want = jax.grad(weighted(getattr(jax.nn, name)))(x)
            np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-3, atol=1e-4, err_msg=name)
    np.testing.assert_array_equal(
        np.asarray(weft.nn.one_hot(np.array([0, 2, 5]), 3)), np.asarray(jax.nn.one_hot(np.array([0, 2, 5]), 3))
    )
    assert np.asarray(weft.nn.logsumexp(np.float32([-np.inf, -np.inf]))) == -np.inf


def test_copysign_takes_the_dtype_of_both():
    for x, y in ((3.0, np.array([-0.0, 1.0])), (np.float16(2), np.array([-1.0], np.float16)), (3, np.float32(-1))):
        ours = wnp.copysign(x, y)
        theirs = np.copysign(np.asarray(x, np.asarray(y).dtype), y)
        assert ours.dtype == theirs.dtype and not ours.weak_type
        np.testing.assert_array_equal(np.asarray(ours), theirs)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "uint32", "uint64"])
def test_narrow_and_unsigned_indices_of_long_arrays(dtype):
    """Here JAX compares the indices with sizes of their own dtype, and takes others."""
    x, i = np.arange(300) * 2, np.array([5, 100, 0], dtype)
    negative = np.array([-1, -100], dtype) if dtype.startswith("int") else i
    for at in (i, negative):
        for mode in ("wrap", "clip"):
            want = np.take(x, at, mode=mode)
            assert wnp.take(x, at, mode=mode).tolist() == want.tolist()
        assert wnp.take(x, at, fill_value=-7).tolist() == x[at].tolist()
        assert wnp.take_along_axis(x, at, 0).tolist() == np.take_along_axis(x, at, 0).tolist()


def test_cov_of_too_few_observations():
    for m, options in [
        (np.ones(0), {}),
        (np.ones(1), {"ddof": 3}),
        (np.ones((2, 2)), {"ddof": 5}),
        (A, {"ddof": 9, "aweights": np.ones(A.shape[1])}),
    ]:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = np.cov(m, **options)
        np.testing.assert_allclose(np.asarray(wnp.cov(m, **options)), want, rtol=1e-5)


def test_complex_numbers_are_rounded_part_by_part():
    x = np.array([1.25 - 2.35j, 0.5 + 1.5j], np.complex64)
    np.testing.assert_allclose(np.asarray(wnp.round(x, 1)), np.round(x, 1), rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(wnp.rint(x)), np.rint(x))


@pytest.mark.parametrize(
    "u,v", [([1.0, -3.0, 2.0], [1.0, -1.0]), ([2.0, 5.0, 1.0, 7.0], [2.0, 0.0, 3.0]), ([1.0], [2.0, 1.0])]
)
def test_polydiv(u, v):
    ours, theirs = wnp.polydiv(np.array(u), np.array(v)), np.polydiv(u, v)
    np.testing.assert_allclose(np.asarray(ours[0]), theirs[0], atol=1e-12)
    rest = np.asarray(ours[1])
    np.testing.assert_allclose(rest[len(rest) - len(theirs[1]) :], theirs[1], atol=1e-12)
    np.testing.assert_allclose(rest[: len(rest) - len(theirs[1])], 0, atol=1e-12)


@pytest.mark.parametrize("trim", ["fb", "f", "b"])
@pytest.mark.parametrize("x", [[0, 0, 1, 0, 2, 0], [1, 2], [0, 0], []])
def test_trim_zeros(x, trim):
    x = np.array(x, np.int32)
    np.testing.assert_array_equal(np.asarray(wnp.trim_zeros(x, trim)), np.trim_zeros(x, trim))


def test_what_is_left_of_more_differences_than_elements():
    """Nothing, at once."""
    x = np.arange(6).reshape(2, 3)
    for n in (3, 4, 2**40):
        np.testing.assert_array_equal(wnp.diff(x, n), np.diff(x, min(n, 5)))
        assert wnp.polyder(np.ones(3), n).shape == (0,)


def test_lists_and_numpy_arrays_where_shapes_matter():
    """Functions that look at a shape before they compute take what NumPy's take."""
    np.testing.assert_allclose(wnp.fft.hfft([1.0, 2.0, 1.0]), np.fft.hfft([1.0, 2.0, 1.0]), atol=1e-6)
    np.testing.assert_allclose(wnp.fft.ihfft([6.0, 0.0, -2.0, 0.0]), np.fft.ihfft([6.0, 0.0, -2.0, 0.0]), atol=1e-6)
    np.testing.assert_allclose(
        wnp.gradient([1.0, 4.0, 9.0], [0.0, 1.0, 3.0]), np.gradient([1.0, 4.0, 9.0], [0.0, 1.0, 3.0]), rtol=1e-6
    )
    np.testing.assert_allclose(wnp.polyint([2.0, 2.0], 2, [3, 4]), np.polyint([2.0, 2.0], 2, [3, 4]), rtol=1e-6)
    np.testing.assert_array_equal(wnp.roll(np.eye(3), np.array([1, 2]), (0, 1)), np.roll(np.eye(3), [1, 2], (0, 1)))
    assert wnp.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]) == 1
    np.testing.assert_allclose(wnp.tile([[1, 2]], 2), np.tile([[1, 2]], 2))
    x = np.arange(6.0, dtype=np.float32)
    for part in (weft.lax.slice_in_dim(x, 1, 5, 2), weft.lax.index_in_dim(x, 1)):
        assert isinstance(part, weft.Array)
    with pytest.raises(ValueError, match="no norm 'fro'"):
        wnp.linalg.norm(wnp.ones(3), "fro")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_ldexp_rounds_once(dtype):
    rng = np.random.default_rng(0)
    info = np.finfo(dtype)
    x = (rng.uniform(1, 2, 4000) * rng.choice([-1, 1], 4000)).astype(dtype)
    x = np.ldexp(x, rng.integers(info.minexp - info.nmant, info.maxexp - 1, 4000))
    power = rng.integers(-2 * info.maxexp - info.nmant - 9, 2 * info.maxexp + info.nmant + 9, 4000)
    with np.errstate(over="ignore", under="ignore"):
        np.testing.assert_array_equal(np.asarray(wnp.ldexp(x, power)), np.ldexp(x, power))
    assert float(weft.grad(lambda v: wnp.ldexp(v, -3))(2.0)) == 0.125


def test_ldexp_refuses():
    with pytest.raises(TypeError, match="x1 is c64"):
        wnp.ldexp(1j, 2)
    with pytest.raises(TypeError, match="x2 is f32"):
        wnp.ldexp(1.0, 2.0)


# Searching, joining and folding long arrays by other ways than short ones (see _COUNTED, _COMPARED, _LONG).
LENGTHS = [1, 5, 31, 32, 33, 64, 200]


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "bool"])
def test_searches_of_any_length(n, dtype):
    random = np.random.default_rng(n)
    table = random.integers(0, 50, n).astype(dtype)
    values = random.integers(0, 60, (4, 7)).astype(dtype)
    if table.dtype.kind == "f":
        table[n // 2] = values[0, 0] = np.nan
        values[1, :2] = np.inf, -np.inf
    ordered = np.sort(table)
    for side in ("left", "right"):
        wanted = np.searchsorted(ordered, values, side)
        for given in (
            wnp.searchsorted(ordered, values, side),
            weft.jit(lambda a, v, side=side: wnp.searchsorted(a, v, side))(ordered, values),
            weft.vmap(lambda a, v, side=side: wnp.searchsorted(a, v, side), (None, 0))(ordered, values),
        ):
            np.testing.assert_array_equal(np.asarray(given), wanted)
            assert given.dtype == np.int32
    bins = ordered[ordered == ordered]
    np.testing.assert_array_equal(np.asarray(wnp.digitize(values, bins)), np.digitize(values, bins))
    np.testing.assert_array_equal(np.asarray(wnp.isin(values, table)), np.isin(values, table))
    np.testing.assert_array_equal(np.asarray(wnp.intersect1d(values, table)), np.intersect1d(values, table))
    counts = random.integers(0, 4, n)
    for total in (0, int(counts.sum()), int(counts.sum()) + 3):
        repeated = np.append(np.repeat(table, counts), [table[-1]] * 3)[:total]
        np.testing.assert_array_equal(np.asarray(wnp.repeat(table, counts, total_repeat_length=total)), repeated)


@pytest.mark.parametrize("n", LENGTHS)
def test_interpolation_in_any_number_of_points(n):
    random = np.random.default_rng(n)
    places, values = np.sort(random.normal(size=n)), random.normal(size=n)
    x = np.concatenate([random.normal(size=40) * 2, places, [np.inf, -np.inf, np.nan]])
    np.testing.assert_allclose(np.asarray(wnp.interp(x, places, values)), np.interp(x, places, values), rtol=1e-12)


@pytest.mark.parametrize(
    "n, k", [(100, 15), (100, 16), (16, 16), (600, 255), (300, 257), (1000, 40), (20, 300), (3, 18)]
)
def test_convolutions_of_any_length(n, k):
    random = np.random.default_rng(n)
    a, v = random.normal(size=n), random.normal(size=k)
    for mode in ("full", "same", "valid"):
        for ours, theirs in ((wnp.convolve, np.convolve), (wnp.correlate, np.correlate)):
            np.testing.assert_allclose(np.asarray(ours(a, v, mode)), theirs(a, v, mode), atol=1e-12)
            lanes = weft.vmap(lambda a, ours=ours, mode=mode: ours(a, v, mode))(np.stack([a, 2 * a]))
            np.testing.assert_allclose(np.asarray(lanes[1]), theirs(2 * a, v, mode), atol=1e-12)
    # The derivative by v of <w, a * v> is the correlation of w with a.
    w = random.normal(size=n + k - 1)
    slope = weft.grad(lambda v: (w * wnp.convolve(a, v)).sum())(v)
    np.testing.assert_allclose(np.asarray(slope), np.correlate(w, a, "valid"), atol=1e-12)


def test_rounding_to_more_decimals_than_a_dtype_has():
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        x = wnp.array([3.7, -0.2, wnp.inf, wnp.nan], dtype)
        for decimals in (38, 39, 50, 308, 400):
            np.testing.assert_array_equal(wnp.round(x, decimals).astype("float64"), x.astype("float64"), str(decimals))
        assert wnp.round(x, 400).dtype == dtype
        for decimals in (-20, -39, -50, -400):
            np.testing.assert_array_equal(wnp.round(x[:2], decimals).astype("float64"), [0, -0.0])
        assert weft.grad(lambda v: wnp.round(v, 50))(x[0]) == 0
    assert wnp.round(wnp.float32(3e38), 1) == wnp.float32(3e38)


def test_unwrapping_integers():
    values = np.random.default_rng(0).integers(-30, 30, (2, 20)).astype("int32")
    for period in range(2, 9):
        got = wnp.unwrap(values, period=period)
        assert got.dtype == "int32"
        np.testing.assert_array_equal(got, np.unwrap(values, period=period))
    assert wnp.unwrap(values, period=4.0).dtype == "float32" and wnp.unwrap(values).dtype == "float32"


def test_the_root_of_a_variance_beyond_16_bits():
    large = wnp.array([7, 2**31 - 1])
    assert wnp.nanstd(large, dtype="float16") == wnp.std(large, dtype="float16") == np.inf
    spread = wnp.array([0.0, 2000.0, wnp.nan], "float32")
    assert wnp.nanstd(spread, dtype="float16") == 1000 and wnp.nanvar(spread, dtype="float16") == np.inf
    assert wnp.nanstd(spread.astype("float16")) == 1000
    for function in (wnp.nanvar, wnp.nanstd):
        with pytest.raises(ValueError, match=f"{function.__name__}: dtype must be a float dtype, got int32"):
            function(spread, dtype="int32")


def test_convolutions_of_booleans_are_booleans():
    a, v = np.array([True, False, False, True]), np.array([True, True])
    for mode in ("full", "same", "valid"):
        for name in ("convolve", "correlate"):
            got, wanted = (getattr(m, name)(a, v, mode) for m in (wnp, np))
            assert got.dtype == wanted.dtype == "bool"
            np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(wnp.polymul(a, v), np.polymul(a, v))
    many = np.ones(3000, bool)
    assert wnp.convolve(many, many).all()
