// Programs whose sums are taken in an order that does not depend on the number of devices or threads.
//
//   FnRef f = WithDeterministicSums(fn);
//
// Every sum of floats becomes a contraction with the attributes `along` and `leaf`: the terms of one letter are added
// up in leaves of so many, in order and in double precision, and the leaves in one binary tree. There are up to 16
// leaves, a power of two of them, so that 2, 4, 8 or 16 devices that share the letter have subtrees, and the sum over
// devices (backends/cpu/distributed/collectives.h) goes on with the same tree. Where devices cannot share it so,
// Partition leaves it whole.
#ifndef WEFT_TRANSFORMS_SHARD_DETERMINISTIC_H_
#define WEFT_TRANSFORMS_SHARD_DETERMINISTIC_H_

#include "ir/fn.h"

namespace weft {

// Raises kUnsupported for an operation whose result depends on an order that is not fixed (a convolution, a running
// sum, linear algebra), with the user's location. Sizes have to be known.
FnRef WithDeterministicSums(const FnRef& fn);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_SHARD_DETERMINISTIC_H_
