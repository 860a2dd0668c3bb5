// Algebraic simplification of one equation, for the passes that rewrite equation by equation.
#ifndef WEFT_TRANSFORMS_OPT_SIMPLIFY_H_
#define WEFT_TRANSFORMS_OPT_SIMPLIFY_H_

#include <optional>

#include "ir/builder.h"

namespace weft {

// The atoms that replace the results of `e`, whose operands are `operands` in `b`; nullopt when no rule applies. What a
// rule needs is emitted into `b`. Every rule keeps the derivatives too, so it may run before differentiation.
std::optional<Atoms> SimplifyEqn(Builder& b, const Eqn& e, const Atoms& operands);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_SIMPLIFY_H_
