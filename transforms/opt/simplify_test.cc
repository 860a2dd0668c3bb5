// Every rule on its sample, in every dtype that it can have: the rule applies, results keep what its licence promises,
// for random and special numbers, and so do tangents. python/tests/stability_test.py holds the rules that round
// otherwise to the exact values, over the whole range.
#include "transforms/opt/simplify.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <regex>
#include <sstream>
#include <string>

#include "ir/error.h"
#include "ir/eval/eval.h"
#include "ir/samples/drawn_tensors.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify.h"
#include "transforms/ad/jvp.h"
#include "transforms/opt/pass.h"
#include "transforms/opt/rewrite.h"
#include "transforms/opt/stable_rules.h"

namespace weft {
namespace {

// The sample with another dtype in place of f32; null where no such program is well-typed.
FnRef SampleIn(DType dtype, const SimplifyRule& rule) {
  if (rule.formula != nullptr) return IsFloat(dtype) ? SampleOf(*rule.formula, dtype) : nullptr;
  std::string text = rule.sample;
  if (IsInteger(dtype)) text = std::regex_replace(text, std::regex(R"((\d)\.0:f32)"), "$1:f32");
  if (IsComplex(dtype)) text = std::regex_replace(text, std::regex(R"((-?\d\.0):f32)"), "($1,0.0):f32");
  text = std::regex_replace(text, std::regex("f32"), Name(dtype));
  try {
    return ParseFn(text);
  } catch (const Error&) {
    return nullptr;
  }
}

// `fn` with its last equation replaced by what the rule gives; null where it does not apply.
FnRef Applied(const SimplifyRule& rule, const FnRef& fn) {
  int64_t index = 0;
  bool applied = false;
  const FnRef g = Rewrite(fn, [&](Builder& b, const Eqn& e, const Atoms& x) -> std::optional<Atoms> {
    if (++index != fn->NumEqns()) return std::nullopt;  // regions come first
    EXPECT_EQ(e.prim->name, rule.prim) << rule.name;
    const std::optional<Atom> value = rule.apply(b, e, x);
    applied = value.has_value();
    return value ? std::optional<Atoms>(Atoms{*value}) : std::nullopt;
  });
  return applied ? EliminateDeadCode(g) : nullptr;
}

// Random numbers, half of them special ones: zeros, infinities, NaN, the largest, the smallest and a subnormal number.
Tensor Special(const Type& type, std::mt19937& rng, bool extremes) {
  Tensor t = Draw(type, -4, 4, rng);
  if (!IsFloat(type.dtype)) return t;
  const double inf = std::numeric_limits<double>::infinity();
  const double numbers[] = {0.0, -0.0, 1.0, -1.0, inf, -inf, std::nan(""), 1e300, -1e300, 1e-40, 1e-310, 0x1p-149};
  for (int64_t i = 0; i < t.size(); ++i) {
    if (rng() % 2 == 0) t.Set(i, numbers[rng() % (extremes ? std::size(numbers) : 7)]);
  }
  return t;
}

bool Same(double a, double b, Licence licence) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && (licence == Licence::kSignedZero || std::signbit(a) == std::signbit(b));
}

// Whether `got` may stand for `want`, what the program gives without the rule, where the same in f64 is `exact`: of a
// rule that rounds otherwise. `explained` is what a change of the operands by some digits may make of it.
bool Agrees(double got, double want, double exact, double explained, DType dtype, Licence licence) {
  if (std::isnan(want)) return true;  // no rule has to keep a NaN that is not the truth
  if (std::isnan(exact) || std::isinf(exact)) return std::isinf(want) || !std::isnan(got);
  if (std::isnan(got)) return licence == Licence::kNoNan;
  if (std::fabs(exact) >= std::ldexp(1.0, RowOf(dtype).max_exponent - 1)) return true;  // overflows, or nearly
  if (std::isinf(got)) return false;
  const double digit = dtype == DType::kF64 ? 1e-11 : std::ldexp(1.0, 1 - RowOf(dtype).digits);
  const double error = std::fabs(got - exact);
  return error <= 64 * digit * (std::fabs(exact) + explained) + 1e-11 || error <= std::fabs(want - exact);
}

// The same of a rule that sums products in another order; `magnitude` is the sum of the magnitudes of all of them. It
// bounds the error of every order, as long as none of the products overflows.
bool AgreesAsProduct(std::complex<double> got, std::complex<double> exact, double magnitude, DType dtype) {
  const auto is_finite = [](std::complex<double> x) { return std::isfinite(x.real()) && std::isfinite(x.imag()); };
  if (std::isnan(exact.real()) || std::isnan(exact.imag())) return true;
  if (!is_finite(exact)) return !is_finite(got);
  if (!std::isfinite(magnitude)) return is_finite(got);
  const DType part = IsComplex(dtype) ? RealPart(dtype) : dtype;
  const double digit = part == DType::kF64 ? 1e-14 : std::ldexp(1.0, 1 - RowOf(part).digits);
  return std::abs(got - exact) <= 64 * digit * magnitude;
}

// Operands of which the program gives the sum of the magnitudes of its products: a sum in place of each difference, and
// triangles that solve as if no two terms had different signs.
Tensors Magnitudes(const Fn& fn, const Tensors& x) {
  Tensors out;
  for (size_t i = 0; i < x.size(); ++i) {
    double sign = 1;
    for (const Eqn& e : fn.eqns()) {
      if (e.prim->name == "triangular_solve" && e.operands[0] == Atom(Var{static_cast<uint32_t>(i)})) sign = -1;
    }
    Tensor t(DType::kF64, x[i].shape());
    for (int64_t k = 0; k < t.size(); ++k) t.Set(k, sign * std::abs(x[i].Get(k)));
    out.push_back(t);
  }
  return out;
}

// What is wrong with a rule that gives `g` in place of `f`; empty: nothing.
std::string Broken(const FnRef& f, const FnRef& g, Licence licence, DType dtype) {
  std::mt19937 rng(11);
  // Sums and products in another order.
  const bool products = licence == Licence::kProducts || licence == Licence::kReassociate;
  const bool bits = licence == Licence::kExact || licence == Licence::kSignedZero || (products && IsInteger(dtype));
  const DType widest = products && IsComplex(dtype) ? DType::kC128 : DType::kF64;
  const auto in_f64 = [&](const Tensor& t) {
    Tensor wide(widest, t.shape());
    for (int64_t i = 0; i < t.size(); ++i) wide.Set(i, t.Get(i));
    return wide;
  };
  const FnRef exact = bits ? nullptr : ParseFn(std::regex_replace(Print(*f), std::regex(Name(dtype)), Name(widest)));
  FnRef sizes;
  if (!bits && products) {
    std::string text = std::regex_replace(Print(*f), std::regex(Name(dtype)), "f64");
    text = std::regex_replace(text, std::regex(" sub "), " add ");
    sizes = ParseFn(std::regex_replace(text, std::regex(R"(\(([-.0-9]+),0\.0\):f64)"), "$1:f64"));
  }
  for (int round = 0; round < 50; ++round) {
    Tensors x, wide;
    for (const Param& p : f->params()) {
      x.push_back(bits || round % 2 == 0 ? Special(p.type, rng, !products) : Draw(p.type, -4, 4, rng));
      if (!bits) wide.push_back(in_f64(x.back()));
    }
    const Tensor want = Eval(*f, x)[0], got = Eval(*g, x)[0];
    if (got.type() != want.type()) return "has another type";
    const Tensor truth = bits ? want : Eval(*exact, wide)[0];
    const Tensor magnitude = sizes ? Eval(*sizes, Magnitudes(*f, wide))[0] : truth;
    double largest = 0;  // of ordinary operands
    for (const Tensor& t : x) {
      for (int64_t i = 0; i < t.size(); ++i) {
        if (std::fabs(t.Get(i).real()) <= 4) largest = std::max(largest, std::fabs(t.Get(i).real()));
      }
    }
    for (int64_t i = 0; i < want.size(); ++i) {
      const auto u = want.Get(i), v = got.Get(i);
      const bool kept = bits       ? Same(u.real(), v.real(), licence) && Same(u.imag(), v.imag(), licence)
                        : products ? AgreesAsProduct(v, truth.Get(i), magnitude.Get(i).real(), dtype)
                                   : Agrees(v.real(), u.real(), truth.Get(i).real(), largest / 16, dtype, licence);
      if (kept) continue;
      std::ostringstream what;
      what << Print(*f) << "gives " << u << "\n" << Print(*g) << "gives " << v << ", and in f64 " << truth.Get(i);
      for (const Tensor& t : x) what << "\n  for " << (t.rank() == 0 ? t.Get(0) : t.Get(i % t.size()));
      return what.str();
    }
  }
  return "";
}

Licences EveryLicence() { return Licences::Named({"rounding", "no-nan", "reassociate"}); }

class Rules : public testing::TestWithParam<const SimplifyRule*> {};

TEST_P(Rules, KeepsWhatItsLicencePromises) {
  const SimplifyRule& rule = *GetParam();
  std::mt19937 rng(11);
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI32, DType::kI8, DType::kU8,
                            DType::kI64, DType::kC64, DType::kC128}) {
    const FnRef f = SampleIn(dtype, rule);
    const FnRef g = f ? Applied(rule, f) : nullptr;
    if (dtype == DType::kF32) {
      ASSERT_NE(f, nullptr) << rule.sample;
      ASSERT_NE(g, nullptr) << "the rule does not apply to its sample\n" << Print(*f);
    }
    if (g == nullptr) continue;
    Verify(*g);
    const std::string broken = Broken(f, g, rule.licence, dtype);
    ASSERT_EQ(broken, "") << Name(dtype);
  }
}

// `fn` with numbers in place of some parameters; null where no such program is well-typed.
FnRef WithNumbers(const Fn& fn, uint64_t which, double number) {
  Builder b(fn.name());
  Atoms x;
  for (size_t i = 0; i < fn.params().size(); ++i) {
    const Type& type = fn.params()[i].type;
    if ((which >> i & 1) != 0 && !IsFloat(type.dtype)) return nullptr;
    x.push_back((which >> i & 1) != 0 ? Atom::Scalar(type.dtype, number) : b.Parameter(type));
  }
  try {
    const Atoms results = b.Inline(fn, x);
    const FnRef made = std::move(b).Build(results);
    return made->ResultTypes() == fn.ResultTypes() ? made : nullptr;
  } catch (const Error&) {
    return nullptr;
  }
}

TEST_P(Rules, TakeNumbersForOperands) {
  const SimplifyRule& rule = *GetParam();
  const FnRef f = SampleIn(DType::kF32, rule);
  // Where sums may be ordered otherwise, the sum of the magnitudes bounds the error: of numbers with signs it is none.
  const bool signs = rule.licence != Licence::kProducts && rule.licence != Licence::kReassociate;
  const auto subsets = uint64_t{1} << std::min<size_t>(f->params().size(), 4);
  for (uint64_t which = 1; which < subsets; ++which) {
    for (const double number : {2.5, 0.25, -1.5, 1.0, 0.0}) {
      if (number < 0 && !signs) continue;
      const FnRef fewer = WithNumbers(*f, which, number);
      const FnRef g = fewer ? Applied(rule, fewer) : nullptr;
      if (g == nullptr) continue;
      Verify(*g);
      ASSERT_EQ(Broken(fewer, g, rule.licence, DType::kF32), "") << number;
    }
  }
}

// What the tests above find.
TEST(Laws, FindAWrongRule) {
  const FnRef f = ParseFn("fn f(x: f32[3]) { a = exp x; b = add 1.0:f32 a; c = log b; return c }");
  const FnRef wrong = ParseFn("fn f(x: f32[3]) { a = add x 7.0:f32; return a }");
  const FnRef right = ParseFn("fn f(x: f32[3]) { a = softplus x; return a }");
  for (int i = 0; i < kNumLicences; ++i)
    EXPECT_NE(Broken(f, wrong, static_cast<Licence>(i), DType::kF32), "") << Name(static_cast<Licence>(i));
  EXPECT_EQ(Broken(f, right, Licence::kAccurate, DType::kF32), "");
  EXPECT_NE(Broken(f, right, Licence::kExact, DType::kF32), "");
  const FnRef product = ParseFn(R"(fn f(x: f32[3,3], y: f32[3,3]) { a = contract[spec="az,zy->ay"] x y; return a })");
  const FnRef transposed =
      ParseFn(R"(fn f(x: f32[3,3], y: f32[3,3]) { a = contract[spec="az,yz->ay"] x y; return a })");
  const FnRef swapped = ParseFn(R"(fn f(x: f32[3,3], y: f32[3,3]) { a = contract[spec="zy,az->ay"] y x; return a })");
  EXPECT_NE(Broken(product, transposed, Licence::kProducts, DType::kF32), "");
  EXPECT_EQ(Broken(product, swapped, Licence::kProducts, DType::kF32), "");
}

TEST_P(Rules, KeepsTangents) {
  const SimplifyRule& rule = *GetParam();
  std::mt19937 rng(12);
  const FnRef f = SampleIn(DType::kF64, rule);
  ASSERT_NE(f, nullptr);
  const FnRef g = Applied(rule, f);
  if (g == nullptr) {  // a rule for what a wider dtype has
    ASSERT_NE(Applied(rule, SampleIn(DType::kF32, rule)), nullptr) << Print(*f);
    return;
  }
  if (!IsInexact(f->ResultTypes()[0].dtype)) return;  // a place has no tangent
  Mask active;
  for (const Param& p : f->params()) active.push_back(IsInexact(p.type.dtype));
  const JvpFn df = Jvp(f, active, {true}), dg = Jvp(g, active, {true});
  Tensors x;
  for (const Param& p : df.fn->params()) x.push_back(Draw(p.type, 0.5, 2, rng));
  const Tensors want = Eval(*df.fn, x), got = Eval(*dg.fn, x);
  ASSERT_EQ(want.size(), 2u);
  for (int64_t i = 0; i < want[1].size(); ++i) {
    const double a = got[1].at<double>(i), w = want[1].at<double>(i);
    if (std::isnan(w)) continue;  // outside of its domain
    EXPECT_NEAR(a, w, 1e-12 + 1e-9 * std::fabs(w)) << Print(*f) << Print(*g);
  }
}

TEST_P(Rules, IsWhatThePassDoes) {
  const SimplifyRule& rule = *GetParam();
  const FnRef f = SampleIn(DType::kF32, rule);
  // With more licences others may come before it.
  const ScopedLicences its(Licences::Named({Name(rule.licence)}));
  const FnRef applied = Applied(rule, f);
  ASSERT_NE(applied, nullptr);
  if (rule.time == RuleTime::kBeforeDerivatives) {
    EXPECT_TRUE(EliminateDeadCode(Stabilize(f))->StructurallyEquals(*applied));
    EXPECT_TRUE(EliminateDeadCode(Simplify(f))->StructurallyEquals(*f));
    return;
  }
  const FnRef simplified = EliminateDeadCode(Simplify(f));
  EXPECT_TRUE(simplified->StructurallyEquals(*applied)) << Print(*f) << "became\n" << Print(*simplified);
}

TEST_P(Rules, NeedItsLicence) {
  const SimplifyRule& rule = *GetParam();
  if (rule.licence == Licence::kExact) return;
  const FnRef f = SampleIn(DType::kF32, rule);
  FnRef applied;
  {
    const ScopedLicences its(Licences::Named({Name(rule.licence)}));  // rules ask others
    applied = Applied(rule, f);
  }
  ASSERT_NE(applied, nullptr);
  const char* less = rule.licence > Licence::kAccurate      ? "accurate"
                     : rule.licence == Licence::kSignedZero ? "exact"
                                                            : "signed-zero";
  const ScopedLicences others(Licences::Named({less}));
  for (const FnRef& g : {Simplify(f), Stabilize(f)}) EXPECT_FALSE(g->StructurallyEquals(*applied)) << Print(*g);
}

TEST_P(Rules, ComeToAnEnd) {
  const ScopedLicences all(EveryLicence());
  for (const auto& pass : {Simplify, Stabilize}) {
    FnRef f = SampleIn(DType::kF32, *GetParam());
    for (int i = 0; i < 6; ++i) f = EliminateDeadCode(pass(f));
    EXPECT_TRUE(EliminateDeadCode(pass(f))->StructurallyEquals(*f)) << Print(*f) << Print(*pass(f));
  }
}

INSTANTIATE_TEST_SUITE_P(Simplify, Rules, testing::ValuesIn(weft::SimplifyRules()), [](const auto& info) {
  return std::regex_replace(std::string(info.param->name) + "_" + std::to_string(info.index), std::regex("-"), "_");
});

}  // namespace
}  // namespace weft
