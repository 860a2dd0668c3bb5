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

const Atoms* EquationTable::Find(const Eqn& e, const Atoms& operands) {
  found_hash_ = HashOf(e, operands, Commutes(*e.prim));
  const auto [begin, end] = entries_.equal_range(found_hash_);
  for (auto it = begin; it != end; ++it) {
    const Eqn& seen = it->second.eqn;
    if (seen.prim != e.prim || !SameOperands(seen.operands, operands, Commutes(*e.prim)) || !(seen.attrs == e.attrs) ||
        seen.regions.size() != e.regions.size())
      continue;
    const bool same = std::equal(e.regions.begin(), e.regions.end(), seen.regions.begin(),
                                 [](const FnRef& a, const FnRef& b) { return a->StructurallyEquals(*b); });
    if (same) return &it->second.results;
  }
  return nullptr;
}

void EquationTable::Add(const Eqn& e, const Atoms& operands, const Atoms& results) {
  Entry entry{e, results};
  entry.eqn.operands = operands;
  entries_.emplace(found_hash_, std::move(entry));
}

bool EquationTable::Takes(const Eqn& e) { return !HasEffect(e); }

FnRef EliminateCommonSubexpressions(const FnRef& fn) {
  std::vector<EquationTable> scopes;
  return Rewrite(
      fn,
      [&](Builder& b, const Eqn& e, const Atoms& operands) -> std::optional<Atoms> {
        if (!EquationTable::Takes(e)) return std::nullopt;
        if (const Atoms* seen = scopes.back().Find(e, operands)) return *seen;
        const Atoms results = b.Clone(e, operands);
        scopes.back().Add(e, operands, results);
        return results;
      },
      [&](const Fn&, Builder&) { scopes.emplace_back(); }, [&] { scopes.pop_back(); });
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
