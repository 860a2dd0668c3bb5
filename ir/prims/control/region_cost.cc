#include "ir/prims/control/region_cost.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "ir/analysis/cost.h"
#include "ir/prims/collectives.h"

namespace weft {
namespace {

constexpr CostOptions kOptions = {.symbol = 256, .trips = 1};

double DimSize(const Dim& d) {
  std::map<std::string, int64_t> symbols;
  for (const std::string& s : d.Symbols()) symbols[s] = static_cast<int64_t>(kOptions.symbol);
  return static_cast<double>(std::max<int64_t>(0, d.Evaluate(symbols)));
}

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
  const std::string& name = e.prim->name;
  if (name == "cond") return Dearest(e.regions);
  RegionCost cost;
  if (name == "call" || name == "scan" || name == "while" || name == "tape_scan") {
    for (const FnRef& r : e.regions) cost += OfRegion(*r);
    if (name == "scan") cost.work *= DimSize(e.attrs.Get<Dims>("length")[0]);
    cost.repeats = cost.repeats || name == "while" || name == "tape_scan";
    return cost;
  }
  if (name == "recursive" || name == "recur" || name == "box" || name == "unbox") {
    for (const FnRef& r : e.regions) cost += OfRegion(*r);
    cost.one_by_one = true;  // that is how they are batched
    return cost;
  }
  static const auto& kWithRules = *new std::set<std::string>{"custom_jvp", "custom_vjp", "custom_linear", "remat"};
  if (kWithRules.count(name) && !e.regions.empty())
    return OfRegion(*e.regions[0]);  // the others are rules of differentiation
  for (const FnRef& r : e.regions) cost += OfRegion(*r);
  return cost;
}

// What fuses with its neighbours: its operands do not go through memory.
bool Fuses(const Eqn& e) {
  const std::string& name = e.prim->name;
  return e.prim->is_elementwise() || e.prim->family == Family::kReduction ||
         (e.prim->family == Family::kShape && name != "concatenate" && name != "pad");
}

RegionCost Counter::EqnCost(const Fn& fn, const Eqn& e) {
  if (e.prim->family == Family::kControl) return ControlCost(e);
  RegionCost cost = e.regions.empty() ? RegionCost() : Dearest(e.regions);
  if (Communicates(*e.prim)) cost.collective = e.prim->name;
  if (e.prim->family == Family::kEffect) {
    cost.checks = e.prim->name == "assert";
    cost.one_by_one = !cost.checks;
  }
  if (e.regions.empty()) {
    const Cost own = CostOf(fn, e, kOptions);
    cost.work = Fuses(e) ? own.flops : own.total();
  }
  return cost;
}

}  // namespace

double BytesOf(const Type& type) {
  double n = ByteWidth(type.dtype);
  for (const Dim& d : type.dims) n *= DimSize(d);
  return n;
}

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
