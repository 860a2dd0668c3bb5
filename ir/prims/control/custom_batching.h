// custom_vmap (custom_batching.cc): operands for more parameters of the function, behind its own.
#ifndef WEFT_IR_PRIMS_CONTROL_CUSTOM_BATCHING_H_
#define WEFT_IR_PRIMS_CONTROL_CUSTOM_BATCHING_H_

#include "ir/fn.h"

namespace weft {

// How many of the first operands are for parameters of the function itself, and not series or cotangents.
size_t EndOfOwnParameters(const Eqn& eqn);
// The attributes with so many operands more there, which have no series and in which nothing was transposed.
Attrs WithMoreParameters(const Eqn& eqn, size_t count);

}  // namespace weft
#endif  // WEFT_IR_PRIMS_CONTROL_CUSTOM_BATCHING_H_
