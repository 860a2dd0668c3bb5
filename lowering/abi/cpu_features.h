// What compiled code asks of a CPU, and what the CPU at hand has. Needs no LLVM.
#ifndef WEFT_LOWERING_ABI_CPU_FEATURES_H_
#define WEFT_LOWERING_ABI_CPU_FEATURES_H_

#include <string>

namespace weft {

// The first set of instructions that code for `target` (Target::ToString, "cpu:znver4:+avx2,-avx512f") may use and this
// CPU lacks, by LLVM's name; empty when the code can run here.
std::string LackingFeature(const std::string& target);

}  // namespace weft
#endif  // WEFT_LOWERING_ABI_CPU_FEATURES_H_
