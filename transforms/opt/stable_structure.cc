// Rules for stability of sums over dimensions, which are no formulas of single elements.
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <ranges>

#include "ir/licences.h"
#include "ir/ops.h"
#include "ir/prim_table.h"
#include "ir/prims/contraction.h"
#include "transforms/opt/defined_by.h"
#include "transforms/opt/formula.h"
#include "transforms/opt/known.h"
#include "transforms/opt/part.h"
#include "transforms/opt/rewrite.h"
#include "transforms/opt/same_value.h"
#include "transforms/opt/shaped_sums.h"
#include "transforms/opt/shifted_exponentials.h"
#include "transforms/opt/stable_rules.h"

namespace weft {
namespace {

struct SoughtPrims {
  const Prim &exp = FindPrim("exp"), &sum = FindPrim("reduce_sum"), &log = FindPrim("log"), &sub = FindPrim("sub"),
             &div = FindPrim("div"), &mul = FindPrim("mul"), &broadcast = FindPrim("broadcast"),
             &reshape = FindPrim("reshape"), &select = FindPrim("select");
};
const SoughtPrims& Prims() {
  static const SoughtPrims prims;
  return prims;
}

// log(sum(exp(x))), or of a mean: the largest exponent apart.
std::optional<Atom> LogSumExp(Builder& b, const Eqn& e, const Atoms& x) {
  if (!e.attrs.entries().empty()) return std::nullopt;
  const Shaped outer = ThroughShapes(b, x[0]);
  const Scaled mean = WithoutFactor(b, outer.inner);
  const Shaped shaped = ThroughShapes(b, mean.of);
  const std::optional<Sum> sum = SumOf(b, shaped.inner);
  if (!sum || !(mean.factor > 0)) return std::nullopt;
  const std::optional<Atom> exponent = ExponentOf(b, sum->of);
  if (!exponent || IsShifted(b, *exponent)) return std::nullopt;
  const Atom largest = Largest(b, *exponent, sum->dims);
  const Atom rest = Exp(b, Sub(b, *exponent, SpreadOver(b, largest, *exponent, sum->dims)));
  const Atom total = Times(b, ReduceSum(b, rest, sum->dims), mean.factor);
  return Again(b, outer, Again(b, shaped, Add(b, largest, Log(b, total))));
}

// exp(x) exp(y) = exp(x + y), and so with quotients: one exponential less, and no overflow of one of them alone. The
// sum is taken in a wider type: rounded, it would cost as many digits as it has before the point.
std::optional<Atom> ExpOfSum(Builder& b, const Eqn& e, const Atoms& x) {
  const std::optional<Atom> first = ExponentOf(b, x[0]), second = ExponentOf(b, x[1]);
  if (!first || !second || !IsFloat(b.DTypeOf(x[0])) || !(b.TypeOf(x[0]).dims == b.TypeOf(x[1]).dims))
    return std::nullopt;
  const DType dtype = b.DTypeOf(x[0]);
  if (dtype == DType::kF64 || x[0] == x[1] || !ReadOnce(b, x[0]) || !ReadOnce(b, x[1])) return std::nullopt;
  const DType wider = dtype == DType::kF32 ? DType::kF64 : DType::kF32;
  const Atom a = Convert(b, *first, wider), c = Convert(b, *second, wider);
  return Convert(b, Exp(b, e.prim == &Prims().mul ? Add(b, a, c) : Sub(b, a, c)), dtype);
}

// log(exp(x) / sum(exp(x))) = x - log(sum(exp(x))).
std::optional<Atom> LogSoftmax(Builder& b, const Eqn& e, const Atoms& x) {
  const Eqn* quotient = e.attrs.entries().empty() ? DefinedBy(b, x[0], Prims().div) : nullptr;
  if (quotient == nullptr) return std::nullopt;
  const Atom above = quotient->operands[0], below = quotient->operands[1];
  return SoftmaxOf(b, above, below, true);
}

// A product of elements that is summed over `dims`: exponents of its factors that are exponentials, and the others.
struct Terms {
  Atoms exponents, weights, divisors;
  Atoms below;  // divisors that are the same along `dims`
  Atoms masks;  // predicates without which a term is 0
};
// `through`: the changes of shape that a factor goes through.
void FactorsOf(Builder& b, const Atom& a, const Shaped& through, const Ints& dims, Terms* terms, int depth = 8) {
  const auto shaped = [&](const Atom& x) {
    return b.TypeOf(x).rank() == 0 && x.is_literal() ? x : Again(b, through, x);
  };
  const Eqn* found = b.Definition(a);
  if (found == nullptr || depth == 0 || found->operands.empty()) {
    terms->weights.push_back(shaped(a));
    return;
  }
  const Eqn e = *found;  // emitting may move it
  if (e.prim == &Prims().mul) {
    for (const Atom& x : e.operands) FactorsOf(b, x, through, dims, terms, depth - 1);
  } else if (e.prim == &Prims().div) {
    FactorsOf(b, e.operands[0], through, dims, terms, depth - 1);
    const Atom divisor = shaped(e.operands[1]);
    const bool repeats = std::all_of(dims.begin(), dims.end(),
                                     [&](int64_t d) { return IsConstantAlong(b, divisor, static_cast<int>(d)); });
    (repeats && b.TypeOf(divisor).rank() > 0 ? terms->below : terms->divisors).push_back(divisor);
  } else if (e.prim == &Prims().exp) {
    terms->exponents.push_back(shaped(e.operands[0]));
  } else if (e.prim == &Prims().select && b.TypeOf(e.operands[0]).dims == b.TypeOf(a).dims) {
    const Atom *yes = Splat(b, e.operands[1]), *no = Splat(b, e.operands[2]);
    if (no != nullptr && no->IsSplat(0)) {
      terms->masks.push_back(shaped(e.operands[0]));
      FactorsOf(b, e.operands[1], through, dims, terms, depth - 1);
    } else if (yes != nullptr && yes->IsSplat(0)) {
      terms->masks.push_back(shaped(Not(b, e.operands[0])));
      FactorsOf(b, e.operands[2], through, dims, terms, depth - 1);
    } else {
      terms->weights.push_back(shaped(a));
    }
  } else if (e.prim == &Prims().broadcast || e.prim == &Prims().reshape) {
    Shaped both = through;
    both.steps.push_back(e);
    FactorsOf(b, e.operands[0], both, dims, terms, depth - 1);
  } else {
    terms->weights.push_back(shaped(a));
  }
}

// The only element along `dims` of a value that is the same along them.
Atom OneAlong(Builder& b, const Atom& a, const Ints& dims) {
  const Type type = b.TypeOf(a);
  Window w = Window::All(type.dims);
  for (const int64_t d : dims) w.sizes[static_cast<size_t>(d)] = 1;
  return Reshape(b, Part(b, false, false).Of(a, w), WithoutDims(type.dims, dims));
}

// What is summed for a value: a product over dimensions of it, or a contraction that is one.
struct ProductSum {
  Atoms factors;
  Ints dims;
  Ints order;  // of the result's dimensions
};
std::optional<ProductSum> ProductSumOf(Builder& b, const Atom& a) {
  if (const std::optional<Sum> sum = SumOf(b, a)) return ProductSum{{sum->of}, sum->dims, {}};
  static const Prim& contract = FindPrim("contract");
  const Eqn* found = DefinedBy(b, a, contract);
  if (found == nullptr || found->attrs.entries().size() != 1 || !IsFloat(b.DTypeOf(a))) return std::nullopt;
  const ContractSpec spec = ContractSpec::Parse(found->attrs.Get<std::string>("spec"));
  for (const bool left : {true, false}) {
    const std::string &all = left ? spec.lhs : spec.rhs, &some = left ? spec.rhs : spec.lhs;
    if (std::any_of(some.begin(), some.end(), [&](char c) { return all.find(c) == std::string::npos; })) continue;
    const Atom whole = found->operands[left ? 0 : 1];
    Atom other = found->operands[left ? 1 : 0];
    Ints into, perm, dims, order;
    std::string kept;
    for (size_t d = 0; d < all.size(); ++d) {
      const size_t at = some.find(all[d]);
      if (at != std::string::npos) {
        into.push_back(static_cast<int64_t>(d));
        perm.push_back(static_cast<int64_t>(at));
      }
      if (spec.out.find(all[d]) == std::string::npos)
        dims.push_back(static_cast<int64_t>(d));
      else
        kept += all[d];
    }
    for (const char c : spec.out) order.push_back(static_cast<int64_t>(kept.find(c)));
    if (dims.empty()) return std::nullopt;
    if (perm != Range(0, static_cast<int64_t>(perm.size()))) other = Transpose(b, other, perm);
    return ProductSum{{whole, Broadcast(b, other, b.TypeOf(whole).dims, into)}, dims, order};
  }
  return std::nullopt;
}

Atom StableLog(Builder& b, const Atom& a) {
  static const Prim& log = FindPrim("log");
  Eqn e{&log, {a}, 0, 1, {}, {}, b.loc()};
  const std::optional<Atom> made = StableForm(b, e, {a});
  return made ? *made : Log(b, a);
}

// log(sum(y*exp(x))) for any y, as one-hot rows and mixtures have them: the largest exponent apart of those whose
// weight is not 0. Where it is 0 the exponent is cut, so that its exponential is finite: what y's derivative needs.
std::optional<Atom> LogWeightedSumExp(Builder& b, const Eqn& e, const Atoms& x) {
  if (!e.attrs.entries().empty() || !IsFloat(b.DTypeOf(x[0])) || !b.TypeOf(x[0]).is_static()) return std::nullopt;
  const Shaped outer = ThroughShapes(b, x[0]);
  const Eqn* quotient = DefinedBy(b, outer.inner, Prims().div);
  std::optional<Atom> over;
  if (quotient != nullptr && Splat(b, quotient->operands[1]) == nullptr) over = quotient->operands[1];
  const Scaled mean = over ? Scaled{quotient->operands[0], 1} : WithoutFactor(b, outer.inner);
  const Shaped shaped = ThroughShapes(b, mean.of);
  if (!(mean.factor > 0)) return std::nullopt;
  const std::optional<ProductSum> sum = ProductSumOf(b, shaped.inner);
  if (!sum) return std::nullopt;
  const Type type = b.TypeOf(sum->factors[0]);
  if (!type.is_static()) return std::nullopt;
  Terms terms;
  for (const Atom& factor : sum->factors) FactorsOf(b, factor, {}, sum->dims, &terms);
  if (terms.exponents.empty()) return std::nullopt;
  const bool shifted =
      std::all_of(terms.exponents.begin(), terms.exponents.end(), [&](const Atom& a) { return IsShifted(b, a); });
  if (shifted && terms.below.empty() && terms.masks.empty() && !over) return std::nullopt;
  if (over && terms.weights.empty() && terms.masks.empty()) return std::nullopt;
  Atom exponent = terms.exponents[0];
  for (size_t i = 1; i < terms.exponents.size(); ++i) exponent = Add(b, exponent, terms.exponents[i]);
  if (!(b.TypeOf(exponent).dims == type.dims)) return std::nullopt;
  std::optional<Atom> weight, mask;
  for (const Atom& w : terms.weights) weight = weight ? Mul(b, *weight, w) : w;
  if (weight && weight->is_literal() && b.TypeOf(*weight).rank() == 0)
    weight = Full(b, type, weight->literal().Get(0).real());
  for (const Atom& p : terms.masks) mask = mask ? And(b, *mask, p) : p;
  const DType dtype = type.dtype;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Atom counted = exponent;
  if (weight) counted = Select(b, Ne(b, *weight, Atom::Scalar(dtype, 0)), counted, Atom::Scalar(dtype, -kInfinity));
  if (mask) counted = Select(b, *mask, counted, Atom::Scalar(dtype, -kInfinity));
  const Atom largest = Largest(b, counted, sum->dims);
  Atom rest = Sub(b, exponent, SpreadOver(b, largest, exponent, sum->dims));
  if (mask) rest = Select(b, *mask, rest, Atom::Scalar(dtype, 0));
  if (weight) {
    const Atom most = Atom::Scalar(dtype, std::floor(0.69 * (RowOf(dtype).max_exponent - 1)));
    const Atom cut = And(b, Eq(b, *weight, Atom::Scalar(dtype, 0)), Gt(b, rest, most));
    rest = Select(b, cut, most, rest);
  }
  Atom term = Exp(b, rest);
  if (weight) term = Mul(b, *weight, term);
  for (const Atom& divisor : terms.divisors) term = Div(b, term, divisor);
  if (mask) term = Select(b, *mask, term, Atom::Scalar(dtype, 0));
  const Atom total = Times(b, ReduceSum(b, term, sum->dims), mean.factor);
  Atom made = Add(b, largest, Log(b, total));
  for (const Atom& divisor : terms.below) made = Sub(b, made, StableLog(b, OneAlong(b, divisor, sum->dims)));
  if (!sum->order.empty()) made = Transpose(b, made, sum->order);
  made = Again(b, shaped, made);
  return Again(b, outer, over ? Sub(b, made, StableLog(b, *over)) : made);
}

// log(exp(x) @ y): the largest exponent of each row apart, of both where both are exponentials.
std::optional<Atom> LogProductOfExps(Builder& b, const Eqn& e, const Atoms& x) {
  static const Prim& contract = FindPrim("contract");
  if (!e.attrs.entries().empty() || !IsFloat(b.DTypeOf(x[0]))) return std::nullopt;
  const Shaped outer = ThroughShapes(b, x[0]);
  const Eqn* found = DefinedBy(b, outer.inner, contract);
  if (found == nullptr || found->attrs.entries().size() != 1) return std::nullopt;
  const Eqn product = *found;  // emitting may move it
  const ContractSpec spec = ContractSpec::Parse(product.attrs.Get<std::string>("spec"));
  const Dims shape = b.TypeOf(outer.inner).dims;
  Atoms operands = product.operands;
  std::optional<Atom> apart;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const std::optional<Atom> exponent = ExponentOf(b, operands[i]);
    if (!exponent || IsShifted(b, *exponent)) continue;
    Ints dims, into, perm;
    std::string kept;
    const std::string& letters = i == 0 ? spec.lhs : spec.rhs;
    for (size_t d = 0; d < letters.size(); ++d) {
      if (spec.out.find(letters[d]) == std::string::npos)
        dims.push_back(static_cast<int64_t>(d));
      else
        kept += letters[d];
    }
    if (dims.empty()) return std::nullopt;
    for (size_t d = 0; d < spec.out.size(); ++d) {
      const size_t at = kept.find(spec.out[d]);
      if (at == std::string::npos) continue;
      into.push_back(static_cast<int64_t>(d));
      perm.push_back(static_cast<int64_t>(at));
    }
    const Atom largest = Largest(b, *exponent, dims);
    operands[i] = Exp(b, Sub(b, *exponent, SpreadOver(b, largest, *exponent, dims)));
    const Atom ordered = perm == Range(0, static_cast<int64_t>(perm.size())) ? largest : Transpose(b, largest, perm);
    const Atom spread = Broadcast(b, ordered, shape, into);
    apart = apart ? Add(b, *apart, spread) : spread;
  }
  if (!apart) return std::nullopt;
  return Again(b, outer, Add(b, *apart, Log(b, b.Emit1(contract, operands, product.attrs))));
}

// log(prod(x)): what f32 cannot hold f64 can, of a few dozen factors; of any number their logarithms' sum, where none
// is negative.
std::optional<Atom> LogOfProduct(Builder& b, const Eqn& e, const Atoms& x) {
  if (!e.attrs.entries().empty() || !IsFloat(b.DTypeOf(x[0]))) return std::nullopt;
  static const Prim& prod = FindPrim("reduce_prod");
  const Shaped shaped = ThroughShapes(b, x[0]);
  const Eqn* product = DefinedBy(b, shaped.inner, prod);
  if (product == nullptr) return std::nullopt;
  const Ints dims = product->attrs.Get<Ints>("dims");
  const Atom of = product->operands[0];
  if (CurrentLicences().Allow(Licence::kNoNan)) return Again(b, shaped, ReduceSum(b, Log(b, of), dims));
  const DType dtype = b.DTypeOf(x[0]);
  if (ByteWidth(dtype) >= 8) return std::nullopt;
  const Atom wide = Reduce(b, "reduce_prod", Convert(b, of, DType::kF64), dims);
  return Again(b, shaped, Convert(b, Log(b, wide), dtype));
}

constexpr RuleTime kStable = RuleTime::kStabilizing;

const SimplifyRule kRules[] = {
    {"log-softmax", "log", Licence::kAccurate, LogSoftmax,
     R"(fn f(x: f32[3]) { a = exp x; s = reduce_sum[dims=[0]] a; t = broadcast[dims=[], shape=<3>] s; q = div a t
        r = log q; return r })",
     false, kStable},
    {"log-sum-exp", "log", Licence::kAccurate, LogSumExp,
     "fn f(x: f32[3]) { a = exp x; s = reduce_sum[dims=[0]] a; r = log s; return r }", false, kStable},
    {"log-weighted-sum-exp", "log", Licence::kAccurate, LogWeightedSumExp,
     R"(fn f(x: f32[3], y: f32[3]) { a = exp x; p = mul y a; s = reduce_sum[dims=[0]] p; r = log s; return r })", false,
     kStable},
    {"log-weighted-sum-exp", "log", Licence::kAccurate, LogWeightedSumExp,
     R"(fn f(x: f32[2,3], y: f32[3]) { a = exp x; s = contract[spec="ab,b->a"] a y; r = log s; return r })", false,
     kStable},
    {"log-product-of-exps", "log", Licence::kAccurate, LogProductOfExps,
     R"(fn f(x: f32[2,3], y: f32[3,4]) { a = exp x; s = contract[spec="ab,bc->ac"] a y; r = log s; return r })", false,
     kStable},
    {"log-of-product", "log", Licence::kAccurate, LogOfProduct,
     "fn f(x: f32[3]) { s = reduce_prod[dims=[0]] x; r = log s; return r }", false, kStable},
    {"exp-of-sum", "mul", Licence::kAccurate, ExpOfSum,
     "fn f(x: f32[3], y: f32[3]) { a = exp x; b = exp y; c = mul a b; return c }", false, kStable},
    {"exp-of-sum", "div", Licence::kAccurate, ExpOfSum,
     "fn f(x: f32[3], y: f32[3]) { a = exp x; b = exp y; c = div a b; return c }", false, kStable},
};

}  // namespace

absl::Span<const SimplifyRule> StableStructure() { return kRules; }

}  // namespace weft
