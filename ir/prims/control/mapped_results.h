// Which results of an equation with rules of its own depend on the mapped axis.
//
// Such an equation is batched with all its results mapped, since a derivative may be mapped where the value is not:
// that of a function which returns one argument and takes its derivative from another. Where neither the function nor
// its rule says that a result depends on the mapped axis, all batch elements of it are one, and what follows gets the
// first of them. A cotangent that arrives there reaches the rule once.
#ifndef WEFT_IR_PRIMS_CONTROL_MAPPED_RESULTS_H_
#define WEFT_IR_PRIMS_CONTROL_MAPPED_RESULTS_H_

#include "ir/prim.h"

namespace weft {

// Batches `fn`, a region of the equation's, with all results mapped.
FnRef BatchAllResults(const BatchContext& c, const FnRef& fn, const Mask& batched);

// Gives out c.y, the results of a custom_jvp, custom_vjp or primitive that was batched with all of them mapped. Its
// rule is run only where its function has a result that is not mapped. A rule that fails says nothing: its error is
// that of the derivative, if one is ever asked for. Nor does a backward rule that is not linear, but then all of them
// are mapped.
void GiveResultsOfRuled(BatchContext& c);
// The same of a custom_linear.
void GiveResultsOfLinear(BatchContext& c);

}  // namespace weft
#endif  // WEFT_IR_PRIMS_CONTROL_MAPPED_RESULTS_H_
