// Short reductions of pairs (distances of points, sums over few features): one of the operands is transposed first, so
// that results go into vector lanes, and no lanes have to be added up for each.
#ifndef WEFT_LOWERING_KERNEL_TRANSPOSED_OPERANDS_H_
#define WEFT_LOWERING_KERNEL_TRANSPOSED_OPERANDS_H_

#include <optional>
#include <vector>

#include "lowering/kernel/kernel_spec.h"

namespace weft {

struct TransposedOperands {
  // Run in this order: one per operand that is transposed, then the reduction. Their operands are those of the kernel,
  // then one buffer per entry of `transposed`.
  std::vector<KernelSpec> kernels;
  Types transposed;
};

// Nothing for a kernel that reduces a long line, or none, or whose operands are read hardly more than once.
std::optional<TransposedOperands> TransposeForLanes(const KernelSpec& kernel);

}  // namespace weft
#endif  // WEFT_LOWERING_KERNEL_TRANSPOSED_OPERANDS_H_
