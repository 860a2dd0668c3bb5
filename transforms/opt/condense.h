// The pass that runs between two orders of differentiation, so that the next order starts from few equations:
//
//   FnRef d = Condense(Grad(f, {.wrt = {true}}));
//
// One walk: algebraic simplification, numbers folded, equal equations computed once, dead ones dropped. It keeps every
// bit of every result and everything that derivatives depend on (custom rules, stop_gradient, remat stay). Who watches
// rules may leave it out, by its name as a pass: derivatives are as their rules write them then.
#ifndef WEFT_TRANSFORMS_OPT_CONDENSE_H_
#define WEFT_TRANSFORMS_OPT_CONDENSE_H_

#include "ir/fn.h"

namespace weft {

inline constexpr char kCondense[] = "condense";
FnRef Condense(FnRef fn);  // taken apart where nobody else holds it

// The same with parameters replaced: parameter i by args[i] where that is a literal. The result has the parameters that
// are left, in their order.
FnRef Condense(const FnRef& fn, const Atoms& args);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_CONDENSE_H_
