// Rules for norms and means of powers: what f32 cannot hold on the way f64 can.
#include <algorithm>

#include "ir/licences.h"
#include "ir/ops.h"
#include "ir/prim_table.h"
#include "ir/prims/contraction.h"
#include "transforms/opt/defined_by.h"
#include "transforms/opt/formula.h"
#include "transforms/opt/same_value.h"
#include "transforms/opt/shaped_sums.h"
#include "transforms/opt/stable_rules.h"

namespace weft {
namespace {

// f(factor * sum(g(v))), of numbers of less than 64 bits: all of it in f64, in which `g` gives its value.
template <class Of, class Outside, class Inside>
std::optional<Atom> InF64(Builder& b, const Atom& x, const Of& of, const Outside& f, const Inside& g) {
  const DType dtype = b.DTypeOf(x);
  if (!IsFloat(dtype) || ByteWidth(dtype) >= 8) return std::nullopt;
  if (CurrentLicences().Allow(Licence::kRounding)) return std::nullopt;  // `widen` does so with all that is around it
  const Shaped outer = ThroughShapes(b, x);
  const Scaled mean = WithoutFactor(b, outer.inner);
  const Shaped shaped = ThroughShapes(b, mean.of);
  const std::optional<Sum> sum = SumOf(b, shaped.inner);
  if (!sum || !(mean.factor > 0)) return std::nullopt;
  const std::optional<Atom> v = of(sum->of);
  if (!v) return std::nullopt;
  const Atom total = Times(b, ReduceSum(b, g(*v), sum->dims), mean.factor);
  return Convert(b, f(Again(b, outer, Again(b, shaped, total))), dtype);
}

// sqrt(sum(x^2)), sqrt(mean(x^2)): squares of 1e-25 and 1e25.
std::optional<Atom> Norm(Builder& b, const Eqn& e, const Atoms& x) {
  if (!e.attrs.entries().empty()) return std::nullopt;
  return InF64(
      b, x[0], [&](const Atom& a) { return RootOf(b, a); }, [&](const Atom& a) { return Sqrt(b, a); },
      [&](const Atom& a) {
        const Atom wide = Convert(b, a, DType::kF64);
        return Mul(b, wide, wide);
      });
}

// exp(mean(log(x))): an exponent of 40 has lost two digits of the result.
std::optional<Atom> GeometricMean(Builder& b, const Eqn& e, const Atoms& x) {
  if (!e.attrs.entries().empty()) return std::nullopt;
  static const auto& join = *new PrimTable<const Prim*>{
      {"log", &FindPrim("log")}, {"log_product", &FindPrim("mul")}, {"log_quotient", &FindPrim("div")}};
  const auto logarithm = [&](const Atom& a) -> std::optional<Atom> {
    const Eqn* log = b.Definition(a);
    return log != nullptr && join[*log->prim] != nullptr && log->attrs.entries().empty() ? std::optional(a)
                                                                                         : std::nullopt;
  };
  const auto in_f64 = [&](const Atom& a) {
    const Eqn log = *b.Definition(a);  // emitting may move it
    Atoms wide;
    for (const Atom& of : log.operands) wide.push_back(Convert(b, of, DType::kF64));
    return Log(b, wide.size() == 1 ? wide[0] : b.Emit1(*join[*log.prim], wide));
  };
  return InF64(b, x[0], logarithm, [&](const Atom& a) { return Exp(b, a); }, in_f64);
}

// sqrt(x @ x), of rows or of all: a product of a value with itself.
std::optional<Atom> NormByProduct(Builder& b, const Eqn& e, const Atoms& x) {
  static const Prim& contract = FindPrim("contract");
  const DType dtype = b.DTypeOf(x[0]);
  if (!e.attrs.entries().empty() || !IsFloat(dtype) || ByteWidth(dtype) >= 8) return std::nullopt;
  if (CurrentLicences().Allow(Licence::kRounding)) return std::nullopt;
  const Shaped outer = ThroughShapes(b, x[0]);
  const Scaled mean = WithoutFactor(b, outer.inner);
  const Shaped shaped = ThroughShapes(b, mean.of);
  const Eqn* found = DefinedBy(b, shaped.inner, contract);
  if (found == nullptr || found->attrs.entries().size() != 1 || !(mean.factor > 0)) return std::nullopt;
  const Eqn product = *found;  // emitting may move it
  const ContractSpec spec = ContractSpec::Parse(product.attrs.Get<std::string>("spec"));
  if (spec.lhs != spec.rhs || !SameValue(b, product.operands[0], product.operands[1])) return std::nullopt;
  const Atom wide = Convert(b, product.operands[0], DType::kF64);
  const Atom total = Times(b, b.Emit1(contract, {wide, wide}, product.attrs), mean.factor);
  return Convert(b, Sqrt(b, Again(b, outer, Again(b, shaped, total))), dtype);
}

// The values whose squares `a` is the sum of; false where it is none, or of too many.
bool SquaresOf(const Builder& b, const Atom& a, Atoms* roots) {
  static const Prim& add = FindPrim("add");
  constexpr size_t kMost = 8;
  if (const Eqn* e = DefinedBy(b, a, add)) {
    const Atom first = e->operands[0], second = e->operands[1];
    return SquaresOf(b, first, roots) && SquaresOf(b, second, roots);
  }
  const std::optional<Atom> root = RootOf(b, a);
  if (root) roots->push_back(*root);
  return root.has_value() && roots->size() <= kMost;
}

// sqrt(x^2 + y^2 + z^2). Of two there is a formula.
std::optional<Atom> RootOfSquares(Builder& b, const Eqn& e, const Atoms& x) {
  const DType dtype = b.DTypeOf(x[0]);
  if (!e.attrs.entries().empty() || !IsFloat(dtype) || ByteWidth(dtype) >= 8) return std::nullopt;
  Atoms roots;
  if (!SquaresOf(b, x[0], &roots) || roots.size() < 3) return std::nullopt;
  std::optional<Atom> total;
  for (const Atom& root : roots) {
    const Atom wide = Convert(b, root, DType::kF64), square = Mul(b, wide, wide);
    total = total ? Add(b, *total, square) : square;
  }
  return Convert(b, Sqrt(b, *total), dtype);
}

// prod(x)**(1/n), and roots of products: factors of 1e-30.
std::optional<Atom> RootOfProduct(Builder& b, const Eqn& e, const Atoms& x) {
  static const Prim& prod = FindPrim("reduce_prod");
  const DType dtype = b.DTypeOf(x[0]);
  if (!e.attrs.entries().empty() || !IsFloat(dtype) || ByteWidth(dtype) >= 8) return std::nullopt;
  if (CurrentLicences().Allow(Licence::kRounding)) return std::nullopt;
  const Shaped shaped = ThroughShapes(b, x[0]);
  const Eqn* product = DefinedBy(b, shaped.inner, prod);
  const Atom* power = x.size() == 2 ? Splat(b, x[1]) : nullptr;
  if (product == nullptr || (x.size() == 2 && power == nullptr)) return std::nullopt;
  const Ints dims = product->attrs.Get<Ints>("dims");
  const Atom total = Reduce(b, "reduce_prod", Convert(b, product->operands[0], DType::kF64), dims);
  // What is -0 in the narrower dtype has a root there.
  const Atom narrow = Convert(b, total, dtype), zero = Atom::Scalar(dtype, 0), below = Atom::Scalar(DType::kF64, 0);
  const Atom rounded = And(b, Eq(b, narrow, zero), Lt(b, total, below));
  Atoms wide = {Again(b, shaped, Select(b, rounded, Convert(b, narrow, DType::kF64), total))};
  if (power != nullptr) wide.push_back(Atom::Scalar(DType::kF64, power->literal().Get(0).real()));
  return Convert(b, b.Emit1(*e.prim, wide), dtype);
}

const SimplifyRule kRules[] = {
    {"norm", "sqrt", Licence::kAccurate, Norm,
     "fn f(x: f32[3]) { q = mul x x; s = reduce_sum[dims=[0]] q; r = sqrt s; return r }", false,
     RuleTime::kStabilizing},
    {"geometric-mean", "exp", Licence::kAccurate, GeometricMean,
     "fn f(x: f32[3]) { l = log x; s = reduce_sum[dims=[0]] l; m = div s 3.0:f32; r = exp m; return r }", false,
     RuleTime::kStabilizing},
    {"norm", "sqrt", Licence::kAccurate, NormByProduct,
     R"(fn f(x: f32[3]) { s = contract[spec="a,a->"] x x; r = sqrt s; return r })", false, RuleTime::kStabilizing},
    {"root-of-product", "pow", Licence::kAccurate, RootOfProduct,
     "fn f(x: f32[3]) { p = reduce_prod[dims=[0]] x; r = pow p 0.25:f32; return r }", false, RuleTime::kStabilizing},
    {"root-of-product", "sqrt", Licence::kAccurate, RootOfProduct,
     "fn f(x: f32[3]) { p = reduce_prod[dims=[0]] x; r = sqrt p; return r }", false, RuleTime::kStabilizing},
    {"root-of-product", "cbrt", Licence::kAccurate, RootOfProduct,
     "fn f(x: f32[3]) { p = reduce_prod[dims=[0]] x; r = cbrt p; return r }", false, RuleTime::kStabilizing},
    {"root-of-squares", "sqrt", Licence::kAccurate, RootOfSquares,
     R"(fn f(x: f32[3], y: f32[3], z: f32[3]) { a = mul x x; b = square y; c = add a b; d = integer_pow[y=2] z
        e = add c d; r = sqrt e; return r })",
     false, RuleTime::kStabilizing},
};

}  // namespace

absl::Span<const SimplifyRule> NormRules() { return kRules; }

}  // namespace weft
