// Control flow that may differ between the devices of a mesh: a cond or while whose predicate varies over its axes.
#ifndef WEFT_IR_PRIMS_CONTROL_VARYING_CHOICE_H_
#define WEFT_IR_PRIMS_CONTROL_VARYING_CHOICE_H_

#include "ir/prim.h"

namespace weft {

// What runs depends on a value that varies over the mesh axes `choice`: then so do the operands from `first` on, and
// the results of the regions, and devices along such an axis meet nowhere inside. Raises kType otherwise.
void CheckVaryingChoice(const Sig& sig, const Strings& choice, size_t first);

// `fn`, a region under such a choice, with every value that something else reads varying over `choice`: those made of
// literals alone are declared to. A residual of any of its halves then fits a result of the equation that chooses. `fn`
// itself where nothing varies.
FnRef VaryingOver(const FnRef& fn, const Strings& choice);

// `rule` for an equation of which batch elements may choose differently as well. It makes loops over batch elements of
// its own, and need not know that all they hold varies.
void BatchVaryingChoice(BatchContext& c, const Strings& choice, const BatchRule& rule);

}  // namespace weft
#endif  // WEFT_IR_PRIMS_CONTROL_VARYING_CHOICE_H_
