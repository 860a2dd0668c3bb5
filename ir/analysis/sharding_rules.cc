#include "ir/analysis/sharding_rules.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "ir/analysis/sharding_maps.h"
#include "ir/error.h"
#include "ir/extensions.h"
#include "ir/ops.h"
#include "ir/prims/collectives.h"
#include "ir/prims/contraction.h"
#include "ir/prims/elementwise.h"
#include "ir/prims/indexing.h"

namespace weft {
namespace sharding {

// All operands of the results' rank, and the results, have these dimensions, but for those in `whole`.
ShardingRule Alike(const Sig& s, const Types& results, const Ints& whole) {
  Map m(s, results);
  const Type& shape = results.empty() ? s.operands[0] : results[0];
  for (size_t d = 0; d < shape.dims.size(); ++d) {
    if (Contains(whole, static_cast<int64_t>(d)) || StaticSize(shape, d) == 1) continue;
    const int f = m.Add(StaticSize(shape, d));
    for (size_t i = 0; i < s.operands.size(); ++i) {
      if (s.operands[i].rank() == shape.rank()) m.Operand(i, d, f);
    }
    for (size_t i = 0; i < results.size(); ++i) m.Result(i, d, f);
  }
  return m;
}

// The leading `batch` dimensions are alike in all operands and results; the others are whole.
ShardingRule Leading(const Sig& s, const Types& results, int batch) {
  Map m(s, results);
  for (int d = 0; d < batch; ++d) {
    if (StaticSize(s.operands[0], d) == 1) continue;
    const int f = m.Add(StaticSize(s.operands[0], d));
    for (size_t i = 0; i < s.operands.size(); ++i) m.Operand(i, d, f);
    for (size_t i = 0; i < results.size(); ++i) m.Result(i, d, f);
  }
  return m;
}

OpShardingRule Simple(ShardingRule (*map)(const Sig&, const Types&), Attrs (*attrs)(const LocalEqn&)) {
  OpShardingRule r;
  r.map = map;
  if (attrs != nullptr) r.attrs = attrs;
  return r;
}

}  // namespace sharding

namespace {

using namespace sharding;  // NOLINT(google-build-using-namespace): this is its table

using Rules = std::map<std::string, OpShardingRule>;

// --- Reductions, contractions ----------------------------------------------------------------------------------------

OpShardingRule Reduction(Kind kind) {
  OpShardingRule r;
  r.map = [kind](const Sig& s, const Types& results) -> ShardingRule {
    Map m(s, results);
    const Ints& dims = s.attrs.Get<Ints>("dims");
    size_t to = 0;
    for (int d = 0; d < s.operands[0].rank(); ++d) {
      const int64_t size = StaticSize(s.operands[0], d);
      if (!Contains(dims, d))
        m.Through(0, d, 0, to++, size);
      else if (size > 1)
        m.Operand(0, d, m.Add(size, kind));
    }
    return m;
  };
  return r;
}

ShardingRule ArgExtremeMap(const Sig& s, const Types& results) {
  Map m(s, results);
  const int64_t dim = s.attrs.GetInt("dim");
  for (int d = 0; d < s.operands[0].rank(); ++d) {
    if (d != dim) m.Through(0, d, 0, d > dim ? d - 1 : d, StaticSize(s.operands[0], d));
  }
  return m;
}

ShardingRule ContractMap(const Sig& s, const Types& results) {
  Map m(s, results);
  const ContractSpec spec = ContractSpec::Parse(s.attrs.Get<std::string>("spec"));
  std::map<char, int> of;
  auto visit = [&](const std::string& letters, const Type& t, ShardingRule::Tensor& tensor) {
    for (size_t d = 0; d < letters.size(); ++d) {
      if (StaticSize(t, d) == 1) continue;
      const bool kept = spec.out.find(letters[d]) != std::string::npos;
      const auto [it, fresh] = of.emplace(letters[d], 0);
      if (fresh) it->second = m.Add(StaticSize(t, d), kept ? Kind::kPass : Kind::kSum);
      tensor[d].push_back(it->second);
    }
  };
  visit(spec.lhs, s.operands[0], m.operands[0]);
  visit(spec.rhs, s.operands[1], m.operands[1]);
  visit(spec.out, results[0], m.results[0]);
  return m;
}

// Factors 0 and 1 are the groups of features and of the batch.
ShardingRule ConvMap(const Sig& s, const Types& results) {
  Map m(s, results);
  const Type &x = s.operands[0], &w = s.operands[1];
  const int64_t fg = s.attrs.GetInt("feature_groups"), bg = s.attrs.GetInt("batch_groups");
  const int features = m.Add(fg), batches = m.Add(bg);
  auto add = [](std::vector<int>& dim, int factor, int64_t size) {
    if (size > 1) dim.push_back(factor);
  };
  const int64_t n = StaticSize(x, 0) / bg, i = StaticSize(w, 1), o = StaticSize(w, 0) / (fg * bg);
  const int entry = m.Add(n), in = m.Add(i, Kind::kSum), out = m.Add(o);
  add(m.operands[0][0], batches, bg);
  add(m.operands[0][0], entry, n);
  add(m.operands[0][1], features, fg);
  add(m.operands[0][1], in, i);
  for (auto* dim : {&m.operands[1][0], &m.results[0][1]}) {
    add(*dim, features, fg);
    add(*dim, batches, bg);
    add(*dim, out, o);
  }
  add(m.operands[1][1], in, i);
  add(m.results[0][0], entry, n);
  return m;
}

Attrs ConvAttrs(const LocalEqn& e) {
  auto local = [&](int factor) {
    int64_t count = e.map.factors[factor].size;
    for (const std::string& axis : e.cuts[factor]) count /= e.mesh.Size(axis);
    return count;
  };
  return e.eqn.attrs.With("feature_groups", local(0)).With("batch_groups", local(1));
}

// --- Shapes ----------------------------------------------------------------------------------------------------------

ShardingRule BroadcastMap(const Sig& s, const Types& results) {
  Map m(s, results);
  const Ints& dims = s.attrs.Get<Ints>("dims");
  for (int d = 0; d < results[0].rank(); ++d) {
    const int64_t size = StaticSize(results[0], d);
    if (size == 1) continue;
    const int f = m.Add(size);
    m.Result(0, d, f);
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] == d && StaticSize(s.operands[0], i) == size) m.Operand(0, i, f);
    }
  }
  return m;
}

Attrs ShapeOfResult(const LocalEqn& e) { return e.eqn.attrs.With("shape", e.results[0].dims); }

// Both shapes are walked from the left; where their products meet a run of factors ends. What the two sides have in
// common within a run is a factor of both as long as it is a divisor of what is left on either side.
ShardingRule ReshapeMap(const Sig& s, const Types& results) {
  Map m(s, results);
  const Type &x = s.operands[0], &y = results[0];
  if (x.size() == Dim(0)) return m;
  size_t i = 0, j = 0;
  int64_t left = 1, right = 1;  // what is left of dimensions i - 1 and j - 1
  while (true) {
    while (left == 1 && i < x.dims.size()) left = StaticSize(x, i++);
    while (right == 1 && j < y.dims.size()) right = StaticSize(y, j++);
    if (left == 1 && right == 1) return m;
    const int64_t common = std::gcd(left, right);
    if (common > 1) {
      const int f = m.Add(common);
      m.Operand(0, i - 1, f);
      m.Result(0, j - 1, f);
      left /= common;
      right /= common;
      continue;
    }
    // Nothing in common: up to where the products meet again nothing can be cut, on either side.
    const int stuck_left = m.Add(left), stuck_right = m.Add(right);
    m.Operand(0, i - 1, stuck_left);
    m.Result(0, j - 1, stuck_right);
    int64_t a = left, b = right;
    while (a != b) {
      if (a < b) {
        const int64_t size = StaticSize(x, i++);
        if (size > 1) m.Operand(0, i - 1, m.Add(size));
        a *= size;
      } else {
        const int64_t size = StaticSize(y, j++);
        if (size > 1) m.Result(0, j - 1, m.Add(size));
        b *= size;
      }
    }
    left = right = 1;
  }
}

// Of a reshape, only factors that both sides hold can be cut: the others are where the two orders do not agree.
ShardingRule OnlyShared(ShardingRule m) {
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<int> held(m.factors.size(), 0);
    for (auto* tensor : {&m.operands[0], &m.results[0]}) {
      for (const auto& dim : *tensor) {
        for (int f : dim) ++held[f];
      }
    }
    for (auto* tensor : {&m.operands[0], &m.results[0]}) {
      for (auto& dim : *tensor) {
        const auto end = std::find_if(dim.begin(), dim.end(), [&](int f) { return held[f] < 2; });
        changed |= end != dim.end();
        dim.erase(end, dim.end());
      }
    }
  }
  return m;
}

ShardingRule TransposeMap(const Sig& s, const Types& results) {
  Map m(s, results);
  const Ints& perm = s.attrs.Get<Ints>("perm");
  for (size_t d = 0; d < perm.size(); ++d) m.Through(0, perm[d], 0, d, StaticSize(results[0], d));
  return m;
}

ShardingRule SliceMap(const Sig& s, const Types& results) {
  Ints cut;
  for (int d = 0; d < results[0].rank(); ++d) {
    if (!(results[0].dims[d] == s.operands[0].dims[d])) cut.push_back(d);
  }
  return Alike(s, results, cut);
}

Attrs SliceAttrs(const LocalEqn& e) {
  Ints limit = e.eqn.attrs.Get<Ints>("limit");
  for (size_t d = 0; d < limit.size(); ++d) {
    if (!e.map.operands[0][d].empty()) limit[d] = StaticSize(e.results[0], d);
  }
  return e.eqn.attrs.With("limit", limit);
}

ShardingRule PadMap(const Sig& s, const Types& results) {
  Ints padded;
  for (int d = 0; d < results[0].rank(); ++d) {
    bool touched = false;
    for (const char* name : {"lo", "hi", "interior"}) touched |= s.attrs.Get<Ints>(name)[d] != 0;
    if (touched) padded.push_back(d);
  }
  return Alike(s, results, padded);
}

// Row i of dimension `dim` is i, counted over all devices.
Atoms EmitIota(const LocalEqn& e) {
  const int64_t dim = e.eqn.attrs.GetInt("dim");
  const Atom y = e.b.Emit1(*e.eqn.prim, {}, ShapeOfResult(e));
  const std::vector<int>& factors = e.map.results[0][dim];
  if (factors.empty() || !e.IsCut(factors[0])) return {y};
  const Type type = e.b.TypeOf(y);
  return {Add(e.b, y, Broadcast(e.b, Convert(e.b, e.First(factors[0]), type.dtype), type.dims, {}))};
}

// --- Sorting, windows, linear algebra --------------------------------------------------------------------------------

ShardingRule WindowRule(const Sig& s, const Types& results) {
  Ints moved;
  for (int d = 0; d < s.operands[0].rank(); ++d) {
    bool untouched = s.attrs.Get<Ints>("lo")[d] == 0 && s.attrs.Get<Ints>("hi")[d] == 0;
    for (const char* name : {"window", "strides", "base_dilation"}) untouched &= s.attrs.Get<Ints>(name)[d] == 1;
    if (!untouched) moved.push_back(d);
  }
  return Alike(s, results, moved);
}

ShardingRule TriangularSolveMap(const Sig& s, const Types& results) {
  const int rank = s.operands[0].rank();
  ShardingRule m = Leading(s, results, rank - 2);
  const int free = s.attrs.GetBool("left") ? rank - 1 : rank - 2;
  if (StaticSize(results[0], free) > 1) {
    m.factors.push_back({StaticSize(results[0], free), Kind::kPass});
    const int f = static_cast<int>(m.factors.size()) - 1;
    m.operands[1][free].push_back(f);
    m.results[0][free].push_back(f);
  }
  return m;
}

// --- The table -------------------------------------------------------------------------------------------------------

OpShardingRule Reason(const char* why) {
  OpShardingRule r;
  r.reason = why;
  return r;
}

// Along every dimension but one, which the attribute `dim` names.
OpShardingRule AlongDim() {
  return Simple([](const Sig& s, const Types& results) { return Alike(s, results, {s.attrs.GetInt("dim")}); });
}

Rules MakeRules() {
  Rules rules;
  for (const Prim* p : AllPrims()) {
    if (p->is_elementwise())
      rules[p->name] = Simple([](const Sig& s, const Types& results) { return Alike(s, results, {}); });
    if (p->family == Family::kCumulative) rules[p->name] = AlongDim();
    if (p->family == Family::kLinalg)
      rules[p->name] =
          Simple([](const Sig& s, const Types& results) { return Leading(s, results, s.operands[0].rank() - 2); });
    if (p->family == Family::kWindow) rules[p->name] = Simple(WindowRule);
    if (p->family == Family::kCollective)
      rules[p->name] = Reason("it belongs to the program of one device, and stands inside spmd alone");
  }
  rules["reduce_sum"] = Reduction(Kind::kSum);
  rules["reduce_max"] = Reduction(Kind::kMax);
  rules["reduce_min"] = Reduction(Kind::kMin);
  for (const char* name : {"reduce_prod", "reduce_and", "reduce_or"}) rules[name] = Reduction(Kind::kAgain);
  for (const char* name : {"argmax", "argmin"}) rules[name] = Simple(ArgExtremeMap);
  rules["contract"] = Simple(ContractMap);
  rules["conv"] = Simple(ConvMap, ConvAttrs);
  rules["broadcast"] = Simple(BroadcastMap, ShapeOfResult);
  rules["reshape"] =
      Simple([](const Sig& s, const Types& results) { return OnlyShared(ReshapeMap(s, results)); }, ShapeOfResult);
  rules["transpose"] = Simple(TransposeMap);
  rules["reverse"] =
      Simple([](const Sig& s, const Types& results) { return Alike(s, results, s.attrs.Get<Ints>("dims")); });
  rules["slice"] = Simple(SliceMap, SliceAttrs);
  rules["pad"] = Simple(PadMap);
  rules["concatenate"] = AlongDim();
  rules["sort"] = AlongDim();
  OpShardingRule iota = Simple([](const Sig& s, const Types& results) { return Alike(s, results, {}); });
  iota.emit = EmitIota;
  rules["iota"] = iota;
  OpShardingRule size = Simple([](const Sig& s, const Types& results) -> ShardingRule {
    Map m(s, results);
    for (int d = 0; d < s.operands[0].rank(); ++d) m.Operand(0, d, m.Add(StaticSize(s.operands[0], d)));
    return m;
  });
  size.emit = [](const LocalEqn& e) -> Atoms {
    return {Atom::Scalar(DType::kI32, static_cast<double>(StaticSize(e.global[0], e.eqn.attrs.GetInt("dim"))))};
  };
  rules["dim_size"] = size;
  rules["dynamic_slice"] = DynamicSliceRule();
  rules["dynamic_update_slice"] = DynamicUpdateSliceRule();
  rules["gather"] = GatherRule();
  rules["scatter"] = ScatterRule(std::nullopt);
  rules["scatter_mul"] = ScatterRule(std::nullopt);
  rules["scatter_add"] = ScatterRule(Kind::kSum);
  rules["scatter_max"] = ScatterRule(Kind::kMax);
  rules["scatter_min"] = ScatterRule(Kind::kMin);
  rules["top_k"] =
      Simple([](const Sig& s, const Types& results) { return Alike(s, results, {int64_t{s.operands[0].rank()} - 1}); });
  rules["fft"] = Simple([](const Sig& s, const Types& results) {
    return Leading(s, results, s.operands[0].rank() - static_cast<int>(s.attrs.Get<Ints>("lengths").size()));
  });
  rules["triangular_solve"] = Simple(TriangularSolveMap);
  rules["random_wrap"] =
      Simple([](const Sig& s, const Types& results) { return Leading(s, results, results[0].rank()); });
  rules["random_unwrap"] =
      Simple([](const Sig& s, const Types& results) { return Leading(s, results, s.operands[0].rank()); });

  using Unheld = OpShardingRule::Unheld;
  for (const char* name : {"slice", "pad", "dynamic_slice", "dynamic_update_slice", "concatenate", "reverse", "conv"})
    rules[name].unheld = Unheld::kStays;
  for (const Prim* p : AllPrims()) {
    if (p->family == Family::kWindow) rules[p->name].unheld = Unheld::kStays;
  }
  for (const char* name : {"argmax", "argmin"}) rules[name].unheld = Unheld::kGone;
  for (const char* name : {"concatenate", "dynamic_update_slice", "sort"}) rules[name].alike = true;

  for (const char* name : {"call", "cond", "while", "scan", "spmd"}) {
    rules[name] = Reason("its regions are cut, each as a program of its own");
    rules[name].cuts_regions = true;
  }
  rules["sharding_constraint"] = Reason("it says itself how its operand is to lie");
  for (const char* name : {"custom_jvp", "custom_vjp", "custom_vmap", "custom_linear", "linear_solve", "primitive",
                           "remat", "checkpoint_name", "snapshot_scan"})
    rules[name] = Reason("it is replaced by what it computes before programs are cut");
  for (const char* name : {"recursive", "recur", "box", "unbox"})
    rules[name] = Reason("the parts of a recursive function have one type at every depth, so they stay whole");
  for (const char* name : {"tape_scan", "tape_add"})
    rules[name] = Reason("a tape holds rows by reference; what is recorded on it stays whole");
  for (const char* name : {"allocate", "free", "load", "into"})
    rules[name] = Reason("it says where values lie in the memory of one device");
  for (const char* name : {"debug_print", "io_callback"}) {
    rules[name] = Reason("the world outside sees whole values, once: the first device calls it");
    rules[name].once = true;
  }
  for (const char* name : {"assert", "pure_callback"})
    rules[name] = Reason("every device asks the same question about whole values");
  return rules;
}

}  // namespace

Atom LocalEqn::First(int factor) const {
  int64_t block = map.factors[factor].size;
  weft::Dims sizes;
  for (const std::string& axis : cuts[factor]) {
    sizes.push_back(mesh.Size(axis));
    block /= mesh.Size(axis);
  }
  return FirstIndex(b, cuts[factor], sizes, block);
}

Atom LocalEqn::IsFirst(const std::vector<int>& factors) const {
  std::optional<Atom> all;
  for (int f : factors) {
    for (const std::string& axis : cuts[f]) {
      const Atom place = b.Emit1(FindPrim("axis_index"), {}, {{"axes", Strings{axis}}, {"varying", true}});
      const Atom first = Eq(b, place, Atom::Scalar(DType::kI32, 0));
      all = all ? And(b, *all, first) : first;
    }
  }
  return all ? *all : Atom::Scalar(DType::kBool, 1);
}

const OpShardingRule& OpShardingRuleOf(const Prim& prim) {
  static const auto& rules = *[] {
    Rules named = MakeRules();
    auto* table = new std::vector<std::optional<OpShardingRule>>();
    for (const Prim* p : AllPrims()) {
      const auto it = named.find(p->name);
      table->push_back(it == named.end() ? std::nullopt : std::optional(std::move(it->second)));
    }
    return table;
  }();
  static const auto& of_outside =
      *new OpShardingRule(Reason("it is replaced by what it computes before programs are cut"));
  if (ExpansionOf(prim) != nullptr) return of_outside;
  const std::optional<OpShardingRule>& rule = rules[static_cast<size_t>(prim.id)];
  WEFT_CHECK(rule.has_value()) << "how " << prim.name
                               << " is cut over devices is not said (ir/analysis/sharding_rules.cc)";
  return *rule;
}

Atoms EmitLocal(const LocalEqn& local) {
  const OpShardingRule& rule = OpShardingRuleOf(*local.eqn.prim);
  if (rule.emit) return rule.emit(local);
  return local.b.Emit(*local.eqn.prim, local.x, rule.attrs ? rule.attrs(local) : local.eqn.attrs, local.eqn.regions);
}

}  // namespace weft
