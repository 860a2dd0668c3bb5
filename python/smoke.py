"""What must work where the wheel is installed: trace, differentiate, vectorise and run, and build a plugin in C++."""

import importlib.metadata
import os
import pathlib
import shutil
import subprocess
import tempfile

import numpy as np

import weft
import weft.numpy as wnp


def loss(w, x, y):
    return wnp.mean((wnp.tanh(x @ w) - y) ** 2)


rng = np.random.default_rng(0)
w, x, y = (rng.standard_normal(shape).astype(np.float32) for shape in [(3,), (8, 3), (8,)])
gradient = weft.jit(weft.grad(loss))(w, x, y)
t = np.tanh(x @ w)
expected = (2 * (t - y) * (1 - t**2)) @ x / 8
np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-6)
each = weft.vmap(weft.grad(lambda w, x, y: (wnp.tanh(x @ w) - y) ** 2), in_axes=(None, 0, 0))(w, x, y)
np.testing.assert_allclose(each.mean(0), expected, rtol=1e-4, atol=1e-6)
assert "tanh" in weft.make_ir(loss)(w, x, y).text
[command] = importlib.metadata.distribution("weft").entry_points
assert command.name == "weft" and command.load()(["ops", "sin"]) == 0

PLUGIN = """
#include "sdk/plugin.h"
using namespace weft;
WEFT_PLUGIN(smoke) { RegisterRule(FormulaRule{"sinh-of-asinh", Licence::kRounding, "sinh(asinh(x))", "x"}); }
"""
PROGRAM = """
#include <iostream>
#include "ir/builder.h"
#include "ir/ops.h"
#include "ir/text/printer.h"
int main() {
  weft::Builder b("f");
  std::cout << weft::Print(*b.Build({weft::Exp(b, b.Parameter({weft::DType::kF32, {3}, {}}))}));
}
"""
flags = {}
for what in ("--cflags", "--libs"):
    environment = {**os.environ, "PKG_CONFIG_PATH": str(weft.plugins.sdk() / "lib/pkgconfig")}
    asked = ["pkg-config", what, "weft"]
    flags[what] = subprocess.run(asked, env=environment, capture_output=True, text=True, check=True).stdout.split()
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "plugin.cc").write_text(PLUGIN)
    (folder / "program.cc").write_text(PROGRAM)
    build = [shutil.which("g++"), "-O0", *flags["--cflags"]]
    subprocess.run([*build, "-fPIC", "-shared", folder / "plugin.cc", "-o", folder / "smoke.so"], check=True)
    assert weft.load_plugin(folder / "smoke.so").rules == ("sinh-of-asinh",)
    simpler = weft.jit(lambda x: wnp.sinh(wnp.arcsinh(x)), licence="rounding").lower(0.5).as_text("optimized")
    assert "sinh" not in simpler, simpler
    absl = ["-labsl_strings", "-labsl_hash", "-labsl_raw_hash_set"]
    subprocess.run([*build, folder / "program.cc", *flags["--libs"], *absl, "-o", folder / "program"], check=True)
    text = subprocess.run([folder / "program"], capture_output=True, text=True, check=True).stdout
    assert "exp" in text and weft.parse_ir(text)(np.zeros(3, np.float32)).tolist() == [1.0, 1.0, 1.0]
print("weft", weft.__version__, "works")
