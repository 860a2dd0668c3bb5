// Reductions over dimensions, argmax and argmin.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/ops.h"
#include "ir/prims/elementwise.h"
#include "ir/prims/families.h"
#include "ir/prims/reduction_order.h"
#include "ir/prims/shape.h"

namespace weft {
namespace {

// Folds the elements that share an output position, in row-major order of the operand.
template <class K, class F>
Tensor Fold(const Tensor& x, const Type& result, const Ints& dims, K identity, F f) {
  const Ints kept = OtherDims(x.rank(), dims);
  const Shape shape = StaticSizes(result.dims, "eval");
  const std::vector<int64_t> strides = RowMajorStrides(shape);
  std::vector<K> y(NumElements(shape), identity);
  const std::vector<K> values = LoadAs<K>(x);
  if (kept.empty()) {
    for (const K& value : values) y[0] = f(y[0], value);
    return StoreAs<K>(result.dtype, shape, y);
  }
  int64_t from = 0;
  ForEachIndex(x.shape(), [&](const Shape& index) {
    int64_t to = 0;
    for (size_t i = 0; i < kept.size(); ++i) to += index[kept[i]] * strides[i];
    y[to] = f(y[to], values[from++]);
  });
  return StoreAs<K>(result.dtype, shape, y);
}

// The least and greatest value of a dtype: identities of max and min.
double Lowest(DType t) { return IsFloat(t) ? -std::numeric_limits<double>::infinity() : 0; }
int64_t SignedLimit(DType t, bool lowest) {
  const int64_t top = static_cast<int64_t>((uint64_t{1} << (BitWidth(t) - 1)) - 1);
  return lowest ? -top - 1 : top;
}
uint64_t UnsignedTop(DType t) { return IsBool(t) ? 1 : ~uint64_t{0} >> (64 - BitWidth(t)); }

Prim& AddReduction(PrimRegistry& r, const char* name, DTypeSet dtypes, const char* doc) {
  Prim& p = r.Add(name, Family::kReduction, 1, doc);
  p.dtypes = dtypes;
  p.infer = [](const Sig& s) -> Types {
    const Type& x = s.operands[0];
    const Ints& dims = s.attrs.Get<Ints>("dims");
    CheckDims(s, "dims", dims, x.rank());
    if (!s.prim.dtypes.Has(x.dtype))
      throw TypeError(s.prim.name, ": operand is ", x, "; expected one of ", s.prim.dtypes.ToString());
    return {x.With(WithoutDims(x.dims, dims))};
  };
  p.batch = [](BatchContext& c) {
    c.y = {c.b.Emit1(*c.eqn.prim, {c.x[0]}, c.eqn.attrs.With("dims", Shifted(c.eqn.attrs.Get<Ints>("dims"))))};
    c.batched_out = {true};
  };
  p.samples = [prim = &p] {
    std::vector<Sample> samples;
    for (int i = 0; i < kNumDTypes; ++i) {
      const DType t = static_cast<DType>(i);
      if (!prim->dtypes.Has(t)) continue;
      Sample s = SampleOf({Type{t, {4, 6}, {}}}, {{"dims", Ints{1}}});
      if (IsUnsigned(t)) s.low = 0, s.high = 3;
      samples.push_back(s);
    }
    const DType t = prim->dtypes.Has(DType::kF32) ? DType::kF32 : DType::kBool;
    for (const Ints& dims : {Ints{0}, Ints{0, 1}, Ints{}})
      samples.push_back(SampleOf({Type{t, {4, 6}, {}}}, {{"dims", dims}}));
    samples.push_back(SampleOf({Type{t, {2, 3, 4}, {}}}, {{"dims", Ints{0, 2}}}));
    samples.push_back(SampleOf({Type{t, {3, 0}, {}}}, {{"dims", Ints{1}}}));
    return samples;
  };
  return p;
}

// y with size-1 dimensions where x was reduced, repeated to the shape of x.
Atom BroadcastBack(Builder& b, const Atom& y, const Type& x, const Ints& dims) {
  return Broadcast(b, y, x.dims, OtherDims(x.rank(), dims));
}

// max and min: the mean of the tangents at the positions that attain the extreme.
void ExtremeJvp(JvpContext& c) {
  const Ints& dims = c.eqn.attrs.Get<Ints>("dims");
  const Type x = c.b.TypeOf(c.x[0]);
  const Atom y = c.b.Emit1(*c.eqn.prim, {c.x[0]}, c.eqn.attrs);
  c.y = {y};
  if (x.size() == Dim(0)) {  // the extreme of nothing is a constant
    c.dy = {std::nullopt};
    return;
  }
  const Atom attains = Convert(c.b, Eq(c.b, c.x[0], BroadcastBack(c.b, y, x, dims)), x.dtype);
  const Atom count = ReduceSum(c.b, attains, dims);
  c.dy = {Div(c.b, ReduceSum(c.b, Mul(c.b, *c.dx[0], attains), dims), count)};
}

// A product and its tangent by halving: (a, b) -> (a b, da b + a db). Exact where factors are zero.
void ProductJvp(JvpContext& c) {
  const Ints& dims = c.eqn.attrs.Get<Ints>("dims");
  c.y = {c.b.Emit1(*c.eqn.prim, {c.x[0]}, c.eqn.attrs)};
  const Type x = c.b.TypeOf(c.x[0]);
  const Ints kept = OtherDims(x.rank(), dims);
  Ints perm = dims;
  perm.insert(perm.end(), kept.begin(), kept.end());
  int64_t n = 1;
  for (int64_t d : dims) n *= x.dims[d].value("the gradient of reduce_prod");
  Dims shape = {n};
  for (int64_t d : kept) shape.push_back(x.dims[d]);
  Expr p{&c.b, Reshape(c.b, Transpose(c.b, c.x[0], perm), shape)},
      dp{&c.b, Reshape(c.b, Transpose(c.b, *c.dx[0], perm), shape)};
  auto part = [&](const Expr& e, int64_t begin, int64_t end) {
    Ints start(shape.size(), 0), limit, strides(shape.size(), 1);
    for (const Dim& d : c.b.TypeOf(e.atom).dims) limit.push_back(d.is_static() ? d.value() : -1);
    start[0] = begin, limit[0] = end;
    return Expr{&c.b, Slice(c.b, e, start, limit, strides)};
  };
  if (n == 0) {
    c.dy = {std::nullopt};
    return;
  }
  while (n > 1) {
    const int64_t half = n / 2;
    const Expr a = part(p, 0, half), w = part(p, half, 2 * half), da = part(dp, 0, half), dw = part(dp, half, 2 * half);
    Expr product = a * w, tangent = da * w + a * dw;
    if (n % 2) {
      product.atom = Concatenate(c.b, {product, part(p, n - 1, n)}, 0);
      tangent.atom = Concatenate(c.b, {tangent, part(dp, n - 1, n)}, 0);
    }
    p = product, dp = tangent;
    n = half + n % 2;
  }
  c.dy = {Reshape(c.b, dp, WithoutDims(x.dims, dims))};
}

void RegisterSums(PrimRegistry& r) {
  Prim& sum = AddReduction(r, "reduce_sum", kAnyNumbers, "The sum over `dims`; 0 where they are empty.");
  sum.in_order = true;
  sum.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    const Ints& dims = c.sig.attrs.Get<Ints>("dims");
    if (IsInexact(in[0].dtype())) return {SumInOrder(in[0], c.results[0], dims)};
    return {Fold<uint64_t>(in[0], c.results[0], dims, 0, [](uint64_t a, uint64_t b) { return a + b; })};
  };
  sum.linear = {0};
  sum.transpose = [](TransposeContext& c) -> OptionalAtoms {
    return {BroadcastBack(c.b, *c.ct[0], c.types[0], c.eqn.attrs.Get<Ints>("dims"))};
  };
  Prim& prod = AddReduction(r, "reduce_prod", kAnyNumbers, "The product over `dims`; 1 where they are empty.");
  prod.in_order = true;
  prod.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    const Ints& dims = c.sig.attrs.Get<Ints>("dims");
    if (IsInexact(in[0].dtype())) return {ProductInOrder(in[0], c.results[0], dims)};
    return {Fold<uint64_t>(in[0], c.results[0], dims, 1, [](uint64_t a, uint64_t b) { return a * b; })};
  };
  prod.jvp = ProductJvp;
}

void RegisterExtremes(PrimRegistry& r) {
  for (const bool max : {true, false}) {
    Prim& p = AddReduction(
        r, max ? "reduce_max" : "reduce_min", kAnyReals | kBools,
        max ? "The largest element over `dims`; NaN if any is NaN; the least value of the dtype where they are empty."
            : "The smallest element over `dims`; NaN if any is NaN; the greatest value of the dtype where they are "
              "empty.");
    p.eval = [max](const EvalContext& c, const Tensors& in) -> Tensors {
      const Ints& dims = c.sig.attrs.Get<Ints>("dims");
      const DType t = in[0].dtype();
      auto pick = [max](auto a, auto b) { return max ? (a > b ? a : b) : (a < b ? a : b); };
      if (IsFloat(t)) {
        auto nan_first = [pick](double a, double b) { return std::isnan(a) ? a : std::isnan(b) ? b : pick(a, b); };
        return {Fold<double>(in[0], c.results[0], dims, max ? Lowest(t) : -Lowest(t), nan_first)};
      }
      if (IsSigned(t)) return {Fold<int64_t>(in[0], c.results[0], dims, SignedLimit(t, max), pick)};
      return {Fold<uint64_t>(in[0], c.results[0], dims, max ? 0 : UnsignedTop(t), pick)};
    };
    p.jvp = ExtremeJvp;
  }
  for (const bool all : {true, false}) {
    Prim& p = AddReduction(r, all ? "reduce_and" : "reduce_or", kBools | kInts,
                           all ? "Logical or bitwise and over `dims`; true or all ones where they are empty."
                               : "Logical or bitwise or over `dims`; false or 0 where they are empty.");
    p.eval = [all](const EvalContext& c, const Tensors& in) -> Tensors {
      const Ints& dims = c.sig.attrs.Get<Ints>("dims");
      return {Fold<uint64_t>(in[0], c.results[0], dims, all ? ~uint64_t{0} : 0,
                             [all](uint64_t a, uint64_t b) { return all ? a & b : a | b; })};
    };
  }
}

void RegisterArgExtremes(PrimRegistry& r) {
  for (const bool max : {true, false}) {
    Prim& p = r.Add(max ? "argmax" : "argmin", Family::kReduction, 1,
                    max ? "The index along `dim` of the first largest element (of the first NaN if there is one), as "
                          "integer `dtype`, which must hold every index."
                        : "The index along `dim` of the first smallest element (of the first NaN if there is one), as "
                          "integer `dtype`, which must hold every index.");
    p.dtypes = kAnyReals | kBools;
    p.infer = [](const Sig& s) -> Types {
      const Type& x = s.operands[0];
      const int64_t dim = CheckDim(s, "dim", x.rank());
      const DType to = s.attrs.Get<DType>("dtype");
      if (!IsInteger(to)) throw TypeError(s.prim.name, ": dtype is ", to, "; expected an integer dtype");
      if (!s.prim.dtypes.Has(x.dtype))
        throw TypeError(s.prim.name, ": operand is ", x, "; expected one of ", s.prim.dtypes.ToString());
      const Type result = x.With(WithoutDims(x.dims, {dim})).With(to);
      if (!s.Fits(x, static_cast<int>(dim), 1, result.size()))
        throw ValueError(s.prim.name, ": dimension ", dim, " of ", x, " is empty");
      CheckPositions(s, x, static_cast<int>(dim), to);
      return {result};
    };
    p.eval = [max](const EvalContext& c, const Tensors& in) -> Tensors {
      const int64_t dim = c.sig.attrs.GetInt("dim");
      const Tensor& x = in[0];
      Tensor y(c.results[0].dtype, StaticSizes(c.results[0].dims, "eval"));
      const std::vector<int64_t> strides = RowMajorStrides(x.shape());
      auto search = [&](const auto& values) {
        int64_t to = 0;
        ForEachIndex(y.shape(), [&](Shape index) {
          index.insert(index.begin() + dim, 0);
          const int64_t base = Offset(index, strides);
          int64_t best = 0;
          for (int64_t i = 1; i < x.shape()[dim]; ++i) {
            const auto a = values[base + i * strides[dim]], b = values[base + best * strides[dim]];
            const bool a_nan = a != a, b_nan = b != b;
            if (!b_nan && (a_nan || (max ? a > b : a < b))) best = i;
          }
          y.Set(to++, static_cast<double>(best));
        });
      };
      if (IsFloat(x.dtype()))
        search(LoadAs<double>(x));
      else if (IsSigned(x.dtype()))
        search(LoadAs<int64_t>(x));
      else
        search(LoadAs<uint64_t>(x));
      return {y};
    };
    p.batch = [](BatchContext& c) {
      c.y = {c.b.Emit1(*c.eqn.prim, {c.x[0]}, c.eqn.attrs.With("dim", c.eqn.attrs.GetInt("dim") + 1))};
      c.batched_out = {true};
    };
    p.samples = [] {
      std::vector<Sample> samples;
      for (DType t : SampledDTypes({DType::kF32, DType::kF64, DType::kI32, DType::kU8, DType::kBF16, DType::kBool})) {
        Sample s = SampleOf({Type{t, {4, 7}, {}}}, {{"dim", int64_t{1}}, {"dtype", DType::kI32}});
        if (IsUnsigned(t)) s.low = 0;
        samples.push_back(s);
        s.attrs = {{"dim", int64_t{0}}, {"dtype", DType::kI64}};
        samples.push_back(s);
      }
      return samples;
    };
  }
}

}  // namespace

void RegisterReductions(PrimRegistry& r) {
  RegisterSums(r);
  RegisterExtremes(r);
  RegisterArgExtremes(r);
}

}  // namespace weft
