// What makes an operand: the question that every pattern of a rule asks.
//
//   if (const Eqn* product = DefinedBy<"mul">(b, x[0])) ...
#ifndef WEFT_TRANSFORMS_OPT_DEFINED_BY_H_
#define WEFT_TRANSFORMS_OPT_DEFINED_BY_H_

#include "ir/builder.h"
#include "ir/prim_table.h"

namespace weft {

// The equation of `prim` that defines `a`; null if another or none does. Valid until the next equation.
inline const Eqn* DefinedBy(const Builder& b, const Atom& a, const Prim& prim) {
  const Eqn* e = b.Definition(a);
  return e != nullptr && e->prim == &prim ? e : nullptr;
}
template <PrimName kName>
const Eqn* DefinedBy(const Builder& b, const Atom& a) {
  const Eqn* e = b.Definition(a);
  return e != nullptr && Is<kName>(*e->prim) ? e : nullptr;
}

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_DEFINED_BY_H_
