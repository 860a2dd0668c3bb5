// Min-cut rematerialisation for loops: which values of a loop's known half are worth keeping for its linear half.
//
// What `split` keeps is whatever the linear half happens to read. Most of it follows from fewer values by element-wise
// equations, which the linear half can make again: of x - (x^3 - a) / (3 x^2) it reads four values, all of which follow
// from x. Here the values kept and the equations made again are those that cost least together: a byte kept counts
// twice (it is written and read), an equation made again its floating-point operations (ir/analysis/cost.h). That is a
// minimum cut between what cannot be made again and what is read, found as a maximum flow; PyTorch's min-cut
// partitioner does the same for whole training steps.
#ifndef WEFT_IR_PRIMS_CONTROL_RESIDUAL_CUT_H_
#define WEFT_IR_PRIMS_CONTROL_RESIDUAL_CUT_H_

#include "ir/prim.h"

namespace weft {

// The same split with the cheapest residuals. Parameters of the known half marked in `stored` are kept anyway and cost
// nothing.
SplitFn WithFewestResiduals(SplitFn split, const Mask& stored);

}  // namespace weft
#endif  // WEFT_IR_PRIMS_CONTROL_RESIDUAL_CUT_H_
