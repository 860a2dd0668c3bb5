// Rules for stability of quotients of sums of exponentials.
#include <algorithm>
#include <limits>

#include "ir/ops.h"
#include "ir/prim_table.h"
#include "ir/prims/contraction.h"
#include "transforms/opt/defined_by.h"
#include "transforms/opt/formula.h"
#include "transforms/opt/same_value.h"
#include "transforms/opt/shaped_sums.h"
#include "transforms/opt/shifted_exponentials.h"
#include "transforms/opt/stable_rules.h"

namespace weft {
namespace {

struct SoughtPrims {
  const Prim &mul = FindPrim("mul"), &select = FindPrim("select"), &contract = FindPrim("contract"),
             &integer_pow = FindPrim("integer_pow"), &square = FindPrim("square");
};
const SoughtPrims& Prims() {
  static const SoughtPrims prims;
  return prims;
}

// The factors of a product of elements, of one shape each, as far as they are found; a number is one too.
void FactorsOf(const Builder& b, const Atom& a, Atoms* factors, size_t most = 8) {
  const Eqn* e = DefinedBy(b, a, Prims().mul);
  if (e == nullptr || factors->size() >= most) {
    factors->push_back(a);
    return;
  }
  const Atoms operands = e->operands;
  for (const Atom& operand : operands) FactorsOf(b, operand, factors, most);
}
Atom ProductOf(Builder& b, const Atoms& factors) {
  Atom product = factors[0];
  for (size_t i = 1; i < factors.size(); ++i) product = Mul(b, product, factors[i]);
  return product;
}

// exp(x) less its largest over dimensions, of weights that are summed over them.
struct Weights {
  Shaped shaped;  // below the line
  Sum sum;
  Atom exponent;
  Ints across;  // DimsBehind of `shaped`
};
std::optional<Weights> WeightsOf(const Builder& b, const Atom& below) {
  const Shaped shaped = ThroughShapes(b, below);
  const std::optional<Sum> sum = SumOf(b, shaped.inner);
  const std::optional<Atom> exponent = sum ? ExponentOf(b, sum->of) : std::nullopt;
  if (!exponent || IsShifted(b, *exponent)) return std::nullopt;
  const std::optional<Ints> across = DimsBehind(b, shaped, below);
  return across ? std::optional(Weights{shaped, *sum, *exponent, *across}) : std::nullopt;
}
Atom Shift(Builder& b, const Weights& w) {
  const Atom largest = Largest(b, w.exponent, w.sum.dims);
  return Exp(b, Sub(b, w.exponent, SpreadOver(b, largest, w.exponent, w.sum.dims)));
}

// sum(y*exp(x)) / sum(exp(x)): the largest exponent apart, in both.
std::optional<Atom> SoftmaxMean(Builder& b, const Eqn&, const Atoms& x) {
  const std::optional<Weights> weights = WeightsOf(b, x[1]);
  if (!weights) return std::nullopt;
  const Shaped above = ThroughShapes(b, x[0]);
  const std::optional<Sum> values = SumOf(b, above.inner);
  const std::optional<Ints> along = DimsBehind(b, above, x[0]);
  if (!values || !along || *along != weights->across || weights->sum.dims != values->dims ||
      b.TypeOf(values->of).dims != b.TypeOf(weights->exponent).dims)
    return std::nullopt;
  Atoms factors;
  FactorsOf(b, values->of, &factors);
  const auto weight =
      std::find_if(factors.begin(), factors.end(), [&](const Atom& f) { return SameValue(b, f, weights->sum.of); });
  if (weight == factors.end()) return std::nullopt;
  const Atom rest = *weight = Shift(b, *weights);
  const Atom mean = ReduceSum(b, ProductOf(b, factors), values->dims);
  return Div(b, Again(b, above, mean), Again(b, weights->shaped, ReduceSum(b, rest, weights->sum.dims)));
}

// (exp(x) @ y) / sum(exp(x)), as attention is written: the same.
std::optional<Atom> SoftmaxProduct(Builder& b, const Eqn&, const Atoms& x) {
  const Shaped above = ThroughShapes(b, x[0]);
  const Eqn* found = DefinedBy(b, above.inner, Prims().contract);
  if (found == nullptr || found->attrs.entries().size() != 1) return std::nullopt;
  const std::optional<Weights> weights = WeightsOf(b, x[1]);
  const std::optional<Ints> along = DimsBehind(b, above, x[0]);
  if (!weights || !along) return std::nullopt;
  const Eqn product = *found;  // emitting may move it
  const ContractSpec spec = ContractSpec::Parse(product.attrs.Get<std::string>("spec"));
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if (!SameValue(b, product.operands[i], weights->sum.of)) continue;
    const std::string& letters = i == 0 ? spec.lhs : spec.rhs;
    Ints summed, runs;
    for (size_t d = 0; d < letters.size(); ++d) {
      if (spec.out.find(letters[d]) == std::string::npos) summed.push_back(static_cast<int64_t>(d));
    }
    for (const int64_t d : *along) {
      const size_t at = d < 0 ? std::string::npos : letters.find(spec.out[static_cast<size_t>(d)]);
      runs.push_back(at == std::string::npos ? -1 : static_cast<int64_t>(at));
    }
    if (summed != weights->sum.dims ||
        !RunsTogether(runs, weights->across, b.TypeOf(weights->sum.of).dims, weights->sum.dims))
      continue;
    Atoms operands = product.operands;
    operands[i] = Shift(b, *weights);
    const Atom total = ReduceSum(b, operands[i], weights->sum.dims);
    const Atom made = b.Emit1(Prims().contract, operands, product.attrs);
    return Div(b, Again(b, above, made), Again(b, weights->shaped, total));
  }
  return std::nullopt;
}

// exp(x) / sum(exp(x)) of where(mask, exp(x), 0): the largest of those that count.
std::optional<Atom> MaskedSoftmax(Builder& b, const Atoms& x) {
  const Eqn* found = DefinedBy(b, x[0], Prims().select);
  const Shaped shaped = ThroughShapes(b, x[1]);
  const std::optional<Sum> sum = SumOf(b, shaped.inner);
  if (found == nullptr || !sum || !SameValue(b, sum->of, x[0])) return std::nullopt;
  const std::optional<Ints> across = DimsBehind(b, shaped, x[1]);
  const Dims dims = b.TypeOf(x[0]).dims;
  if (!across || !RunsTogether(Range(0, static_cast<int64_t>(dims.size())), *across, dims, sum->dims))
    return std::nullopt;
  const Eqn select = *found;  // emitting may move it
  const Atom* none = Splat(b, select.operands[2]);
  const std::optional<Atom> exponent = ExponentOf(b, select.operands[1]);
  if (none == nullptr || !none->IsSplat(0) || !exponent || IsShifted(b, *exponent) ||
      !(b.TypeOf(select.operands[0]).dims == b.TypeOf(*exponent).dims))
    return std::nullopt;
  const Atom& mask = select.operands[0];
  const DType dtype = b.DTypeOf(*exponent);
  const Atom lowest = Atom::Scalar(dtype, -std::numeric_limits<double>::infinity()), zero = Atom::Scalar(dtype, 0);
  const Atom largest = Largest(b, Select(b, mask, *exponent, lowest), sum->dims);
  const Atom off = Sub(b, *exponent, SpreadOver(b, largest, *exponent, sum->dims));
  const Atom rest = Select(b, mask, Exp(b, Select(b, mask, off, zero)), zero);
  return Div(b, rest, Again(b, shaped, ReduceSum(b, rest, sum->dims)));
}

// exp(x) / sum(exp(x)): the same.
std::optional<Atom> Softmax(Builder& b, const Eqn&, const Atoms& x) {
  if (std::optional<Atom> masked = MaskedSoftmax(b, x)) return masked;
  return SoftmaxOf(b, x[0], x[1], false);
}

// sum(exp(x))^power, through changes of shape.
struct PowerOfSum {
  Shaped outer, inner;
  Sum sum;
  Atom exponent;
  int power;
};
// The base of an integer power, itself for others.
std::pair<Atom, int> PowerOf(const Builder& b, const Atom& a) {
  if (const Eqn* e = DefinedBy(b, a, Prims().integer_pow); e != nullptr && e->attrs.GetInt("y") > 0)
    return {e->operands[0], static_cast<int>(e->attrs.GetInt("y"))};
  const std::optional<Atom> root = RootOf(b, a);
  return root ? std::pair(*root, 2) : std::pair(a, 1);
}
std::optional<PowerOfSum> PowerOfSumOf(Builder& b, const Atom& a) {
  const Shaped outer = ThroughShapes(b, a);
  const auto [base, power] = PowerOf(b, outer.inner);
  const Shaped inner = ThroughShapes(b, base);
  const std::optional<Sum> sum = SumOf(b, inner.inner);
  if (!sum) return std::nullopt;
  const auto [of, times] = PowerOf(b, sum->of);
  const std::optional<Atom> exponent = ExponentOf(b, of);
  if (!exponent || IsShifted(b, *exponent)) return std::nullopt;
  const Atom scaled = times == 1 ? *exponent : Mul(b, *exponent, Atom::Scalar(b.DTypeOf(*exponent), times));
  return PowerOfSum{outer, inner, *sum, scaled, power};
}
// The sum of what is left, and the exponent that is apart, in a wider type.
std::pair<Atom, Atom> TakeApart(Builder& b, const PowerOfSum& p, DType wider) {
  const auto power = [&](const Atom& a) { return p.power == 1 ? a : IntegerPow(b, a, p.power); };
  const Atom largest = Largest(b, p.exponent, p.sum.dims);
  const Atom rest = Exp(b, Sub(b, p.exponent, SpreadOver(b, largest, p.exponent, p.sum.dims)));
  const Atom total = power(Again(b, p.inner, ReduceSum(b, rest, p.sum.dims)));
  const Atom wide = Convert(b, Again(b, p.outer, Again(b, p.inner, largest)), wider);
  return {Again(b, p.outer, total), p.power == 1 ? wide : Mul(b, wide, Atom::Scalar(wider, p.power))};
}

// sum(exp(x)) / sum(exp(y)), and powers of such sums: the largest exponents of both apart, whose difference is taken in
// a wider type.
std::optional<Atom> QuotientOfSums(Builder& b, const Eqn&, const Atoms& x) {
  const DType dtype = b.DTypeOf(x[0]);
  if (!IsFloat(dtype) || dtype == DType::kF64 || !(b.TypeOf(x[0]).dims == b.TypeOf(x[1]).dims)) return std::nullopt;
  const std::optional<PowerOfSum> above = PowerOfSumOf(b, x[0]), below = above ? PowerOfSumOf(b, x[1]) : std::nullopt;
  if (!below) return std::nullopt;
  const DType wider = dtype == DType::kF32 ? DType::kF64 : DType::kF32;
  const auto [top, high] = TakeApart(b, *above, wider);
  const auto [bottom, low] = TakeApart(b, *below, wider);
  const Atom quotient = Div(b, Convert(b, top, wider), Convert(b, bottom, wider));
  return Convert(b, Mul(b, quotient, Exp(b, Sub(b, high, low))), dtype);
}

constexpr RuleTime kStable = RuleTime::kStabilizing;

const SimplifyRule kRules[] = {
    {"softmax-mean", "div", Licence::kAccurate, SoftmaxMean,
     R"(fn f(x: f32[3], y: f32[3]) { a = exp x; s = reduce_sum[dims=[0]] a; p = mul y a
        t = reduce_sum[dims=[0]] p; q = div t s; return q })",
     false, kStable},
    {"softmax-mean", "div", Licence::kAccurate, SoftmaxProduct,
     R"(fn f(x: f32[2,3], y: f32[3]) { a = exp x; s = reduce_sum[dims=[1]] a; t = contract[spec="ab,b->a"] a y
        q = div t s; return q })",
     false, kStable},
    {"softmax", "div", Licence::kAccurate, Softmax,
     R"(fn f(x: f32[3]) { a = exp x; s = reduce_sum[dims=[0]] a; t = broadcast[dims=[], shape=<3>] s; q = div a t
        return q })",
     false, kStable},
    {"softmax", "div", Licence::kAccurate, Softmax,
     R"(fn f(x: f32[2,3]) { a = exp x; s = reduce_sum[dims=[1]] a; t = broadcast[dims=[1], shape=<3,2>] s
        u = transpose[perm=[1,0]] a; q = div u t; return q })",
     false, kStable},
    {"softmax", "div", Licence::kAccurate, Softmax,
     R"(fn f(x: f32[2,2]) { a = exp x; s = reduce_sum[dims=[1]] a; t = broadcast[dims=[1], shape=<2,2>] s; q = div a t
        return q })",
     false, kStable},
    {"softmax", "div", Licence::kAccurate, Softmax,
     R"(fn f(x: f32[3], y: f32[3]) { a = exp x; m = gt y 0.0:f32; e = select m a 0.0:f32; s = reduce_sum[dims=[0]] e
        t = broadcast[dims=[], shape=<3>] s; q = div e t; return q })",
     false, kStable},
    {"quotient-of-exponential-sums", "div", Licence::kAccurate, QuotientOfSums,
     R"(fn f(x: f32[3], y: f32[4]) { a = exp x; b = exp y; s = reduce_sum[dims=[0]] a; t = reduce_sum[dims=[0]] b
        q = div s t; return q })",
     false, kStable},
    {"quotient-of-exponential-sums", "div", Licence::kAccurate, QuotientOfSums,
     R"(fn f(x: f32[3]) { a = exp x; s = reduce_sum[dims=[0]] a; p = mul s s; c = mul a a; t = reduce_sum[dims=[0]] c
        q = div p t; return q })",
     false, kStable},
};

}  // namespace

absl::Span<const SimplifyRule> StableQuotients() { return kRules; }

}  // namespace weft
