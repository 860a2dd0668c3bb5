#include "ir/analysis/cost.h"

#include <algorithm>
#include <unordered_map>

#include "ir/prim.h"
#include "ir/prims/control/binomial.h"

namespace weft {
namespace {

double SizeOfDim(const Dim& d, const CostOptions& options) {
  if (const std::optional<int64_t> n = d.TryValue()) return static_cast<double>(*n);
  double size = 0;
  for (const Dim::Term& term : d.Terms()) {
    double product = static_cast<double>(term.coefficient);
    for (size_t i = 0; i < term.symbols.size(); ++i) product *= options.symbol;
    size += product;
  }
  return std::max(size, 0.0);
}

double Elements(const Type& t, const CostOptions& options) {
  double n = 1;
  for (const Dim& d : t.dims) n *= SizeOfDim(d, options);
  return n;
}

double Bytes(const Type& t, const CostOptions& options) { return BytesPerArray(t, options); }

class Counter {
 public:
  explicit Counter(const CostOptions& options) : options_(options) {}
  Cost Of(const Fn& fn);
  Cost Of(const Fn& fn, const Eqn& e);
  Cost OfRegions(const Eqn& e);

 private:
  // A function that is called often is counted once.
  Cost OfRegion(const Fn& fn) {
    const auto at = regions_.find(&fn);
    return at != regions_.end() ? at->second : regions_.emplace(&fn, Of(fn)).first->second;
  }

  const CostOptions& options_;
  std::unordered_map<const Fn*, Cost> regions_;
};

Cost Counter::OfRegions(const Eqn& e) {
  const double trips = TripsOf(e, options_);
  switch (e.prim->region_use) {
    case RegionUse::kSnapshots: {
      const Cost forward = OfRegion(*e.regions[0]);
      if (e.regions.size() == 1) return forward * trips;
      const auto steps = static_cast<int64_t>(trips);
      const int64_t again = steps + BinomialAdvances(steps, e.attrs.GetInt("snapshots"));
      Cost both = forward * static_cast<double>(again);
      return both += OfRegion(*e.regions[1]) * trips;
    }
    case RegionUse::kUncounted: {
      Cost trip;
      for (const FnRef& r : e.regions) trip += OfRegion(*r);
      return trip * trips;
    }
    case RegionUse::kBranches: {
      Cost most;
      for (const FnRef& r : e.regions) {
        const Cost c = OfRegion(*r);
        const double equations = std::max(c.equations, most.equations);
        if (c.total() > most.total()) most = c;
        most.equations = equations;
      }
      return most;
    }
    default: return OfRegion(*e.regions[0]) * trips;
  }
}

double OperationsOf(const Eqn& e, const Types& operands, const Types& results, const CostOptions& options) {
  const Prim& prim = *e.prim;
  if (prim.flops) {
    Mask literal;
    for (const Atom& a : e.operands) literal.push_back(a.is_literal());
    return prim.flops(Sig{prim, operands, literal, e.attrs, e.regions}, results,
                      [&](const Dim& d) { return SizeOfDim(d, options); });
  }
  switch (prim.family) {
    case Family::kElementwise: return results.empty() ? 0 : prim.work * Elements(results[0], options);
    case Family::kReduction:
    case Family::kCumulative:
    case Family::kCollective: return operands.empty() ? 0 : Elements(operands[0], options);
    default: return 0;
  }
}

}  // namespace

double TripsOf(const Eqn& e, const CostOptions& options) {
  switch (e.prim->region_use) {
    case RegionUse::kCounted:
    case RegionUse::kSnapshots: return SizeOfDim(e.attrs.Get<Dims>("length")[0], options);
    case RegionUse::kUncounted: return options.trips;
    default: return 1;
  }
}

namespace {

double TrafficOf(const Eqn& e, const Types& operands, const Types& results, const CostOptions& options) {
  double out = 0, in = 0, first = 0;
  for (const Type& t : results) out += Bytes(t, options);
  for (size_t i = 0; i < operands.size(); ++i) {
    const bool again = std::find(e.operands.begin(), e.operands.begin() + static_cast<int64_t>(i), e.operands[i]) !=
                       e.operands.begin() + static_cast<int64_t>(i);
    if (e.operands[i].is_var() && !again) in += Bytes(operands[i], options);
    if (i == 0) first = in;
  }
  switch (e.prim->traffic) {
    case Traffic::kNone: return 0;
    case Traffic::kTaken: return 2 * out + (in - first);  // and what says where
    case Traffic::kReplaced: return 2 * Bytes(operands[1], options);
    case Traffic::kCombined: return in - first + 2 * Bytes(operands.back(), options);
    case Traffic::kWhole: break;
  }
  return in + out;
}

}  // namespace

double BytesPerArray(const Type& t, const CostOptions& options) {
  return IsOpaque(t.dtype) ? 0 : Elements(t, options) * ByteWidth(t.dtype);
}

namespace {

Cost Counter::Of(const Fn& fn, const Eqn& e) {
  if (!e.regions.empty()) return OfRegions(e);
  Types operands, results;
  for (const Atom& a : e.operands) operands.push_back(fn.TypeOf(a));
  for (uint32_t r = 0; r < e.num_results; ++r) results.push_back(fn.TypeOf(e.result(static_cast<int>(r))));
  return {OperationsOf(e, operands, results, options_), TrafficOf(e, operands, results, options_), 1};
}

}  // namespace

Cost CostOf(const Fn& fn, const Eqn& e, const CostOptions& options) { return Counter(options).Of(fn, e); }

Cost CostOfRegions(const Eqn& e, const CostOptions& options) { return Counter(options).OfRegions(e); }

double FlopsOf(const Fn& fn, const Eqn& e, const CostOptions& options) {
  const bool plain = e.prim->is_elementwise() && !e.prim->flops && e.num_results == 1;
  return plain ? e.prim->work * Elements(fn.TypeOf(e.result()), options) : CostOf(fn, e, options).flops;
}

namespace {

bool IsFreeView(const Prim& prim) { return prim.view && prim.traffic == Traffic::kNone; }
// Computed where it is read, in registers.
bool Fuses(const Eqn& e) {
  return e.regions.empty() && e.num_results == 1 &&
         (e.prim->is_elementwise() || e.prim->expands || IsFreeView(*e.prim));
}
// Reads what fuses without asking for an array of it.
bool ReadsFused(const Eqn& e) { return Fuses(e) || e.prim->family == Family::kReduction; }

Cost Counter::Of(const Fn& fn) {
  Cost total;
  std::vector<bool> fused(fn.num_vars(), false), in_memory(fn.num_vars(), false), read(fn.num_vars(), false);
  for (const Eqn& e : fn.eqns()) {
    if (e.num_results > 0) fused[e.first_result] = Fuses(e);
  }
  auto write = [&](const Atom& a) {  // a fused value that somebody wants as an array
    if (!a.is_var() || !fused[a.id()] || in_memory[a.id()]) return;
    in_memory[a.id()] = true;
    total.bytes += BytesPerArray(fn.TypeOf(a), options_);
  };
  for (const Atom& a : fn.results()) write(a);
  for (const Eqn& e : fn.eqns()) {
    Cost own = Of(fn, e);
    if (ReadsFused(e)) {
      own.bytes = Fuses(e) ? 0 : BytesPerArray(fn.TypeOf(e.result()), options_);
      for (const Atom& a : e.operands) {
        if (!a.is_var() || fused[a.id()] || read[a.id()]) continue;
        read[a.id()] = true;
        own.bytes += BytesPerArray(fn.TypeOf(a), options_);
      }
    } else {
      for (const Atom& a : e.operands) write(a);
    }
    total += own;
  }
  return total;
}

}  // namespace

Cost CostOf(const Fn& fn, const CostOptions& options) { return Counter(options).Of(fn); }

}  // namespace weft
