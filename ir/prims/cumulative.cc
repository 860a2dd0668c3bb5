// Running sums, products, extremes and log-sum-exps along one dimension.
#include <cmath>

#include "base/product.h"
#include "ir/ops.h"
#include "ir/prims/elementwise.h"
#include "ir/prims/families.h"
#include "ir/prims/shape.h"

namespace weft {
namespace {

using Complex = std::complex<double>;

// y[i] = f(y[i - 1], x[i]) along `dim`, from the other end when `reverse`.
template <class K, class F>
Tensor RunningFold(const Tensor& x, int64_t dim, bool reverse, F f) {
  const std::vector<int64_t> strides = RowMajorStrides(x.shape());
  const int64_t n = x.shape()[dim], step = strides[dim];
  std::vector<K> y = LoadAs<K>(x);
  Shape lines = x.shape();
  lines[dim] = n == 0 ? 0 : 1;
  ForEachIndex(lines, [&](const Shape& index) {
    const int64_t base = Offset(index, strides);
    for (int64_t k = 1; k < n; ++k) {
      const int64_t i = reverse ? n - 1 - k : k, before = reverse ? i + 1 : i - 1;
      y[base + i * step] = f(y[base + before * step], y[base + i * step]);
    }
  });
  return StoreAs<K>(x.dtype(), x.shape(), y);
}

double LogAddExp(double a, double b) {
  if (a == b) return a + std::log(2.0);  // infinities too
  return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
}

// A value and its tangent.
struct Dual {
  Expr v, t;
};
using Combine = std::function<Dual(const Dual& before, const Dual& now)>;

// Inclusive scan of pairs (value, tangent) in about 2 log2(n) steps (Blelloch 1990, "Prefix sums and their
// applications"): neighbours are combined, their scan gives every other result, and one more step those between. Every
// step is linear in the tangents, and none divides by a value: exact where factors are zero or elements are equal. The
// order in which elements meet decides how equal ones share; it is that of JAX.
void PairScanJvp(JvpContext& c, const Combine& combine) {
  Builder& b = c.b;
  const int64_t dim = c.eqn.attrs.GetInt("dim");
  const bool reverse = c.eqn.attrs.GetBool("reverse");
  c.y = {b.Emit1(*c.eqn.prim, {c.x[0]}, c.eqn.attrs)};
  const Dims dims = b.TypeOf(c.x[0]).dims;
  const int64_t n = dims[dim].value("the derivative of a cumulative operation");
  // Elements begin, begin + step ... below end.
  auto part = [&](const Dual& x, int64_t begin, int64_t end, int64_t step) {
    Ints start(dims.size(), 0), limit, strides(dims.size(), 1);
    for (const Dim& d : dims) limit.push_back(d.is_static() ? d.value() : -1);
    start[dim] = begin, limit[dim] = end, strides[dim] = step;
    return Dual{Expr{&b, Slice(b, x.v, start, limit, strides)}, Expr{&b, Slice(b, x.t, start, limit, strides)}};
  };
  auto joined = [&](const Dual& x, const Dual& w) {
    return Dual{Expr{&b, Concatenate(b, {x.v, w.v}, dim)}, Expr{&b, Concatenate(b, {x.t, w.t}, dim)}};
  };
  // even[0], odd[0], even[1] ...
  auto interleaved = [&](const Dual& even, const Dual& odd, int64_t count) {
    auto spread = [&](const Expr& x, int64_t lo, int64_t hi) {
      Ints los(dims.size(), 0), his(dims.size(), 0), interior(dims.size(), 0);
      los[dim] = lo, his[dim] = hi, interior[dim] = 1;
      return Expr{&b, Pad(b, x, x.Number(0), los, his, interior)};
    };
    const int64_t hi = count % 2 == 0 ? 1 : 0;
    return Dual{spread(even.v, 0, hi) + spread(odd.v, 1, 1 - hi), spread(even.t, 0, hi) + spread(odd.t, 1, 1 - hi)};
  };
  const std::function<Dual(const Dual&, int64_t)> scan = [&](const Dual& x, int64_t count) -> Dual {
    if (count < 2) return x;
    const int64_t half = count / 2, later = (count - 1) / 2;
    const Dual odd = scan(combine(part(x, 0, count - 1, 2), part(x, 1, count, 2)), half);
    Dual even = part(x, 0, 1, 1);
    if (later > 0) even = joined(even, combine(part(odd, 0, later, 1), part(x, 2, count, 2)));
    return interleaved(even, odd, count);
  };
  auto turned = [&](const Expr& x) { return reverse ? Expr{&b, Reverse(b, x, {dim})} : x; };
  const Dual all = scan({turned(Expr{&b, c.x[0]}), turned(Expr{&b, *c.dx[0]})}, n);
  c.dy = {turned(all.t).atom};
}

Prim& AddCumulative(PrimRegistry& r, const char* name, DTypeSet dtypes, std::string doc) {
  Prim& p = r.Add(
      name, Family::kCumulative, 1,
      doc + " Elements run from the last to the first with reverse=true. The result has the type of the operand.");
  p.dtypes = dtypes;
  p.infer = [](const Sig& s) -> Types {
    const Type& x = s.operands[0];
    CheckDim(s, "dim", x.rank());
    s.attrs.GetBool("reverse");
    if (!s.prim.dtypes.Has(x.dtype))
      throw TypeError(s.prim.name, ": operand is ", x, "; expected one of ", s.prim.dtypes.ToString());
    return {x};
  };
  p.batch = [](BatchContext& c) {
    c.y = {c.b.Emit1(*c.eqn.prim, {c.x[0]}, c.eqn.attrs.With("dim", c.eqn.attrs.GetInt("dim") + 1))};
    c.batched_out = {true};
  };
  p.samples = [prim = &p] {
    std::vector<Sample> samples;
    for (int i = 0; i < kNumDTypes; ++i) {
      const DType t = static_cast<DType>(i);
      if (!prim->dtypes.Has(t)) continue;
      Sample s = SampleOf({Type{t, {3, 5}, {}}}, {{"dim", int64_t{1}}, {"reverse", false}});
      if (IsUnsigned(t)) s.low = 0, s.high = 3;
      samples.push_back(s);
    }
    auto add = [&](Dims dims, int64_t dim, bool reverse) {
      samples.push_back(SampleOf({Type{DType::kF32, std::move(dims), {}}}, {{"dim", dim}, {"reverse", reverse}}));
    };
    add({3, 5}, 1, true);
    add({6, 2}, 0, false);
    add({4, 3, 2}, 1, true);
    add({1}, 0, false);
    add({2, 0}, 1, false);
    return samples;
  };
  return p;
}

// Every step is rounded to f32 where the numbers have no more digits, as in compiled code. (What f64 makes of one sum
// or product of two floats rounds to the same float.)
template <class F>
EvalFn FoldNumbers(F f) {
  return [f](const EvalContext& c, const Tensors& in) -> Tensors {
    const int64_t dim = c.sig.attrs.GetInt("dim");
    const bool reverse = c.sig.attrs.GetBool("reverse");
    const DType dtype = in[0].dtype();
    if (dtype == DType::kC64) {
      using Narrow = std::complex<float>;
      const auto rounded = [f](const Complex& p, const Complex& q) {
        return Complex(f(static_cast<Narrow>(p), static_cast<Narrow>(q)));
      };
      return {RunningFold<Complex>(in[0], dim, reverse, rounded)};
    }
    if (IsComplex(dtype)) return {RunningFold<Complex>(in[0], dim, reverse, f)};
    if (IsFloat(dtype) && ByteWidth(dtype) <= 4) {
      const auto rounded = [f](double p, double q) { return static_cast<double>(static_cast<float>(f(p, q))); };
      return {RunningFold<double>(in[0], dim, reverse, rounded)};
    }
    if (IsFloat(dtype)) return {RunningFold<double>(in[0], dim, reverse, f)};
    return {RunningFold<uint64_t>(in[0], dim, reverse, f)};  // wraps
  };
}

void RegisterExtreme(PrimRegistry& r, bool max) {
  Prim& p = AddCumulative(
      r, max ? "cummax" : "cummin", kAnyReals,
      std::string("The ") + (max ? "largest" : "smallest") +
          " element so far along `dim`; NaN from the first NaN on. The derivative of equal elements is shared as by " +
          (max ? "max" : "min") + ", pair by pair.");
  p.eval = [max](const EvalContext& c, const Tensors& in) -> Tensors {
    const int64_t dim = c.sig.attrs.GetInt("dim");
    const bool reverse = c.sig.attrs.GetBool("reverse");
    auto pick = [max](auto a, auto b) { return a != a ? a : b != b ? b : (max ? a > b : a < b) ? a : b; };
    if (IsFloat(in[0].dtype())) return {RunningFold<double>(in[0], dim, reverse, pick)};
    if (IsSigned(in[0].dtype())) return {RunningFold<int64_t>(in[0], dim, reverse, pick)};
    return {RunningFold<uint64_t>(in[0], dim, reverse, pick)};
  };
  p.jvp = [max](JvpContext& c) {
    PairScanJvp(c, [max](const Dual& a, const Dual& w) {
      const Expr v = max ? Max(a.v, w.v) : Min(a.v, w.v);
      // 0 beside NaN, as in max.
      const Expr tie = Select(Eq(a.v, w.v), (a.t + w.t) * 0.5, a.t.Number(0));
      return Dual{v,
                  Select(max ? Gt(a.v, w.v) : Lt(a.v, w.v), a.t, Select(max ? Gt(w.v, a.v) : Lt(w.v, a.v), w.t, tie))};
    });
  };
}

}  // namespace

void RegisterCumulative(PrimRegistry& r) {
  Prim& sum = AddCumulative(r, "cumsum", kAnyNumbers, "The sum of the elements so far along `dim`.");
  sum.eval = FoldNumbers([](auto a, auto b) { return a + b; });
  sum.linear = {0};
  sum.transpose = [](TransposeContext& c) -> OptionalAtoms {
    return {c.b.Emit1(*c.eqn.prim, {*c.ct[0]}, c.eqn.attrs.With("reverse", !c.eqn.attrs.GetBool("reverse")))};
  };
  Prim& prod = AddCumulative(r, "cumprod", kAnyNumbers, "The product of the elements so far along `dim`.");
  prod.eval = FoldNumbers([](auto a, auto b) { return Product(a, b); });
  prod.jvp = [](JvpContext& c) {
    PairScanJvp(c, [](const Dual& a, const Dual& w) { return Dual{a.v * w.v, a.t * w.v + a.v * w.t}; });
  };
  RegisterExtreme(r, true);
  RegisterExtreme(r, false);
  Prim& lse = AddCumulative(r, "cumlogsumexp", kAnyFloats,
                            "log of the sum of exp of the elements so far along `dim`, computed without overflow.");
  lse.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    return {RunningFold<double>(in[0], c.sig.attrs.GetInt("dim"), c.sig.attrs.GetBool("reverse"), LogAddExp)};
  };
  lse.jvp = [](JvpContext& c) {
    PairScanJvp(c, [](const Dual& a, const Dual& w) {
      // log(e^a + e^w) from the larger one, selected: the derivatives of max where both are equal are shares. Where
      // both are the same infinity the difference is taken as 0.
      const Expr first = Gt(a.v, w.v), gap = Select(first, w.v - a.v, a.v - w.v);
      const Expr infinite = And(Eq(a.v, w.v), Ne(gap, gap));
      const Expr v = Select(first, a.v, w.v) + Log1p(Exp(Select(infinite, gap.Number(0), gap)));
      auto weight = [&](const Expr& x) { return Select(Eq(x, v), x.Number(1), Exp(x - v)); };
      return Dual{v, weight(a.v) * a.t + weight(w.v) * w.t};
    });
  };
}

}  // namespace weft
