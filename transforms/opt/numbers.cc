#include "transforms/opt/numbers.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_set>

#include "ir/ops.h"
#include "ir/prim.h"
#include "ir/prim_table.h"
#include "ir/prims/control/scan.h"
#include "transforms/opt/rewrite.h"

namespace weft {
namespace {

constexpr size_t kMostNumbers = 32;  // bits of a set of them

bool IsCommon(double v) { return !std::isfinite(v) || (std::abs(v) <= 1024 && v * 4 == std::rint(v * 4)); }

bool IsTaken(const Atom& a, WhichNumbers which) {
  if (!a.is_literal() || a.literal().rank() != 0) return false;
  const DType dtype = a.literal().dtype();
  if (which == WhichNumbers::kAll) return IsInexact(dtype) || IsInteger(dtype);
  if (!IsInexact(dtype)) return false;
  const std::complex<double> v = a.literal().Get(0);
  return !IsCommon(v.real()) || !IsCommon(v.imag());
}

bool SameBits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.bytes())) == 0;
}

// Where values more stand that an operation hands on to its regions.
struct Place {
  size_t operand, parameter;
};
std::optional<Place> PlaceOf(const Eqn& e) {
  using Rule = Place (*)(const Eqn& e);
  static const auto& rules = *new PrimTable<Rule>{
      {"scan",
       [](const Eqn& e) {
         const Scan s(*e.prim, e.attrs, e.regions[0]);
         return Place{s.lead() + s.consts, s.consts};
       }},
      {"while", [](const Eqn& e) { return Place{e.operands.size(), e.regions[0]->params().size()}; }},
      {"cond", [](const Eqn& e) { return Place{e.operands.size(), e.regions[0]->params().size()}; }},
      {"call", [](const Eqn& e) { return Place{e.operands.size(), e.regions[0]->params().size()}; }},
      {"remat", [](const Eqn& e) { return Place{e.operands.size(), e.regions[0]->params().size()}; }},
  };
  const Rule rule = e.regions.empty() || e.OutwardCalls() > 0 ? nullptr : rules[*e.prim];
  return rule == nullptr ? std::nullopt : std::optional(rule(e));
}
Attrs WithMoreConstants(const Eqn& e, size_t count) {
  const Attr* constants = e.attrs.Find("num_consts");
  return constants == nullptr ? e.attrs
                              : e.attrs.With("num_consts", std::get<int64_t>(*constants) + static_cast<int64_t>(count));
}

// The numbers of a program, each once, and what becomes of its equations without them.
class Numbers {
 public:
  Numbers(const Fn& fn, WhichNumbers which) : which_(which) {
    std::unordered_set<const Fn*> seen;
    Collect(fn, seen);
  }

  const Tensors& all() const { return all_; }

  // An equation of `b` with given[i] in place of the number i; nothing if it has none, nor its regions.
  std::optional<Atoms> Without(Builder& b, const Eqn& e, const Atoms& operands, const Atoms& given) {
    Atoms changed = operands;
    if (e.prim->is_elementwise()) {
      Dims shape;  // of the operands that are no literals
      for (const Atom& a : operands) {
        if (b.TypeOf(a).rank() != 0) shape = b.TypeOf(a).dims;
      }
      bool any = false;
      for (Atom& a : changed) {
        const size_t i = IndexOf(a);
        if (i < all_.size()) a = Broadcast(b, given[i], shape, {}), any = true;
      }
      return any ? std::optional(b.Emit(*e.prim, changed, e.attrs)) : std::nullopt;
    }
    const std::optional<Place> place = which_ == WhichNumbers::kAll ? PlaceOf(e) : std::nullopt;
    uint32_t used = 0;
    for (size_t r = 0; place && r < e.regions.size(); ++r) used |= UsedBy(e.regions[r]);
    if (used == 0) return std::nullopt;
    Atoms more;
    for (size_t i = 0; i < all_.size(); ++i) {
      if (used >> i & 1) more.push_back(given[i]);
    }
    std::vector<FnRef> regions;
    for (const FnRef& region : e.regions) regions.push_back(RegionOf(region, used, place->parameter));
    changed.insert(changed.begin() + static_cast<int64_t>(place->operand), more.begin(), more.end());
    return b.Emit(*e.prim, changed, WithMoreConstants(e, more.size()), regions);
  }

 private:
  // Which of all an operand is; their number for others.
  size_t IndexOf(const Atom& a) const {
    if (!IsTaken(a, which_)) return all_.size();
    const auto same = [&](const Tensor& n) { return SameBits(n, a.literal()); };
    return static_cast<size_t>(std::find_if(all_.begin(), all_.end(), same) - all_.begin());
  }
  void Collect(const Fn& fn, std::unordered_set<const Fn*>& seen) {
    if (!seen.insert(&fn).second) return;
    for (const Eqn& e : fn.eqns()) {
      if (e.prim->is_elementwise()) {
        for (const Atom& a : e.operands) {
          if (all_.size() < kMostNumbers && IsTaken(a, which_) && IndexOf(a) == all_.size())
            all_.push_back(a.literal());
        }
      } else if (which_ == WhichNumbers::kAll && PlaceOf(e)) {
        for (const FnRef& region : e.regions) Collect(*region, seen);
      }
    }
  }
  // Which numbers a region has: a bit for each.
  uint32_t UsedBy(const FnRef& region) {
    if (const auto at = used_.find(region); at != used_.end()) return at->second;
    uint32_t used = 0;
    for (const Eqn& e : region->eqns()) {
      if (e.prim->is_elementwise()) {
        for (const Atom& a : e.operands) {
          const size_t i = IndexOf(a);
          if (i < all_.size()) used |= uint32_t{1} << i;
        }
      } else if (PlaceOf(e)) {
        for (const FnRef& r : e.regions) used |= UsedBy(r);
      }
    }
    return used_[region] = used;
  }
  // A region that gets these numbers as parameters more, from place `at` on.
  FnRef RegionOf(const FnRef& region, uint32_t numbers, size_t at) {
    const std::tuple<FnRef, uint32_t, size_t> key(region, numbers, at);
    if (const auto made = regions_.find(key); made != regions_.end()) return made->second;
    const Fn& fn = *region;
    Builder b(fn.name());
    LongList<Atom> env(fn.num_vars());
    Atoms given(all_.size());
    for (size_t i = 0; i <= fn.params().size(); ++i) {
      for (size_t k = 0; i == at && k < all_.size(); ++k) {
        if (numbers >> k & 1) given[k] = b.Parameter(all_[k].type());
      }
      if (i < fn.params().size()) env[i] = b.Parameter(fn.params()[i].type, fn.params()[i].name, fn.params()[i].kind);
    }
    const auto here = [&](const Atom& a) { return a.is_var() ? env[a.id()] : a; };
    for (const Eqn& e : fn.eqns()) {
      Atoms operands;
      for (const Atom& a : e.operands) operands.push_back(here(a));
      const ScopedLoc loc(b, e.loc);
      const std::optional<Atoms> made = Without(b, e, operands, given);
      const Atoms results = made ? *made : b.Clone(e, operands);
      for (uint32_t r = 0; r < e.num_results; ++r) env[e.first_result + r] = results[r];
    }
    Atoms results;
    for (const Atom& a : fn.results()) results.push_back(here(a));
    return regions_[key] = std::move(b).Build(results);
  }

  const WhichNumbers which_;
  Tensors all_;
  // They hold the regions, so that no other gets their addresses.
  std::map<FnRef, uint32_t> used_;
  std::map<std::tuple<FnRef, uint32_t, size_t>, FnRef> regions_;
};

}  // namespace

FnRef NumbersAsParameters(const FnRef& fn, Tensors* numbers, WhichNumbers which) {
  Numbers of(*fn, which);
  if (of.all().empty()) return fn;
  *numbers = of.all();
  Atoms parameters;
  int depth = 0;
  const auto replaced = [&](Builder& b, const Eqn& e, const Atoms& operands) {
    return depth == 1 ? of.Without(b, e, operands, parameters) : std::nullopt;
  };
  const auto enter = [&](const Fn&, Builder& b) {
    if (++depth > 1) return;
    for (const Tensor& number : *numbers) parameters.push_back(b.Parameter(number.type(), "", Param::Kind::kConstant));
  };
  return Rewrite(fn, replaced, enter, [&] { --depth; });
}

}  // namespace weft
