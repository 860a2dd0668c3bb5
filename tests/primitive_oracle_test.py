"""What primitives compute, against JAX, NumPy and SciPy: `weft run --interpret` on one equation at a time.

The generic tests of the registry say that a primitive's rules agree with its evaluation; this says what the evaluation
has to be.
"""

import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

os.environ["JAX_ENABLE_X64"] = "1"
jax = pytest.importorskip("jax")
lax = pytest.importorskip("jax.lax")

NAMES = {
    np.bool_: "bool", np.int8: "i8", np.int32: "i32", np.int64: "i64", np.uint8: "u8", np.uint32: "u32",
    np.float32: "f32", np.float64: "f64", np.complex64: "c64", np.complex128: "c128",
}  # fmt: skip


def type_of(value: np.ndarray) -> str:
    return f"{NAMES[value.dtype.type]}[{','.join(map(str, value.shape))}]"


def attribute(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list | tuple):
        return f"[{','.join(map(str, value))}]"
    return str(value)


def run(tmp_path: Path, prim: str, attrs: dict, inputs: list, expected: list) -> list[np.ndarray]:
    """The results of one equation, whose types are those of `expected`."""
    params = ", ".join(f"x{i}: {type_of(x)}" for i, x in enumerate(inputs))
    results = ", ".join(f"y{i}: {type_of(y)}" for i, y in enumerate(expected))
    text = ", ".join(f"{name}={attribute(value)}" for name, value in sorted(attrs.items()))
    program = (
        f"fn f({params}) -> ({', '.join(type_of(y) for y in expected)}) {{\n"
        f"  {results} = {prim}{f'[{text}]' if text else ''} {' '.join(f'x{i}' for i in range(len(inputs)))}\n"
        f"  return {', '.join(f'y{i}' for i in range(len(expected)))}\n}}\n"
    )
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    files = []
    for i, value in enumerate(inputs):
        files.append(folder / f"input{i}.npy")
        np.save(files[-1], value)
    command = ["driver/weft", "run", "-", "--interpret", "--inputs", *map(str, files), "--outputs", str(folder / "out")]
    done = subprocess.run(command, input=program, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, program + done.stderr
    return [np.load(path) for path in sorted((folder / "out").iterdir())]


def check(tmp_path: Path, prim: str, attrs: dict, inputs: list, expected: object, rtol: float = 1e-9) -> None:
    """Compares with `expected`, an array or several; integers and rtol=0 exactly, NaN equal to NaN."""
    wanted = [np.asarray(e) for e in (expected if isinstance(expected, list | tuple) else [expected])]
    for got, want in zip(run(tmp_path, prim, attrs, inputs, wanted), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)


def normal(*shape: int, dtype: type = np.float64, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if np.issubdtype(dtype, np.complexfloating) else x).astype(dtype)


CUMULATIVE = ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"]


@pytest.mark.parametrize("name", CUMULATIVE)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
def test_cumulative(tmp_path: Path, name: str, reverse: bool, dim: int) -> None:
    x = normal(4, 5)
    check(tmp_path, name, {"dim": dim, "reverse": reverse}, [x], getattr(lax, name)(x, axis=dim, reverse=reverse))


@pytest.mark.parametrize("name", CUMULATIVE)
def test_cumulative_of_unusual_numbers(tmp_path: Path, name: str) -> None:
    x = np.array([-np.inf, 3.0, -0.0, 1e300, 2.0, np.nan, 1.0])
    check(tmp_path, name, {"dim": 0, "reverse": False}, [x], getattr(lax, name)(x))


@pytest.mark.parametrize("dtype", [np.float64, np.int8, np.uint8, np.complex128])
def test_sums_and_products_wrap(tmp_path: Path, dtype: type) -> None:
    x = np.array([100, 100, 3, 7]).astype(dtype)
    check(tmp_path, "cumsum", {"dim": 0, "reverse": False}, [x], lax.cumsum(x))
    check(tmp_path, "cumprod", {"dim": 0, "reverse": False}, [x], lax.cumprod(x))


ODD = np.array([0.0, -0.0, np.nan, 1.0, -np.inf, np.inf, -1.0, -0.0, 0.0, np.nan, 1.0])


def test_sort_of_unusual_numbers(tmp_path: Path) -> None:
    tags = np.arange(len(ODD), dtype=np.int32)
    expected = [np.asarray(e) for e in lax.sort((ODD, tags), num_keys=1)]
    check(tmp_path, "sort", {"dim": 0, "num_keys": 1}, [ODD, tags], expected, rtol=0)


def test_sort_by_several_keys(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    xs = [rng.integers(0, 3, (20, 3)), rng.integers(0, 3, (20, 3)).astype(np.float64), rng.normal(size=(20, 3))]
    for num_keys in (1, 2, 3):
        check(
            tmp_path, "sort", {"dim": 0, "num_keys": num_keys}, xs, lax.sort(xs, dimension=0, num_keys=num_keys), rtol=0
        )


def test_sort_of_complex_numbers(tmp_path: Path) -> None:
    x = np.array([1 + 2j, 1 - 2j, 1j, np.nan + 0j, complex(0, np.nan), complex(-0.0, 1), complex(-0.0, -1)])
    check(tmp_path, "sort", {"dim": 0, "num_keys": 1}, [x], lax.sort(x), rtol=0)


@pytest.mark.parametrize("k", [1, 4, 11])
def test_top_k(tmp_path: Path, k: int) -> None:
    x = np.stack([ODD, -ODD])
    check(tmp_path, "top_k", {"k": k}, [x], lax.top_k(x, k), rtol=0)


WINDOWS = [
    ([2, 2], [2, 2], [0, 0], [0, 0], [1, 1], [1, 1]),
    ([3, 1], [1, 2], [1, 0], [1, 0], [1, 1], [1, 1]),
    ([3, 2], [2, 1], [2, 3], [1, 0], [1, 2], [2, 1]),
    ([2, 4], [3, 1], [-1, 3], [1, 3], [2, 1], [1, 1]),
    ([9, 1], [1, 1], [0, 0], [0, 0], [1, 1], [1, 1]),
]


@pytest.mark.parametrize("case", WINDOWS)
@pytest.mark.parametrize("kind", ["sum", "max", "min"])
@pytest.mark.parametrize("dtype", [np.float64, np.int32])
def test_reduce_window(tmp_path: Path, case: tuple, kind: str, dtype: type) -> None:
    window, strides, lo, hi, base, dilation = case
    x = (normal(6, 5) * 10).astype(dtype)
    limit = np.iinfo(dtype) if dtype == np.int32 else None
    start, op = {
        "sum": (0, lax.add),
        "max": (limit.min if limit else -np.inf, lax.max),
        "min": (limit.max if limit else np.inf, lax.min),
    }[kind]
    expected = lax.reduce_window(
        x,
        dtype(start),
        op,
        window,
        strides,
        list(zip(lo, hi, strict=True)),
        base_dilation=base,
        window_dilation=dilation,
    )
    attrs = {
        "window": window,
        "strides": strides,
        "lo": lo,
        "hi": hi,
        "base_dilation": base,
        "window_dilation": dilation,
    }
    check(tmp_path, f"reduce_window_{kind}", attrs, [x], expected)


CONVOLUTIONS = [
    ((2, 3, 7), (4, 3, 3), [2], [1], [2], [1], [1], 1, 1),
    ((2, 3), (4, 3), [], [], [], [], [], 1, 1),
    ((1, 2, 6, 5), (3, 2, 3, 2), [1, 2], [1, -1], [2, 1], [2, 1], [1, 2], 1, 1),
    ((2, 6, 5), (4, 3, 2), [1], [0], [1], [1], [2], 2, 1),
    ((2, 4, 5), (8, 1, 3), [1], [1], [1], [1], [1], 4, 1),
    ((6, 2, 5), (4, 2, 3), [1], [1], [0], [1], [1], 1, 2),
    ((1, 1, 4, 3, 4), (2, 1, 2, 2, 2), [1, 1, 2], [0, 1, 0], [0, 0, 1], [1, 2, 1], [1, 1, 1], 1, 1),
]


@pytest.mark.parametrize("case", CONVOLUTIONS)
@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.complex128])
def test_conv(tmp_path: Path, case: tuple, dtype: type) -> None:
    x_shape, w_shape, strides, lo, hi, lhs, rhs, features, batches = case
    x, w = (normal(*x_shape, dtype=np.complex128) * 5).real.astype(dtype), (normal(*w_shape, seed=1) * 5).astype(dtype)
    if dtype == np.complex128:
        x, w = normal(*x_shape, dtype=dtype), normal(*w_shape, dtype=dtype, seed=1)
    expected = lax.conv_general_dilated(
        x, w, strides, list(zip(lo, hi, strict=True)), lhs_dilation=lhs, rhs_dilation=rhs,
        feature_group_count=features, batch_group_count=batches,
    )  # fmt: skip
    attrs = {
        "strides": strides, "lo": lo, "hi": hi, "lhs_dilation": lhs, "rhs_dilation": rhs,
        "feature_groups": features, "batch_groups": batches,
    }  # fmt: skip
    check(tmp_path, "conv", attrs, [x, w], expected)


@pytest.mark.parametrize("lengths", [(6,), (5,), (4, 3), (2, 3, 4), (1,)])
@pytest.mark.parametrize("kind", ["fft", "ifft", "rfft", "irfft"])
def test_fft(tmp_path: Path, kind: str, lengths: tuple[int, ...]) -> None:
    axes = tuple(range(-len(lengths), 0))
    last = lengths[-1] // 2 + 1 if kind == "irfft" else lengths[-1]
    x = normal(2, *lengths[:-1], last, dtype=np.float64 if kind == "rfft" else np.complex128)
    expected = getattr(np.fft, kind + "n")(x, s=lengths, axes=axes)
    check(tmp_path, "fft", {"kind": kind, "lengths": lengths}, [x], expected)


LAPACK_TYPES = pytest.mark.parametrize("dtype", [np.float64, np.complex128])
SHAPES = pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 3, 2), (1, 1)])


def definite(n: int, dtype: type) -> np.ndarray:
    a = normal(2, n, n, dtype=dtype)
    return a @ a.conj().swapaxes(1, 2) + n * np.eye(n)


@LAPACK_TYPES
def test_cholesky(tmp_path: Path, dtype: type) -> None:
    a = definite(4, dtype)
    upper_half_is_not_read = np.tril(a) + np.triu(normal(4, 4), 1)
    check(tmp_path, "cholesky", {}, [upper_half_is_not_read], np.linalg.cholesky(a))


def test_cholesky_of_an_indefinite_matrix(tmp_path: Path) -> None:
    a = np.array([[1.0, 2.0], [2.0, 1.0]])
    check(tmp_path, "cholesky", {}, [a], lax.linalg.cholesky(a))


@LAPACK_TYPES
@pytest.mark.parametrize("flags", range(32))
def test_triangular_solve(tmp_path: Path, dtype: type, flags: int) -> None:
    names = ["left", "lower", "transpose", "conjugate", "unit_diagonal"]
    attrs = {name: bool(flags >> i & 1) for i, name in enumerate(names)}
    a, b = normal(2, 4, 4, dtype=dtype) + 3 * np.eye(4), normal(2, 4, 3, dtype=dtype, seed=1)
    b = b if attrs["left"] else b.swapaxes(1, 2).copy()
    expected = lax.linalg.triangular_solve(
        a, b, left_side=attrs["left"], lower=attrs["lower"], transpose_a=attrs["transpose"],
        conjugate_a=attrs["conjugate"], unit_diagonal=attrs["unit_diagonal"],
    )  # fmt: skip
    check(tmp_path, "triangular_solve", attrs, [a, b], expected)


@LAPACK_TYPES
@SHAPES
def test_qr(tmp_path: Path, dtype: type, shape: tuple[int, ...]) -> None:
    a = normal(*shape, dtype=dtype)
    check(tmp_path, "qr", {}, [a], lax.linalg.qr(a, full_matrices=False))


@LAPACK_TYPES
@SHAPES
def test_lu(tmp_path: Path, dtype: type, shape: tuple[int, ...]) -> None:
    a = normal(*shape, dtype=dtype)
    check(tmp_path, "lu", {}, [a], lax.linalg.lu(a))


def test_lu_of_a_singular_matrix(tmp_path: Path) -> None:
    a = np.array([[0.0, 1.0, 2.0], [0.0, 0.0, 3.0], [0.0, 2.0, 1.0]])
    check(tmp_path, "lu", {}, [a], lax.linalg.lu(a))


@LAPACK_TYPES
def test_eigh(tmp_path: Path, dtype: type) -> None:
    a = definite(5, dtype)
    w, v = np.linalg.eigh(a)
    got_w, got_v = run(tmp_path, "eigh", {}, [np.tril(a)], [w, v])
    np.testing.assert_allclose(got_w, w, rtol=1e-10)
    # The same vectors up to a phase each.
    overlap = np.abs(v.conj().swapaxes(1, 2) @ got_v)
    np.testing.assert_allclose(overlap, np.broadcast_to(np.eye(5), overlap.shape), atol=1e-9)


@LAPACK_TYPES
@SHAPES
def test_svd(tmp_path: Path, dtype: type, shape: tuple[int, ...]) -> None:
    a = normal(*shape, dtype=dtype)
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    got_u, got_s, got_vt = run(tmp_path, "svd", {"compute_uv": True}, [a], [u, s, vt])
    np.testing.assert_allclose(got_s, s, rtol=1e-10)
    np.testing.assert_allclose((got_u * got_s[..., None, :]) @ got_vt, a, atol=1e-10)
    eye = np.broadcast_to(np.eye(s.shape[-1]), (*s.shape, s.shape[-1]))
    np.testing.assert_allclose(got_u.conj().swapaxes(-1, -2) @ got_u, eye, atol=1e-10)
    np.testing.assert_allclose(got_vt @ got_vt.conj().swapaxes(-1, -2), eye, atol=1e-10)
    check(tmp_path, "svd", {"compute_uv": False}, [a], s)


def test_svd_of_a_singular_matrix(tmp_path: Path) -> None:
    a = np.outer([1.0, 2.0, 3.0], [1.0, -1.0])
    u, s, vt = run(tmp_path, "svd", {"compute_uv": True}, [a], list(np.linalg.svd(a, full_matrices=False)))
    np.testing.assert_allclose((u * s) @ vt, a, atol=1e-12)
    np.testing.assert_allclose(u.T @ u, np.eye(2), atol=1e-12)


def test_threefry(tmp_path: Path) -> None:
    random = pytest.importorskip("jax.extend.random")
    rng = np.random.default_rng(0)
    key, counts = rng.integers(0, 2**32, 2, dtype=np.uint32), rng.integers(0, 2**32, (2, 50), dtype=np.uint32)
    expected = np.asarray(random.threefry_2x32(key, counts.reshape(-1))).reshape(2, 50)
    words = [np.full(50, k, np.uint32) for k in key]
    check(tmp_path, "threefry2x32", {}, [*words, *counts], list(expected), rtol=0)
