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
absl::Span<const SimplifyRule> StableMoves();      // stable_moves.cc: of parts and other arrangements of values

// The value of `e`, whose operands are `x`, by the first of the rules above, but those of StableMoves, that applies.
std::optional<Atom> StableForm(Builder& b, const Eqn& e, const Atoms& x);
// A number of what `e` is of numbers alone; repeated where they are.
Atoms FoldNumbers(Builder& b, const Eqn& e, const Atoms& x);
// A choice whose branches have no infinite derivatives where they are not taken.
Atom GuardedSelect(Builder& b, const Atom& predicate, const Atom& yes, const Atom& no);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_STABLE_RULES_H_
