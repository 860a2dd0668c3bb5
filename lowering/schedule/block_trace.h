// Which steps of a schedule compute what: for the form of a program that says where its values lie
// (lowering/program/explicit_form.h).
#ifndef WEFT_LOWERING_SCHEDULE_BLOCK_TRACE_H_
#define WEFT_LOWERING_SCHEDULE_BLOCK_TRACE_H_

#include <cstddef>
#include <vector>

#include "ir/fn.h"
#include "lowering/fusion/fusion.h"

namespace weft {

// Of one function body.
struct BlockTrace {
  struct Unit {
    int unit = 0;                    // of the plan
    size_t first_step = 0;           // in the block's steps
    std::vector<BlockTrace> bodies;  // of its regions, in order
  };
  const Fn* fn = nullptr;
  BlockPlan plan;
  std::vector<int> params, dest;  // values of parameters, and of what results are copied to
  std::vector<int> values;        // by root variable; -1: it has none
  std::vector<Unit> units;        // in the order in which they run
  size_t first_copy = 0;          // the first step after all units: from here on results are copied
};

}  // namespace weft
#endif  // WEFT_LOWERING_SCHEDULE_BLOCK_TRACE_H_
