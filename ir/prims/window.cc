// Sums and extremes over sliding windows.
#include "ir/prims/window.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/ops.h"
#include "ir/prims/elementwise.h"
#include "ir/prims/families.h"
#include "ir/prims/shape.h"

namespace weft {

Dim WindowDim::Places(const Dim& n, const char* what) const {
  if (trivial()) return n;
  // Wide, because every one of these numbers may be anything.
  using Wide = __int128;
  auto dilated = [](Wide count, Wide by) -> Wide { return count == 0 ? 0 : (count - 1) * by + 1; };
  const Wide base = dilated(n.value(what), base_dilation) + lo + hi, span = dilated(window, window_dilation);
  if (base > INT64_MAX || span > INT64_MAX) throw ValueError(what, ": a padded or dilated size of 2^63 or more");
  return base < span ? 0 : static_cast<int64_t>((base - span) / stride + 1);
}

WindowDim WindowDim::Backwards(int64_t n, int64_t places) const {
  const int64_t span = Dilated(window, window_dilation);
  WindowDim back{window, base_dilation, span - lo - 1, 0, stride, window_dilation};
  back.hi = Dilated(n, base_dilation) + span - 1 - Dilated(places, stride) - back.lo;
  return back;
}

void CheckWindow(const Sig& s, int dim, const WindowDim& w) {
  const std::pair<const char*, int64_t> entries[] = {{"window size", w.window},
                                                     {"stride", w.stride},
                                                     {"base dilation", w.base_dilation},
                                                     {"window dilation", w.window_dilation}};
  for (const auto& [name, value] : entries) {
    if (value < 1)
      throw ValueError(s.prim.name, ": the ", name, " of dimension ", dim, " is ", value, "; expected at least 1");
  }
}

namespace {

using Complex = std::complex<double>;
using Windows = std::vector<WindowDim>;

constexpr const char* kLists[] = {"window", "strides", "lo", "hi", "base_dilation", "window_dilation"};

Windows WindowsOf(const Attrs& a) {
  Windows dims;
  for (size_t d = 0; d < a.Get<Ints>("window").size(); ++d) {
    dims.push_back({a.Get<Ints>("window")[d], a.Get<Ints>("strides")[d], a.Get<Ints>("lo")[d], a.Get<Ints>("hi")[d],
                    a.Get<Ints>("base_dilation")[d], a.Get<Ints>("window_dilation")[d]});
  }
  return dims;
}

Attrs AttrsOf(const Windows& dims) {
  Ints lists[6];
  for (const WindowDim& w : dims) {
    const int64_t values[] = {w.window, w.stride, w.lo, w.hi, w.base_dilation, w.window_dilation};
    for (int i = 0; i < 6; ++i) lists[i].push_back(values[i]);
  }
  Attrs attrs;
  for (int i = 0; i < 6; ++i) attrs.Set(kLists[i], lists[i]);
  return attrs;
}

Types InferWindow(const Sig& s) {
  const Type& x = s.operands[0];
  if (!s.prim.dtypes.Has(x.dtype))
    throw TypeError(s.prim.name, ": operand is ", x, "; expected one of ", s.prim.dtypes.ToString());
  for (const char* list : kLists) CheckLength(s, list, x.rank());
  Dims dims;
  const Windows windows = WindowsOf(s.attrs);
  for (int d = 0; d < x.rank(); ++d) {
    CheckWindow(s, d, windows[d]);
    dims.push_back(windows[d].Places(x.dims[d], s.prim.name.c_str()));
  }
  return {x.With(dims)};
}

template <class K, class F>
Tensor FoldWindows(const EvalContext& c, const Tensor& x, K identity, F f) {
  const Windows windows = WindowsOf(c.sig.attrs);
  const Shape shape = StaticSizes(c.results[0].dims, "eval");
  const std::vector<int64_t> strides = RowMajorStrides(x.shape());
  const std::vector<K> values = LoadAs<K>(x);
  Shape window;
  for (const WindowDim& w : windows) window.push_back(w.window);
  std::vector<K> y;
  ForEachIndex(shape, [&](const Shape& place) {
    K total = identity;
    ForEachIndex(window, [&](const Shape& at) {
      int64_t from = 0;
      for (size_t d = 0; d < at.size(); ++d) {
        const int64_t i = windows[d].Source(place[d], at[d], x.shape()[d]);
        if (i < 0) return;
        from += i * strides[d];
      }
      total = f(total, values[from]);
    });
    y.push_back(total);
  });
  return StoreAs<K>(x.dtype(), shape, y);
}

Prim& AddReduceWindow(PrimRegistry& r, const char* name, DTypeSet dtypes, const char* what) {
  Prim& p = r.Add(name, Family::kWindow, 1,
                  std::string(what) +
                      " of the elements under a window of `window` elements at each of its places, with the semantics "
                      "of XLA's ReduceWindow: per dimension it moves by "
                      "`strides` over x, between whose elements base_dilation - 1 holes stand and around which lo and "
                      "hi elements of padding; its own elements are "
                      "window_dilation apart. Result size: (dilated(n, base_dilation) + lo + hi - dilated(window, "
                      "window_dilation)) / stride + 1, where "
                      "dilated(n, d) = (n - 1) d + 1.");
  p.dtypes = dtypes;
  p.infer = InferWindow;
  p.flops = [](const Sig& s, const Types& results, const SizeOf& size) {
    double n = 1;
    for (const Dim& d : results[0].dims) n *= size(d);
    for (int64_t w : s.attrs.Get<Ints>("window")) n *= static_cast<double>(w);
    return n;
  };
  p.batch = [](BatchContext& c) {
    Windows windows = WindowsOf(c.eqn.attrs);
    windows.insert(windows.begin(), WindowDim());
    c.y = {c.b.Emit1(*c.eqn.prim, {c.x[0]}, AttrsOf(windows))};
    c.batched_out = {true};
  };
  p.samples = [prim = &p] {
    std::vector<Sample> samples;
    auto add = [&](DType t, Dims dims, Windows windows) {
      Sample s = SampleOf({Type{t, std::move(dims), {}}}, AttrsOf(windows));
      if (IsUnsigned(t)) s.low = 0, s.high = 9;
      samples.push_back(s);
    };
    for (DType t : SampledDTypes({DType::kF32, DType::kF64, DType::kI32, DType::kU8, DType::kBF16, DType::kC64})) {
      if (prim->dtypes.Has(t)) add(t, {2, 5, 6}, {{}, {2, 2}, {3, 1}});
    }
    add(DType::kF32, {7}, {{3, 1, 1, 1}});                    // same size
    add(DType::kF32, {7, 2}, {{3, 2, 2, 0, 1, 2}, {}});       // window with gaps
    add(DType::kF32, {4, 3}, {{3, 1, 2, 2, 2, 1}, {2, 1}});   // holes between elements
    add(DType::kF32, {5, 5}, {{2, 3, -1, 1}, {4, 1, 3, 3}});  // cut off; windows outside
    add(DType::kF32, {3}, {{5, 1}});                          // no place
    add(DType::kF32, {4}, {{}});
    return samples;
  };
  return p;
}

// sum: the cotangents, spread out to the places of their windows, summed over windows again.
OptionalAtoms SumTranspose(TransposeContext& c) {
  const Windows windows = WindowsOf(c.eqn.attrs);
  const Type x = c.types[0], ct = c.b.TypeOf(*c.ct[0]);
  Windows back;
  for (int d = 0; d < x.rank(); ++d) {
    if (windows[d].trivial())
      back.push_back({});
    else
      back.push_back(windows[d].Backwards(x.dims[d].value("the gradient of reduce_window_sum"), ct.dims[d].value()));
  }
  return {c.b.Emit1(*c.eqn.prim, {*c.ct[0]}, AttrsOf(back))};
}

// Values of a table of rank 1 at indices of any shape.
Atom Lookup(Builder& b, const Atom& table, const Atom& indices) {
  Dims shape = b.TypeOf(indices).dims;
  shape.push_back(1);
  return b.Emit1(FindPrim("gather"), {table, Reshape(b, indices, shape)},
                 {{"offset_dims", Ints{}},
                  {"collapsed_dims", Ints{0}},
                  {"operand_batch_dims", Ints{}},
                  {"indices_batch_dims", Ints{}},
                  {"start_index_map", Ints{0}},
                  {"slice_sizes", Ints{1}},
                  {"mode", std::string("promise")}});
}

// max and min: the tangent of the first element, in row-major order of the window, that attains the extreme. (As JAX's
// select_and_gather_add with ge or le, and its transpose, XLA's SelectAndScatter.)
//
// Dimensions with windows are padded and made one of M elements; window position k at place p reads element
// base[p] + offset[k]. argmax over k of the elements under each window gives k; a gather there, the tangent.
void ExtremeJvp(JvpContext& c, bool max, double identity_value) {
  Builder& b = c.b;
  const Windows windows = WindowsOf(c.eqn.attrs);
  const Type x = b.TypeOf(c.x[0]);
  const Atom y = b.Emit1(*c.eqn.prim, {c.x[0]}, c.eqn.attrs);
  const Type result = b.TypeOf(y);
  c.y = {y};
  if (result.size() == Dim(0)) {
    c.dy = {std::nullopt};
    return;
  }
  Ints lo, hi, interior, others, sliding;
  for (int d = 0; d < x.rank(); ++d) {
    lo.push_back(windows[d].lo), hi.push_back(windows[d].hi), interior.push_back(windows[d].base_dilation - 1);
    (windows[d].trivial() ? others : sliding).push_back(d);
  }
  if (sliding.empty()) {
    c.dy = {c.dx[0]};
    return;
  }
  const int64_t rank = static_cast<int64_t>(others.size());  // dimensions in front of the flat one
  Ints perm = others;
  perm.insert(perm.end(), sliding.begin(), sliding.end());
  auto flat = [&](const Atom& v, double padding) {
    const Atom padded = Transpose(b, Pad(b, v, Atom::Scalar(x.dtype, padding), lo, hi, interior), perm);
    const Dims dims = b.TypeOf(padded).dims;
    Dims shape(dims.begin(), dims.begin() + rank);
    shape.push_back(weft::NumElements(Dims(dims.begin() + rank, dims.end())));
    return Reshape(b, padded, shape);
  };
  const Atom elements = flat(c.x[0], identity_value), tangents = flat(*c.dx[0], 0);
  // base and offset, from the strides of the padded dimensions.
  Dims window_shape, place_shape;
  Ints base_steps, offset_steps;
  int64_t stride = 1;
  for (size_t i = sliding.size(); i-- > 0;) {
    const WindowDim& w = windows[sliding[i]];
    window_shape.insert(window_shape.begin(), Dim(w.window));
    place_shape.insert(place_shape.begin(), result.dims[sliding[i]]);
    base_steps.insert(base_steps.begin(), w.stride * stride);
    offset_steps.insert(offset_steps.begin(), w.window_dilation * stride);
    stride *=
        WindowDim::Dilated(x.dims[sliding[i]].value("the derivative of reduce_window"), w.base_dilation) + w.lo + w.hi;
  }
  auto positions = [&](const Dims& shape, const Ints& steps) {
    std::optional<Atom> sum;
    for (size_t i = 0; i < steps.size(); ++i) {
      const Atom at = Iota(b, shape, static_cast<int64_t>(i), DType::kI64);
      sum = AddTangents(b, sum, Mul(b, at, Atom::Scalar(DType::kI64, static_cast<double>(steps[i]))));
    }
    return Reshape(b, *sum, {weft::NumElements(shape)});
  };
  const Atom base = positions(place_shape, base_steps), offset = positions(window_shape, offset_steps);
  const Dim num_places = weft::NumElements(place_shape), num_offsets = weft::NumElements(window_shape);
  const Dims table = {num_offsets, num_places};
  const Atom indices = Reshape(b, Add(b, Broadcast(b, offset, table, {0}), Broadcast(b, base, table, {1})),
                               {num_offsets, num_places, 1});
  Ints sizes(rank, -1);
  sizes.push_back(1);
  const Atom under = b.Emit1(FindPrim("gather"), {elements, indices},
                             {{"offset_dims", Range(0, rank)},
                              {"collapsed_dims", Ints{rank}},
                              {"operand_batch_dims", Ints{}},
                              {"indices_batch_dims", Ints{}},
                              {"start_index_map", Ints{rank}},
                              {"slice_sizes", sizes},
                              {"mode", std::string("promise")}});
  const Atom first = b.Emit1(FindPrim(max ? "argmax" : "argmin"), {under}, {{"dim", rank}, {"dtype", DType::kI32}});
  const Dims picked = b.TypeOf(first).dims;
  const Atom source = Add(b, Lookup(b, offset, first), Broadcast(b, base, picked, {rank}));
  Dims shape;
  for (int64_t d : perm) shape.push_back(result.dims[d]);
  Ints inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) inverse[perm[i]] = static_cast<int64_t>(i);
  c.dy = {Transpose(b, Reshape(b, TakeAlong(b, tangents, source, rank), shape), inverse)};
}

}  // namespace

void RegisterWindow(PrimRegistry& r) {
  Prim& sum = AddReduceWindow(r, "reduce_window_sum", kAnyNumbers, "The sum");
  sum.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    auto add = [](auto a, auto b) { return a + b; };
    if (IsComplex(in[0].dtype())) return {FoldWindows<Complex>(c, in[0], 0, add)};
    if (IsFloat(in[0].dtype())) return {FoldWindows<double>(c, in[0], 0, add)};
    return {FoldWindows<uint64_t>(c, in[0], 0, add)};
  };
  sum.linear = {0};
  sum.transpose = SumTranspose;
  for (const bool max : {true, false}) {
    Prim& p =
        AddReduceWindow(r, max ? "reduce_window_max" : "reduce_window_min", kAnyReals,
                        max ? "The largest (NaN if any is NaN, the least value of the dtype if there is none)"
                            : "The smallest (NaN if any is NaN, the greatest value of the dtype if there is none)");
    p.eval = [max](const EvalContext& c, const Tensors& in) -> Tensors {
      const DType t = in[0].dtype();
      auto pick = [max](auto a, auto b) { return a != a ? a : b != b ? b : (max ? a > b : a < b) ? a : b; };
      if (IsFloat(t))
        return {FoldWindows<double>(
            c, in[0], max ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity(), pick)};
      const int bits = BitWidth(t);
      if (IsSigned(t)) {
        const int64_t top = static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1);
        return {FoldWindows<int64_t>(c, in[0], max ? -top - 1 : top, pick)};
      }
      return {FoldWindows<uint64_t>(c, in[0], max ? 0 : ~uint64_t{0} >> (64 - bits), pick)};
    };
    const double identity = max ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    p.jvp = [max, identity](JvpContext& c) { ExtremeJvp(c, max, identity); };
  }
}

}  // namespace weft
