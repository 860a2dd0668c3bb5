"""Bundles: written by `weft export`, run by `weft run` on the CPU, emulated, and on a driver that pretends to be one.

The pretended driver (tests/gpu/fake_cuda.cc) takes the place of libcuda.so.1 and of cuBLASLt. It runs the kernels'
emulated kernels on late threads, so that what does not wait for the device reads garbage.
"""

import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

FAKE = str(Path("tests/gpu/libfake_cuda.so").resolve())

SOFTMAX = """fn softmax(x: f32[6,320]) -> (f32[6,320]) {
  m: f32[6] = reduce_max[dims=[1]] x
  b: f32[6,320] = broadcast[dims=[0], shape=<6,320>] m
  d: f32[6,320] = sub x b
  e: f32[6,320] = exp d
  s: f32[6] = reduce_sum[dims=[1]] e
  t: f32[6,320] = broadcast[dims=[0], shape=<6,320>] s
  y: f32[6,320] = div e t
  return y
}
"""

# Products of all four kinds of operands, batches, a kernel in between and a result that is a parameter.
PRODUCTS = """fn products(x: f32[5,12,7], y: f32[5,7,9], w: f32[9,4], v: f32[6,4]) -> RESULTS {
  a: f32[5,12,9] = contract[spec="bij,bjk->bik"] x y
  c: f32[5,12,9] = max a 0.0:f32
  d: f32[5,12,4] = contract[spec="bik,kl->bil"] c w
  e: f32[5,12,6] = contract[spec="bil,ml->bim"] d v
  g: f32[9,6] = contract[spec="kl,ml->km"] w v
  h: f32[4,9] = contract[spec="ml,km->lk"] v g
  return c, e, h, w
}
""".replace("RESULTS", "(f32[5,12,9], f32[5,12,6], f32[4,9], f32[9,4])")

RNG = np.random.default_rng(3)


def weft(*arguments: object, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        ["driver/weft", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "LC_ALL": "C", **environment},
    )
    assert not check or done.returncode == 0, done.stderr
    return done


def bundle(folder: Path, program: str, *options: str) -> Path:
    (folder / "f.weft").write_text(program)
    weft("export", folder / "f.weft", *options, "-o", folder / "f.weftb")
    return folder / "f.weftb"


def results(folder: Path) -> list[np.ndarray]:
    return [np.load(folder / "out" / f"{i}.npy") for i in range(len(list((folder / "out").iterdir())))]


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def fake(path: Path, **environment: str) -> dict[str, str]:
    return {
        "WEFT_LIBCUDA": FAKE,
        "WEFT_LIBCUBLASLT": FAKE,
        "WEFT_FAKE_CUDA_BUNDLE": str(path),
        **environment,
    }


@pytest.mark.parametrize(
    "target, device",
    [("cpu", "cpu"), ("cuda:sm_90a", "emulation"), ("cuda:sm_80", "emulation"), ("cuda:sm_90a", "cuda")],
)
def test_a_bundle_computes(tmp_path: Path, target: str, device: str) -> None:
    path = bundle(tmp_path, SOFTMAX, f"--target={target}", *(["--emulation"] if target != "cpu" else []))
    x = normal(6, 320)
    np.savez(tmp_path / "in.npz", x=x)
    weft("run", path, "--inputs", tmp_path / "in.npz", "--device", device, "--outputs", tmp_path / "out", **fake(path))
    np.testing.assert_allclose(results(tmp_path)[0], softmax(x), rtol=2e-6, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_products_and_kernels_in_order_on_a_late_device(tmp_path: Path, seed: int) -> None:
    path = bundle(tmp_path, PRODUCTS, "--target=cuda:sm_90a", "--emulation")
    x, y, w, v = normal(5, 12, 7), normal(5, 7, 9), normal(9, 4), normal(6, 4)
    np.savez(tmp_path / "in.npz", x, y, w, v)
    weft(
        "run",
        path,
        "--inputs",
        tmp_path / "in.npz",
        "--outputs",
        tmp_path / "out",
        **fake(path, WEFT_FAKE_CUDA_SEED=str(seed)),
    )
    c = np.maximum(x @ y, 0)
    want = [c, c @ w @ v.T, (w @ v.T @ v).T, w]
    for got, expected in zip(results(tmp_path), want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


# name: equations that make `c` of y[6,3], x[6] and w[4,5,3] by a product of views, and NumPy's c.
VIEWS = {
    "the same rows": (
        """a: f32[4,6] = broadcast[dims=[1], shape=<4,6>] x
           c: f32[4,3] = contract[spec="mk,kn->mn"] a y""",
        lambda x, y, w: np.tile(x, (4, 1)) @ y,
    ),
    "the same columns": (
        """a: f32[6,4] = broadcast[dims=[0], shape=<6,4>] x
           c: f32[4,3] = contract[spec="km,kn->mn"] a y""",
        lambda x, y, w: np.tile(x, (4, 1)) @ y,
    ),
    "both": (
        """a: f32[6,4] = broadcast[dims=[0], shape=<6,4>] x
           b: f32[4,6] = broadcast[dims=[1], shape=<4,6>] x
           c: f32[6,6] = contract[spec="mk,kn->mn"] a b""",
        lambda x, y, w: 4 * np.outer(x, x),
    ),
    "one number": (
        """a: f32[] = reduce_sum[dims=[0]] x
           b: f32[1,6] = broadcast[dims=[], shape=<1,6>] a
           c: f32[1,3] = contract[spec="mk,kn->mn"] b y""",
        lambda x, y, w: x.sum() * y.sum(0, keepdims=True),
    ),
    "backwards": (
        """a: f32[6,3] = reverse[dims=[0]] y
           c: f32[3,3] = contract[spec="km,kn->mn"] a y""",
        lambda x, y, w: y[::-1].T @ y,
    ),
    "every other row and column": (
        """a: f32[3,2] = slice[start=[0, 0], limit=[6, 3], strides=[2, 2]] y
           b: f32[3,3] = slice[start=[1, 0], limit=[4, 3], strides=[1, 1]] y
           c: f32[2,3] = contract[spec="km,kn->mn"] a b""",
        lambda x, y, w: y[::2, ::2].T @ y[1:4],
    ),
    "one matrix for a batch": (
        """a: f32[4,6,3] = broadcast[dims=[1, 2], shape=<4,6,3>] y
           c: f32[4,6,5] = contract[spec="bkm,bnm->bkn"] a w""",
        lambda x, y, w: np.einsum("km,bnm->bkn", y, w),
    ),
    "results of a batch beside each other": (
        """p: f32[4,1,3] = slice[start=[0, 0, 0], limit=[4, 1, 3], strides=[1, 1, 1]] w
           q: f32[4,3] = reshape[shape=<4,3>] p
           c: f32[5,4] = contract[spec="bmk,bk->mb"] w q""",
        lambda x, y, w: np.einsum("bmk,bk->mb", w, w[:, 0, :]),
    ),
    "no terms": (
        """a: f32[0,3] = slice[start=[6, 0], limit=[6, 3], strides=[1, 1]] y
           c: f32[3,3] = contract[spec="km,kn->mn"] a a""",
        lambda x, y, w: np.zeros((3, 3)),
    ),
    "no results": (
        """a: f32[6,0] = slice[start=[0, 3], limit=[6, 3], strides=[1, 1]] y
           c: f32[0,3] = contract[spec="km,kn->mn"] a y""",
        lambda x, y, w: np.zeros((0, 3)),
    ),
}


@pytest.mark.parametrize("name", VIEWS)
def test_products_of_views(tmp_path: Path, name: str) -> None:
    """What cuBLASLt cannot read where it lies is computed first; the pretended one sees the layouts that a GPU gets."""
    equations, expected = VIEWS[name]
    x, y, w = normal(6), normal(6, 3), normal(4, 5, 3)
    want = expected(x, y, w)
    result = f"f32[{','.join(map(str, want.shape))}]"
    program = f"fn f(x: f32[6], y: f32[6,3], w: f32[4,5,3]) -> ({result}) {{\n{equations}\n  return c\n}}\n"
    path = bundle(tmp_path, program, "--target=cuda:sm_90a", "--emulation")
    np.savez(tmp_path / "in.npz", x=x, y=y, w=w)
    for device in ("emulation", "cuda"):
        arguments = ["--inputs", tmp_path / "in.npz", "--device", device, "--outputs", tmp_path / "out"]
        weft("run", path, *arguments, **fake(path))
        np.testing.assert_allclose(results(tmp_path)[0], want, rtol=1e-5, atol=1e-5)


def test_small_results_of_a_late_device(tmp_path: Path) -> None:
    program = """fn f(x: f32[5,3]) -> (f32[], f32[2], f32[]) {
      a: f32[] = reduce_sum[dims=[0, 1]] x
      b: f32[] = reduce_max[dims=[0, 1]] x
      c: f32[2] = broadcast[dims=[], shape=<2>] b
      d: f32[] = mul a 2.0:f32
      return a, c, d
    }
    """
    path = bundle(tmp_path, program, "--target=cuda:sm_90a", "--emulation")
    np.savez(tmp_path / "in.npz", x=np.ones((5, 3), np.float32))
    weft("run", path, "--inputs", tmp_path / "in.npz", "--outputs", tmp_path / "out", **fake(path))
    assert [r.tolist() for r in results(tmp_path)] == [15, [1, 1], 30]


def test_effects_of_bundles(tmp_path: Path) -> None:
    """They print, and fail; a callback is a function of the process that traced it."""
    program = """fn f(x: f32[]) -> (f32[]) {
      debug_print[format="hi {}"] x
      p: bool[] = gt x 0.0:f32
      assert[message="x is {}"] p x
      return x
    }
    """
    path = bundle(tmp_path, program)
    np.savez(tmp_path / "in.npz", x=np.float32(2))
    assert weft("run", path, "--inputs", tmp_path / "in.npz").stdout.splitlines()[0].startswith("hi 2")
    np.savez(tmp_path / "in.npz", x=np.float32(-2))
    done = weft("run", path, "--inputs", tmp_path / "in.npz", check=False)
    assert done.returncode == 1 and "x is -2" in done.stderr
    (tmp_path / "g.weft").write_text("""fn g(x: f32[]) -> (f32[]) {
      y: f32[] = pure_callback[callback=0, results=types(f32[])] x
      return y
    }
    """)
    done = weft("export", tmp_path / "g.weft", "-o", tmp_path / "g.weftb", check=False)
    assert done.returncode == 1 and "export: pure_callback calls a function of this process" in done.stderr
    assert not (tmp_path / "g.weftb").exists()


@pytest.mark.parametrize("key", [np.array([3, 7], np.uint32), np.uint64(3 + (7 << 32))])
def test_keys_are_given_by_their_words(tmp_path: Path, key: np.ndarray) -> None:
    path = bundle(tmp_path, "fn f(k: key[]) -> (u32[2]) {\n  y: u32[2] = random_unwrap k\n  return y\n}\n")
    np.savez(tmp_path / "in.npz", k=key)
    weft("run", path, "--inputs", tmp_path / "in.npz", "--outputs", tmp_path / "out")
    assert results(tmp_path)[0].tolist() == [3, 7]


def error(path: Path, folder: Path, **environment: str) -> str:
    np.savez(folder / "in.npz", x=normal(6, 320))
    done = weft("run", path, "--inputs", folder / "in.npz", check=False, **fake(path, **environment))
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


@pytest.mark.parametrize(
    "environment, message",
    [
        ({"WEFT_LIBCUDA": "none"}, "there is no NVIDIA driver on this machine: WEFT_LIBCUDA says"),
        ({"WEFT_LIBCUDA": "/nowhere/libcuda.so.1"}, "there is no NVIDIA driver on this machine: /nowhere"),
        ({"WEFT_LIBCUDA": "libm.so.6"}, "lacks cuInit; it is too old, or none of NVIDIA's"),
        ({"WEFT_FAKE_CUDA_IS": "stub"}, "the toolkit's stub"),
        ({"WEFT_FAKE_CUDA_IS": "no_device"}, "the driver finds no GPU"),
        ({"WEFT_FAKE_CUDA_IS": "old_driver"}, "the driver is of CUDA 11.4, too old .* needs 12.0 or later"),
        ({"WEFT_FAKE_CUDA_IS": "sm_80"}, r"compiled for sm_90a; device 0 \(Fake GPU\) is sm_80"),
        ({"WEFT_FAKE_CUDA_IS": "bad_ptx"}, r"PTX failed: CUDA_ERROR_INVALID_PTX \(218\) .*ptxas: line 7"),
    ],
)
def test_what_a_machine_lacks_is_one_sentence(tmp_path: Path, environment: dict[str, str], message: str) -> None:
    path = bundle(tmp_path, SOFTMAX, "--target=cuda:sm_90a", "--emulation")
    assert re.search(message, error(path, tmp_path, **environment))


def test_a_machine_without_a_driver(tmp_path: Path) -> None:
    path = bundle(tmp_path, SOFTMAX, "--target=cuda:sm_90a")
    np.savez(tmp_path / "in.npz", x=normal(6, 320))
    done = weft("run", path, "--inputs", tmp_path / "in.npz", check=False)
    if done.returncode == 0:
        pytest.skip("this machine has a GPU")
    assert done.stderr.startswith("weft: cuda: ")


@pytest.mark.parametrize(
    "environment, message",
    [
        ({"WEFT_LIBCUBLASLT": "none"}, "multiplies matrices, which needs cuBLASLt: WEFT_LIBCUBLASLT"),
        ({"WEFT_LIBCUBLASLT": "/nowhere.so"}, "multiplies matrices, which needs cuBLASLt: /nowhere"),
        ({"WEFT_LIBCUBLASLT": "libm.so.6"}, "lacks cublasLtCreate"),
        ({"WEFT_FAKE_CUDA_IS": "bad_lt"}, "is installed, but cannot be used: cublasLtCreate gives status 1"),
    ],
)
def test_without_cublaslt_only_products_fail(tmp_path: Path, environment: dict[str, str], message: str) -> None:
    path = bundle(tmp_path, PRODUCTS, "--target=cuda:sm_90a", "--emulation")
    np.savez(tmp_path / "in.npz", normal(5, 12, 7), normal(5, 7, 9), normal(9, 4), normal(6, 4))
    done = weft("run", path, "--inputs", tmp_path / "in.npz", check=False, **fake(path, **environment))
    assert done.returncode == 1 and message in done.stderr
    # A program without products asks for no cuBLASLt.
    path = bundle(tmp_path, SOFTMAX, "--target=cuda:sm_90a", "--emulation")
    np.savez(tmp_path / "in.npz", x=normal(6, 320))
    weft("run", path, "--inputs", tmp_path / "in.npz", **fake(path, **environment))


def test_bad_bundles_and_arguments(tmp_path: Path) -> None:
    path = bundle(tmp_path, SOFTMAX, "--target=cuda:sm_90a")
    x, inputs = normal(6, 320), tmp_path / "in.npz"

    def says(message: str, *options: object, **arrays: np.ndarray) -> None:
        np.savez(inputs, **(arrays or {"x": x}))
        done = weft("run", path, "--inputs", inputs, *options, check=False)
        assert done.returncode == 1 and message in done.stderr, done.stderr

    says("no code for host emulation", "--device=emulation")
    says("is for cuda:sm_90a, not for cpu", "--device=cpu")
    says("has no array 'x'", y=x)
    says("argument 0 (x) is f32[6,321]; expected f32[6,320]", x=normal(6, 321))
    says("no program that could be interpreted", "--interpret")
    np.savez_compressed(inputs, x=x)
    done = weft("run", path, "--inputs", inputs, check=False)
    assert done.returncode == 1 and "compressed" in done.stderr
    np.savez(inputs, x=x)
    whole = path.read_bytes()
    changed = [
        whole[:i] + bytes([whole[i] ^ 0x41]) + whole[i + 1 :] for i in (80, 300, len(whole) // 2, len(whole) - 1)
    ]
    for damaged in [whole[:20], whole[: len(whole) // 2], whole[:-3], whole + b"x", *changed]:
        path.write_bytes(damaged)
        done = weft("run", path, "--inputs", inputs, check=False)
        assert done.returncode == 1 and "the bundle is damaged" in done.stderr, done.stderr
    done = weft("run", tmp_path / "f.weft", "--inputs", inputs, "--device=cuda", check=False)
    assert done.returncode == 1 and "--device is for bundles" in done.stderr
    done = weft("export", tmp_path / "f.weft", "--target=cuda:sm_1", "-o", path, check=False)
    assert done.returncode == 1 and "there is no target" in done.stderr
