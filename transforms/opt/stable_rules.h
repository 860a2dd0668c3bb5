// The families of rules for numerical stability (transforms/opt/simplify.h gathers all rules).
#ifndef WEFT_TRANSFORMS_OPT_STABLE_RULES_H_
#define WEFT_TRANSFORMS_OPT_STABLE_RULES_H_

#include "absl/types/span.h"
#include "transforms/opt/simplify.h"

namespace weft {

// What a formula is replaced by (transforms/opt/formula.h).
struct FormulaRule {
  const char* name;
  Licence licence;
  const char* pattern;
  const char* replacement;
  const char* where = "";    // a condition on the pattern's numbers; empty: none
  const char* numbers = "";  // what they are in the tests: "a=1,b=0.5"
};

absl::Span<const FormulaRule> StableFormulas();    // stable_formulas.cc
absl::Span<const SimplifyRule> StableStructure();  // stable_structure.cc: of sums over dimensions, and of choices

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_STABLE_RULES_H_
