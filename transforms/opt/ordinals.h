// A program that says the same in every process: host functions (ir/host_functions.h) named 0, 1 ... in the order of
// their occurrence, instead of by the numbers that this process gave them.
#ifndef WEFT_TRANSFORMS_OPT_ORDINALS_H_
#define WEFT_TRANSFORMS_OPT_ORDINALS_H_

#include "ir/attr.h"
#include "ir/fn.h"

namespace weft {

// `callbacks`: the numbers of the callbacks, by their ordinals. Policies and batching rules are counted on their own.
FnRef WithOrdinals(const FnRef& fn, Ints* callbacks);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_ORDINALS_H_
