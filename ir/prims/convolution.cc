// Convolution in one canonical layout, x [n, c, spatial...] with w [o, i, spatial...]; the API transposes others into
// it.
//
// Its two transposes are convolutions again, with batch and feature dimensions exchanged (as in JAX's
// _conv_general_dilated_transpose_lhs and _rhs, written for this layout).
#include <algorithm>

#include "base/product.h"
#include "ir/ops.h"
#include "ir/prims/elementwise.h"
#include "ir/prims/families.h"
#include "ir/prims/shape.h"
#include "ir/prims/window.h"

namespace weft {
namespace {

using Complex = std::complex<double>;

struct Conv {
  Ints strides, lo, hi, lhs_dilation, rhs_dilation;
  int64_t feature_groups = 1, batch_groups = 1;

  static Conv Of(const Attrs& a) {
    return {a.Get<Ints>("strides"),      a.Get<Ints>("lo"),           a.Get<Ints>("hi"),
            a.Get<Ints>("lhs_dilation"), a.Get<Ints>("rhs_dilation"), a.GetInt("feature_groups"),
            a.GetInt("batch_groups")};
  }
  Attrs ToAttrs() const {
    return {{"strides", strides},
            {"lo", lo},
            {"hi", hi},
            {"lhs_dilation", lhs_dilation},
            {"rhs_dilation", rhs_dilation},
            {"feature_groups", feature_groups},
            {"batch_groups", batch_groups}};
  }
  WindowDim Spatial(size_t d, int64_t window) const {
    return {window, strides[d], lo[d], hi[d], lhs_dilation[d], rhs_dilation[d]};
  }
};

Dims Tail(const Dims& dims, size_t from) { return Dims(dims.begin() + static_cast<int64_t>(from), dims.end()); }
Dims Joined(Dims front, const Dims& tail) {
  front.insert(front.end(), tail.begin(), tail.end());
  return front;
}

Types InferConv(const Sig& s) {
  const Type &x = s.operands[0], &w = s.operands[1];
  auto fail = [&](const auto&... why) {
    return TypeError("conv: operands ", x, " (n, c, spatial) and ", w, " (o, i, spatial): ", why...);
  };
  if (!s.prim.dtypes.Has(x.dtype) || x.dtype != w.dtype)
    throw fail("dtypes must be equal and one of ", s.prim.dtypes.ToString());
  if (x.rank() < 2 || w.rank() != x.rank()) throw fail("ranks must be equal and at least 2");
  const int spatial = x.rank() - 2;
  for (const char* list : {"strides", "lo", "hi", "lhs_dilation", "rhs_dilation"}) CheckLength(s, list, spatial);
  const Conv conv = Conv::Of(s.attrs);
  const int64_t f = conv.feature_groups, g = conv.batch_groups;
  if (f < 1 || g < 1 || (f > 1 && g > 1))
    throw ValueError("conv: feature_groups=", f, " and batch_groups=", g, "; expected positive numbers, one of them 1");
  if (!(x.dims[1] == w.dims[1] * Dim(f)))
    throw fail("c is ", x.dims[1], "; expected i * feature_groups = ", w.dims[1] * Dim(f));
  const std::optional<Dim> n = Dim::ExactQuotient(x.dims[0], Dim(g));
  if (!n) throw fail("n is ", x.dims[0], ", which batch_groups=", g, " does not divide");
  if (!Dim::ExactQuotient(w.dims[0], Dim(f)) || !Dim::ExactQuotient(w.dims[0], Dim(g)))
    throw fail("o is ", w.dims[0], ", which the number of groups, ", std::max(f, g), ", does not divide");
  Dims dims = {*n, w.dims[0]};
  for (int d = 0; d < spatial; ++d) {
    const int64_t window = w.dims[d + 2].value("conv's window");
    if (window == 0) throw fail("spatial dimension ", d, " of the window is empty");
    CheckWindow(s, d, conv.Spatial(d, window));
    dims.push_back(conv.Spatial(d, window).Places(x.dims[d + 2], "conv"));
  }
  return {x.With(dims)};
}

template <class K>
Tensor Convolve(const EvalContext& c, const Tensor& x, const Tensor& w) {
  const Conv conv = Conv::Of(c.sig.attrs);
  const Shape shape = StaticSizes(c.results[0].dims, "eval");
  const std::vector<int64_t> x_strides = RowMajorStrides(x.shape()), w_strides = RowMajorStrides(w.shape());
  const std::vector<K> xs = LoadAs<K>(x), ws = LoadAs<K>(w);
  const int64_t inputs = w.shape()[1], group_size = shape[1] / std::max(conv.feature_groups, conv.batch_groups);
  Shape window = w.shape();
  window[0] = 1;
  std::vector<K> y;
  ForEachIndex(shape, [&](const Shape& out) {
    const int64_t group = out[1] / std::max<int64_t>(group_size, 1);
    const int64_t n = conv.batch_groups > 1 ? group * shape[0] + out[0] : out[0];
    const int64_t first_input = conv.feature_groups > 1 ? group * inputs : 0;
    K sum = 0;
    ForEachIndex(window, [&](const Shape& at) {
      int64_t from = n * x_strides[0] + (first_input + at[1]) * x_strides[1];
      for (size_t d = 2; d < at.size(); ++d) {
        const int64_t i = conv.Spatial(d - 2, w.shape()[d]).Source(out[d], at[d], x.shape()[d]);
        if (i < 0) return;
        from += i * x_strides[d];
      }
      sum = sum + Product(xs[from], ws[out[1] * w_strides[0] + Offset(at, w_strides)]);
    });
    y.push_back(sum);
  });
  return StoreAs<K>(x.dtype(), shape, y);
}

// Dimension `dim` of x cut in two: [groups, size / groups].
Atom CutDim(Builder& b, const Atom& x, int64_t dim, int64_t groups) {
  Dims dims = b.TypeOf(x).dims;
  const Dim rest = *Dim::ExactQuotient(dims[dim], Dim(groups));
  dims[dim] = rest;
  dims.insert(dims.begin() + dim, Dim(groups));
  return Reshape(b, x, dims);
}

// Moves dimension `from` in front of dimension `to` (counted without it) and joins the two: index = moved * size + old.
Atom FoldDim(Builder& b, const Atom& x, int64_t from, int64_t to) {
  Ints perm = OtherDims(b.TypeOf(x).rank(), {from});
  perm.insert(perm.begin() + to, from);
  const Atom moved = Transpose(b, x, perm);
  Dims dims = b.TypeOf(moved).dims;
  dims[to] = dims[to] * dims[to + 1];
  dims.erase(dims.begin() + to + 1);
  return Reshape(b, moved, dims);
}

Atom SwapLeading(Builder& b, const Atom& x) {
  Ints perm = Range(0, b.TypeOf(x).rank());
  std::swap(perm[0], perm[1]);
  return Transpose(b, x, perm);
}

int64_t Static(const Dim& d) { return d.value("the gradient of conv"); }

// With respect to x: the cotangents, spread out by the stride, under the window turned round, o and i exchanged.
Atom TransposeInput(TransposeContext& c, const Conv& conv, const Atom& w) {
  Builder& b = c.b;
  const Type x = c.types[0], ct = b.TypeOf(*c.ct[0]), wt = c.types[1];
  Conv back = conv;
  for (size_t d = 0; d < conv.strides.size(); ++d) {
    const WindowDim s =
        conv.Spatial(d, Static(wt.dims[d + 2])).Backwards(Static(x.dims[d + 2]), Static(ct.dims[d + 2]));
    back.strides[d] = s.stride, back.lo[d] = s.lo, back.hi[d] = s.hi, back.lhs_dilation[d] = s.base_dilation;
  }
  const int64_t groups = std::max(conv.feature_groups, conv.batch_groups);
  back.feature_groups = groups, back.batch_groups = 1;
  // [g o, i, s] -> [g, o, i, s] -> [g i, o, s]
  Atom turned = Reverse(b, w, Range(2, wt.rank()));
  turned = groups == 1 ? SwapLeading(b, turned) : FoldDim(b, CutDim(b, turned, 0, groups), 0, 1);
  if (groups > 1) turned = SwapLeading(b, turned);
  Atom dx = b.Emit1(*c.eqn.prim, {*c.ct[0], turned}, back.ToAttrs());
  if (conv.batch_groups == 1) return dx;
  return FoldDim(b, CutDim(b, dx, 1, groups), 1, 0);  // [n, g c, s] -> [g n, c, s]
}

// With respect to w: x and the cotangents, n and features exchanged; strides become dilations of the cotangents.
Atom TransposeWindow(TransposeContext& c, const Conv& conv, const Atom& x) {
  Builder& b = c.b;
  const Type xt = c.types[0], ct = b.TypeOf(*c.ct[0]), wt = c.types[1];
  Conv back = conv;
  back.strides = conv.rhs_dilation;
  back.rhs_dilation = conv.strides;
  for (size_t d = 0; d < conv.strides.size(); ++d) {
    const int64_t places = WindowDim::Dilated(Static(ct.dims[d + 2]), conv.strides[d]),
                  n = WindowDim::Dilated(Static(xt.dims[d + 2]), conv.lhs_dilation[d]);
    back.hi[d] = places - n + WindowDim::Dilated(Static(wt.dims[d + 2]), conv.rhs_dilation[d]) - conv.lo[d] - 1;
  }
  back.feature_groups = conv.batch_groups;
  back.batch_groups = conv.feature_groups;
  return SwapLeading(b, b.Emit1(*c.eqn.prim, {SwapLeading(b, x), SwapLeading(b, *c.ct[0])}, back.ToAttrs()));
}

void BatchConv(BatchContext& c) {
  Builder& b = c.b;
  Conv conv = Conv::Of(c.eqn.attrs);
  const int64_t groups = std::max(conv.feature_groups, conv.batch_groups);
  c.batched_out = {true};
  // Result [B n, o] or [n, B o] (within groups: [n, g B o]), taken apart again.
  auto leading = [&](const Atom& y, int64_t dim, const Dim& before) {  // dimension `dim` is [before, B, rest]
    Dims dims = b.TypeOf(y).dims;
    const Dim rest = *Dim::ExactQuotient(*Dim::ExactQuotient(dims[dim], c.size), before);
    Dims cut(dims.begin(), dims.begin() + dim);
    cut = Joined(Joined(cut, {before, c.size, rest}), Tail(dims, dim + 1));
    Ints perm = OtherDims(static_cast<int>(cut.size()), {dim + 1});
    perm.insert(perm.begin(), dim + 1);
    const Atom front = Transpose(b, Reshape(b, y, cut), perm);
    Dims joined(dims);
    joined[dim] = before * rest;
    return Reshape(b, front, Joined({c.size}, joined));
  };
  if (c.batched[0] && c.batched[1]) {
    const int64_t elements = c.size.value("vmap of conv over both operands");
    const Atom w = FoldDim(b, c.x[1], 0, 0);                              // [B o, i]
    const Atom x = FoldDim(b, c.x[0], 0, conv.batch_groups > 1 ? 0 : 1);  // [B n, c] or [n, B c]
    (conv.batch_groups > 1 ? conv.batch_groups : conv.feature_groups) *= elements;
    c.y = {leading(b.Emit1(*c.eqn.prim, {x, w}, conv.ToAttrs()), 1, 1)};
  } else if (c.batched[0]) {
    // Within a batch group vmap's elements and n lie side by side: [B, g n] -> [g, B n].
    const Atom x = conv.batch_groups == 1 ? c.x[0] : FoldDim(b, CutDim(b, c.x[0], 1, groups), 0, 1);
    const Atom flat = FoldDim(b, x, 0, 0);
    c.y = {leading(b.Emit1(*c.eqn.prim, {flat, c.x[1]}, conv.ToAttrs()), 0, 1)};
  } else {
    // Within a group vmap's elements and o lie side by side: [B, g o] -> [g, B o].
    const Atom w = groups == 1 ? c.x[1] : FoldDim(b, CutDim(b, c.x[1], 1, groups), 0, 1);
    const Atom flat = FoldDim(b, w, 0, 0);
    c.y = {leading(b.Emit1(*c.eqn.prim, {c.x[0], flat}, conv.ToAttrs()), 1, groups)};
  }
}

std::vector<Sample> ConvSamples() {
  std::vector<Sample> samples;
  auto add = [&](DType t, Dims x, Dims w, Conv conv) {
    Sample s = SampleOf({Type{t, std::move(x), {}}, Type{t, std::move(w), {}}}, conv.ToAttrs());
    if (IsUnsigned(t)) s.low = 0;
    samples.push_back(s);
  };
  for (DType t : SampledDTypes({DType::kF32, DType::kF64, DType::kI32, DType::kU8, DType::kBF16, DType::kC64}))
    add(t, {2, 3, 6}, {4, 3, 3}, {{1}, {1}, {1}, {1}, {1}});
  const DType t = DType::kF32;
  add(t, {2, 3}, {4, 3}, {{}, {}, {}, {}, {}});                                   // no spatial dimension
  add(t, {1, 2, 7, 6}, {3, 2, 3, 2}, {{2, 3}, {1, 0}, {2, 1}, {1, 1}, {1, 1}});   // strides
  add(t, {2, 2, 4, 5}, {3, 2, 2, 3}, {{1, 2}, {0, -1}, {1, 2}, {2, 1}, {2, 1}});  // dilations, cut off
  add(t, {2, 6, 5}, {4, 3, 2}, {{1}, {0}, {1}, {1}, {2}, 2, 1});                  // feature groups
  add(t, {1, 3, 4}, {6, 1, 3}, {{2}, {1}, {1}, {1}, {1}, 3, 1});                  // depthwise
  add(t, {6, 2, 5}, {4, 2, 3}, {{1}, {1}, {0}, {1}, {1}, 1, 2});                  // batch groups
  add(t, {1, 1, 2, 3, 2}, {2, 1, 2, 2, 2}, {{1, 1, 1}, {0, 1, 0}, {0, 0, 1}, {1, 1, 1}, {1, 1, 1}});
  add(t, {2, 1, 2}, {1, 1, 4}, {{1}, {0}, {0}, {1}, {1}});  // no place
  return samples;
}

}  // namespace

void RegisterConvolution(PrimRegistry& r) {
  Prim& p = r.Add("conv", Family::kContraction, 2,
                  "Convolution (cross-correlation) of x [n, c, spatial...] with w [o, i, spatial...] to [n / "
                  "batch_groups, o, spatial...], c = i * feature_groups: the window w moves by "
                  "`strides` over x, which is dilated by `lhs_dilation` and padded by lo and hi (negative: cut off); w "
                  "is dilated by `rhs_dilation`. Output feature k sees input features "
                  "(batch entries) of its own group only. The semantics of XLA's convolution.");
  p.dtypes = kAnyNumbers;
  p.infer = InferConv;
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    if (IsComplex(in[0].dtype())) return {Convolve<Complex>(c, in[0], in[1])};
    if (IsFloat(in[0].dtype())) return {Convolve<double>(c, in[0], in[1])};
    return {Convolve<uint64_t>(c, in[0], in[1])};
  };
  p.flops = [](const Sig& s, const Types& results, const SizeOf& size) {
    double n = 2;  // a product and a sum
    for (const Dim& d : results[0].dims) n *= size(d);
    const Dims& window = s.operands[1].dims;
    for (size_t i = 1; i < window.size(); ++i) n *= size(window[i]);
    return n;
  };
  p.linear = {0, 1};
  p.multilinear = true;
  p.transpose = [](TransposeContext& c) -> OptionalAtoms {
    const Conv conv = Conv::Of(c.eqn.attrs);
    if (c.b.TypeOf(*c.ct[0]).size() == Dim(0)) {  // the window fits nowhere
      OptionalAtoms zeros(2);
      const int i = c.linear(0) ? 0 : 1;
      zeros[i] = Zeros(c.b, c.types[i]);
      return zeros;
    }
    if (c.linear(0)) return {TransposeInput(c, conv, *c.x[1]), std::nullopt};
    return {std::nullopt, TransposeWindow(c, conv, *c.x[0])};
  };
  p.batch = BatchConv;
  p.samples = ConvSamples;
}

}  // namespace weft
