// Whether two atoms are the same value, as far as a look at the equations that define them tells. People write a
// subexpression twice, and rules look at programs before equal equations are made one.
#ifndef WEFT_TRANSFORMS_OPT_SAME_VALUE_H_
#define WEFT_TRANSFORMS_OPT_SAME_VALUE_H_

#include "ir/builder.h"

namespace weft {

inline bool SameValue(const Builder& b, const Atom& x, const Atom& y, int depth = 6) {
  if (x == y) return true;
  const Eqn *e = b.Definition(x), *f = b.Definition(y);
  if (depth == 0 || e == nullptr || f == nullptr || e->prim != f->prim || e->prim->family == Family::kEffect ||
      e->prim->family == Family::kRandom || e->num_results != 1 || !e->regions.empty() || !f->regions.empty() ||
      e->operands.size() != f->operands.size() || !(e->attrs == f->attrs))
    return false;
  for (size_t i = 0; i < e->operands.size(); ++i) {
    if (!SameValue(b, e->operands[i], f->operands[i], depth - 1)) return false;
  }
  return true;
}

// The value that is squared; nothing where it is no square.
inline std::optional<Atom> RootOf(const Builder& b, const Atom& a) {
  static const Prim &square = FindPrim("square"), &power = FindPrim("integer_pow"), &mul = FindPrim("mul");
  const Eqn* e = b.Definition(a);
  if (e == nullptr) return std::nullopt;
  if (e->prim == &square || (e->prim == &power && e->attrs.GetInt("y") == 2)) return e->operands[0];
  if (e->prim == &mul && SameValue(b, e->operands[0], e->operands[1])) return e->operands[0];
  return std::nullopt;
}

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_SAME_VALUE_H_
