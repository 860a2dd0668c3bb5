// The families of rules for numerical stability (transforms/opt/simplify.h gathers all rules).
#ifndef WEFT_TRANSFORMS_OPT_STABLE_RULES_H_
#define WEFT_TRANSFORMS_OPT_STABLE_RULES_H_

#include <functional>
#include <optional>

#include "absl/types/span.h"
#include "ir/builder.h"
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

// What the row of this name is replaced by in f64, where the replacement for others holds numbers between bounds.
struct FormulaOfF64 {
  const char* name;
  const char* replacement;
};

absl::Span<const FormulaRule> StableFormulas();  // stable_formulas.cc
absl::Span<const FormulaOfF64> FormulasOfF64();
absl::Span<const SimplifyRule> StableFactors();    // stable_factors.cc: logarithms of products and quotients
absl::Span<const SimplifyRule> LimitRules();       // stable_limits.cc: of what functions have reached their limits for
absl::Span<const SimplifyRule> StableStructure();  // stable_structure.cc: of sums over dimensions
absl::Span<const SimplifyRule> StableQuotients();  // stable_quotients.cc: of quotients of sums of exponentials
absl::Span<const SimplifyRule> VarianceRules();    // stable_variance.cc
absl::Span<const SimplifyRule> LoopSumRules();     // stable_loops.cc
absl::Span<const SimplifyRule> ExtremeRules();     // stable_extremes.cc: of what is kept above a number
absl::Span<const SimplifyRule> BaseRules();        // stable_bases.cc: of logarithms of other bases
absl::Span<const SimplifyRule> StableExponentials();  // stable_exponentials.cc: logarithms of written sums
absl::Span<const SimplifyRule> NormRules();           // stable_norms.cc
absl::Span<const SimplifyRule> ReciprocalRules();  // stable_reciprocals.cc: of quotients that are written as products
absl::Span<const SimplifyRule> GuardRules();       // guarded_branches.cc: of choices
absl::Span<const SimplifyRule> ConversionRules();  // stable_conversions.cc: of what was widened
absl::Span<const SimplifyRule> StableMoves();      // stable_moves.cc: of parts and other arrangements of values

// The value of `e`, whose operands are `x`, by the first of the rules above, but those of StableMoves, that applies.
std::optional<Atom> StableForm(Builder& b, const Eqn& e, const Atoms& x);
// A number of what `e` is of numbers alone; repeated where they are.
Atoms FoldNumbers(Builder& b, const Eqn& e, const Atoms& x);
// A choice whose branches have no infinite derivatives where they are not taken.
Atom GuardedSelect(Builder& b, const Atom& predicate, const Atom& yes, const Atom& no);

// --- Across operations with regions: what is done to a result is done inside, and what an operand was computed by is
// computed inside, so that rules see both at once (region_results.cc) ---

// What stands for a result inside of a region, and whether it is another value; `given` is the operand given to it.
struct ChangedResult {
  Atom value;
  bool changed;
};
using ChangeResult =
    std::function<ChangedResult(Builder& inside, const Atom& result, const std::optional<Atom>& given)>;

// `a`, a result of an operation with regions that nobody else reads, with `change` made to it element by element in
// every region (in some of them it has to be another value). What is `given`, of the shape of `a`, is an operand more.
// The last value of a loop's carry is changed in every trip: where something is given, and no other element of the loop
// depends on the carry. Nothing for other values, and where no region changes.
std::optional<Atom> InRegions(Builder& b, const Atom& a, const std::optional<Atom>& given, const ChangeResult& change);

// `e`, an operation with regions, with the functions that made its operands computed inside, if `stabilize` then
// replaces them there. `x` are its operands in `b`.
std::optional<Atoms> WithOperandsInside(Builder& b, const Eqn& e, const Atoms& x,
                                        const std::function<FnRef(FnRef)>& stabilize);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_STABLE_RULES_H_
