// Reading and writing at computed positions: gather, scatter and its kinds; dynamic_slices.cc has the windows. They
// have the semantics of XLA's operations of these names, with batching dimensions.
#include "ir/prims/indexing.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/product.h"
#include "ir/ops.h"
#include "ir/prims/elementwise.h"
#include "ir/prims/families.h"
#include "ir/prims/shape.h"

namespace weft {

bool Contains(const Ints& list, int64_t value) { return std::find(list.begin(), list.end(), value) != list.end(); }

GatherDims GatherDims::Of(const Attrs& a) {
  return {a.Get<Ints>("offset_dims"),        a.Get<Ints>("collapsed_dims"),  a.Get<Ints>("operand_batch_dims"),
          a.Get<Ints>("indices_batch_dims"), a.Get<Ints>("start_index_map"), a.Get<Ints>("slice_sizes"),
          a.Get<std::string>("mode")};
}

Attrs GatherDims::ToAttrs() const {
  return {{"offset_dims", offset_dims},
          {"collapsed_dims", collapsed_dims},
          {"operand_batch_dims", operand_batch_dims},
          {"indices_batch_dims", indices_batch_dims},
          {"start_index_map", start_index_map},
          {"slice_sizes", slice_sizes},
          {"mode", mode}};
}

ScatterDims ScatterDims::Of(const Attrs& a) {
  return {a.Get<Ints>("update_window_dims"), a.Get<Ints>("inserted_dims"), a.Get<Ints>("operand_batch_dims"),
          a.Get<Ints>("indices_batch_dims"), a.Get<Ints>("scatter_dims"),  a.Get<std::string>("mode"),
          a.GetOr<bool>("unique", false)};
}

Attrs ScatterDims::ToAttrs() const {
  return {{"update_window_dims", update_window_dims},
          {"inserted_dims", inserted_dims},
          {"operand_batch_dims", operand_batch_dims},
          {"indices_batch_dims", indices_batch_dims},
          {"scatter_dims", scatter_dims},
          {"mode", mode},
          {"unique", unique}};
}

ScatterDims GatherDims::AsScatter() const {
  return {offset_dims,
          collapsed_dims,
          operand_batch_dims,
          indices_batch_dims,
          start_index_map,
          mode == "clip" ? "clip" : "drop",
          false};
}

GatherDims ScatterDims::AsGather(const Dims& operand, const Dims& updates) const {
  Ints sizes;
  size_t window = 0;
  for (int d = 0; d < static_cast<int>(operand.size()); ++d) {
    const bool one = Contains(inserted_dims, d) || Contains(operand_batch_dims, d);
    if (one) {
      sizes.push_back(1);
      continue;
    }
    const Dim& size = updates[update_window_dims[window++]];
    sizes.push_back(!size.is_static() && size == operand[d] ? -1 : size.value("scatter"));
  }
  return {update_window_dims,
          inserted_dims,
          operand_batch_dims,
          indices_batch_dims,
          scatter_dims,
          sizes,
          mode == "clip" ? "clip" : "zero"};
}

void ForEachWindow(const WindowMap& map, const Tensor& indices, const Shape& window_shape, const Shape& operand_shape,
                   bool clip, const std::function<void(const Shape& element, int64_t operand_offset)>& visit) {
  const std::vector<int64_t> index_strides = RowMajorStrides(indices.shape()),
                             operand_strides = RowMajorStrides(operand_shape);
  const int rank = static_cast<int>(operand_shape.size());
  const int element_rank = static_cast<int>(window_shape.size());
  Ints window_dims;  // operand dimension of each window dimension
  for (int d = 0; d < rank; ++d) {
    if (!Contains(map.collapsed, d) && !Contains(map.operand_batch, d)) window_dims.push_back(d);
  }
  Ints batch_positions;  // element dimensions that walk over the indices
  for (int d = 0; d < element_rank; ++d) {
    if (!Contains(map.window_positions, d)) batch_positions.push_back(d);
  }
  ForEachIndex(window_shape, [&](const Shape& element) {
    Shape at(rank, 0);
    bool inside = true;
    int64_t index_offset = 0;
    for (size_t i = 0; i < batch_positions.size(); ++i) index_offset += element[batch_positions[i]] * index_strides[i];
    const int64_t step = indices.rank() == 0 ? 0 : 1;
    for (size_t k = 0; k < map.index_map.size(); ++k) {
      const int64_t d = map.index_map[k];
      int64_t start = 0;
      VisitDType(indices.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (kIsInteger<T>) {
          const WordOf<T> v = indices.at<T>(index_offset + static_cast<int64_t>(k) * step);
          start = std::is_same_v<T, uint64_t> && v > static_cast<WordOf<T>>(std::numeric_limits<int64_t>::max())
                      ? std::numeric_limits<int64_t>::max()
                      : static_cast<int64_t>(v);
        }
      });
      const int64_t last = operand_shape[d] - map.window_sizes[d];
      if (clip)
        start = std::clamp<int64_t>(start, 0, std::max<int64_t>(last, 0));
      else
        inside &= start >= 0 && start <= last;
      at[d] += start;
    }
    for (size_t i = 0; i < map.operand_batch.size(); ++i)
      at[map.operand_batch[i]] = element[batch_positions[map.indices_batch[i]]];
    for (size_t i = 0; i < map.window_positions.size(); ++i) at[window_dims[i]] += element[map.window_positions[i]];
    visit(element, inside ? Offset(at, operand_strides) : -1);
  });
}

namespace {

const Type& CheckIndices(const Sig& s, int operand) {
  const Type& t = s.operands[operand];
  if (!IsInteger(t.dtype))
    throw TypeError(s.prim.name, ": operand ", operand, " (the indices) is ", t, "; expected an integer dtype");
  return t;
}

Types InferGather(const Sig& s) {
  const Type &x = s.operands[0], &indices = CheckIndices(s, 1);
  const GatherDims g = GatherDims::Of(s.attrs);
  CheckLength(s, "slice_sizes", x.rank());
  CheckDims(s, "collapsed_dims", g.collapsed_dims, x.rank());
  CheckDims(s, "operand_batch_dims", g.operand_batch_dims, x.rank());
  if (g.mode != "clip" && g.mode != "fill" && g.mode != "zero" && g.mode != "promise")
    throw ValueError("gather: mode is \"", g.mode, "\"; expected \"clip\", \"fill\", \"zero\" or \"promise\"");
  if (indices.rank() < 1 || !(indices.dims.back() == Dim(static_cast<int64_t>(g.start_index_map.size())))) {
    throw TypeError("gather: indices ", indices, " must end in a dimension of size ", g.start_index_map.size(),
                    ", one entry for each of start_index_map=", ToString(Attr(g.start_index_map)));
  }
  if (g.operand_batch_dims.size() != g.indices_batch_dims.size())
    throw ValueError("gather: operand_batch_dims=", ToString(Attr(g.operand_batch_dims)),
                     " and indices_batch_dims=", ToString(Attr(g.indices_batch_dims)), "; expected equally many");
  Dims window;
  const bool no_indices = std::find(indices.dims.begin(), indices.dims.end() - 1, Dim(0)) != indices.dims.end() - 1;
  // How many windows. Those that are filled have to fit, too: their place is read and not used.
  const Dim reads = NumElements(Dims(indices.dims.begin(), indices.dims.end() - 1));
  for (int d = 0; d < x.rank(); ++d) {
    const int64_t size = g.slice_sizes[d];
    const bool dropped = Contains(g.collapsed_dims, d) || Contains(g.operand_batch_dims, d);
    // Where there are no indices, elements may be named that a dimension of size 0 does not have.
    const bool fits =
        size == -1 || (size >= 0 && !(dropped && size > 1) && ((dropped && no_indices) || s.Fits(x, d, size, reads)));
    if (!fits) {
      throw ValueError("gather: slice_sizes=", ToString(Attr(g.slice_sizes)), " does not fit operand ", x,
                       " in dimension ", d);
    }
    if (!dropped) window.push_back(size == -1 ? x.dims[d] : Dim(size));
  }
  for (int64_t d : g.start_index_map) {
    if (d < 0 || d >= x.rank())
      throw UserError(ErrorKind::kIndex, {}, "gather: start_index_map holds ", d, "; expected a dimension of operand ",
                      x);
  }
  const int rank = static_cast<int>(window.size()) + indices.rank() - 1;
  CheckDims(s, "offset_dims", g.offset_dims, rank);
  if (g.offset_dims.size() != window.size())
    throw ValueError("gather: offset_dims=", ToString(Attr(g.offset_dims)), " must name ", window.size(),
                     " window dimensions");
  Dims dims;
  size_t next_window = 0;
  int next_batch = 0;
  for (int d = 0; d < rank; ++d)
    dims.push_back(Contains(g.offset_dims, d) ? window[next_window++] : indices.dims[next_batch++]);
  return {x.With(dims)};
}

Tensors EvalGather(const EvalContext& c, const Tensors& in) {
  const GatherDims g = GatherDims::Of(c.sig.attrs);
  Tensor y(in[0].dtype(), StaticSizes(c.results[0].dims, "eval"));
  const Tensor fill = g.mode == "fill" ? Tensor::OutOfBounds(y.dtype()) : Tensor::Zeros(y.dtype(), {});
  const WindowMap map{g.offset_dims,        g.collapsed_dims,  g.operand_batch_dims,
                      g.indices_batch_dims, g.start_index_map, g.SizesFor(in[0].shape())};
  int64_t to = 0;
  ForEachWindow(map, in[1], y.shape(), in[0].shape(), g.mode == "clip" || g.mode == "promise",
                [&](const Shape&, int64_t from) {
                  if (from >= 0)
                    CopyElement(in[0], from, y, to);
                  else
                    CopyElement(fill, 0, y, to);
                  ++to;
                });
  return {y};
}

void BatchGather(BatchContext& c) {
  GatherDims g = GatherDims::Of(c.eqn.attrs);
  c.batched_out = {true};
  if (!c.batched[1]) {  // a new window dimension
    const GatherDims d{Prepend(0, Shifted(g.offset_dims)),
                       Shifted(g.collapsed_dims),
                       Shifted(g.operand_batch_dims),
                       g.indices_batch_dims,
                       Shifted(g.start_index_map),
                       Prepend(c.size.is_static() ? c.size.value() : -1, g.slice_sizes),
                       g.mode};
    c.y = {c.b.Emit1(*c.eqn.prim, {c.x[0], c.x[1]}, d.ToAttrs())};
  } else if (!c.batched[0]) {
    g.offset_dims = Shifted(g.offset_dims);
    g.indices_batch_dims = Shifted(g.indices_batch_dims);
    c.y = {c.b.Emit1(*c.eqn.prim, {c.x[0], c.x[1]}, g.ToAttrs())};
  } else {
    const GatherDims d{Shifted(g.offset_dims),
                       Shifted(g.collapsed_dims),
                       Prepend(0, Shifted(g.operand_batch_dims)),
                       Prepend(0, Shifted(g.indices_batch_dims)),
                       Shifted(g.start_index_map),
                       Prepend(1, g.slice_sizes),
                       g.mode};
    c.y = {c.b.Emit1(*c.eqn.prim, {c.x[0], c.x[1]}, d.ToAttrs())};
  }
}

Tensor Indices(Shape shape, std::vector<int32_t> values) {
  return Tensor::FromVector<int32_t>(std::move(shape), values);
}

std::vector<Sample> GatherSamples() {
  std::vector<Sample> samples;
  auto add = [&](DType t, Dims x, Tensor indices, GatherDims g) {
    Sample s = SampleOf({Type{t, std::move(x), {}}, indices.type()}, g.ToAttrs());
    s.values = {{1, indices}};
    if (IsUnsigned(t)) s.low = 0;
    samples.push_back(s);
  };
  for (DType t : SampledDTypes({DType::kF32, DType::kF64, DType::kI8, DType::kBool, DType::kC64, DType::kBF16})) {
    add(t, {5, 3}, Indices({4, 1}, {0, 4, 2, 2}), {{1}, {0}, {}, {}, {0}, {1, 3}, "clip"});
  }
  add(DType::kF32, {5, 3}, Indices({4, 1}, {-1, 7, 2, 5}), {{1}, {0}, {}, {}, {0}, {1, 3}, "clip"});
  add(DType::kF32, {5, 3}, Indices({4, 1}, {-1, 7, 2, 5}), {{1}, {0}, {}, {}, {0}, {1, 3}, "zero"});
  add(DType::kI32, {5, 3}, Indices({4, 1}, {-1, 7, 2, 5}), {{1}, {0}, {}, {}, {0}, {1, 3}, "fill"});
  add(DType::kF32, {4, 6}, Indices({3, 2}, {0, 1, 3, 5, 1, 4}), {{}, {0, 1}, {}, {}, {0, 1}, {1, 1}, "clip"});
  add(DType::kF32, {6, 5}, Indices({2, 2}, {1, 1, 4, 2}), {{1, 2}, {}, {}, {}, {0, 1}, {2, 3}, "clip"});
  add(DType::kF32, {3, 5}, Indices({3, 2, 1}, {0, 4, 1, 1, 3, 2}), {{}, {1}, {0}, {0}, {1}, {1, 1}, "clip"});
  return samples;
}

void RegisterGather(PrimRegistry& r) {
  Prim& p = r.Add("gather", Family::kIndexing, 2,
                  "Windows of `slice_sizes` of operand 0 at the index vectors in the last dimension of operand 1 "
                  "(entry k moves dimension start_index_map[k]). Window "
                  "dimensions, without the collapsed and batch ones, become dimensions offset_dims of the result; the "
                  "others walk over the indices. Out of bounds: "
                  "mode \"clip\" moves the window inside, \"fill\" gives NaN (the least signed, greatest unsigned "
                  "integer), \"zero\" gives 0, \"promise\" says it does not happen.");
  p.traffic = Traffic::kTaken;
  p.infer = InferGather;
  p.eval = EvalGather;
  p.linear = {0};
  p.linear_part = [](const Attrs& attrs) {
    return attrs.Get<std::string>("mode") == "fill" ? attrs.With("mode", "zero") : attrs;
  };
  p.transpose = [](TransposeContext& c) -> OptionalAtoms {
    const ScatterDims d = GatherDims::Of(c.eqn.attrs).AsScatter();
    return {c.b.Emit1(FindPrim("scatter_add"), {Zeros(c.b, c.types[0]), *c.x[1], *c.ct[0]}, d.ToAttrs()), std::nullopt};
  };
  p.batch = BatchGather;
  p.samples = GatherSamples;
}

Types InferScatter(const Sig& s) {
  const Type &x = s.operands[0], &u = s.operands[2];
  const Type& indices = CheckIndices(s, 1);
  const ScatterDims d = ScatterDims::Of(s.attrs);
  if (!s.prim.dtypes.Has(x.dtype))
    throw TypeError(s.prim.name, ": operand is ", x, "; expected one of ", s.prim.dtypes.ToString());
  if (d.mode != "clip" && d.mode != "drop" && d.mode != "promise")
    throw ValueError(s.prim.name, ": mode is \"", d.mode, "\"; expected \"clip\", \"drop\" or \"promise\"");
  CheckDims(s, "inserted_dims", d.inserted_dims, x.rank());
  CheckDims(s, "operand_batch_dims", d.operand_batch_dims, x.rank());
  CheckDims(s, "update_window_dims", d.update_window_dims, u.rank());
  const int window = x.rank() - static_cast<int>(d.inserted_dims.size() + d.operand_batch_dims.size());
  bool fits = x.dtype == u.dtype && static_cast<int>(d.update_window_dims.size()) == window && indices.rank() >= 1 &&
              u.rank() == window + indices.rank() - 1 &&
              indices.dims.back() == Dim(static_cast<int64_t>(d.scatter_dims.size()));
  int next = 0;
  for (int i = 0; fits && i < u.rank(); ++i) {
    if (!Contains(d.update_window_dims, i)) fits = u.dims[i] == indices.dims[next++];
  }
  for (int64_t i : d.scatter_dims) fits = fits && i >= 0 && i < x.rank();
  if (fits) {
    size_t w = 0;
    for (int i = 0; fits && i < x.rank(); ++i) {
      if (Contains(d.inserted_dims, i) || Contains(d.operand_batch_dims, i)) continue;
      const Dim size = u.dims[d.update_window_dims[w++]];
      fits = size == x.dims[i] || (size.is_static() && x.dims[i].is_static() && size.value() <= x.dims[i].value());
    }
  }
  if (!fits)
    throw TypeError(s.prim.name, ": operand ", x, ", indices ", indices, " and updates ", u,
                    " do not fit each other under these dimension lists");
  return {x};
}

enum class Scattered { kSet, kAdd, kMul, kMin, kMax };

EvalFn ScatterEval(Scattered how) {
  return [how](const EvalContext& c, const Tensors& in) -> Tensors {
    const ScatterDims d = ScatterDims::Of(c.sig.attrs);
    const GatherDims g = d.AsGather(in[0].type().dims, in[2].type().dims);
    const WindowMap map{d.update_window_dims, d.inserted_dims, d.operand_batch_dims,
                        d.indices_batch_dims, d.scatter_dims,  g.SizesFor(in[0].shape())};
    Tensor y = in[0].Copy();
    int64_t from = 0;
    auto walk = [&](const std::function<void(int64_t to, int64_t from)>& put) {
      ForEachWindow(map, in[1], in[2].shape(), y.shape(), d.mode == "clip", [&](const Shape&, int64_t to) {
        if (to >= 0) put(to, from);
        ++from;
      });
    };
    if (y.size() == 0) return {y};  // there is no place to write to
    if (how == Scattered::kSet) {
      walk([&](int64_t to, int64_t at) { CopyElement(in[2], at, y, to); });
      return {y};
    }
    auto combine = [&](auto tag) {
      using K = decltype(tag);
      std::vector<K> values = LoadAs<K>(in[0]);
      const std::vector<K> updates = LoadAs<K>(in[2]);
      walk([&](int64_t to, int64_t at) {
        K& v = values[to];
        const K& u = updates[at];
        if (how == Scattered::kAdd)
          v = v + u;
        else if (how == Scattered::kMul)
          v = Product(v, u);
        else if constexpr (!std::is_same_v<K, std::complex<double>>) {
          if (v != v || u != u)
            v = v != v ? v : u;  // NaN wins
          else
            v = how == Scattered::kMin ? std::min(v, u) : std::max(v, u);
        }
      });
      return StoreAs<K>(y.dtype(), y.shape(), values);
    };
    if (IsComplex(y.dtype())) return {combine(std::complex<double>())};
    if (IsFloat(y.dtype())) return {combine(double())};
    if (IsSigned(y.dtype())) return {combine(int64_t())};
    return {combine(uint64_t())};
  };
}

void BatchScatter(BatchContext& c) {
  const ScatterDims d = ScatterDims::Of(c.eqn.attrs);
  const Atom x = c.Batched(0), u = c.Batched(2);
  c.batched_out = {true};
  ScatterDims out = d;
  out.inserted_dims = Shifted(d.inserted_dims);
  out.scatter_dims = Shifted(d.scatter_dims);
  if (!c.batched[1]) {  // a new window dimension
    out.update_window_dims = Prepend(0, Shifted(d.update_window_dims));
    out.operand_batch_dims = Shifted(d.operand_batch_dims);
  } else {
    out.update_window_dims = Shifted(d.update_window_dims);
    out.operand_batch_dims = Prepend(0, Shifted(d.operand_batch_dims));
    out.indices_batch_dims = Prepend(0, Shifted(d.indices_batch_dims));
  }
  c.y = {c.b.Emit1(*c.eqn.prim, {x, c.x[1], u}, out.ToAttrs())};
}

std::vector<Sample> ScatterSamples(const Prim& prim) {
  std::vector<Sample> samples;
  auto add = [&](DType t, Dims x, Tensor indices, Dims u, ScatterDims d) {
    Sample s = SampleOf({Type{t, std::move(x), {}}, indices.type(), Type{t, std::move(u), {}}}, d.ToAttrs());
    s.values = {{1, indices}};
    if (IsUnsigned(t)) s.low = 0;
    samples.push_back(s);
  };
  for (DType t : SampledDTypes({DType::kF32, DType::kF64, DType::kI32, DType::kU8, DType::kC64})) {
    if (prim.dtypes.Has(t))
      add(t, {5, 3}, Indices({4, 1}, {0, 4, 2, 2}), {4, 3}, {{1}, {0}, {}, {}, {0}, "drop", false});
  }
  add(DType::kF32, {5, 3}, Indices({4, 1}, {-1, 7, 2, 5}), {4, 3}, {{1}, {0}, {}, {}, {0}, "drop", false});
  add(DType::kF32, {5, 3}, Indices({3, 1}, {-1, 7, 2}), {3, 3}, {{1}, {0}, {}, {}, {0}, "clip", false});
  add(DType::kF32, {4, 6}, Indices({3, 2}, {0, 1, 3, 5, 1, 4}), {3}, {{}, {0, 1}, {}, {}, {0, 1}, "clip", true});
  add(DType::kF32, {6, 5}, Indices({2, 2}, {0, 1, 3, 2}), {2, 2, 3}, {{1, 2}, {}, {}, {}, {0, 1}, "drop", true});
  add(DType::kF32, {3, 5}, Indices({3, 2, 1}, {0, 4, 1, 1, 3, 2}), {3, 2}, {{}, {1}, {0}, {0}, {1}, "drop", false});
  return samples;
}

Prim& AddScatter(PrimRegistry& r, const char* name, Scattered how, DTypeSet dtypes, const char* doc) {
  Prim& p = r.Add(name, Family::kIndexing, 3,
                  std::string(doc) +
                      " Index vectors are the last dimension of operand 1 (entry k moves dimension scatter_dims[k]); "
                      "out of bounds: mode \"drop\" leaves "
                      "the window out, \"clip\" moves it inside.");
  p.traffic = Traffic::kCombined;
  p.dtypes = dtypes;
  p.infer = InferScatter;
  p.eval = ScatterEval(how);
  p.batch = BatchScatter;
  p.samples = [prim = &p] { return ScatterSamples(*prim); };
  return p;
}

// Which updates are still there after a scatter in which the last write of a position wins.
Atom Survivors(Builder& b, const Type& operand, const Atom& indices, const Type& updates, const ScatterDims& d) {
  const Dims flat = {updates.size()};
  const Atom ids = Reshape(b, Iota(b, flat, 0, DType::kI64), updates.dims);
  const Atom written =
      b.Emit1(FindPrim("scatter"), {Full(b, operand.With(DType::kI64), -1), indices, ids}, d.ToAttrs());
  return Eq(b, b.Emit1(FindPrim("gather"), {written, indices}, d.AsGather(operand.dims, updates.dims).ToAttrs()), ids);
}

Atom GatherUpdates(Builder& b, const Atom& x, const Atom& indices, const Type& updates, const ScatterDims& d) {
  return b.Emit1(FindPrim("gather"), {x, indices}, d.AsGather(b.TypeOf(x).dims, updates.dims).ToAttrs());
}

// min and max: the mean of the tangents that attain the extreme.
void ScatterExtremeJvp(JvpContext& c) {
  const ScatterDims d = ScatterDims::Of(c.eqn.attrs);
  const Type x = c.b.TypeOf(c.x[0]), u = c.b.TypeOf(c.x[2]);
  const Atom y = c.b.Emit1(*c.eqn.prim, c.x, c.eqn.attrs);
  const Prim& add = FindPrim("scatter_add");
  const Atom x_attains = Convert(c.b, Eq(c.b, c.x[0], y), x.dtype);
  const Atom u_attains = Convert(c.b, Eq(c.b, c.x[2], GatherUpdates(c.b, y, c.x[1], u, d)), u.dtype);
  const Atom count = c.b.Emit1(add, {x_attains, c.x[1], u_attains}, d.ToAttrs());
  const Atom dx = c.dx[0] ? Mul(c.b, *c.dx[0], x_attains) : Zeros(c.b, x);
  const Atom total = c.dx[2] ? c.b.Emit1(add, {dx, c.x[1], Mul(c.b, *c.dx[2], u_attains)}, d.ToAttrs()) : dx;
  c.y = {y};
  c.dy = {Div(c.b, total, count)};
}

// y = x * (product of the updates at each position). Zero factors are counted, so that dividing by them is avoided.
void ScatterMulJvp(JvpContext& c) {
  const ScatterDims d = ScatterDims::Of(c.eqn.attrs);
  const Type x = c.b.TypeOf(c.x[0]), u = c.b.TypeOf(c.x[2]);
  Builder& b = c.b;
  const Prim &add = FindPrim("scatter_add"), &mul = FindPrim("scatter_mul");
  const Atom one = Atom::Scalar(x.dtype, 1), zero = Atom::Scalar(x.dtype, 0);
  const Atom ones = Full(b, x, 1), zeros = Zeros(b, x);
  c.y = {b.Emit1(mul, c.x, c.eqn.attrs)};
  std::optional<Atom> dy;
  if (c.dx[0]) dy = Mul(b, *c.dx[0], b.Emit1(mul, {ones, c.x[1], c.x[2]}, d.ToAttrs()));
  if (c.dx[2]) {
    const Atom is_zero = Eq(b, c.x[2], zero);
    const Atom factor = Select(b, is_zero, one, c.x[2]);
    const Atom product = b.Emit1(mul, {ones, c.x[1], factor}, d.ToAttrs());
    const Atom num_zeros = b.Emit1(add, {zeros, c.x[1], Select(b, is_zero, one, zero)}, d.ToAttrs());
    const Atom smooth = b.Emit1(add, {zeros, c.x[1], Select(b, is_zero, zero, Div(b, *c.dx[2], factor))}, d.ToAttrs());
    const Atom at_zero = b.Emit1(add, {zeros, c.x[1], Select(b, is_zero, *c.dx[2], zero)}, d.ToAttrs());
    const Atom rate = Select(b, Eq(b, num_zeros, zero), smooth, Select(b, Eq(b, num_zeros, one), at_zero, zero));
    dy = AddTangents(b, dy, Mul(b, c.x[0], Mul(b, product, rate)));
  }
  (void)u;
  c.dy = {dy};
}

void RegisterScatter(PrimRegistry& r) {
  Prim& set = AddScatter(r, "scatter", Scattered::kSet, kAll | DTypeSet{DType::kKey, DType::kTape},
                         "Operand 0 with windows replaced by operand 2 (the updates), later ones winning.");
  set.linear = {0, 2};
  set.transpose = [](TransposeContext& c) -> OptionalAtoms {
    const ScatterDims d = ScatterDims::Of(c.eqn.attrs);
    OptionalAtoms out(3);
    if (c.linear(0)) out[0] = c.b.Emit1(FindPrim("scatter"), {*c.ct[0], *c.x[1], Zeros(c.b, c.types[2])}, d.ToAttrs());
    if (c.linear(2)) {
      out[2] = GatherUpdates(c.b, *c.ct[0], *c.x[1], c.types[2], d);
      if (!d.unique)
        out[2] =
            Select(c.b, Survivors(c.b, c.types[0], *c.x[1], c.types[2], d), *out[2], Atom::Scalar(c.types[2].dtype, 0));
    }
    return out;
  };
  Prim& add = AddScatter(r, "scatter_add", Scattered::kAdd, kAnyNumbers,
                         "Operand 0 with the updates (operand 2) added to its windows.");
  add.linear = {0, 2};
  add.transpose = [](TransposeContext& c) -> OptionalAtoms {
    OptionalAtoms out(3);
    if (c.linear(0)) out[0] = c.ct[0];
    if (c.linear(2)) out[2] = GatherUpdates(c.b, *c.ct[0], *c.x[1], c.types[2], ScatterDims::Of(c.eqn.attrs));
    return out;
  };
  AddScatter(r, "scatter_mul", Scattered::kMul, kAnyNumbers,
             "Operand 0 with its windows multiplied by the updates (operand 2).")
      .jvp = ScatterMulJvp;
  AddScatter(r, "scatter_min", Scattered::kMin, kAnyReals | kBools,
             "The smaller of operand 0 and the updates (operand 2), window by window.")
      .jvp = ScatterExtremeJvp;
  AddScatter(r, "scatter_max", Scattered::kMax, kAnyReals | kBools,
             "The larger of operand 0 and the updates (operand 2), window by window.")
      .jvp = ScatterExtremeJvp;
}

}  // namespace

Ints GatherDims::SizesFor(const Shape& operand) const {
  Ints sizes = slice_sizes;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == -1) sizes[d] = operand[d];
  }
  return sizes;
}

void RegisterIndexing(PrimRegistry& r) {
  RegisterDynamicSlices(r);
  RegisterGather(r);
  RegisterScatter(r);
}

}  // namespace weft
