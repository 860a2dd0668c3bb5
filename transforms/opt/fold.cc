// Constant folding: equations whose operands are all literals, and branches of known predicates.
//
// What may run for ever is left to whoever runs the program, wherever it is, and what is evaluated here stays within a
// budget: a loop of many trips takes less time compiled.
#include <algorithm>

#include "ir/analysis/cost.h"
#include "ir/eval/eval.h"
#include "ir/prim.h"
#include "transforms/opt/pass.h"
#include "transforms/opt/rewrite.h"

namespace weft {
namespace {

bool Foldable(const Eqn& e, const Atoms& operands) {
  if (e.prim->has_effect || operands.empty() || e.prim->family == Family::kEffect || e.prim->may_diverge) return false;
  // What names a mesh says how its results lie on it, which a literal does not.
  if (e.attrs.Find("mesh") != nullptr) return false;
  // What it gives depends on who runs it.
  if (e.prim->family == Family::kCollective || !e.FreeAxes().empty()) return false;
  for (const FnRef& r : e.regions) {
    if (r->HasEffects() || r->MayDiverge()) return false;
  }
  return std::none_of(operands.begin(), operands.end(), [](const Atom& a) { return a.is_var(); });
}

// Literals hold up to kMaxLiteralElements; a larger splat is better kept as the broadcast it is.
bool AreLiterals(const Types& results, const Eqn& e) {
  return std::all_of(results.begin(), results.end(), [&](const Type& t) {
    return t.dtype != DType::kTape && t.is_static() && t.size().value() <= (e.prim->expands ? 1 : kMaxLiteralElements);
  });
}

// What the regions of one program may take, together: some milliseconds. (An equation without regions that makes a
// literal from literals takes next to nothing.)
struct Budget {
  double equations = 1e4;
  double work = 1e6;  // operations, and bytes that are read and written

  bool Takes(const Eqn& e) {
    if (e.regions.empty()) return true;
    const Cost cost = CostOfRegions(e);
    if (!(cost.equations <= equations && cost.total() <= work)) return false;
    equations -= cost.equations;
    work -= cost.total();
    return true;
  }
};

}  // namespace

FnRef FoldConstants(FnRef fn) {
  Budget budget;
  return Rewrite(std::move(fn), [&](Builder& b, const Eqn& e, const Atoms& operands) -> std::optional<Atoms> {
    if (e.prim->region_use == RegionUse::kBranches && operands[0].is_literal()) {
      const Tensor& index = operands[0].literal();
      const int64_t last = static_cast<int64_t>(e.regions.size()) - 1;
      const int64_t taken = std::clamp<int64_t>(static_cast<int64_t>(index.Get(0).real()), 0, last);
      return b.Inline(*e.regions[taken], absl::MakeConstSpan(operands).subspan(1));
    }
    if (!Foldable(e, operands)) return std::nullopt;
    Types types;
    Tensors values;
    for (const Atom& a : operands) {
      types.push_back(a.literal().type());
      values.push_back(a.literal());
    }
    const Types results = InferTypes(Sig{*e.prim, types, Mask(types.size(), true), e.attrs, e.regions});
    if (!AreLiterals(results, e) || !budget.Takes(e)) return std::nullopt;
    Atoms out;
    for (Tensor& t : EvalEqn(e, values)) out.push_back(Atom(std::move(t)));
    return out;
  });
}

}  // namespace weft
