// Algebraic simplification of one equation, for the passes that rewrite equation by equation.
#ifndef WEFT_TRANSFORMS_OPT_SIMPLIFY_H_
#define WEFT_TRANSFORMS_OPT_SIMPLIFY_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/builder.h"

namespace weft {

// What a rule may change: nothing but a NaN's payload, or the sign of a zero as well. Complex numbers with parts that
// are zero or not finite are excepted, since products with real numbers are taken as products with their parts.
enum class Licence : uint8_t { kExact, kSignedZero };

struct SimplifyRule {
  const char* name;
  const char* prim;  // of the equation that it looks at
  Licence licence;
  // The value that replaces the only result of `e`, whose operands in the builder are `x`; nullopt: it does not apply.
  std::optional<Atom> (*apply)(Builder& b, const Eqn& e, const Atoms& x);
  const char* sample;         // a program whose last equation it replaces, for the tests
  bool needs_number = false;  // only where an operand repeats a number
};
// Rules of one primitive are tried in this order.
std::vector<const SimplifyRule*> SimplifyRules();

// The atoms that replace the results of `e`, whose operands are `operands` in `b`; nullopt when no rule applies. What a
// rule needs is emitted into `b`. Every rule keeps the derivatives too, so it may run before differentiation.
std::optional<Atoms> SimplifyEqn(Builder& b, const Eqn& e, const Atoms& operands);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_SIMPLIFY_H_
