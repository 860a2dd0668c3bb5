// How the threads of a GPU walk the domain of a kernel: the counterpart of LoopPlan.
//
// The points of a kernel's outer dimensions are its rows. Where a kernel reduces nothing, each thread computes `lanes`
// neighbouring points. Where it reduces along memory, `threads_per_row` neighbouring threads share a row, each with
// every threads_per_row-th group of `lanes` elements; `registers` groups are kept in registers from the first pass to
// the last (0: a loop reads them again in each). Where it reduces across memory, neighbouring threads take neighbouring
// groups of `lanes` rows, and `threads_per_row` threads far apart share them.
#ifndef WEFT_LOWERING_GPU_PLAN_H_
#define WEFT_LOWERING_GPU_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "lowering/gpu/target.h"
#include "lowering/kernel/kernel_spec.h"

namespace weft {

struct GpuPlan {
  enum class Kind { kElements, kAlongMemory, kAcrossMemory };
  Kind kind = Kind::kElements;
  int vector_dim = -1;  // of `lanes`; -1: a domain of one point
  int lanes = 1;
  bool tail = false;  // kElements: the last group may have fewer than `lanes` elements
  int threads = 256;  // of a block
  int threads_per_row = 1;
  int rows_per_block = 1;  // in groups of `lanes` where the lanes are rows
  int registers = 0;
  int64_t blocks = 1;
  int64_t shared_bytes = 0;
  bool wide_index = false;  // positions need 64 bits

  std::string ToString() const;
};

// Sizes must be static: raises kUnsupported otherwise, and where a launch would be too large.
GpuPlan PlanGpu(const KernelSpec& spec, const GpuTarget& target);

// What is kept of a reduction while it runs: a value of its dtype; of argmax and argmin a value and its index.
std::vector<DType> AccumulatorTypes(const KernelSpec& spec, const KernelNode& reduction);
// Bytes that one of them takes in shared memory: whole 32-bit words.
int SharedBytes(DType dtype);
// Whether `lanes` elements along dimension `dim` lie one behind the other and begin at a multiple of `lanes`.
bool IsWholeVector(const Access& access, int dim, int lanes);

}  // namespace weft
#endif  // WEFT_LOWERING_GPU_PLAN_H_
