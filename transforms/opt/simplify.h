// Simplification of one equation by named rules, for the passes that rewrite equation by equation
// (docs/add_a_simplification.md).
#ifndef WEFT_TRANSFORMS_OPT_SIMPLIFY_H_
#define WEFT_TRANSFORMS_OPT_SIMPLIFY_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/builder.h"
#include "ir/licences.h"

namespace weft {

struct FormulaRule;

// When a rule is used.
enum class RuleTime : uint8_t {
  kSimplifying,        // wherever programs are simplified: between orders of differentiation and before lowering
  kStabilizing,        // before a derivative is taken as well: its derivative is the better one
  kBeforeDerivatives,  // there alone: the value needs it not
  kLowering,           // before lowering alone: derivatives are taken of what is written
};

struct SimplifyRule {
  const char* name;
  const char* prim;  // of the equation that it looks at
  Licence licence;
  // The value that replaces the only result of `e`, whose operands in the builder are `x`; nullopt: it does not apply.
  std::function<std::optional<Atom>(Builder& b, const Eqn& e, const Atoms& x)> apply;
  const char* sample;         // a program whose last equation it replaces, for the tests; null: of the formula
  bool needs_number = false;  // only where an operand repeats a number
  RuleTime time = RuleTime::kSimplifying;
  const FormulaRule* formula = nullptr;       // the row that it was made of
  std::vector<const char*> other_prims = {};  // of equations that say the same in another way
};
// Rules of one primitive are tried in this order.
const std::vector<const SimplifyRule*>& SimplifyRules();
// Adds a rule, which is tried before all that are there. What it says of a value of another type, and what it raises,
// is an error that names it. Raises kValue for a name that is taken, and for one that names no primitive.
void RegisterRule(const SimplifyRule& rule);
void RegisterRule(const FormulaRule& rule);

// The program of a formula rule's pattern, of operands of f32[3] in another dtype.
FnRef SampleOf(const FormulaRule& rule, DType dtype);

// The atoms that replace the results of `e`, whose operands are `operands` in `b`; nullopt when no rule applies. What a
// rule needs is emitted into `b`. Every rule keeps the derivatives too, so it may run before differentiation. Rules
// need the licence of this thread (ir/licences.h). `lowering`: no derivative is taken of it any more.
std::optional<Atoms> SimplifyEqn(Builder& b, const Eqn& e, const Atoms& operands, bool lowering = false);

// The program with stable forms alone in place, and large products in blocks that are computed again, before a
// derivative of it is taken. Who watches rules may leave out all of it, by the name of the pass.
FnRef Stabilize(FnRef fn);
inline constexpr char kStabilize[] = "stabilize";

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_SIMPLIFY_H_
