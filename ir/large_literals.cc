#include "ir/large_literals.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/builder.h"
#include "ir/ops.h"
#include "ir/prims/control/constant_operands.h"
#include "ir/prims/control/varying_choice.h"

namespace weft {
namespace {

using Numbers = std::set<size_t>;

class Lifting {
 public:
  WithConstants Run(const FnRef& fn) {
    const Numbers needed = NeededBy(*fn);
    if (needed.empty()) return {fn, {}};
    std::vector<std::pair<size_t, const Type*>> added;
    for (size_t n : needed) added.emplace_back(n, Intern(constants_[n].type()));
    WithConstants out{Rebuilt(fn, fn->params().size(), added, Param::Kind::kConstant), {}};
    for (size_t n : needed) out.constants.push_back(constants_[n]);
    return out;
  }

 private:
  // Constants of a region: their numbers and types there.
  using Added = std::vector<std::pair<size_t, const Type*>>;

  static bool IsLarge(const Atom& a) { return a.is_literal() && a.literal().size() > kMaxLiteralElements; }

  // The number of a literal: one for each array in memory.
  size_t NumberOf(const Atom& a) {
    const Tensor& t = a.literal();
    auto& same_buffer = numbers_[t.raw()];
    for (size_t n : same_buffer) {
      if (constants_[n].type() == t.type()) return n;
    }
    same_buffer.push_back(constants_.size());
    constants_.push_back(t);
    return constants_.size() - 1;
  }

  // The constants that the enclosing recursive function at this depth has.
  const Numbers& OfCaller(const Eqn& recur) const {
    const auto depth = static_cast<size_t>(recur.attrs.GetInt("depth"));
    static const Numbers none;
    return depth < recursive_.size() ? recursive_[recursive_.size() - 1 - depth] : none;
  }

  // What `fn` needs of its caller: the large literals in it, and those that it hands on.
  Numbers NeededBy(const Fn& fn) {
    const bool closed = fn.OutwardCalls() == 0;
    if (closed) {
      if (const auto known = needed_.find(&fn); known != needed_.end()) return known->second;
    }
    Numbers needed;
    const auto add = [&](const Atom& a) {
      if (IsLarge(a)) needed.insert(NumberOf(a));
    };
    for (const Eqn& e : fn.eqns()) {
      for (const Atom& a : e.operands) add(a);
      const Numbers inside = NeededInside(fn, e);
      needed.insert(inside.begin(), inside.end());
    }
    for (const Atom& a : fn.results()) add(a);
    if (closed) needed_.emplace(&fn, needed);
    return needed;
  }

  // What the equation gets as further operands.
  Numbers NeededInside(const Fn& fn, const Eqn& e) {
    if (e.prim->recurs) return OfCaller(e);
    const bool recursive = e.prim->region_use == RegionUse::kRecursive;
    if (e.regions.empty() || !PlaceOfConstants(fn, e)) return {};
    if (recursive && CallsWithoutPlace(*e.regions[0])) return {};
    if (recursive) recursive_.emplace_back();  // a call of it needs no more than it does
    Numbers needed;
    for (const FnRef& region : e.regions) {
      const Numbers more = NeededBy(*region);
      needed.insert(more.begin(), more.end());
    }
    if (recursive) recursive_.pop_back();
    return needed;
  }

  // Whether an equation that cannot take constants calls an enclosing recursive function, which then takes none.
  static bool CallsWithoutPlace(const Fn& fn) {
    return std::any_of(fn.eqns().begin(), fn.eqns().end(), [&](const Eqn& e) {
      if (!e.CallsOutwards() || e.regions.empty()) return false;
      if (!PlaceOfConstants(fn, e)) return true;
      return std::any_of(e.regions.begin(), e.regions.end(), [](const FnRef& r) { return CallsWithoutPlace(*r); });
    });
  }

  // `gives`: whether it also gives the constants, behind its results.
  FnRef Rebuilt(const FnRef& fn, size_t place, const Added& added, Param::Kind kind, bool gives = false) {
    const auto key = std::make_tuple(fn.get(), place, added, gives);
    const bool closed = fn->OutwardCalls() == 0;
    if (closed) {
      if (const auto known = rebuilt_.find(key); known != rebuilt_.end()) return known->second;
    }
    Builder b(fn->name());
    Atoms env;
    std::map<size_t, Atom> constants;
    for (size_t i = 0; i <= fn->params().size(); ++i) {
      if (i == place) {
        for (const auto& [n, type] : added) constants.emplace(n, b.Parameter(*type, "", kind));
      }
      if (i == fn->params().size()) break;
      const Param& p = fn->params()[i];
      env.push_back(b.Parameter(p.type, p.name, p.kind));
    }
    const auto of = [&](const Atom& a) -> Atom {
      if (a.is_var()) return env[a.id()];
      return IsLarge(a) ? constants.at(NumberOf(a)) : a;
    };
    for (const Eqn& e : fn->eqns()) {
      Atoms x;
      for (const Atom& a : e.operands) x.push_back(of(a));
      ScopedLoc loc(b, e.loc);
      for (const Atom& y : WithMore(b, *fn, e, std::move(x), constants)) env.push_back(y);
    }
    Atoms results;
    for (const Atom& a : fn->results()) results.push_back(of(a));
    if (gives) {
      for (const auto& [n, type] : added) results.push_back(constants.at(n));
    }
    FnRef out = b.Build(results, /*keep_dead=*/true);
    if (closed) rebuilt_.emplace(key, out);
    return out;
  }

  // The equation with the constants that it needs.
  Atoms WithMore(Builder& b, const Fn& fn, const Eqn& e, Atoms x, const std::map<size_t, Atom>& constants) {
    const bool recursive = e.prim->region_use == RegionUse::kRecursive;
    const Numbers needed = NeededInside(fn, e);
    if (needed.empty()) return b.Clone(fn, e, std::move(x));
    const ConstantPlace place = *PlaceOfConstants(fn, e);
    Atoms more;
    Added added;
    Types types;
    for (size_t n : needed) {
      more.push_back(Pvary(b, constants.at(n), place.varying));
      types.push_back(b.TypeOf(more.back()));
      added.emplace_back(n, &b.TypeOf(more.back()));
    }
    if (recursive) recursive_.push_back(needed);
    std::vector<FnRef> regions;
    for (size_t r = 0; r < e.regions.size(); ++r) {
      const FnRef region = place.varying.empty() ? e.regions[r] : VaryingOver(e.regions[r], place.varying);
      kept_.push_back(region);
      regions.push_back(
          Rebuilt(region, place.params[r], added, Param::Kind::kArgument, !place.gives.empty() && place.gives[r]));
    }
    if (recursive) recursive_.pop_back();
    x.insert(x.begin() + static_cast<int64_t>(place.operand), more.begin(), more.end());
    return b.Emit(*e.prim, std::move(x), place.With(e, types), regions);
  }

  Tensors constants_;
  std::unordered_map<const void*, std::vector<size_t>> numbers_;  // by buffer
  std::unordered_map<const Fn*, Numbers> needed_;
  std::map<std::tuple<const Fn*, size_t, Added, bool>, FnRef> rebuilt_;
  std::vector<Numbers> recursive_;  // of the enclosing recursive functions, the innermost last
  std::vector<FnRef> kept_;         // whose addresses are remembered
};

}  // namespace

WithConstants WithoutLargeLiterals(const FnRef& fn) { return Lifting().Run(fn); }

}  // namespace weft
