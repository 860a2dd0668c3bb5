// Constant folding: equations whose operands are all literals, and branches of known predicates.
//
// What may run for ever is left to whoever runs the program, wherever it is, and what is evaluated here stays within a
// budget: a loop of many trips takes less time compiled.
#include <algorithm>
#include <string>
#include <vector>

#include "ir/analysis/cost.h"
#include "ir/eval/eval.h"
#include "ir/prim.h"
#include "transforms/opt/pass.h"
#include "transforms/opt/rewrite.h"

namespace weft {
namespace {

// Why the equation stays whatever its operands are; null: it does not.
const char* Obstacle(const Eqn& e) {
  if (e.prim->has_effect || e.prim->family == Family::kEffect) return "it has an effect";
  if (e.operands.empty()) return "it is made without operands";
  if (e.prim->may_diverge) return "it may run for ever";
  // What names a mesh says how its results lie on it, which a literal does not.
  if (e.attrs.Find("mesh") != nullptr) return "it says how its result lies on a mesh";
  if (e.prim->family == Family::kCollective || !e.FreeAxes().empty()) return "what it gives depends on who runs it";
  for (const FnRef& r : e.regions) {
    if (r->HasEffects()) return "it has an effect";
    if (r->MayDiverge()) return "it may run for ever";
  }
  return nullptr;
}

bool Foldable(const Eqn& e, const Atoms& operands) {
  return Obstacle(e) == nullptr &&
         std::none_of(operands.begin(), operands.end(), [](const Atom& a) { return a.is_var(); });
}

// Literals hold up to kMaxLiteralElements; a larger splat is better kept as the broadcast it is.
int64_t MostElements(const Eqn& e) { return e.prim->expands ? 1 : kMaxLiteralElements; }
bool IsLiteral(const Type& t, const Eqn& e) {
  return t.dtype != DType::kTape && t.is_static() && t.size().value() <= MostElements(e);
}
bool AreLiterals(const Types& results, const Eqn& e) {
  return std::all_of(results.begin(), results.end(), [&](const Type& t) { return IsLiteral(t, e); });
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

std::vector<std::string> WhyNotFolded(const Fn& fn) {
  const auto name = [](const Eqn& e) { return e.prim->name + (e.loc ? " at " + e.loc.ToString() : ""); };
  std::vector<int> defining(fn.num_vars(), -1);
  for (size_t i = 0; i < fn.eqns().size(); ++i) {
    const Eqn& e = fn.eqns()[i];
    for (uint32_t r = 0; r < e.num_results; ++r) defining[e.first_result + r] = static_cast<int>(i);
  }
  std::vector<std::string> sentences;
  for (const Eqn& e : fn.eqns()) {
    std::string why;
    if (const char* obstacle = Obstacle(e)) why = obstacle;
    for (const Atom& a : e.operands) {
      if (!why.empty() || !a.is_var()) continue;
      const int maker = defining[a.id()];
      if (maker >= 0) {
        why = "its operand comes from " + name(fn.eqns()[static_cast<size_t>(maker)]);
      } else {
        const std::string& param = fn.params()[a.id()].name;
        why = "its operand is parameter " + (param.empty() ? std::to_string(a.id()) : "'" + param + "'");
      }
    }
    for (uint32_t r = 0; r < e.num_results; ++r) {
      const Type& t = fn.TypeOf(Var{e.first_result + r});
      if (why.empty() && !IsLiteral(t, e))
        why = "its result " + ToString({t}) + " has more than " + std::to_string(MostElements(e)) + " elements";
    }
    if (why.empty()) why = e.regions.empty() ? "'fold' did not run" : "its regions would take too long";
    sentences.push_back(name(e) + " is not folded: " + why);
    for (const FnRef& region : e.regions) {
      for (std::string& sentence : WhyNotFolded(*region)) sentences.push_back(std::move(sentence));
    }
  }
  return sentences;
}

}  // namespace weft
