// What custom_vjp becomes under forward mode.
#ifndef WEFT_IR_PRIMS_CUSTOM_H_
#define WEFT_IR_PRIMS_CUSTOM_H_

#include <vector>

#include "ir/fn.h"

namespace weft {

// The map itself that an equation custom_linear with these regions stands for; raises kDerivative with `loc` where only
// its transpose is known.
const FnRef& LinearMap(const std::vector<FnRef>& regions, const Loc& loc);

}  // namespace weft
#endif  // WEFT_IR_PRIMS_CUSTOM_H_
