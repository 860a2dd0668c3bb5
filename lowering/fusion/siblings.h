// Groups side by side: kernels that read one array and write results of the function become one, which reads it once
// and shares what they have in common (the range reduction of sin and cos).
#ifndef WEFT_LOWERING_FUSION_SIBLINGS_H_
#define WEFT_LOWERING_FUSION_SIBLINGS_H_

#include "ir/fn.h"
#include "lowering/fusion/fusion.h"
#include "lowering/fusion/unit_graph.h"

namespace weft {

// Joins groups of equal domains without reductions that wait for the same groups and steps, where all that they write
// are results: so nothing is computed later for it, and nothing lives longer, since results have memory of their own.
// `graph` is of the units of `plan`, whose reads are known.
void MergeSiblings(const Fn& fn, const FusionPolicy& policy, BlockPlan* plan, UnitGraph* graph);

}  // namespace weft
#endif  // WEFT_LOWERING_FUSION_SIBLINGS_H_
