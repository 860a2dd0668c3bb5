// Partial evaluation on the IR: cuts a function in two.
//
//   split : (k, u) -> (y, z)   =>   known: k -> (y, residuals),   unknown: (residuals, u) -> z
//
// An equation is unknown iff it depends on an unknown parameter; operations with regions split by their own rule.
// Linearisation, reverse mode and rematerialisation all use this one function. An unknown equation that needs a known
// value receives it as a residual; values that are cheaper to make again than to store (a broadcast, an iota) are made
// again in the unknown half.
#ifndef WEFT_TRANSFORMS_AD_SPLIT_H_
#define WEFT_TRANSFORMS_AD_SPLIT_H_

#include "ir/fn.h"
#include "ir/prim.h"

namespace weft {

// Results marked in `force_unknown` are unknown even where they depend on known values only. A function that nobody
// else holds is taken apart rather than copied.
SplitFn Split(FnRef fn, const Mask& unknown, const Mask& force_unknown = {});

}  // namespace weft
#endif  // WEFT_TRANSFORMS_AD_SPLIT_H_
