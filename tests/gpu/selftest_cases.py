"""What `weft selftest --gpu` runs: programs compiled for GPUs, arguments, and results that NumPy computes in float64.

Large arguments repeat a few rows, so that little has to be carried; what the programs give then repeats too, and all of
it is compared.
"""

import io
import math
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import weft
import weft.numpy as wnp

TARGETS = ["sm_90a", "sm_80"]
_BFLOAT16 = "bfloat16"


@dataclass
class Argument:
    """An array of `dtype`: `block`, repeated along its first dimension to `rows`."""

    block: np.ndarray
    dtype: str
    rows: int

    @property
    def spec(self) -> weft.ShapeDtypeStruct:
        return weft.ShapeDtypeStruct((self.rows, *self.block.shape[1:]), self.dtype)

    @property
    def stored(self) -> np.ndarray:
        """NumPy has no bfloat16: the upper halves of float32's bits."""
        if self.dtype != _BFLOAT16:
            return self.block.astype(self.dtype)
        return (self.block.astype(np.float32).view(np.uint32) >> 16).astype("<u2").view("V2")

    @property
    def exact(self) -> np.ndarray:
        """What is stored, in float64."""
        if self.dtype != _BFLOAT16:
            return self.block.astype(self.dtype).astype(np.float64)
        return (self.block.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32).astype(np.float64)


@dataclass
class Case:
    """kind: check; or copy, memory, product, which are also measured. reference: of NumPy, from the exact blocks to the
    results, or to blocks that they repeat. tolerance: of each element, relative to the sum of its size and `scale`,
    which is not 0 where terms of about that size may cancel."""

    kind: str
    name: str
    program: Callable
    arguments: list[Argument]
    reference: Callable
    tolerance: float
    scale: float = 0


_RNG = np.random.default_rng(20)


def _normal(*shape: int, dtype: str = "float32", rows: int | None = None) -> Argument:
    return Argument(_RNG.normal(size=shape), dtype, rows or shape[0])


def _between(low: float, high: float, *shape: int, dtype: str = "float32") -> Argument:
    return Argument(_RNG.uniform(low, high, size=shape), dtype, shape[0])


def _gelu(module):
    return lambda x, y: 0.5 * x * (1 + module.tanh(0.7978845608 * (x + 0.044715 * x * x * x))) + y


def _softmax(module):
    def softmax(x):
        e = module.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    return softmax


def _layer_norm(module):
    def layer_norm(x, scale, bias):
        centred = x - x.mean(-1, keepdims=True)
        return centred / module.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + bias

    return layer_norm


def _relu(module):
    return lambda x: module.maximum(x, 0)


# About ten units in the last place: a few operations one after the other.
_ROUNDING = {"float64": 2e-15, "float32": 1e-6, "float16": 4e-3, _BFLOAT16: 3e-2}

# Elementary functions and where they are tried.
_FUNCTIONS: dict[str, tuple[Callable, float, float]] = {
    "exp": (np.exp, -80, 80),
    "exp2": (np.exp2, -100, 100),
    "expm1": (np.expm1, -1, 1),
    "log": (np.log, 1e-3, 1e3),
    "log1p": (np.log1p, -0.5, 2),
    "sqrt": (np.sqrt, 0, 1e6),
    "sin": (np.sin, -100, 100),
    "cos": (np.cos, -100, 100),
    "tan": (np.tan, -1.5, 1.5),
    "arctan": (np.arctan, -10, 10),
    "arcsin": (np.arcsin, -1, 1),
    "sinh": (np.sinh, -20, 20),
    "tanh": (np.tanh, -4, 4),
    "arcsinh": (np.arcsinh, -50, 50),
}


def checks() -> Iterator[Case]:
    """Of each kind of kernel and product, in sizes that do not divide evenly."""
    for dtype, tolerance in _ROUNDING.items():
        normal = lambda *shape, dtype=dtype: _normal(*shape, dtype=dtype)
        yield Case("check", f"gelu_{dtype}", _gelu(wnp), [normal(1003), normal(1003)], _gelu(np), tolerance, 1)
        yield Case("check", f"softmax_{dtype}", _softmax(wnp), [normal(9, 320)], _softmax(np), tolerance)
        yield Case(
            "check",
            f"product_{dtype}",
            lambda x, y, b: wnp.maximum(x @ y + b, 0),
            [normal(40, 24), normal(24, 56), normal(56)],
            lambda x, y, b: np.maximum(x @ y + b, 0),
            tolerance,
            4,
        )
    for name, (function, low, high) in _FUNCTIONS.items():
        for dtype in ("float32", "float64"):
            argument = _between(low, high, 2000, dtype=dtype)
            yield Case("check", f"{name}_{dtype}", getattr(wnp, name), [argument], function, _ROUNDING[dtype])
    integers = [Argument(_RNG.integers(-1000, 1000, size=777), "int32", 777) for _ in range(2)]
    yield Case(
        "check",
        "integers",
        lambda x, y: wnp.where(x > y, x * 3 - y, y),
        integers,
        lambda x, y: np.where(x > y, x * 3 - y, y),
        0,
    )
    small = [Argument(_RNG.integers(0, 256, size=5003), "uint8", 5003) for _ in range(2)]
    apart = lambda module: lambda x, y: module.maximum(x, y) - module.minimum(x, y)
    yield Case("check", "bytes", apart(wnp), small, apart(np), 0)
    # Few different numbers: the first of many that are equal is asked for.
    extremes = lambda x: (x.argmax(1), x.argmin(1), x.argmax(0))
    ties = Argument(_RNG.integers(-9, 9, size=(300, 148)), "float32", 300)
    yield Case("check", "places_of_extremes", extremes, [ties], extremes, 0)
    for width in (333, 4096, 20000):  # a warp a row; a block a row, in registers; read in each pass
        yield Case("check", f"softmax_of_{width}", _softmax(wnp), [_normal(5, width)], _softmax(np), 2e-6)
    layer = [_normal(6, 768), _normal(768), _normal(768)]
    yield Case("check", "layer_norm", _layer_norm(wnp), layer, _layer_norm(np), 2e-6, 1)
    several = lambda x: (x.sum(1), x.sum(0), x.max(1), x.min(0))
    yield Case("check", "reductions", several, [_normal(500, 148)], several, 1e-6, 20)
    yield Case(
        "check",
        "views",
        lambda x, y: x.T[::2] + y[3:],
        [_normal(70, 40), _normal(23, 70)],
        lambda x, y: x.T[::2] + y[3:],
        1e-6,
        1,
    )
    # Operands as they lie, transposed, batched and repeated.
    x, y, w, v = _normal(5, 12, 7), _normal(5, 7, 9), _normal(9, 4), _normal(6, 4)

    def products(relu: Callable) -> Callable:
        def f(x, y, w, v):
            c = relu(x @ y)
            return c, relu(c @ w @ v.T), relu((w @ v.T @ v).T)

        return f

    yield Case("check", "products_of_views", products(_relu(wnp)), [x, y, w, v], products(_relu(np)), 4e-6, 20)


def figures(small: bool) -> Iterator[Case]:
    """Arrays of 256 MiB, which no card's caches hold; `small`: what a CPU runs thread by thread."""
    rows, columns, period = (16, 256, 8) if small else (16384, 4096, 8)

    def matrix(dtype: str = "float32", rows: int = rows) -> Argument:
        return _normal(period, columns, dtype=dtype, rows=rows)

    yield Case("copy", "copy", lambda x: x, [matrix()], lambda x: x, 0)
    for dtype in ("float32", _BFLOAT16):
        tall = rows if dtype == "float32" else 2 * rows
        pair = [matrix(dtype, tall), matrix(dtype, tall)]
        yield Case("memory", f"large_gelu_{dtype}", _gelu(wnp), pair, _gelu(np), _ROUNDING[dtype], 1)
        yield Case(
            "memory", f"large_softmax_{dtype}", _softmax(wnp), [matrix(dtype, tall)], _softmax(np), _ROUNDING[dtype]
        )
    layer = [matrix(), _normal(columns), _normal(columns)]
    yield Case("memory", "large_layer_norm", _layer_norm(wnp), layer, _layer_norm(np), 2e-6, 1)
    yield Case("memory", "large_row_sums", lambda x: x.sum(1), [matrix()], lambda x: x.sum(1), 1e-6, 60)
    times = rows // period
    # What is added repeats, and so do the errors of rounding, each at most 6e-8 of the sum of the sizes. One row more
    # or less is ten times what is tolerated.
    yield Case(
        "memory", "large_column_sums", lambda x: x.sum(0), [matrix()], lambda x: x.sum(0) * times, 1e-5, 5 * times
    )
    n = columns

    def product(x, y, b):
        return np.maximum(x.reshape(period, n // period, period).sum(1) @ y + b, 0)

    for dtype in ("float32", _BFLOAT16):
        square = [matrix(dtype, n), matrix(dtype, n), _normal(n, dtype=dtype)]
        yield Case(
            "product",
            f"large_product_{dtype}",
            lambda x, y, b: wnp.maximum(x @ y + b, 0),
            square,
            product,
            _ROUNDING[dtype],
            # The size of a sum of n numbers; in f32, where it is added up without rounding products first, four of
            # its own errors of rounding. Products in TF32 are 20 times what is tolerated.
            math.sqrt(n) if dtype == _BFLOAT16 else n / 4,
        )


def _npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def _bundle(case: Case, target: str, emulation: bool) -> bytes:
    lowered = weft.jit(case.program).lower(*(a.spec for a in case.arguments), target=f"cuda:{target}")
    with tempfile.TemporaryDirectory() as folder:
        lowered.export(Path(folder) / "f.weftb", emulation=emulation)
        return (Path(folder) / "f.weftb").read_bytes()


def material(small: bool = False, emulation: bool = False, targets: list[str] | None = None) -> dict[str, bytes]:
    """Name -> bytes of each file; see driver/command_line/gpu_selftest.h. emulation: programs also run on this CPU
    (tests). Functions that only libdevice has are left out, and named, where the CUDA toolkit is not installed."""
    targets = targets or TARGETS
    lines = ["targets " + " ".join(targets)]
    files = {}
    for case in [*checks(), *figures(small)]:
        try:
            for target in targets:
                files[f"{case.name}.{target}.weftb"] = _bundle(case, target, emulation)
        except NotImplementedError as error:
            if "needs libdevice" not in str(error):
                raise
            print(f"{case.name} is left out: {error}", file=sys.stderr)
            continue
        results = case.reference(*(a.exact for a in case.arguments))
        for i, argument in enumerate(case.arguments):
            files[f"{case.name}.in.{i}.npy"] = _npy(argument.stored)
        for i, result in enumerate(results if isinstance(results, tuple) else (results,)):
            files[f"{case.name}.out.{i}.npy"] = _npy(np.asarray(result, np.float64))
        lines.append(f"{case.kind} {case.name} {case.tolerance!r} {case.tolerance * case.scale!r}")
    files["cases.txt"] = ("\n".join(lines) + "\n").encode()
    return files


def archive(files: dict[str, bytes]) -> bytes:
    """The files as an uncompressed .zip, the same for the same files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        for name in sorted(files):
            packed.writestr(zipfile.ZipInfo(name), files[name])
    return out.getvalue()
