// Further operands of an equation with regions that its regions read and that never change: the constants of a loop or
// branch.
#ifndef WEFT_IR_PRIMS_CONTROL_CONSTANT_OPERANDS_H_
#define WEFT_IR_PRIMS_CONTROL_CONSTANT_OPERANDS_H_

#include <optional>
#include <vector>

#include "ir/fn.h"
#include "ir/prim.h"
#include "ir/type.h"

namespace weft {

// Where they go: before which operand, and before which parameter of each region.
struct ConstantPlace {
  size_t operand = 0;
  std::vector<size_t> params;
  const char* counted = nullptr;  // the attribute that counts such operands, if one does
  Strings varying = {};           // mesh axes over which operands have to vary
  bool has_shardings = false;     // the attribute in_shardings has an entry for each operand
  Mask gives = {};                // regions that give them behind their results: residuals for those after
  Attrs (*marked)(const Eqn&, size_t count) = nullptr;  // the attributes that say something of each operand

  // The attributes of `e` with constants of these types.
  Attrs With(const Eqn& e, const Types& constants) const;
};

// Nothing for a custom_linear whose backward rule is at the host, which is a step inside a transform, and for the part
// of one process.
std::optional<ConstantPlace> PlaceOfConstants(const Fn& fn, const Eqn& e);

}  // namespace weft
#endif  // WEFT_IR_PRIMS_CONTROL_CONSTANT_OPERANDS_H_
