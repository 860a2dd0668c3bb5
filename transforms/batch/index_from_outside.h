// vmap(axis_name=) over branches and loops that batch elements take differently: which element it is comes from
// outside.
#ifndef WEFT_TRANSFORMS_BATCH_INDEX_FROM_OUTSIDE_H_
#define WEFT_TRANSFORMS_BATCH_INDEX_FROM_OUTSIDE_H_

#include <string>

#include "ir/fn.h"

namespace weft {

// `fn` with every axis_index over `axis` in a branch or a loop without a count replaced by an operand, which is the
// axis_index before it. No batch element has to meet another for it, so any of them may go there alone.
FnRef WithIndexFromOutside(const FnRef& fn, const std::string& axis);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_BATCH_INDEX_FROM_OUTSIDE_H_
