#include "ir/prims/control/constant_operands.h"

#include <unordered_map>
#include <utility>

#include "ir/prims/control/custom_batching.h"
#include "ir/prims/control/custom_host.h"
#include "ir/prims/control/scan.h"

namespace weft {
namespace {

using Rule = std::optional<ConstantPlace> (*)(const Fn&, const Eqn&);

std::vector<size_t> EndOfParameters(const Eqn& e) {
  std::vector<size_t> places;
  for (const FnRef& region : e.regions) places.push_back(region->params().size());
  return places;
}

// Operands and parameters correspond from the front on: the constants follow the first ones, which `attribute` counts.
std::optional<ConstantPlace> Behind(const Eqn& e, const char* attribute, size_t lead = 0) {
  const auto count = static_cast<size_t>(e.attrs.GetOr<int64_t>(attribute, 0));
  return ConstantPlace{lead + count, std::vector<size_t>(e.regions.size(), count),
                       e.attrs.Find(attribute) == nullptr ? nullptr : attribute};
}

std::optional<ConstantPlace> AtEnd(const Fn&, const Eqn& e) {
  return ConstantPlace{e.operands.size(), EndOfParameters(e)};
}
std::optional<ConstantPlace> OfCond(const Fn& fn, const Eqn& e) {
  return ConstantPlace{e.operands.size(), EndOfParameters(e), nullptr, fn.TypeOf(e.operands[0]).varying};
}
std::optional<ConstantPlace> OfWhile(const Fn&, const Eqn& e) {
  return ConstantPlace{e.operands.size(), EndOfParameters(e), nullptr, e.regions[0]->ResultTypes()[0].varying};
}
std::optional<ConstantPlace> OfScan(const Fn&, const Eqn& e) {
  return Behind(e, "num_consts", Scan(*e.prim, e.attrs, e.regions[0]).lead());
}
std::optional<ConstantPlace> AfterConstants(const Fn&, const Eqn& e) { return Behind(e, "num_consts"); }
std::optional<ConstantPlace> AfterKnown(const Fn&, const Eqn& e) { return Behind(e, "num_known"); }
std::optional<ConstantPlace> AfterResiduals(const Fn&, const Eqn& e) {
  if (e.regions.empty()) return std::nullopt;  // its backward rule is at the host
  return Behind(e, "num_residuals");
}
// Whole on every device. The part of one process has stacks of blocks instead, and is never part of another program.
std::optional<ConstantPlace> OfSpmd(const Fn&, const Eqn& e) {
  if (e.attrs.Find("processes") != nullptr) return std::nullopt;
  ConstantPlace place{e.operands.size(), EndOfParameters(e)};
  place.has_shardings = true;
  return place;
}

// The last operands are what the functions captured, and so are the constants; rules of the host get them and do not
// look at them (python/native/rule_bindings.cc).
ConstantPlace BehindCaptured(const Eqn& e) {
  ConstantPlace place{e.operands.size(), std::vector<size_t>(e.regions.size(), e.operands.size()), "num_consts"};
  if (HasHostRule(e.attrs) || e.attrs.Find("through") != nullptr) place.marked = WithUnmappedOperands;
  return place;
}
std::optional<ConstantPlace> OfCustomJvp(const Fn&, const Eqn& e) { return BehindCaptured(e); }
std::optional<ConstantPlace> OfCustomVjp(const Fn&, const Eqn& e) {
  ConstantPlace place = BehindCaptured(e);
  if (e.regions.size() == 1) return place;
  const size_t residuals = e.regions[1]->results().size() - e.num_results;
  for (size_t r = 2; r < e.regions.size(); ++r) place.params[r] = residuals;
  place.gives.assign(e.regions.size(), false);
  place.gives[1] = true;
  return place;
}
std::optional<ConstantPlace> OfCustomVmap(const Fn&, const Eqn& e) {
  const size_t end = EndOfOwnParameters(e);
  ConstantPlace place{end, {end}};
  place.marked = WithMoreParameters;
  return place;
}

const std::unordered_map<const Prim*, Rule>& Table() {
  static const auto& table = *new std::unordered_map<const Prim*, Rule>([] {
    std::unordered_map<const Prim*, Rule> rules;
    for (const auto& [name, rule] :
         std::initializer_list<std::pair<const char*, Rule>>{{"call", AtEnd},
                                                             {"into", AtEnd},
                                                             {"cond", OfCond},
                                                             {"custom_jvp", OfCustomJvp},
                                                             {"custom_linear", AfterResiduals},
                                                             {"custom_vjp", OfCustomVjp},
                                                             {"custom_vmap", OfCustomVmap},
                                                             {"linear_solve", AfterConstants},
                                                             {"primitive", OfCustomJvp},
                                                             {"recur", AfterKnown},
                                                             {"recursive", AfterKnown},
                                                             {"remat", AtEnd},
                                                             {"scan", OfScan},
                                                             {"snapshot_scan", AfterConstants},
                                                             {"spmd", OfSpmd},
                                                             {"tape_scan", OfScan},
                                                             {"while", OfWhile}}) {
      rules.emplace(&FindPrim(name), rule);
    }
    return rules;
  }());
  return table;
}

}  // namespace

Attrs ConstantPlace::With(const Eqn& e, const Types& constants) const {
  Attrs attrs = marked != nullptr ? marked(e, constants.size()) : e.attrs;
  if (counted != nullptr)
    attrs.Set(counted, e.attrs.GetOr<int64_t>(counted, 0) + static_cast<int64_t>(constants.size()));
  if (has_shardings) {
    Shardings shardings = e.attrs.Get<Shardings>("in_shardings");
    for (const Type& t : constants) {
      Sharding whole;
      whole.dims.resize(t.dims.size());
      shardings.push_back(whole);
    }
    attrs.Set("in_shardings", shardings);
  }
  return attrs;
}

std::optional<ConstantPlace> PlaceOfConstants(const Fn& fn, const Eqn& e) {
  const auto row = Table().find(e.prim);
  return row == Table().end() ? std::nullopt : row->second(fn, e);
}

}  // namespace weft
