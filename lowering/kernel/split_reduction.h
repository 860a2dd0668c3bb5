// Long reductions into few numbers, as parts that threads share and a combination of the parts.
//
// The parts depend on sizes alone, never on the number of threads, so a result is the same on every machine of one
// vector width.
#ifndef WEFT_LOWERING_KERNEL_SPLIT_REDUCTION_H_
#define WEFT_LOWERING_KERNEL_SPLIT_REDUCTION_H_

#include <optional>
#include <vector>

#include "lowering/kernel/kernel_spec.h"

namespace weft {

struct SplitReduction {
  // Run in this order. Their operands are those of the kernel that was split, then one buffer per entry of `partial`.
  std::vector<KernelSpec> kernels;  // the parts, what is left over (if anything), the combination
  Types partial;
};

// Nothing for a kernel that has enough rows for all threads, is cheap, or goes over its rows again with their totals.
std::optional<SplitReduction> SplitLongReduction(const KernelSpec& kernel);

}  // namespace weft
#endif  // WEFT_LOWERING_KERNEL_SPLIT_REDUCTION_H_
