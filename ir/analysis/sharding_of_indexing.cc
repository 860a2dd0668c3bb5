// How windows, gathers and scatters are cut over devices.
#include <algorithm>
#include <optional>

#include "ir/analysis/sharding_maps.h"
#include "ir/ops.h"
#include "ir/prims/elementwise.h"
#include "ir/prims/indexing.h"

namespace weft::sharding {
namespace {

ShardingRule DynamicSliceMap(const Sig& s, const Types& results) {
  Map m(s, results);
  for (int d = 0; d < results[0].rank(); ++d) {
    if (results[0].dims[d] == s.operands[0].dims[d]) m.Through(0, d, 0, d, StaticSize(results[0], d));
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
    if (!(s.operands[1].dims[d] == s.operands[0].dims[d]) || StaticSize(results[0], d) == 1) continue;
    const int f = m.Add(StaticSize(results[0], d));
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
    const int64_t size = StaticSize(x, window[w]);
    if (g.slice_sizes[window[w]] == -1 || g.slice_sizes[window[w]] == size)
      m.Through(0, window[w], 0, g.offset_dims[w], size);
  }
  for (size_t i = 0; i < batch.size(); ++i) {
    if (StaticSize(indices, i) == 1) continue;
    const int f = m.Add(StaticSize(indices, i));
    m.Operand(1, i, f);
    m.Result(0, batch[i], f);
    for (size_t k = 0; k < g.indices_batch_dims.size(); ++k) {
      if (g.indices_batch_dims[k] == static_cast<int64_t>(i)) m.Operand(0, g.operand_batch_dims[k], f);
    }
  }
  // A device finds what lies in its rows, and zeros for the rest: the sum over devices is what is asked for.
  for (int64_t d : g.start_index_map) {
    if (Contains(g.collapsed_dims, d) && StaticSize(x, d) > 1 && kNumbers.Has(x.dtype))
      m.Operand(0, d, m.Add(StaticSize(x, d), Kind::kSum));
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
    most.push_back(static_cast<double>(StaticSize(e.global[0], d) - windows[d]));
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
    const Atom last = Atom::Scalar(DType::kI64, static_cast<double>(StaticSize(array, d) - windows[d]));
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
    windows.push_back(g.slice_sizes[d] == -1 ? StaticSize(e.global[0], d) : g.slice_sizes[d]);
  for (size_t d = 0; d < windows.size(); ++d) {
    if (windows[d] == StaticSize(e.global[0], d) && !Contains(g.collapsed_dims, static_cast<int64_t>(d)) &&
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
    for (size_t d = 0; d < here.size(); ++d)
      here[d] = std::min(here[d], StaticSize(b.TypeOf(e.x[0]), static_cast<int>(d)));
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

}  // namespace

OpShardingRule DynamicSliceRule() { return Simple(DynamicSliceMap, DynamicSliceAttrs); }

OpShardingRule DynamicUpdateSliceRule() { return Simple(DynamicUpdateSliceMap); }

OpShardingRule GatherRule() {
  OpShardingRule r = Simple(GatherMap);
  r.emit = EmitGather;
  r.picks = true;
  return r;
}

OpShardingRule ScatterRule(std::optional<Kind> batch) {
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
      const int64_t size = StaticSize(x, window[w]);
      if (size == 1 || StaticSize(u, d.update_window_dims[w]) != size) continue;
      const int f = m.Add(size);
      m.Operand(0, window[w], f);
      m.Operand(2, d.update_window_dims[w], f);
      m.Result(0, window[w], f);
    }
    for (size_t i = 0; i < positions.size(); ++i) {
      if (StaticSize(indices, i) == 1) continue;
      const auto at = std::find(d.indices_batch_dims.begin(), d.indices_batch_dims.end(), static_cast<int64_t>(i));
      if (at == d.indices_batch_dims.end() && !batch) continue;
      const int f = m.Add(StaticSize(indices, i), at == d.indices_batch_dims.end() ? *batch : Kind::kPass);
      m.Operand(1, i, f);
      m.Operand(2, positions[i], f);
      if (at == d.indices_batch_dims.end()) continue;
      const int64_t own = d.operand_batch_dims[at - d.indices_batch_dims.begin()];
      m.Operand(0, own, f);
      m.Result(0, own, f);
    }
    // Each device writes to its own rows.
    for (int64_t row : d.scatter_dims) {
      if (Contains(d.inserted_dims, row)) m.Through(0, row, 0, row, StaticSize(x, row));
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
      for (size_t w = 0; w < window.size(); ++w) windows[window[w]] = StaticSize(u, d.update_window_dims[w]);
      x[1] = OwnIndices(e, d.scatter_dims, windows, d.mode != "drop");
      d.mode = "drop";
    }
    return {b.Emit1(*e.eqn.prim, x, d.ToAttrs())};
  };
  return r;
}

}  // namespace weft::sharding
