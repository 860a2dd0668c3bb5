// The families of rules that are laws of algebra (transforms/opt/simplify.h gathers all rules).
#ifndef WEFT_TRANSFORMS_OPT_ALGEBRA_RULES_H_
#define WEFT_TRANSFORMS_OPT_ALGEBRA_RULES_H_

#include "absl/types/span.h"
#include "transforms/opt/simplify.h"

namespace weft {

absl::Span<const SimplifyRule> AlgebraRules();    // algebra_rules.cc: of one or two operations
absl::Span<const SimplifyRule> ReductionRules();  // reduction_rules.cc: of reductions
absl::Span<const SimplifyRule> ScatterRules();    // scatter_rules.cc: sums with what is scattered
absl::Span<const SimplifyRule> CollectRules();    // collect_rules.cc: sums and products of many terms

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_ALGEBRA_RULES_H_
