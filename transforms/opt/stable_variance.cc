// Variances and covariances: of the distances from the means.
#include <cmath>

#include "ir/ops.h"
#include "ir/prim_table.h"
#include "transforms/opt/defined_by.h"
#include "transforms/opt/formula.h"
#include "transforms/opt/same_value.h"
#include "transforms/opt/shaped_sums.h"
#include "transforms/opt/shifted_exponentials.h"
#include "transforms/opt/stable_rules.h"

namespace weft {
namespace {

// The two factors of a product, twice the same of a square.
std::optional<std::pair<Atom, Atom>> FactorsOf(const Builder& b, const Atom& a) {
  static const Prim& mul = FindPrim("mul");
  if (const std::optional<Atom> root = RootOf(b, a)) return std::pair(*root, *root);
  const Eqn* e = DefinedBy(b, a, mul);
  if (e == nullptr || Splat(b, e->operands[0]) != nullptr || Splat(b, e->operands[1]) != nullptr) return std::nullopt;
  return std::pair(e->operands[0], e->operands[1]);
}

// `inner` times a number, through changes of shape before and after it.
struct Multiple {
  Shaped shaped;
  double factor = 1;
};
Multiple MultipleOf(const Builder& b, const Atom& a) {
  Multiple m;
  m.shaped.inner = a;
  for (bool more = true; more;) {
    const Shaped shapes = ThroughShapes(b, m.shaped.inner);
    m.shaped.steps.insert(m.shaped.steps.end(), shapes.steps.begin(), shapes.steps.end());
    const Scaled scaled = WithoutFactor(b, shapes.inner);
    more = !(scaled.of == shapes.inner) && b.TypeOf(scaled.of).dims == b.TypeOf(shapes.inner).dims;
    m.shaped.inner = more ? scaled.of : shapes.inner;
    if (more) m.factor *= scaled.factor;
  }
  return m;
}

// A multiple of the sum of a value, and which dimension of what was reduced each of its own runs along.
struct MultipleOfSum {
  Sum sum;
  double factor;
  Ints along;
};
std::optional<MultipleOfSum> MultipleOfSumOf(const Builder& b, const Atom& a) {
  const Multiple m = MultipleOf(b, a);
  const std::optional<Sum> sum = SumOf(b, m.shaped.inner);
  const std::optional<Ints> along = DimsBehind(b, m.shaped, a);
  return sum && along ? std::optional(MultipleOfSum{*sum, m.factor, *along}) : std::nullopt;
}

// For each dimension of `outer` the dimension that its own dimension runs along in turn.
Ints Through(const Ints& outer, const Ints& inner) {
  Ints dims;
  for (const int64_t d : outer) dims.push_back(d < 0 ? -1 : inner[static_cast<size_t>(d)]);
  return dims;
}

// mean(x y) - mean(x) mean(y), or sum(x y) - sum(x) sum(y) / n, of x = y too.
std::optional<Atom> TwoPassCovariance(Builder& b, const Eqn&, const Atoms& x) {
  if (!IsFloat(b.DTypeOf(x[0])) || b.TypeOf(x[0]).dims != b.TypeOf(x[1]).dims) return std::nullopt;
  // First: factor * sum(x y), through changes of shape before or after the factor.
  const Shaped outer = ThroughShapes(b, x[0]);
  const Scaled first = WithoutFactor(b, outer.inner);
  const Shaped inner = ThroughShapes(b, first.of);
  const std::optional<MultipleOfSum> products = MultipleOfSumOf(b, x[0]);
  const auto of = products ? FactorsOf(b, products->sum.of) : std::nullopt;
  if (!of || !SumOf(b, inner.inner)) return std::nullopt;
  // Second: d * (c * sum(x)) * (c * sum(y)).
  const Multiple second = MultipleOf(b, x[1]);
  const std::optional<Ints> across = DimsBehind(b, second.shaped, x[1]);
  const auto means = FactorsOf(b, second.shaped.inner);
  if (!means || !across) return std::nullopt;
  const std::optional<MultipleOfSum> one = MultipleOfSumOf(b, means->first),
                                     other = one ? MultipleOfSumOf(b, means->second) : std::nullopt;
  const Ints& dims = products->sum.dims;
  if (!other || one->sum.dims != dims || other->sum.dims != dims || Through(*across, one->along) != products->along ||
      Through(*across, other->along) != products->along)
    return std::nullopt;
  const auto are = [&](const Atom& u, const Atom& v) {
    return SameValue(b, one->sum.of, u) && SameValue(b, other->sum.of, v);
  };
  if (!are(of->first, of->second) && !are(of->second, of->first)) return std::nullopt;
  const Type type = b.TypeOf(of->first);
  double count = 1;
  for (const int64_t d : dims) {
    const std::optional<int64_t> size = type.dims[static_cast<size_t>(d)].TryValue();
    if (!size) return std::nullopt;
    count *= static_cast<double>(*size);
  }
  if (!Near(one->factor * other->factor * second.factor, first.factor / count)) return std::nullopt;
  const DType dtype = type.dtype;
  const auto distance = [&](const Atom& v) {
    const Atom mean = Div(b, ReduceSum(b, v, dims), Atom::Scalar(dtype, count));
    return Sub(b, v, SpreadOver(b, mean, v, dims));
  };
  const Atom left = distance(of->first), right = of->first == of->second ? left : distance(of->second);
  const Atom spread = ReduceSum(b, Mul(b, left, right), dims);
  const double divisor = 1 / first.factor;
  // n, or n - 1, of whose reciprocal the program may have had the rounded one.
  const double whole = std::round(divisor);
  const Atom scaled = Div(b, spread, Atom::Scalar(dtype, Near(divisor, whole) ? whole : divisor));
  return Again(b, outer, Again(b, inner, scaled));
}

const SimplifyRule kRules[] = {
    {"two-pass-variance", "sub", Licence::kAccurate, TwoPassCovariance,
     R"(fn f(x: f32[3]) { q = mul x x; s = reduce_sum[dims=[0]] q; m = div s 3.0:f32
        t = reduce_sum[dims=[0]] x; n = div t 3.0:f32; o = mul n n; r = sub m o; return r })",
     false, RuleTime::kStabilizing},
    {"two-pass-variance", "sub", Licence::kAccurate, TwoPassCovariance,
     R"(fn f(x: f32[2,3], y: f32[2,3]) { q = mul x y; s = reduce_sum[dims=[1]] q; m = div s 3.0:f32
        t = reduce_sum[dims=[1]] x; n = div t 3.0:f32; u = reduce_sum[dims=[1]] y; v = div u 3.0:f32
        o = mul v n; r = sub m o; return r })",
     false, RuleTime::kStabilizing},
};

}  // namespace

absl::Span<const SimplifyRule> VarianceRules() { return kRules; }

}  // namespace weft
