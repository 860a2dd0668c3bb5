// The families of rules that save work (transforms/opt/simplify.h gathers all rules).
#ifndef WEFT_TRANSFORMS_OPT_PRODUCT_RULES_H_
#define WEFT_TRANSFORMS_OPT_PRODUCT_RULES_H_

#include "absl/types/span.h"
#include "transforms/opt/simplify.h"

namespace weft {

absl::Span<const SimplifyRule> ProductRules();  // product_rules.cc: sums of products, powers, solutions of systems
absl::Span<const SimplifyRule> SystemRules();   // system_rules.cc: systems of equations whose matrix is known
absl::Span<const SimplifyRule> PartRules();     // part_rules.cc: no more is computed than is read
absl::Span<const SimplifyRule> ScaleRules();    // scale_rules.cc: factors that products are scaled by

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_PRODUCT_RULES_H_
