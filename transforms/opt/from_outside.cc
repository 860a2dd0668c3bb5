#include "transforms/opt/from_outside.h"

#include <utility>

#include "ir/prim.h"
#include "ir/prim_table.h"
#include "ir/prims/control/scan.h"

namespace weft {
namespace {

// Where values more stand that an operation hands on to its regions.
struct Place {
  size_t operand, parameter;
};
std::optional<Place> PlaceOf(const Eqn& e) {
  using Rule = Place (*)(const Eqn& e);
  static constexpr Rule kLast = [](const Eqn& e) { return Place{e.operands.size(), e.regions[0]->params().size()}; };
  static const auto& rules = *new PrimTable<Rule>{
      {"scan",
       [](const Eqn& e) {
         const Scan s(*e.prim, e.attrs, e.regions[0]);
         return Place{s.lead() + s.consts, s.consts};
       }},
      {"while", kLast},
      {"cond", kLast},
      {"call", kLast},
      {"remat", kLast},
  };
  const Rule rule = e.regions.empty() || e.OutwardCalls() > 0 ? nullptr : rules[*e.prim];
  return rule == nullptr ? std::nullopt : std::optional(rule(e));
}

Attrs WithMoreConstants(const Eqn& e, size_t count) {
  const Attr* constants = e.attrs.Find("num_consts");
  return constants == nullptr ? e.attrs
                              : e.attrs.With("num_consts", std::get<int64_t>(*constants) + static_cast<int64_t>(count));
}

}  // namespace

bool FromOutside::CanHandOn(const Eqn& e) { return PlaceOf(e).has_value(); }

std::optional<Atoms> FromOutside::With(Builder& b, const Eqn& e, const Atoms& operands, const Atoms& given) {
  if (OwnUses(e) != 0) return WithOwn(b, e, operands, given);
  const std::optional<Place> place = PlaceOf(e);
  uint32_t uses = 0;
  for (size_t r = 0; place && r < e.regions.size(); ++r) uses |= UsesOf(e.regions[r]);
  if (uses == 0) return std::nullopt;
  Atoms more;
  for (size_t i = 0; i < given.size(); ++i) {
    if (uses >> i & 1) more.push_back(given[i]);
  }
  std::vector<FnRef> regions;
  for (const FnRef& region : e.regions) regions.push_back(RegionOf(region, uses, place->parameter));
  Atoms changed = operands;
  changed.insert(changed.begin() + static_cast<int64_t>(place->operand), more.begin(), more.end());
  return b.Emit(*e.prim, changed, WithMoreConstants(e, more.size()), regions);
}

uint32_t FromOutside::UsesOf(const FnRef& region) {
  if (const auto at = uses_.find(region); at != uses_.end()) return at->second;
  uint32_t uses = 0;
  for (const Eqn& e : region->eqns()) {
    uses |= OwnUses(e);
    if (!PlaceOf(e)) continue;
    for (const FnRef& r : e.regions) uses |= UsesOf(r);
  }
  return uses_[region] = uses;
}

// A region that gets these values as parameters more, from place `at` on.
FnRef FromOutside::RegionOf(const FnRef& region, uint32_t values, size_t at) {
  const std::tuple<FnRef, uint32_t, size_t> key(region, values, at);
  if (const auto made = regions_.find(key); made != regions_.end()) return made->second;
  const Fn& fn = *region;
  Builder b(fn.name());
  LongList<Atom> env(fn.num_vars());
  Atoms given(kMost);
  for (size_t i = 0; i <= fn.params().size(); ++i) {
    for (size_t k = 0; i == at && k < kMost; ++k) {
      if (values >> k & 1) given[k] = b.Parameter(TypeOf(k));
    }
    if (i < fn.params().size()) env[i] = b.Parameter(fn.params()[i].type, fn.params()[i].name, fn.params()[i].kind);
  }
  const auto here = [&](const Atom& a) { return a.is_var() ? env[a.id()] : a; };
  for (const Eqn& e : fn.eqns()) {
    Atoms operands;
    for (const Atom& a : e.operands) operands.push_back(here(a));
    const ScopedLoc loc(b, e.loc);
    const std::optional<Atoms> made = With(b, e, operands, given);
    const Atoms results = made ? *made : b.Clone(e, operands);
    for (uint32_t r = 0; r < e.num_results; ++r) env[e.first_result + r] = results[r];
  }
  Atoms results;
  for (const Atom& a : fn.results()) results.push_back(here(a));
  return regions_[key] = std::move(b).Build(results);
}

}  // namespace weft
