// What the steps of a plan for a GPU are told (see steps.h).
#ifndef WEFT_LOWERING_ABI_GPU_STEPS_H_
#define WEFT_LOWERING_ABI_GPU_STEPS_H_

#include <cstdint>

#include "base/dtype.h"
#include "lowering/abi/abi.h"
#include "lowering/abi/fields.h"

namespace weft {

// out[b, m, n] = sum over k of x[b, m, k] * y[b, k, n]; strides in elements.
struct GpuMatmul {
  DType dtype{}, out_dtype{};
  int64_t batch = 1, m = 1, n = 1, k = 1;
  int64_t x_start = 0, x_batch = 0, x_m = 0, x_k = 0;
  int64_t y_start = 0, y_batch = 0, y_k = 0, y_n = 0;
  int64_t out_batch = 0, out_m = 0, out_n = 0;
  WEFT_ABI_FIELDS {
    using abi::kNumber, abi::kSize;
    v.Word("dtype", s.dtype), v.Word("out_dtype", s.out_dtype);
    v.Word("batch", s.batch, kSize), v.Word("m", s.m, kSize), v.Word("n", s.n, kSize), v.Word("k", s.k, kSize);
    v.Word("x_start", s.x_start, kSize), v.Word("x_batch", s.x_batch, kNumber);
    v.Word("x_m", s.x_m, kNumber), v.Word("x_k", s.x_k, kNumber);
    v.Word("y_start", s.y_start, kSize), v.Word("y_batch", s.y_batch, kNumber);
    v.Word("y_k", s.y_k, kNumber), v.Word("y_n", s.y_n, kNumber);
    v.Word("out_batch", s.out_batch, kNumber), v.Word("out_m", s.out_m, kNumber), v.Word("out_n", s.out_n, kNumber);
  }
};

namespace abi {

template <class F>
struct LaunchOperand {
  typename F::Place place{};
  bool written = false;
  WEFT_ABI_FIELDS { v.Place("place", s.place), v.Word("written", s.written); }
};
// Runs kernel GpuArtifact::kernels[kernel].
template <class F>
struct Launch {
  static constexpr WeftOpcode kOpcode = WEFT_OP_LAUNCH;
  int64_t kernel = 0;
  typename F::template List<LaunchOperand<F>> operands{};
  int64_t bytes = 0;  // read and written
  WEFT_ABI_FIELDS {
    v.Word("kernel", s.kernel, kKernel), v.List("operands", s.operands), v.Word("bytes", s.bytes, kSize);
  }
};

// By cuBLASLt.
template <class F>
struct Product {
  static constexpr WeftOpcode kOpcode = WEFT_OP_PRODUCT;
  typename F::Place x{}, y{}, out{};
  GpuMatmul product{};
  int64_t bytes = 0;  // read and written
  WEFT_ABI_FIELDS {
    v.Place("x", s.x), v.Place("y", s.y), v.Place("out", s.out), v.Part("product", s.product);
    v.Word("bytes", s.bytes, kSize);
  }
};

}  // namespace abi
}  // namespace weft
#endif  // WEFT_LOWERING_ABI_GPU_STEPS_H_
