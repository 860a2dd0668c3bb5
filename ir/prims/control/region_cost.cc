#include "ir/prims/control/region_cost.h"

#include <algorithm>
#include <unordered_map>

#include "ir/analysis/cost.h"

namespace weft {
namespace {

constexpr CostOptions kOptions = {.symbol = 256, .trips = 1};

class Counter {
 public:
  RegionCost Of(const Fn& fn) {
    RegionCost all;
    for (const Eqn& e : fn.eqns()) all += EqnCost(fn, e);
    return all;
  }

 private:
  // A function that is called often is counted once.
  RegionCost OfRegion(const Fn& fn) {
    const auto at = regions_.find(&fn);
    return at != regions_.end() ? at->second : regions_.emplace(&fn, Of(fn)).first->second;
  }
  RegionCost Dearest(const std::vector<FnRef>& regions);
  RegionCost ControlCost(const Eqn& e);
  RegionCost EqnCost(const Fn& fn, const Eqn& e);

  std::unordered_map<const Fn*, RegionCost> regions_;
};

// Of alternatives: the work of the dearest.
RegionCost Counter::Dearest(const std::vector<FnRef>& regions) {
  RegionCost all;
  double work = 0;
  for (const FnRef& r : regions) {
    const RegionCost one = OfRegion(*r);
    work = std::max(work, one.work);
    all += one;
  }
  all.work = work;
  return all;
}

RegionCost Counter::ControlCost(const Eqn& e) {
  RegionCost cost;
  switch (e.prim->region_use) {
    case RegionUse::kBranches: return Dearest(e.regions);
    case RegionUse::kWithRules: return e.regions.empty() ? cost : OfRegion(*e.regions[0]);
    default: break;
  }
  for (const FnRef& r : e.regions) cost += OfRegion(*r);
  cost.work *= TripsOf(e, kOptions);
  cost.repeats = cost.repeats || e.prim->region_use == RegionUse::kUncounted;
  cost.one_by_one = cost.one_by_one || e.prim->lane_by_lane;
  return cost;
}

// What fuses with its neighbours: its operands do not go through memory.
bool Fuses(const Prim& prim) { return prim.is_elementwise() || prim.family == Family::kReduction || prim.view; }

RegionCost Counter::EqnCost(const Fn& fn, const Eqn& e) {
  if (e.prim->family == Family::kControl) return ControlCost(e);
  RegionCost cost = e.regions.empty() ? RegionCost() : Dearest(e.regions);
  if (e.prim->communicates) cost.collective = e.prim->name;
  cost.one_by_one = e.prim->lane_by_lane;
  cost.checks = e.prim->family == Family::kEffect && !e.prim->lane_by_lane;
  if (e.regions.empty()) {
    const Cost own = CostOf(fn, e, kOptions);
    cost.work = Fuses(*e.prim) ? own.flops : own.total();
  }
  return cost;
}

}  // namespace

double BytesOf(const Type& type) { return BytesPerArray(type, kOptions); }

RegionCost& RegionCost::operator+=(const RegionCost& other) {
  work += other.work;
  repeats = repeats || other.repeats;
  checks = checks || other.checks;
  one_by_one = one_by_one || other.one_by_one;
  if (collective.empty()) collective = other.collective;
  return *this;
}

RegionCost RegionCostOf(const Fn& fn) { return Counter().Of(fn); }

int64_t ElementsPerBlock(const RegionCost& cost, double shared_bytes, const Dim& elements) {
  constexpr double kBlockWork = 1 << 16;
  const int64_t most = cost.repeats ? 64 : 1024, least = shared_bytes > 4096 ? 16 : 1;
  int64_t block = 1;
  while (block < most && static_cast<double>(block) * cost.work < kBlockWork) block *= 2;
  block = std::max(block, least);
  return elements.is_static() ? std::max<int64_t>(1, std::min(block, elements.value())) : block;
}

}  // namespace weft
