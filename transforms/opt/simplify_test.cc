// Every rule of simplify.cc on its sample, in every dtype that it can have: the rule applies, results keep the bits
// that its licence promises, for random and special numbers, and so do tangents.
#include "transforms/opt/simplify.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <regex>
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

namespace weft {
namespace {

// The sample with another dtype in place of f32; null where no such program is well-typed.
FnRef SampleIn(DType dtype, const SimplifyRule& rule) {
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
  size_t index = 0;
  bool applied = false;
  const FnRef g = Rewrite(fn, [&](Builder& b, const Eqn& e, const Atoms& x) -> std::optional<Atoms> {
    if (++index != fn->eqns().size()) return std::nullopt;
    EXPECT_EQ(e.prim->name, rule.prim) << rule.name;
    const std::optional<Atom> value = rule.apply(b, e, x);
    applied = value.has_value();
    return value ? std::optional<Atoms>(Atoms{*value}) : std::nullopt;
  });
  return applied ? EliminateDeadCode(g) : nullptr;
}

// Random numbers, half of them special ones: zeros, infinities, NaN, the largest, the smallest and a subnormal number.
Tensor Special(const Type& type, std::mt19937& rng) {
  Tensor t = Draw(type, -4, 4, rng);
  if (!IsFloat(type.dtype)) return t;
  const double inf = std::numeric_limits<double>::infinity();
  const double numbers[] = {0.0, -0.0, 1.0, -1.0, inf, -inf, std::nan(""), 1e300, -1e300, 1e-40, 1e-310, 0x1p-149};
  for (int64_t i = 0; i < t.size(); ++i) {
    if (rng() % 2 == 0) t.Set(i, numbers[rng() % std::size(numbers)]);
  }
  return t;
}

bool Same(double a, double b, Licence licence) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && (licence == Licence::kSignedZero || std::signbit(a) == std::signbit(b));
}

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
    for (int round = 0; round < 50; ++round) {
      Tensors x;
      for (const Param& p : f->params()) x.push_back(Special(p.type, rng));
      const Tensor want = Eval(*f, x)[0], got = Eval(*g, x)[0];
      ASSERT_EQ(got.type(), want.type());
      for (int64_t i = 0; i < want.size(); ++i) {
        const auto u = want.Get(i), v = got.Get(i);
        ASSERT_TRUE(Same(u.real(), v.real(), rule.licence) && Same(u.imag(), v.imag(), rule.licence))
            << Print(*f) << "gives " << u << "\n"
            << Print(*g) << "gives " << v;
      }
    }
  }
}

TEST_P(Rules, KeepsTangents) {
  const SimplifyRule& rule = *GetParam();
  std::mt19937 rng(12);
  const FnRef f = SampleIn(DType::kF64, rule);
  ASSERT_NE(f, nullptr) << rule.sample;
  const FnRef g = Applied(rule, f);
  ASSERT_NE(g, nullptr) << Print(*f);
  Mask active;
  for (const Param& p : f->params()) active.push_back(IsInexact(p.type.dtype));
  const JvpFn df = Jvp(f, active, {true}), dg = Jvp(g, active, {true});
  Tensors x;
  for (const Param& p : df.fn->params()) x.push_back(Draw(p.type, 0.5, 2, rng));
  const Tensors want = Eval(*df.fn, x), got = Eval(*dg.fn, x);
  ASSERT_EQ(want.size(), 2u);
  for (int64_t i = 0; i < want[1].size(); ++i)
    EXPECT_NEAR(got[1].at<double>(i), want[1].at<double>(i), 1e-12) << Print(*f) << Print(*g);
}

TEST_P(Rules, IsWhatThePassDoes) {
  const SimplifyRule& rule = *GetParam();
  const FnRef f = SampleIn(DType::kF32, rule);
  const FnRef simplified = EliminateDeadCode(Simplify(f));
  EXPECT_TRUE(simplified->StructurallyEquals(*Applied(rule, f))) << Print(*f) << "became\n" << Print(*simplified);
}

INSTANTIATE_TEST_SUITE_P(Simplify, Rules, testing::ValuesIn(weft::SimplifyRules()), [](const auto& info) {
  return std::regex_replace(std::string(info.param->name) + "_" + std::to_string(info.index), std::regex("-"), "_");
});

}  // namespace
}  // namespace weft
