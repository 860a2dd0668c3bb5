// Depthwise convolutions, in which each channel has a window of its own, as sums of shifted products:
//
//   y = conv[feature_groups=64, lo=[1,1], hi=[1,1], ...] x w      x: f32[8,64,32,32], w: f32[64,1,3,3]
//
// becomes
//
//   p = pad x                                                     f32[8,64,34,34]
//   y = w[:,0,0,0] * p[:,:,0:32,0:32] + w[:,0,0,1] * p[:,:,0:32,1:33] + ...
//
// A library for convolutions multiplies matrices, and here they are vectors: it reads and writes more than it computes.
// The sum is one kernel, and what follows it (a bias, an activation) is part of that.
#ifndef WEFT_TRANSFORMS_OPT_DEPTHWISE_H_
#define WEFT_TRANSFORMS_OPT_DEPTHWISE_H_

#include "ir/fn.h"

namespace weft {

// Its name where rules are counted or left out (transforms/opt/rule_watch.h).
inline constexpr char kDepthwise[] = "depthwise-as-sum";

// Windows of at most 12 elements, of f32 and f64, in regions too, where the channels do not lie beside each other. No
// padding is cut off, and x is not dilated. (8 x 64 x 32 x 32 with windows of 3 x 3: 0.12 against 0.42 ms.)
FnRef DepthwiseAsSums(FnRef fn);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_DEPTHWISE_H_
