// Dead code of one equation (that of a function: EliminateDeadCode in pass.h).
#ifndef WEFT_TRANSFORMS_OPT_DCE_H_
#define WEFT_TRANSFORMS_OPT_DCE_H_

#include "ir/prim.h"

namespace weft {

// What is left of an equation whose results in `needed` are read: of an operation with regions what its dce rule says,
// without dead code in the regions; everything of any other.
Kept KeepNeeded(const Eqn& eqn, const Mask& needed);

// Which operands of an equation its results in `needed` depend on, by the same rule.
Mask OperandsNeeded(const Eqn& eqn, const Mask& needed);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_DCE_H_
