#include "ir/prims/lane_cost.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "ir/prims/contraction.h"

namespace weft {
namespace {

constexpr double kSymbol = 256;

double SizeOf(const Dim& d) {
  if (d.is_static()) return static_cast<double>(d.value());
  double size = 0;
  for (const Dim::Term& t : d.Terms())
    size += static_cast<double>(t.coefficient) * std::pow(kSymbol, static_cast<double>(t.symbols.size()));
  return std::max(size, 1.0);
}

double Elements(const Type& t) {
  double n = 1;
  for (const Dim& d : t.dims) n *= SizeOf(d);
  return n;
}

// Operations per element; what is not listed is one instruction on a vector.
double PerElement(const std::string& name) {
  static const auto& costs = *new std::map<std::string, double>{
      {"div", 4},           {"rem", 8},    {"sqrt", 4},   {"rsqrt", 4},    {"cbrt", 24},   {"exp", 16},
      {"exp2", 16},         {"expm1", 20}, {"log", 16},   {"log1p", 20},   {"sin", 20},    {"cos", 20},
      {"tan", 24},          {"asin", 20},  {"acos", 20},  {"atan", 20},    {"atan2", 28},  {"sinh", 24},
      {"cosh", 24},         {"tanh", 20},  {"asinh", 28}, {"acosh", 28},   {"atanh", 28},  {"pow", 40},
      {"logistic", 20},     {"erf", 24},   {"erfc", 28},  {"erf_inv", 32}, {"lgamma", 40}, {"digamma", 40},
      {"threefry2x32", 100}};
  const auto at = costs.find(name);
  return at == costs.end() ? 1 : at->second;
}

double ContractionWork(const Fn& fn, const Eqn& e) {
  if (e.prim->name == "conv") {  // w is [out channels, in channels, window...]
    const Type w = fn.TypeOf(e.operands[1]);
    return 2 * Elements(fn.TypeOf(e.result())) * Elements(w) / std::max(1.0, SizeOf(w.dims[0]));
  }
  const ContractSpec spec = ContractSpec::Parse(e.attrs.Get<std::string>("spec"));
  const Type lhs = fn.TypeOf(e.operands[0]);
  double work = 2 * Elements(fn.TypeOf(e.result()));
  for (size_t d = 0; d < spec.lhs.size(); ++d) {
    if (spec.out.find(spec.lhs[d]) == std::string::npos) work *= SizeOf(lhs.dims[d]);
  }
  return work;
}

// The dearest of several that are alternatives.
LaneCost Dearest(const std::vector<FnRef>& regions) {
  LaneCost all;
  double work = 0;
  for (const FnRef& r : regions) {
    const LaneCost one = LaneCostOf(*r);
    work = std::max(work, one.work);
    all += one;
  }
  all.work = work;
  return all;
}

LaneCost ControlCost(const Eqn& e) {
  const std::string& name = e.prim->name;
  if (name == "cond") return Dearest(e.regions);
  LaneCost cost;
  if (name == "call" || name == "scan" || name == "while" || name == "tape_scan") {
    for (const FnRef& r : e.regions) cost += LaneCostOf(*r);
    if (name == "scan") cost.work *= SizeOf(e.attrs.Get<Dims>("length")[0]);
    if (name == "while" || name == "tape_scan") cost.repeats = true;
    return cost;
  }
  if (name == "recursive" || name == "recur" || name == "box" || name == "unbox") {
    cost.one_by_one = true;  // that is how they are batched
    for (const FnRef& r : e.regions) cost += LaneCostOf(*r);
    return cost;
  }
  if (!e.regions.empty()) return LaneCostOf(*e.regions[0]);  // rules of differentiation beside what is run
  return cost;
}

LaneCost EqnCost(const Fn& fn, const Eqn& e) {
  LaneCost cost;
  double out = 0, out_bytes = 0, in = 0, in_bytes = 0, last = 1;
  for (uint32_t r = 0; r < e.num_results; ++r) {
    const Type t = fn.TypeOf(e.result(static_cast<int>(r)));
    out += Elements(t);
    out_bytes += BytesOf(t);
  }
  for (const Atom& a : e.operands) {
    const Type t = fn.TypeOf(a);
    in += Elements(t);
    in_bytes += BytesOf(t);
    if (t.rank() > 0) last = std::max(last, SizeOf(t.dims.back()));
  }
  const std::string& name = e.prim->name;
  switch (e.prim->family) {
    case Family::kElementwise: cost.work = out * PerElement(name); break;
    case Family::kReduction: cost.work = in; break;
    case Family::kCumulative: cost.work = in + in_bytes + out_bytes; break;
    case Family::kContraction: cost.work = ContractionWork(fn, e) + in_bytes + out_bytes; break;
    case Family::kShape: cost.work = name == "concatenate" || name == "pad" ? out_bytes : 0; break;
    case Family::kIndexing: cost.work = name.rfind("scatter", 0) == 0 ? 2 * in_bytes : out_bytes; break;
    case Family::kSorting: cost.work = 4 * in * std::log2(std::max(2.0, last)) + in_bytes + out_bytes; break;
    case Family::kWindow: {
      cost.work = out;
      if (const Attr* window = e.attrs.Find("window")) {
        for (int64_t n : std::get<Ints>(*window)) cost.work *= static_cast<double>(n);
      }
      break;
    }
    case Family::kLinalg:
      cost.work = (name == "fft"                     ? 5 * std::log2(std::max(2.0, last))
                   : name == "svd" || name == "eigh" ? 20 * last
                                                     : last) *
                      in +
                  in_bytes + out_bytes;
      break;
    case Family::kRandom: cost.work = out_bytes; break;
    case Family::kControl: return ControlCost(e);
    case Family::kEffect:
      if (name == "assert")
        cost.checks = true, cost.work = in;
      else
        cost.one_by_one = true;
      break;
    case Family::kCollective: cost.collective = name; break;
  }
  if (!e.regions.empty()) cost += Dearest(e.regions);
  return cost;
}

}  // namespace

double BytesOf(const Type& type) { return Elements(type) * ByteWidth(type.dtype); }

LaneCost& LaneCost::operator+=(const LaneCost& other) {
  work += other.work;
  repeats = repeats || other.repeats;
  checks = checks || other.checks;
  one_by_one = one_by_one || other.one_by_one;
  if (collective.empty()) collective = other.collective;
  return *this;
}

LaneCost LaneCostOf(const Fn& fn) {
  LaneCost all;
  for (const Eqn& e : fn.eqns()) all += EqnCost(fn, e);
  return all;
}

int64_t LanesPerBlock(const LaneCost& cost, double shared_bytes, const Dim& lanes) {
  constexpr double kBlockWork = 1 << 16;
  const int64_t most = cost.repeats ? 64 : 1024, least = shared_bytes > 4096 ? 16 : 1;
  int64_t block = 1;
  while (block < most && static_cast<double>(block) * cost.work < kBlockWork) block *= 2;
  block = std::max(block, least);
  return lanes.is_static() ? std::max<int64_t>(1, std::min(block, lanes.value())) : block;
}

}  // namespace weft
