// Running sums, products, extremes and log-sum-exps along one dimension.
#include <cmath>

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

// Inclusive scan of pairs (value, tangent) in log2(n) steps (Hillis & Steele 1986, "Data parallel algorithms"). Every
// step is linear in the tangents, and none divides by a value: exact where factors are zero or elements are equal.
void PairScanJvp(JvpContext& c, const Combine& combine) {
  Builder& b = c.b;
  const int64_t dim = c.eqn.attrs.GetInt("dim");
  const bool reverse = c.eqn.attrs.GetBool("reverse");
  c.y = {b.Emit1(*c.eqn.prim, {c.x[0]}, c.eqn.attrs)};
  const Dims dims = b.TypeOf(c.x[0]).dims;
  const int64_t n = dims[dim].value("the derivative of a cumulative operation");
  auto part = [&](const Expr& e, int64_t begin, int64_t end) {
    Ints start(dims.size(), 0), limit, strides(dims.size(), 1);
    for (const Dim& d : dims) limit.push_back(d.is_static() ? d.value() : -1);
    start[dim] = begin, limit[dim] = end;
    return Expr{&b, Slice(b, e, start, limit, strides)};
  };
  Dual all{Expr{&b, c.x[0]}, Expr{&b, *c.dx[0]}};
  for (int64_t shift = 1; shift < n; shift *= 2) {
    // The first `shift` elements (the last ones in reverse) are finished; each other one takes in the one `shift`
    // before.
    const int64_t from = reverse ? shift : 0, to = reverse ? 0 : shift;
    const Dual before{part(all.v, from, from + n - shift), part(all.t, from, from + n - shift)};
    const Dual now{part(all.v, to, to + n - shift), part(all.t, to, to + n - shift)};
    const Dual joined = combine(before, now);
    auto with_finished = [&](const Expr& old, const Expr& joined) {
      const Atom finished = reverse ? part(old, n - shift, n) : part(old, 0, shift);
      return Expr{&b, Concatenate(b, reverse ? Atoms{joined, finished} : Atoms{finished, joined}, dim)};
    };
    all = {with_finished(all.v, joined.v), with_finished(all.t, joined.t)};
  }
  c.dy = {all.t.atom};
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

template <class F>
EvalFn FoldNumbers(F f) {
  return [f](const EvalContext& c, const Tensors& in) -> Tensors {
    const int64_t dim = c.sig.attrs.GetInt("dim");
    const bool reverse = c.sig.attrs.GetBool("reverse");
    if (IsComplex(in[0].dtype())) return {RunningFold<Complex>(in[0], dim, reverse, f)};
    if (IsFloat(in[0].dtype())) return {RunningFold<double>(in[0], dim, reverse, f)};
    return {RunningFold<uint64_t>(in[0], dim, reverse, f)};  // wraps
  };
}

void RegisterExtreme(PrimRegistry& r, bool max) {
  Prim& p = AddCumulative(
      r, max ? "cummax" : "cummin", kReals,
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
      const Expr half = (a.t + w.t) * 0.5;
      return Dual{v,
                  Select(max ? Gt(a.v, w.v) : Lt(a.v, w.v), a.t, Select(max ? Gt(w.v, a.v) : Lt(w.v, a.v), w.t, half))};
    });
  };
}

}  // namespace

void RegisterCumulative(PrimRegistry& r) {
  Prim& sum = AddCumulative(r, "cumsum", kNumbers, "The sum of the elements so far along `dim`.");
  sum.eval = FoldNumbers([](auto a, auto b) { return a + b; });
  sum.linear = {0};
  sum.transpose = [](TransposeContext& c) -> OptionalAtoms {
    return {c.b.Emit1(*c.eqn.prim, {*c.ct[0]}, c.eqn.attrs.With("reverse", !c.eqn.attrs.GetBool("reverse")))};
  };
  Prim& prod = AddCumulative(r, "cumprod", kNumbers, "The product of the elements so far along `dim`.");
  prod.eval = FoldNumbers([](auto a, auto b) { return a * b; });
  prod.jvp = [](JvpContext& c) {
    PairScanJvp(c, [](const Dual& a, const Dual& w) { return Dual{a.v * w.v, a.t * w.v + a.v * w.t}; });
  };
  RegisterExtreme(r, true);
  RegisterExtreme(r, false);
  Prim& lse = AddCumulative(r, "cumlogsumexp", kFloats,
                            "log of the sum of exp of the elements so far along `dim`, computed without overflow.");
  lse.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    return {RunningFold<double>(in[0], c.sig.attrs.GetInt("dim"), c.sig.attrs.GetBool("reverse"), LogAddExp)};
  };
  lse.jvp = [](JvpContext& c) {
    PairScanJvp(c, [](const Dual& a, const Dual& w) {
      // log(e^a + e^w) from the larger one; where both are the same infinity the difference is taken as 0.
      const Expr top = Max(a.v, w.v), low = Min(a.v, w.v);
      const Expr gap = Select(Eq(top, low), top.Number(0), low - top);
      const Expr v = top + Log1p(Exp(gap));
      auto weight = [&](const Expr& x) { return Select(Eq(x, v), x.Number(1), Exp(x - v)); };
      return Dual{v, weight(a.v) * a.t + weight(w.v) * w.t};
    });
  };
}

}  // namespace weft
