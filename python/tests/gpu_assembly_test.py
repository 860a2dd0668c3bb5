"""What NVIDIA's assembler makes of the kernels: nothing spilled, no local memory, wide accesses, enough threads.

Needs ptxas or libnvJitLink of a CUDA toolkit; without them these tests are skipped, and say so.
"""

import ctypes
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import weft
import weft.numpy as wnp

HOMES = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]


def find_ptxas():
    return next((p for h in HOMES if h and Path(p := f"{h}/bin/ptxas").exists()), None) or shutil.which("ptxas")


def find_nvjitlink():
    names = ["libnvJitLink.so", *(f"{h}/{d}/libnvJitLink.so" for h in HOMES if h for d in ("lib64", "lib"))]
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def by_ptxas(ptx, sm, folder):
    source = folder / "kernels.ptx"
    source.write_text(ptx, encoding="utf-8")
    command = [find_ptxas(), "-v", f"-arch={sm}", str(source), "-o", str(folder / "kernels.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def by_nvjitlink(ptx, sm, folder):
    del folder
    library = find_nvjitlink()
    handle, size = ctypes.c_void_p(), ctypes.c_size_t()
    options = (ctypes.c_char_p * 3)(f"-arch={sm}".encode(), b"-O3", b"-verbose")
    assert library.nvJitLinkCreate(ctypes.byref(handle), 3, options) == 0
    data = ptx.encode() + b"\0"
    added = library.nvJitLinkAddData(handle, 2, data, ctypes.c_size_t(len(data)), b"kernels")
    linked = added or library.nvJitLinkComplete(handle)
    log = "Error" if linked else "Info"
    getattr(library, f"nvJitLinkGet{log}LogSize")(handle, ctypes.byref(size))
    text = ctypes.create_string_buffer(max(1, size.value))
    getattr(library, f"nvJitLinkGet{log}Log")(handle, text)
    library.nvJitLinkDestroy(ctypes.byref(handle))
    assert linked == 0, text.value.decode()
    return text.value.decode()


ASSEMBLERS = {}
if find_ptxas():
    ASSEMBLERS["ptxas"] = by_ptxas
if find_nvjitlink():
    ASSEMBLERS["nvJitLink"] = by_nvjitlink

needs_assembler = pytest.mark.skipif(not ASSEMBLERS, reason="no CUDA toolkit: neither ptxas nor libnvJitLink")


def softmax(x):
    e = wnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(x, scale, bias):
    centred = x - x.mean(-1, keepdims=True)
    return centred / wnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + bias


def gelu(x, y):
    return 0.5 * x * (1 + wnp.tanh(0.7978845608 * (x + 0.044715 * x**3))) + y


def s(*shape, dtype="float32"):
    return weft.ShapeDtype(shape, dtype)


# name: function, arguments, bytes of the widest load and of the widest store
PROGRAMS = {
    "elements f32": (gelu, (s(1 << 20), s(1 << 20)), (16, 16)),
    "elements bf16": (gelu, (s(1 << 20, dtype="bfloat16"), s(1 << 20, dtype="bfloat16")), (16, 16)),
    "elements f64": (lambda x: x * x + 1, (s(1 << 20, dtype="float64"),), (16, 16)),
    "elements i8": (lambda x, y: x * y + 3, (s(1 << 20, dtype="int8"), s(1 << 20, dtype="int8")), (16, 16)),
    "elements u8, through floats": (
        lambda x: (wnp.tanh(x.astype("float32") / 255) * 255).astype("uint8"),
        (s(1 << 20, dtype="uint8"),),
        (16, 16),
    ),
    "elements bool": (lambda x, y: x & ~y, (s(512, 4096, dtype="bool"), s(4096, dtype="bool")), (16, 16)),
    "elements u8, groups of eight": (
        lambda x, y: x + y,
        (s(512, 1000, dtype="uint8"), s(1000, dtype="uint8")),
        (8, 8),
    ),
    "a mask of floats": (lambda x: x > 0, (s(1 << 20),), (16, 4)),
    "softmax u8": (
        lambda x: (softmax(x.astype("float32")) * 255).astype("uint8"),
        (s(512, 4096, dtype="uint8"),),
        (16, 16),
    ),
    "row extremes u8": (lambda x: (x.argmax(1), x.max(1)), (s(512, 4096, dtype="uint8"),), (16, 4)),
    "row extremes f32": (lambda x: x.argmax(1), (s(4096, 4096),), (16, 4)),
    "row extremes bf16, long rows": (lambda x: x.argmin(1), (s(512, 65536, dtype="bfloat16"),), (16, 4)),
    "column extremes f64": (lambda x: x.argmax(0), (s(4096, 4096, dtype="float64"),), (8, 4)),
    "the largest of everything": (lambda x: x.argmax(), (s(1 << 24),), (16, 4)),
    "nextafter bf16": (wnp.nextafter, (s(1 << 20, dtype="bfloat16"), s(1 << 20, dtype="bfloat16")), (16, 16)),
    "elements, many functions": (
        lambda x: wnp.cbrt(x) * wnp.log1p(x * x) + wnp.arctan2(x, x + 3) + weft.scipy.special.erf(x) ** 3,
        (s(4096, 512),),
        (16, 16),
    ),
    "softmax, a warp a row": (softmax, (s(4096, 1024),), (16, 16)),
    "softmax, a block a row": (softmax, (s(512, 8192),), (16, 16)),
    "softmax bf16": (softmax, (s(512, 8192, dtype="bfloat16"),), (16, 16)),
    "softmax, long rows": (softmax, (s(256, 65536),), (16, 16)),
    "softmax, odd rows": (softmax, (s(512, 1001),), (4, 4)),
    "layer norm": (layer_norm, (s(512, 4096), s(4096), s(4096)), (16, 16)),
    "row sums": (lambda x: x.sum(1), (s(4096, 4096),), (16, 4)),
    "column sums": (lambda x: x.sum(0), (s(4096, 4096),), (4, 4)),
    "gradient of a loss": (
        weft.grad(lambda x, y: (layer_norm(x, y, y) ** 2).sum()),
        (s(512, 1024), s(1024)),
        (16, 16),
    ),
    "a sum of everything": (lambda x: (x * x).sum(), (s(4096, 4096),), (16, 4)),
}


def lint(ptx, log, widest):
    """What is wrong with the kernels."""
    wrong = []
    wrong += [line for line in log.splitlines() if re.search(r"[1-9]\d* bytes (stack|spill)", line)]
    if ".local" in ptx:
        wrong.append("local memory")
    if "call.uni" in ptx or ".func" in ptx:
        wrong.append("a function that was not inlined")
    # A block of n threads needs n times its registers of the 65,536 of a multiprocessor.
    threads = [int(n) for n in re.findall(r"\.maxntid (\d+)", ptx)]
    registers = [int(n) for n in re.findall(r"Used (\d+) registers", log)]
    if not threads or len(threads) != len(registers):
        wrong.append(f"{len(threads)} kernels, {len(registers)} of them assembled")
    wrong += [f"{r} registers in {t} threads" for t, r in zip(threads, registers) if r * max(threads) > 65536]
    for kind, bytes_wanted in zip(("ld", "st"), widest):
        accesses = re.findall(rf"{kind}\.global(?:\.nc)?(?:\.v(\d))?\.[a-z](\d+)", ptx)
        found = max((int(count or 1) * int(bits) // 8 for count, bits in accesses), default=0)
        if found != bytes_wanted:
            wrong.append(f"the widest {kind} has {found} bytes, not {bytes_wanted}")
    return wrong


@needs_assembler
@pytest.mark.parametrize("sm", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("assembler", ASSEMBLERS or ["none"])
def test_kernels_assemble_without_spills(assembler, name, sm, tmp_path):
    f, args, widest = PROGRAMS[name]
    ptx = weft.jit(f).lower(*args, target=f"cuda:{sm}").stage("ptx")
    assert lint(ptx, ASSEMBLERS[assembler](ptx, sm, tmp_path), widest) == []


@needs_assembler
@pytest.mark.parametrize("function", [wnp.sin, wnp.cos, wnp.tan])
@pytest.mark.parametrize("assembler", ASSEMBLERS or ["none"])
def test_large_angles_are_all_that_takes_local_memory(assembler, function, tmp_path):
    ptx = weft.jit(function).lower(s(1 << 16), target="cuda:sm_90a").stage("ptx")
    wrong = lint(ptx, ASSEMBLERS[assembler](ptx, "sm_90a", tmp_path), (16, 16))
    assert "local memory" in wrong and not any("spill" in w and "0 bytes spill" not in w for w in wrong)


@needs_assembler
@pytest.mark.parametrize("assembler", ASSEMBLERS or ["none"])
def test_the_lint_finds_what_it_looks_for(assembler, tmp_path):
    ptx = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p) .maxntid 256, 1, 1 {
  .local .align 16 .b8 memory[64];
  .reg .b64 %rd<3>; .reg .b32 %r<3>; .reg .f32 %f<2>;
  ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;
  mov.u64 %rd1, memory; add.u64 %rd1, %rd1, %rd2; st.local.u32 [%rd1], %r1; ld.local.f32 %f1, [memory];
  ld.param.u64 %rd1, [p]; st.global.f32 [%rd1], %f1;
  ret;
}
"""
    wrong = lint(ptx, ASSEMBLERS[assembler](ptx, "sm_80", tmp_path), (16, 16))
    assert any("bytes stack" in w for w in wrong) and "local memory" in wrong
    assert "the widest ld has 0 bytes, not 16" in wrong and "the widest st has 4 bytes, not 16" in wrong
