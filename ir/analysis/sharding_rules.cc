#include "ir/analysis/sharding_rules.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "ir/error.h"
#include "ir/extensions.h"
#include "ir/ops.h"
#include "ir/prims/collectives.h"
#include "ir/prims/contraction.h"
#include "ir/prims/elementwise.h"
#include "ir/prims/indexing.h"

namespace weft {
namespace {

using Kind = ShardingRule::Kind;
using Rules = std::map<std::string, OpShardingRule>;

int64_t SizeOf(const Type& t, size_t d) { return t.dims[d].value("a dimension that is cut over devices"); }
ShardingRule::Tensor Whole(const Type& t) { return ShardingRule::Tensor(t.dims.size()); }

// Grows a map dimension by dimension.
struct Map : ShardingRule {
  Map(const Sig& s, const Types& result_types) {
    for (const Type& t : s.operands) operands.push_back(Whole(t));
    for (const Type& t : result_types) results.push_back(Whole(t));
  }
  // A size of 1 is no factor: there is nothing to cut.
  int Add(int64_t size, Kind kind = Kind::kPass) {
    factors.push_back({size, kind});
    return static_cast<int>(factors.size()) - 1;
  }
  void Operand(size_t i, size_t d, int factor) { operands[i][d].push_back(factor); }
  void Result(size_t i, size_t d, int factor) { results[i][d].push_back(factor); }
  void Through(size_t operand, size_t from, size_t result, size_t to, int64_t size) {
    if (size == 1) return;
    const int f = Add(size);
    Operand(operand, from, f);
    Result(result, to, f);
  }
};

bool In(const Ints& list, int64_t value) { return std::find(list.begin(), list.end(), value) != list.end(); }

// All operands of the results' rank, and the results, have these dimensions, but for those in `whole`.
ShardingRule Alike(const Sig& s, const Types& results, const Ints& whole) {
  Map m(s, results);
  const Type& shape = results.empty() ? s.operands[0] : results[0];
  for (size_t d = 0; d < shape.dims.size(); ++d) {
    if (In(whole, static_cast<int64_t>(d)) || SizeOf(shape, d) == 1) continue;
    const int f = m.Add(SizeOf(shape, d));
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
    if (SizeOf(s.operands[0], d) == 1) continue;
    const int f = m.Add(SizeOf(s.operands[0], d));
    for (size_t i = 0; i < s.operands.size(); ++i) m.Operand(i, d, f);
    for (size_t i = 0; i < results.size(); ++i) m.Result(i, d, f);
  }
  return m;
}

// --- Reductions, contractions ----------------------------------------------------------------------------------------

OpShardingRule Reduction(Kind kind) {
  OpShardingRule r;
  r.map = [kind](const Sig& s, const Types& results) -> ShardingRule {
    Map m(s, results);
    const Ints& dims = s.attrs.Get<Ints>("dims");
    size_t to = 0;
    for (int d = 0; d < s.operands[0].rank(); ++d) {
      const int64_t size = SizeOf(s.operands[0], d);
      if (!In(dims, d))
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
    if (d != dim) m.Through(0, d, 0, d > dim ? d - 1 : d, SizeOf(s.operands[0], d));
  }
  return m;
}

ShardingRule ContractMap(const Sig& s, const Types& results) {
  Map m(s, results);
  const ContractSpec spec = ContractSpec::Parse(s.attrs.Get<std::string>("spec"));
  std::map<char, int> of;
  auto visit = [&](const std::string& letters, const Type& t, ShardingRule::Tensor& tensor) {
    for (size_t d = 0; d < letters.size(); ++d) {
      if (SizeOf(t, d) == 1) continue;
      const bool kept = spec.out.find(letters[d]) != std::string::npos;
      const auto [it, fresh] = of.emplace(letters[d], 0);
      if (fresh) it->second = m.Add(SizeOf(t, d), kept ? Kind::kPass : Kind::kSum);
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
  const int64_t n = SizeOf(x, 0) / bg, i = SizeOf(w, 1), o = SizeOf(w, 0) / (fg * bg);
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
    const int64_t size = SizeOf(results[0], d);
    if (size == 1) continue;
    const int f = m.Add(size);
    m.Result(0, d, f);
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] == d && SizeOf(s.operands[0], i) == size) m.Operand(0, i, f);
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
    while (left == 1 && i < x.dims.size()) left = SizeOf(x, i++);
    while (right == 1 && j < y.dims.size()) right = SizeOf(y, j++);
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
        const int64_t size = SizeOf(x, i++);
        if (size > 1) m.Operand(0, i - 1, m.Add(size));
        a *= size;
      } else {
        const int64_t size = SizeOf(y, j++);
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
  for (size_t d = 0; d < perm.size(); ++d) m.Through(0, perm[d], 0, d, SizeOf(results[0], d));
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
    if (!e.map.operands[0][d].empty()) limit[d] = SizeOf(e.results[0], d);
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

// --- Indexing --------------------------------------------------------------------------------------------------------

ShardingRule DynamicSliceMap(const Sig& s, const Types& results) {
  Map m(s, results);
  for (int d = 0; d < results[0].rank(); ++d) {
    if (results[0].dims[d] == s.operands[0].dims[d]) m.Through(0, d, 0, d, SizeOf(results[0], d));
  }
  return m;
}

Attrs DynamicSliceAttrs(const LocalEqn& e) {
  Ints sizes;
  for (const Dim& d : e.results[0].dims) sizes.push_back(d.value("dynamic_slice"));
  return e.eqn.attrs.With("sizes", sizes);
}

ShardingRule DynamicUpdateSliceMap(const Sig& s, const Types& results) {
  Map m(s, results);
  for (int d = 0; d < results[0].rank(); ++d) {
    if (!(s.operands[1].dims[d] == s.operands[0].dims[d]) || SizeOf(results[0], d) == 1) continue;
    const int f = m.Add(SizeOf(results[0], d));
    m.Operand(0, d, f);
    m.Operand(1, d, f);
    m.Result(0, d, f);
  }
  return m;
}

// The dimensions of `rank` that are not in `window`, in order: those of the indices.
std::vector<int> BatchPositions(int rank, const Ints& window) {
  std::vector<int> positions;
  for (int d = 0; d < rank; ++d) {
    if (!Contains(window, d)) positions.push_back(d);
  }
  return positions;
}

// The dimensions of the operand that windows keep, in order.
std::vector<int> WindowDims(int rank, const Ints& collapsed, const Ints& batch) {
  std::vector<int> dims;
  for (int d = 0; d < rank; ++d) {
    if (!Contains(collapsed, d) && !Contains(batch, d)) dims.push_back(d);
  }
  return dims;
}

ShardingRule GatherMap(const Sig& s, const Types& results) {
  Map m(s, results);
  const GatherDims g = GatherDims::Of(s.attrs);
  const Type &x = s.operands[0], &indices = s.operands[1];
  const std::vector<int> window = WindowDims(x.rank(), g.collapsed_dims, g.operand_batch_dims),
                         batch = BatchPositions(results[0].rank(), g.offset_dims);
  for (size_t w = 0; w < window.size(); ++w) {
    const int64_t size = SizeOf(x, window[w]);
    if (g.slice_sizes[window[w]] == -1 || g.slice_sizes[window[w]] == size)
      m.Through(0, window[w], 0, g.offset_dims[w], size);
  }
  for (size_t i = 0; i < batch.size(); ++i) {
    if (SizeOf(indices, i) == 1) continue;
    const int f = m.Add(SizeOf(indices, i));
    m.Operand(1, i, f);
    m.Result(0, batch[i], f);
    for (size_t k = 0; k < g.indices_batch_dims.size(); ++k) {
      if (g.indices_batch_dims[k] == static_cast<int64_t>(i)) m.Operand(0, g.operand_batch_dims[k], f);
    }
  }
  // A device finds what lies in its rows, and zeros for the rest: the sum over devices is what is asked for.
  for (int64_t d : g.start_index_map) {
    if (Contains(g.collapsed_dims, d) && SizeOf(x, d) > 1 && kNumbers.Has(x.dtype))
      m.Operand(0, d, m.Add(SizeOf(x, d), Kind::kSum));
  }
  return m;
}

// The factors of those dimensions of the operand that indices choose from and that are cut.
std::vector<int> CutRows(const LocalEqn& e, const Ints& index_map) {
  std::vector<int> cut;
  for (int64_t d : index_map) {
    for (int f : e.map.operands[0][d]) {
      if (e.IsCut(f)) cut.push_back(f);
    }
  }
  return cut;
}

// Index vectors that count from where this device's rows begin. With `clip` they are moved inside the whole array
// first. `windows` are the sizes of the window in every dimension of the operand.
Atom OwnIndices(const LocalEqn& e, const Ints& index_map, const Ints& windows, bool clip) {
  Builder& b = e.b;
  Atom indices = e.x[1];
  const DType given = b.DTypeOf(indices);
  indices = Convert(b, indices, ByteWidth(given) == 8 || given == DType::kU32 ? DType::kI64 : DType::kI32);
  const Type type = b.TypeOf(indices);
  const Ints last_dim = {type.rank() - 1};
  Atoms firsts;
  std::vector<double> most;
  for (int64_t d : index_map) {
    most.push_back(static_cast<double>(SizeOf(e.global[0], d) - windows[d]));
    const std::vector<int>& factors = e.map.operands[0][d];
    // A dimension that windows keep is whole, or windows are as long as it and begin at 0.
    const Atom first = Contains(index_map, d) && windows[d] == 1 && !factors.empty() && e.IsCut(factors[0])
                           ? Convert(b, e.First(factors[0]), type.dtype)
                           : Atom::Scalar(type.dtype, 0);
    firsts.push_back(Reshape(b, first, {1}));
  }
  if (clip) {
    Tensor limit(type.dtype, {static_cast<int64_t>(most.size())});
    for (size_t i = 0; i < most.size(); ++i) limit.Set(static_cast<int64_t>(i), std::max(0.0, most[i]));
    indices = Min(b, Max(b, indices, Zeros(b, Type{type.dtype, type.dims, {}})),
                  Broadcast(b, Atom(limit), type.dims, last_dim));
  }
  return Sub(b, indices, Broadcast(b, Concatenate(b, firsts, 0), type.dims, last_dim));
}

// What changes no sum that it is added to: +0.0 would make +0.0 of -0.0.
Atom NothingToAdd(Builder& b, const Type& type) {
  if (!IsInexact(type.dtype)) return Zeros(b, type);
  Tensor zero(type.dtype, {});
  zero.Set(0, {-0.0, -0.0});
  return Broadcast(b, Atom(zero), type.dims, {});
}

// Which windows begin outside of an array with these sizes: the index vectors' type without its last dimension.
Atom BeginOutside(Builder& b, const Atom& indices, const GatherDims& g, const Ints& windows, const Type& array) {
  const Type type = b.TypeOf(indices);
  const Dims dims(type.dims.begin(), type.dims.end() - 1);
  std::optional<Atom> outside;
  for (size_t k = 0; k < g.start_index_map.size(); ++k) {
    const int64_t d = g.start_index_map[k];
    Ints start(type.rank(), 0), limit, ones(type.rank(), 1);
    for (const Dim& size : type.dims) limit.push_back(size.value("gather"));
    start.back() = static_cast<int64_t>(k), limit.back() = start.back() + 1;
    const Atom index = Convert(b, Reshape(b, Slice(b, indices, start, limit, ones), dims), DType::kI64);
    const Atom last = Atom::Scalar(DType::kI64, static_cast<double>(SizeOf(array, d) - windows[d]));
    const Atom here = Or(b, Lt(b, index, Atom::Scalar(DType::kI64, 0)), Gt(b, index, last));
    outside = outside ? Or(b, *outside, here) : here;
  }
  return *outside;
}

Atoms EmitGather(const LocalEqn& e) {
  GatherDims g = GatherDims::Of(e.eqn.attrs);
  const std::vector<int> rows = CutRows(e, g.start_index_map);
  Ints windows;  // of the whole operand
  for (size_t d = 0; d < g.slice_sizes.size(); ++d)
    windows.push_back(g.slice_sizes[d] == -1 ? SizeOf(e.global[0], d) : g.slice_sizes[d]);
  for (size_t d = 0; d < windows.size(); ++d) {
    if (windows[d] == SizeOf(e.global[0], d) && !Contains(g.collapsed_dims, static_cast<int64_t>(d)) &&
        !Contains(g.operand_batch_dims, static_cast<int64_t>(d)))
      g.slice_sizes[d] = e.b.TypeOf(e.x[0]).dims[d].value("gather");
  }
  if (rows.empty()) return e.b.Emit(*e.eqn.prim, e.x, g.ToAttrs());
  const std::string mode = g.mode;
  Builder& b = e.b;
  const Atom own = OwnIndices(e, g.start_index_map, windows, mode == "clip" || mode == "promise");
  g.mode = "zero";
  Atom y = b.Emit1(*e.eqn.prim, {e.x[0], own}, g.ToAttrs());
  const Type result = b.TypeOf(y);
  Ints positions;
  for (int d : BatchPositions(result.rank(), g.offset_dims)) positions.push_back(d);
  if (IsInexact(result.dtype)) {
    Ints here = windows;  // of what this device has of the operand
    for (size_t d = 0; d < here.size(); ++d) here[d] = std::min(here[d], SizeOf(b.TypeOf(e.x[0]), static_cast<int>(d)));
    const Atom elsewhere = BeginOutside(b, own, g, here, b.TypeOf(e.x[0]));
    y = Select(b, Broadcast(b, elsewhere, result.dims, positions), NothingToAdd(b, Type{result.dtype, result.dims, {}}),
               y);
  }
  if (mode != "fill" && mode != "zero") return {y};
  // Out of bounds of the whole array: the first device fills.
  Atom outside = BeginOutside(b, e.x[1], g, windows, e.global[0]);
  outside = And(b, outside, Broadcast(b, e.IsFirst(rows), b.TypeOf(outside).dims, {}));
  const Atom fill = mode == "fill" ? Atom(Tensor::OutOfBounds(result.dtype)) : Atom::Scalar(result.dtype, 0);
  return {Select(b, Broadcast(b, outside, result.dims, positions), Broadcast(b, fill, result.dims, {}), y)};
}

// `batch`: what happens to the dimensions that walk over the indices, of which each device has some.
OpShardingRule Scatter(std::optional<Kind> batch) {
  OpShardingRule r;
  r.map = [combined = batch](const Sig& s, const Types& results) -> ShardingRule {
    Map m(s, results);
    const ScatterDims d = ScatterDims::Of(s.attrs);
    const Type &x = s.operands[0], &indices = s.operands[1], &u = s.operands[2];
    // Partial sums begin with 0, which a dtype of powers of 2 has not.
    const bool has_zero = Tensor::Zeros(x.dtype, {}).Get(0) == 0.0;
    const std::optional<Kind> batch = combined == Kind::kSum && !has_zero ? std::nullopt : combined;
    const std::vector<int> window = WindowDims(x.rank(), d.inserted_dims, d.operand_batch_dims),
                           positions = BatchPositions(u.rank(), d.update_window_dims);
    for (size_t w = 0; w < window.size(); ++w) {
      const int64_t size = SizeOf(x, window[w]);
      if (size == 1 || SizeOf(u, d.update_window_dims[w]) != size) continue;
      const int f = m.Add(size);
      m.Operand(0, window[w], f);
      m.Operand(2, d.update_window_dims[w], f);
      m.Result(0, window[w], f);
    }
    for (size_t i = 0; i < positions.size(); ++i) {
      if (SizeOf(indices, i) == 1) continue;
      const auto at = std::find(d.indices_batch_dims.begin(), d.indices_batch_dims.end(), static_cast<int64_t>(i));
      if (at == d.indices_batch_dims.end() && !batch) continue;
      const int f = m.Add(SizeOf(indices, i), at == d.indices_batch_dims.end() ? *batch : Kind::kPass);
      m.Operand(1, i, f);
      m.Operand(2, positions[i], f);
      if (at == d.indices_batch_dims.end()) continue;
      const int64_t own = d.operand_batch_dims[at - d.indices_batch_dims.begin()];
      m.Operand(0, own, f);
      m.Result(0, own, f);
    }
    // Each device writes to its own rows.
    for (int64_t row : d.scatter_dims) {
      if (Contains(d.inserted_dims, row)) m.Through(0, row, 0, row, SizeOf(x, row));
    }
    return m;
  };
  r.emit = [](const LocalEqn& e) -> Atoms {
    ScatterDims d = ScatterDims::Of(e.eqn.attrs);
    Builder& b = e.b;
    Atoms x = e.x;
    // Where devices write parts of a sum, the operand itself is the first one's.
    std::vector<int> sums;
    for (size_t f = 0; f < e.map.factors.size(); ++f) {
      if (e.map.factors[f].kind == Kind::kSum && e.IsCut(static_cast<int>(f))) sums.push_back(static_cast<int>(f));
    }
    if (!sums.empty()) {
      const Type type = b.TypeOf(x[0]);
      x[0] = Select(b, Broadcast(b, e.IsFirst(sums), type.dims, {}), x[0],
                    NothingToAdd(b, Type{type.dtype, type.dims, {}}));
    }
    if (!CutRows(e, d.scatter_dims).empty()) {
      const Type &whole = e.global[0], &u = e.global[2];
      Ints windows(whole.dims.size(), 1);
      const std::vector<int> window = WindowDims(whole.rank(), d.inserted_dims, d.operand_batch_dims);
      for (size_t w = 0; w < window.size(); ++w) windows[window[w]] = SizeOf(u, d.update_window_dims[w]);
      x[1] = OwnIndices(e, d.scatter_dims, windows, d.mode != "drop");
      d.mode = "drop";
    }
    return {b.Emit1(*e.eqn.prim, x, d.ToAttrs())};
  };
  return r;
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
  if (SizeOf(results[0], free) > 1) {
    m.factors.push_back({SizeOf(results[0], free), Kind::kPass});
    const int f = static_cast<int>(m.factors.size()) - 1;
    m.operands[1][free].push_back(f);
    m.results[0][free].push_back(f);
  }
  return m;
}

// --- The table -------------------------------------------------------------------------------------------------------

OpShardingRule Simple(ShardingRule (*map)(const Sig&, const Types&), Attrs (*attrs)(const LocalEqn&) = nullptr) {
  OpShardingRule r;
  r.map = map;
  if (attrs != nullptr) r.attrs = attrs;
  return r;
}

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
    for (int d = 0; d < s.operands[0].rank(); ++d) m.Operand(0, d, m.Add(SizeOf(s.operands[0], d)));
    return m;
  });
  size.emit = [](const LocalEqn& e) -> Atoms {
    return {Atom::Scalar(DType::kI32, static_cast<double>(SizeOf(e.global[0], e.eqn.attrs.GetInt("dim"))))};
  };
  rules["dim_size"] = size;
  rules["dynamic_slice"] = Simple(DynamicSliceMap, DynamicSliceAttrs);
  rules["dynamic_update_slice"] = Simple(DynamicUpdateSliceMap);
  OpShardingRule gather = Simple(GatherMap);
  gather.emit = EmitGather;
  gather.picks = true;
  rules["gather"] = gather;
  rules["scatter"] = Scatter(std::nullopt);
  rules["scatter_mul"] = Scatter(std::nullopt);
  rules["scatter_add"] = Scatter(Kind::kSum);
  rules["scatter_max"] = Scatter(Kind::kMax);
  rules["scatter_min"] = Scatter(Kind::kMin);
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
