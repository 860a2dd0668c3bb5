// What custom_vjp becomes under forward mode: the equation custom_linear.
#ifndef WEFT_IR_PRIMS_CONTROL_CUSTOM_H_
#define WEFT_IR_PRIMS_CONTROL_CUSTOM_H_

#include <vector>

#include "ir/prim.h"

namespace weft {

// The map itself that an equation custom_linear with these regions stands for; raises kDerivative with `loc` where only
// its transpose is known.
const FnRef& LinearMap(const std::vector<FnRef>& regions, const Loc& loc);

// The regions of a custom_linear with operands of these types: those that it has, or those that its rule gives for
// cotangents of all results.
std::vector<FnRef> LinearRegions(const Eqn& eqn, const Types& operands, const RegionRules& regions);
// The equation with its regions; `attrs` has num_residuals.
Atoms EmitLinear(Builder& b, Atoms operands, const Attrs& attrs, const std::vector<FnRef>& regions);

}  // namespace weft
#endif  // WEFT_IR_PRIMS_CONTROL_CUSTOM_H_
