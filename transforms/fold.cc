// Constant folding: equations whose operands are all literals, and branches of known predicates.
#include <algorithm>

#include "ir/eval.h"
#include "ir/prim.h"
#include "transforms/pass.h"
#include "transforms/rewrite.h"

namespace weft {
namespace {

bool Foldable(Builder& b, const Eqn& e, const Atoms& operands, const Types& results) {
  if (e.prim->has_effect || operands.empty() || e.prim->family == Family::kEffect) return false;
  // What it gives depends on who runs it.
  if (!e.FreeAxes().empty() || e.prim->name == "pvary") return false;
  for (const FnRef& r : e.regions) {
    if (r->HasEffects()) return false;
  }
  // Might not end.
  if (e.prim->name == "while" || e.prim->name == "tape_scan" || e.prim->name == "recursive") return false;
  (void)b;
  for (const Atom& a : operands) {
    if (a.is_var()) return false;
  }
  // Literals hold up to kMaxLiteralElements; a larger splat is better kept as the broadcast it is.
  for (const Type& t : results) {
    if (t.dtype == DType::kTape) return false;
    if (!t.is_static() || t.size().value() > (e.prim->name == "broadcast" ? 1 : kMaxLiteralElements)) return false;
  }
  return true;
}

}  // namespace

FnRef FoldConstants(FnRef fn) {
  return Rewrite(std::move(fn), [](Builder& b, const Eqn& e, const Atoms& operands) -> std::optional<Atoms> {
    if (e.prim->name == "cond" && operands[0].is_literal()) {
      const Tensor& index = operands[0].literal();
      const int64_t last = static_cast<int64_t>(e.regions.size()) - 1;
      const int64_t taken = std::clamp<int64_t>(static_cast<int64_t>(index.Get(0).real()), 0, last);
      return b.Inline(*e.regions[taken], absl::MakeConstSpan(operands).subspan(1));
    }
    Types types;
    Mask literal;
    Tensors values;
    for (const Atom& a : operands) {
      if (a.is_var()) return std::nullopt;
      types.push_back(a.literal().type());
      literal.push_back(true);
    }
    const Types results = InferTypes(Sig{*e.prim, types, literal, e.attrs, e.regions});
    if (!Foldable(b, e, operands, results)) return std::nullopt;
    for (const Atom& a : operands) values.push_back(a.literal());
    Atoms out;
    for (Tensor& t : EvalEqn(e, values)) out.push_back(Atom(std::move(t)));
    return out;
  });
}

}  // namespace weft
