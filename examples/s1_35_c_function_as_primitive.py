"""A C function as an operation with derivatives: compiled here, bound by weft.Primitive, differentiated, mapped
and run in loops. Without a C compiler the example says so and shows the rest."""

import pathlib
import shutil
import subprocess
import tempfile

import numpy as np

import weft
import weft.numpy as wnp

SOURCE = r"""
#include <math.h>
#include <stdint.h>
typedef struct { void* data; int64_t rank; const int64_t* dims; } weft_buffer;
int smooth_abs(int64_t num_inputs, const weft_buffer* in, int64_t num_outputs, weft_buffer* out) {
  if (num_inputs != 1 || num_outputs != 1) return 1;
  int64_t n = 1;
  for (int64_t d = 0; d < in[0].rank; ++d) n *= in[0].dims[d];
  const float* x = in[0].data;
  float* y = out[0].data;
  for (int64_t i = 0; i < n; ++i) y[i] = sqrtf(x[i] * x[i] + 1);
  return 0;
}
"""


def same_type(x):
    return weft.ShapeDtype(x.shape, x.dtype)


def jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    y = smooth_abs(x)
    return y, x / y * t


smooth_abs = weft.Primitive("smooth_abs", infer=same_type, jvp=jvp, lower=lambda x: wnp.sqrt(x * x + 1))
x = wnp.linspace(-2.0, 2.0, 5)
print(weft.make_ir(weft.grad(lambda x: smooth_abs(x).sum()))(x))
expected = np.asarray(x) / np.sqrt(np.asarray(x) ** 2 + 1)


def check():
    assert np.allclose(weft.jit(weft.grad(lambda x: smooth_abs(x).sum()))(x), expected, rtol=1e-6)
    assert np.allclose(weft.vmap(weft.grad(smooth_abs))(x), expected, rtol=1e-6)
    assert np.allclose(weft.grad(weft.grad(smooth_abs))(0.0), 1.0)
    rolled = lambda x: weft.scan(lambda c, _: (smooth_abs(c), c), x, None, length=3)[0]
    assert np.allclose(rolled(0.0), np.sqrt(3.0))
    assert np.isclose(weft.grad(rolled)(1.0), 1 / 2)


check()
if shutil.which("cc") is None:
    print("there is no C compiler here: the lowering in Python alone was shown")
else:
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "smooth.c").write_text(SOURCE)
        library = f"{folder}/libsmooth.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", f"{folder}/smooth.c", "-o", library, "-lm"], check=True)
        smooth_abs.def_lower((library, "smooth_abs"))
        check()
    print("the C function gives the same")


# A rule that is missing is an error where it is needed, at the line that needs it.
opaque = weft.Primitive("opaque", infer=same_type, eval=lambda x: np.abs(x))
try:
    weft.grad(lambda x: opaque(x) * 2)(1.0)
except weft.DerivativeError as error:
    print(error)
    assert "'opaque' has no jvp rule" in str(error) and "s1_35_c_function_as_primitive.py" in str(error)
