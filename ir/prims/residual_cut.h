// Which values of a loop's known half are worth keeping for its linear half.
//
// What `split` keeps is whatever the linear half happens to read. Most of it follows from fewer values by cheap
// element-wise equations, which the linear half can make again: of x - (x^3 - a) / (3 x^2) it reads four values, all of
// which follow from x. The values kept here are a minimum cut between what cannot be made again and what is read, by
// bytes (the idea of partitioning a training step by maximum flow is He, Qiu, Zhang et al.'s in TensorFlow and PyTorch's
// min-cut partitioner).
#ifndef WEFT_IR_PRIMS_RESIDUAL_CUT_H_
#define WEFT_IR_PRIMS_RESIDUAL_CUT_H_

#include "ir/prim.h"

namespace weft {

// The same split with fewer bytes of residuals, or the split itself where none are saved or too much would be computed
// again. Parameters of the known half marked in `stored` are kept anyway and cost nothing.
SplitFn WithFewestResiduals(const SplitFn& split, const Mask& stored);

}  // namespace weft
#endif  // WEFT_IR_PRIMS_RESIDUAL_CUT_H_
