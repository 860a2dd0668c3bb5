"""Bundles: written by `weft export`, run by `weft run` on the CPU, as twins, and on a driver that pretends to be one.

The pretended driver (tests/gpu/fake_cuda.cc) takes the place of libcuda.so.1 and of cuBLASLt. It runs the kernels'
twins on late threads, so that what does not wait for the device reads garbage.
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
    "target, device", [("cpu", "cpu"), ("cuda:sm_90a", "twin"), ("cuda:sm_80", "twin"), ("cuda:sm_90a", "cuda")]
)
def test_a_bundle_computes(tmp_path: Path, target: str, device: str) -> None:
    path = bundle(tmp_path, SOFTMAX, f"--target={target}", *(["--twins"] if target != "cpu" else []))
    x = normal(6, 320)
    np.savez(tmp_path / "in.npz", x=x)
    weft("run", path, "--inputs", tmp_path / "in.npz", "--device", device, "--outputs", tmp_path / "out", **fake(path))
    np.testing.assert_allclose(results(tmp_path)[0], softmax(x), rtol=2e-6, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_products_and_kernels_in_order_on_a_late_device(tmp_path: Path, seed: int) -> None:
    path = bundle(tmp_path, PRODUCTS, "--target=cuda:sm_90a", "--twins")
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
    path = bundle(tmp_path, SOFTMAX, "--target=cuda:sm_90a", "--twins")
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
    path = bundle(tmp_path, PRODUCTS, "--target=cuda:sm_90a", "--twins")
    np.savez(tmp_path / "in.npz", normal(5, 12, 7), normal(5, 7, 9), normal(9, 4), normal(6, 4))
    done = weft("run", path, "--inputs", tmp_path / "in.npz", check=False, **fake(path, **environment))
    assert done.returncode == 1 and message in done.stderr
    # A program without products asks for no cuBLASLt.
    path = bundle(tmp_path, SOFTMAX, "--target=cuda:sm_90a", "--twins")
    np.savez(tmp_path / "in.npz", x=normal(6, 320))
    weft("run", path, "--inputs", tmp_path / "in.npz", **fake(path, **environment))


def test_bad_bundles_and_arguments(tmp_path: Path) -> None:
    path = bundle(tmp_path, SOFTMAX, "--target=cuda:sm_90a")
    x, inputs = normal(6, 320), tmp_path / "in.npz"

    def says(message: str, *options: object, **arrays: np.ndarray) -> None:
        np.savez(inputs, **(arrays or {"x": x}))
        done = weft("run", path, "--inputs", inputs, *options, check=False)
        assert done.returncode == 1 and message in done.stderr, done.stderr

    says("no twins", "--device=twin")
    says("is for cuda:sm_90a, not for cpu", "--device=cpu")
    says("has no array 'x'", y=x)
    says("argument 0 (x) is f32[6,321]; expected f32[6,320]", x=normal(6, 321))
    says("no program that could be interpreted", "--interpret")
    np.savez_compressed(inputs, x=x)
    done = weft("run", path, "--inputs", inputs, check=False)
    assert done.returncode == 1 and "compressed" in done.stderr
    whole = path.read_bytes()
    for size in (20, len(whole) // 2, len(whole) - 3):
        path.write_bytes(whole[:size])
        done = weft("run", path, "--inputs", inputs, check=False)
        assert (done.returncode == 1 and "damaged" in done.stderr) or "compressed" in done.stderr, done.stderr
    done = weft("run", tmp_path / "f.weft", "--inputs", inputs, "--device=cuda", check=False)
    assert done.returncode == 1 and "--device is for bundles" in done.stderr
    done = weft("export", tmp_path / "f.weft", "--target=cuda:sm_1", "-o", path, check=False)
    assert done.returncode == 1 and "there is no target" in done.stderr
