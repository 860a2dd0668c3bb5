// The rules of the pass `loops`, which replace equations with regions (transforms/opt/loops.cc).
#ifndef WEFT_TRANSFORMS_OPT_LOOPS_H_
#define WEFT_TRANSFORMS_OPT_LOOPS_H_

#include "absl/types/span.h"

namespace weft {

absl::Span<const char* const> LoopRuleNames();

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_LOOPS_H_
