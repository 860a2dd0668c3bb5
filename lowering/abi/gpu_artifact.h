// What lowering for a GPU hands to a backend: kernels, the order in which they and cuBLASLt are called, and how memory
// is laid out around them. Knows neither MLIR nor the IR.
//
//   GpuArtifact a = LowerGpu(fn, GpuTarget::Named("cuda:sm_90a"));    // lowering/gpu/lower.h
#ifndef WEFT_LOWERING_ABI_GPU_ARTIFACT_H_
#define WEFT_LOWERING_ABI_GPU_ARTIFACT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lowering/abi/artifact.h"

namespace weft {

struct GpuKernel {
  std::string name;
  int64_t blocks = 1;
  int32_t threads = 1;       // of a block
  int64_t shared_bytes = 0;  // static, in the code
  bool meets = false;        // its threads wait for each other
};

// out[b, m, n] = sum over k of x[b, m, k] * y[b, k, n]; strides in elements.
struct GpuMatmul {
  int32_t dtype = 0, out_dtype = 0;  // weft::DType
  int64_t batch = 1, m = 1, n = 1, k = 1;
  int64_t x_start = 0, x_batch = 0, x_m = 0, x_k = 0;
  int64_t y_start = 0, y_batch = 0, y_k = 0, y_n = 0;
  int64_t out_batch = 0, out_m = 0, out_n = 0;
};

// A matrix as cuBLASLt describes it: `high` numbers one behind the other, `wide` times, each `step` elements after the
// one before. They are the matrix's columns, or its rows where it is transposed.
struct ColumnMajor {
  bool transposed = false;
  int64_t high = 0, wide = 0, step = 0;

  // Of sizes and strides in elements. None where numbers of neither dimension lie one behind the other, and where rows
  // or columns share memory, as those of a broadcast array do, or lie backwards.
  static std::optional<ColumnMajor> Of(int64_t rows, int64_t row, int64_t columns, int64_t column) {
    auto way = [](bool transposed, int64_t high, int64_t stride, int64_t wide, int64_t step) {
      std::optional<ColumnMajor> m;
      if (high != 1 && stride != 1) return m;
      if (wide == 1) step = high;
      if (step >= high) m = {transposed, high, wide, step};
      return m;
    };
    const auto plain = way(false, rows, row, columns, column), transposed = way(true, columns, column, rows, row);
    return plain && (rows > 1 || !transposed) ? plain : transposed;
  }
};

struct GpuStep {
  enum class Kind : uint8_t {
    kLaunch,  // kernels[kernel](slots...)
    kMatmul,  // slots: x, y, out
    kCopy,    // slots: to, from; `bytes`
  };
  Kind kind = Kind::kLaunch;
  int32_t kernel = 0;
  std::vector<int32_t> slots;
  std::vector<uint8_t> written;  // by slot
  GpuMatmul matmul;
  int64_t bytes = 0;  // copied; of a launch or product: read and written
};

struct GpuArtifact {
  // Parameters, results, slots, buffers, constants and the readable schedule. All sizes are static.
  Artifact plan;
  std::string sm;  // "sm_90a"
  std::vector<GpuKernel> kernels;
  std::vector<GpuStep> steps;
  std::string ptx;
  std::string
      emulation;  // the same kernels as an ELF shared object for this CPU (lowering/abi/emulation_abi.h), or empty
  std::string emulation_target;  // this CPU, as Target::ToString
};

}  // namespace weft
#endif  // WEFT_LOWERING_ABI_GPU_ARTIFACT_H_
