// What lowering for a GPU hands to a backend: kernels, the order in which they and cuBLASLt are called, and how memory
// is laid out around them. Knows neither MLIR nor the IR.
//
//   GpuArtifact a = LowerGpu(fn, GpuTarget::Named("cuda:sm_90a"));    // lowering/gpu/lower.h
#ifndef WEFT_LOWERING_ABI_GPU_ARTIFACT_H_
#define WEFT_LOWERING_ABI_GPU_ARTIFACT_H_

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "lowering/abi/artifact.h"
#include "lowering/abi/steps.h"

namespace weft {

struct GpuKernel {
  std::string name;
  int64_t blocks = 1;
  int32_t threads = 1;       // of a block
  int64_t shared_bytes = 0;  // static, in the code
  bool meets = false;        // its threads wait for each other
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

struct GpuArtifact {
  // Parameters, results, slots, buffers, constants and the readable schedule. All sizes are static. `desc` holds the
  // steps, in order: abi::Launch, abi::Product and abi::Copy.
  Artifact plan;
  std::string sm;  // "sm_90a"
  std::vector<GpuKernel> kernels;
  std::string ptx;
  std::string
      emulation;  // the same kernels as an ELF shared object for this CPU (lowering/abi/emulation_abi.h), or empty
  std::string emulation_target;  // this CPU, as Target::ToString

  // Calls `visit` with each step.
  template <class Visit>
  void ForEachStep(const Visit& visit) const {
    const int64_t* at = plan.desc.data();
    const int64_t* const end = at + plan.desc.size();
    while (at != end) {
      switch (*at) {
        case WEFT_OP_LAUNCH: visit(abi::Decode<abi::Launch<abi::InWords>>(at, &at)); break;
        case WEFT_OP_PRODUCT: visit(abi::Decode<abi::Product<abi::InWords>>(at, &at)); break;
        case WEFT_OP_COPY: visit(abi::Decode<abi::Copy<abi::InWords>>(at, &at)); break;
        default: throw std::logic_error("a plan for a GPU has a step that none has");
      }
    }
  }
  // As Artifact::PlanProblem.
  std::string PlanProblem() const;
};

// A function of several overloads.
template <class... F>
struct StepVisitor : F... {
  using F::operator()...;
};

}  // namespace weft
#endif  // WEFT_LOWERING_ABI_GPU_ARTIFACT_H_
