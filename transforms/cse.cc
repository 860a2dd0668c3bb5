// Common subexpressions: equal pure equations of one function are computed once. Regions are closed, so each is a scope
// of its own.
#include "transforms/cse.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/hash/hash.h"
#include "ir/prim.h"
#include "transforms/pass.h"
#include "transforms/rewrite.h"

namespace weft {
namespace {

// a + b and b + a have the same bits (a NaN's payload aside), so they count as equal.
bool Commutes(const Prim& prim) {
  static const auto& names = *new std::vector<std::string>{"add", "mul", "max", "min", "and", "or", "xor", "eq", "ne"};
  return std::find(names.begin(), names.end(), prim.name) != names.end();
}

size_t HashOf(const Atom& a) { return a.is_var() ? absl::HashOf(a.id()) : a.literal().Hash(); }

size_t HashOf(const Eqn& e, const Atoms& operands, bool commutes) {
  size_t h = absl::HashOf(e.prim, e.attrs, operands.size());
  if (commutes) {
    h = absl::HashOf(h, HashOf(operands[0]) + HashOf(operands[1]));
  } else {
    for (const Atom& a : operands) h = absl::HashOf(h, HashOf(a));
  }
  for (const FnRef& r : e.regions) h = absl::HashOf(h, r->StructuralHash());
  return h;
}

bool SameOperands(const Atoms& a, const Atoms& b, bool commutes) {
  return a == b || (commutes && a[0] == b[1] && a[1] == b[0]);
}

bool HasEffect(const Eqn& e) {
  if (e.prim->has_effect) return true;
  for (const FnRef& r : e.regions) {
    if (r->HasEffects()) return true;
  }
  return false;
}

}  // namespace

const Eqn* EquationTable::Find(const Builder& b, const Eqn& e, const Atoms& operands) {
  const bool commutes = Commutes(*e.prim);
  found_hash_ = HashOf(e, operands, commutes);
  const auto it = last_.find(found_hash_);
  for (int32_t i = it == last_.end() ? -1 : it->second; i >= 0; i = entries_[static_cast<size_t>(i)].before) {
    const Eqn& seen = b.eqns()[entries_[static_cast<size_t>(i)].eqn];
    if (seen.prim != e.prim || !SameOperands(seen.operands, operands, commutes) || !(seen.attrs == e.attrs) ||
        seen.regions.size() != e.regions.size())
      continue;
    const bool same = std::equal(e.regions.begin(), e.regions.end(), seen.regions.begin(),
                                 [](const FnRef& a, const FnRef& b) { return a->StructurallyEquals(*b); });
    if (same) return &seen;
  }
  return nullptr;
}

void EquationTable::Add(size_t eqn) {
  const auto [it, first] = last_.try_emplace(found_hash_, -1);
  entries_.push_back({static_cast<uint32_t>(eqn), it->second});
  it->second = static_cast<int32_t>(entries_.size() - 1);
}

Atoms ResultsOf(const Eqn& e) {
  Atoms results;
  for (uint32_t r = 0; r < e.num_results; ++r) results.push_back(e.result(static_cast<int>(r)));
  return results;
}

bool EquationTable::Takes(const Eqn& e) { return !HasEffect(e); }

FnRef EliminateCommonSubexpressions(const FnRef& fn) {
  std::vector<EquationTable> scopes;
  return Rewrite(
      fn,
      [&](Builder& b, const Eqn& e, const Atoms& operands) -> std::optional<Atoms> {
        if (!EquationTable::Takes(e)) return std::nullopt;
        if (const Eqn* seen = scopes.back().Find(b, e, operands)) return ResultsOf(*seen);
        scopes.back().Add(b.num_eqns());
        return std::nullopt;
      },
      [&](const Fn& fn, Builder&) { scopes.emplace_back(fn.eqns().size()); }, [&] { scopes.pop_back(); });
}

FnRef InlineEveryCall(const FnRef& fn) {
  return Rewrite(fn, [](Builder& b, const Eqn& e, const Atoms& operands) -> std::optional<Atoms> {
    if (e.prim->name != "call" || e.attrs.GetOr<bool>("out_of_line", false)) return std::nullopt;
    return b.Inline(*e.regions[0], operands);
  });
}

FnRef DropDifferentiationRules(const FnRef& fn) {
  return Rewrite(fn, [](Builder& b, const Eqn& e, const Atoms& operands) -> std::optional<Atoms> {
    const std::string& name = e.prim->name;
    if (name == "custom_linear") {
      if (e.regions.size() < 2)
        throw UserError(
            ErrorKind::kDerivative, e.loc,
            "forward mode through custom_vjp needs a backward rule that is linear in the cotangent; this one is not");
      return b.Inline(*e.regions[1], operands);
    }
    if (name == "stop_gradient" || name == "checkpoint_name") return operands;
    static const std::set<std::string> kRules = {"custom_jvp", "custom_vjp", "custom_vmap", "linear_solve", "remat"};
    if (kRules.count(name) == 0) return std::nullopt;
    return b.Inline(*e.regions[0], operands);
  });
}

}  // namespace weft
