// Sums of exponentials with the largest exponent apart, for the rules that make them.
#ifndef WEFT_TRANSFORMS_OPT_SHIFTED_EXPONENTIALS_H_
#define WEFT_TRANSFORMS_OPT_SHIFTED_EXPONENTIALS_H_

#include <optional>

#include "ir/builder.h"
#include "transforms/opt/shaped_sums.h"

namespace weft {

// x of a value exp(x).
std::optional<Atom> ExponentOf(const Builder& b, const Atom& a);
// Whether something has been subtracted of an exponent already, as these rules and careful people do.
bool IsShifted(const Builder& b, const Atom& exponent);
// The largest element over `dims`, 0 where that is not finite; nothing is derived from it.
Atom Largest(Builder& b, const Atom& x, const Ints& dims);
// What was reduced over `dims`, repeated along them, of the shape of `like`.
Atom SpreadOver(Builder& b, const Atom& reduced, const Atom& like, const Ints& dims);

// Whether every element of a quotient is one of what was summed below it, over the sum that it is part of. `above`: for
// each dimension of the quotient, that of `summed` along which it runs, or -1 (DimsBehind); `below`: that of the sum,
// which has no dimensions `dims`.
bool RunsTogether(const Ints& above, const Ints& below, const Dims& summed, const Ints& dims);

// exp(x) / sum(exp(x)), or its logarithm, with the largest exponent apart; nothing for other quotients. The numerator
// may have its dimensions in another order, and be divided by another sum than its own.
std::optional<Atom> SoftmaxOf(Builder& b, const Atom& above, const Atom& below, bool logarithm);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_SHIFTED_EXPONENTIALS_H_
