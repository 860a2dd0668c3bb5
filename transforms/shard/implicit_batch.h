// Gathers and scatters whose index vectors count along a dimension of the indices themselves, as take_along_axis makes
// them: that entry is a batch dimension, and can be cut over devices like one.
#ifndef WEFT_TRANSFORMS_SHARD_IMPLICIT_BATCH_H_
#define WEFT_TRANSFORMS_SHARD_IMPLICIT_BATCH_H_

#include "ir/fn.h"

namespace weft {

// gather[start_index_map=[0,1]] x (iota along 0, i)  ->  gather[operand_batch_dims=[0], indices_batch_dims=[0]] x i
FnRef FindBatchDimensions(const FnRef& fn);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_SHARD_IMPLICIT_BATCH_H_
