// Common subexpressions: equal pure equations of one function are computed once. Regions are closed, so each is a scope
// of its own.
#include "transforms/opt/cse.h"

#include <algorithm>

#include "absl/hash/hash.h"
#include "ir/extensions.h"
#include "ir/prim_table.h"
#include "ir/prims/control/custom.h"
#include "transforms/opt/pass.h"
#include "transforms/opt/rewrite.h"
#include "transforms/opt/simplify.h"

namespace weft {
namespace {

size_t HashOf(const Atom& a) { return a.is_var() ? absl::HashOf(a.id()) : a.literal_hash(); }

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

bool HasEffect(const Eqn& e) {
  if (e.prim->has_effect) return true;
  for (const FnRef& r : e.regions) {
    if (r->HasEffects()) return true;
  }
  return false;
}

}  // namespace

struct EquationTable::Sought {
  const Builder& b;
  const Eqn& eqn;
  const Atoms& operands;
  uint32_t hash;
};

size_t EquationTable::Hash::operator()(const Sought& s) const { return Mixed(s.hash); }

bool EquationTable::Equal::operator()(const Entry& entry, const Sought& s) const {
  if (entry.hash != s.hash) return false;
  const Eqn &seen = s.b.eqns()[entry.eqn], &e = s.eqn;
  return seen.prim == e.prim && SameOperands(seen.operands, s.operands, e.prim->commutes) && seen.attrs == e.attrs &&
         std::equal(e.regions.begin(), e.regions.end(), seen.regions.begin(), seen.regions.end(),
                    [](const FnRef& a, const FnRef& b) { return a->StructurallyEquals(*b); });
}

const Eqn* EquationTable::FindOrAdd(const Builder& b, const Eqn& e, const Atoms& operands, size_t index) {
  const size_t hash = HashOf(e, operands, e.prim->commutes);
  const Sought sought{b, e, operands, static_cast<uint32_t>(hash ^ hash >> 32)};
  const Entry added{sought.hash, static_cast<uint32_t>(index)};
  // A new entry is written and not read again: in a long program its cache line is still on its way.
  bool is_new = false;
  const auto at = table_.lazy_emplace(sought, [&](const auto& construct) {
    is_new = true;
    construct(added);
  });
  return is_new ? nullptr : &b.eqns()[at->eqn];
}

Atoms ResultsOf(const Eqn& e) {
  Atoms results;
  for (uint32_t r = 0; r < e.num_results; ++r) results.push_back(e.result(static_cast<int>(r)));
  return results;
}

bool EquationTable::Takes(const Eqn& e) { return !HasEffect(e); }

FnRef EliminateCommonSubexpressions(FnRef fn) {
  std::vector<EquationTable> scopes;
  return Rewrite(
      std::move(fn),
      [&](Builder& b, const Eqn& e, const Atoms& operands) -> std::optional<Atoms> {
        if (!EquationTable::Takes(e)) return std::nullopt;
        if (const Eqn* seen = scopes.back().FindOrAdd(b, e, operands, b.num_eqns())) return ResultsOf(*seen);
        return std::nullopt;
      },
      [&](const Fn& fn, Builder&) { scopes.emplace_back(fn.eqns().size()); }, [&] { scopes.pop_back(); });
}

FnRef InlineEveryCall(FnRef fn) {
  return Rewrite(std::move(fn), [](Builder& b, const Eqn& e, const Atoms& operands) -> std::optional<Atoms> {
    if (e.prim->region_use != RegionUse::kCall || e.attrs.GetOr<bool>("out_of_line", false)) return std::nullopt;
    return b.Inline(*e.regions[0], operands);
  });
}

FnRef DropDifferentiationRules(FnRef fn) {
  // The rules that know operations from outside are tried first: what comes after sees only what these compute.
  if (PrimitivesWereAdded()) {
    fn = Rewrite(std::move(fn), [](Builder& b, const Eqn& e, const Atoms& operands) -> std::optional<Atoms> {
      return ExpansionOf(*e.prim) != nullptr ? SimplifyEqn(b, e, operands) : std::nullopt;
    });
  }
  return Rewrite(std::move(fn), [](Builder& b, const Eqn& e, const Atoms& operands) -> std::optional<Atoms> {
    static const auto& marks = *new PrimSet{"stop_gradient", "checkpoint_name"};
    if (marks.Has(*e.prim)) return operands;
    if (ExpansionOf(*e.prim) != nullptr) {
      const ExpandedEqn inner = ExpandedOf(b, e, operands);
      return b.Inline(*DropDifferentiationRules(inner.fn), inner.args);
    }
    if (e.prim->region_use != RegionUse::kWithRules) return std::nullopt;
    // What it is of its operands is seen no more when its regions are inlined: a system of a triangular matrix.
    if (std::optional<Atoms> made = SimplifyEqn(b, e, operands, /*lowering=*/true)) return made;
    // Its regions may be rules alone, from which its map is found.
    const bool linear = Is<"custom_linear">(*e.prim);
    return b.Inline(linear ? *LinearMap(e.regions, e.loc) : *e.regions[0], operands);
  });
}

}  // namespace weft
