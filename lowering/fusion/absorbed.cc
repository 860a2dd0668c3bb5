#include "lowering/fusion/absorbed.h"

#include "ir/prim.h"
#include "lowering/ops/op_table.h"

namespace weft {

std::vector<bool> AbsorbedByWrites(const Fn& fn, const std::vector<bool>& live, const std::vector<bool>& demanded,
                                   const std::vector<int>& uses) {
  constexpr int kMostSteps = 32;  // registers and the time to compile grow with them
  std::vector<int> steps(fn.num_vars(), 0);
  for (size_t i = fn.eqns().size(); i-- > 0;) {
    const Eqn& e = fn.eqns()[i];
    if (!live[i] || e.num_results != 1) continue;
    const bool writes = RowOf(*e.prim).operands == OpRow::Operands::kComputed;
    const int before = steps[e.first_result];
    const bool is_part = before > 0 && before < kMostSteps && !demanded[e.first_result] && e.prim->is_elementwise();
    if (!writes && !is_part) continue;
    for (const Atom& a : e.operands) {
      if (a.is_var() && uses[a.id()] == 1 && fn.TypeOf(a).rank() > 0) steps[a.id()] = before + 1;
    }
  }
  std::vector<bool> absorbed(fn.num_vars());
  for (size_t v = 0; v < steps.size(); ++v) absorbed[v] = steps[v] > 0;
  return absorbed;
}

}  // namespace weft
