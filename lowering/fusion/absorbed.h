// What the kernels of a concatenation or a pad compute for themselves, where they write it.
#ifndef WEFT_LOWERING_FUSION_ABSORBED_H_
#define WEFT_LOWERING_FUSION_ABSORBED_H_

#include <vector>

#include "ir/fn.h"

namespace weft {

// By variable: whether it is computed for such a step alone, which reads each element once: from its operands back,
// element-wise operations that have no other reader. `live` by equation; `demanded` by variable: it needs a buffer;
// `uses`: how often it is read.
std::vector<bool> AbsorbedByWrites(const Fn& fn, const std::vector<bool>& live, const std::vector<bool>& demanded,
                                   const std::vector<int>& uses);

}  // namespace weft
#endif  // WEFT_LOWERING_FUSION_ABSORBED_H_
