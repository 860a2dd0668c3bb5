// Functions of symbolic sizes made of functions of sizes that are numbers, and back.
#include "ir/specialize.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/builder.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify.h"

namespace weft {
namespace {

TEST(GeneralizeTest, EqualSizesAreOneSymbol) {
  const FnRef f = ParseFn(
      "fn f(x: f32[60,50], y: f32[50], k: f32[3]) -> (f32[60,50]) {\n"
      "  a: f32[60,50] = broadcast[dims=[1], shape=<60,50>] y\n"
      "  b: f32[60,50] = mul x a\n"
      "  return b\n}\n");
  const FnRef general = Generalize(f, 4);
  ASSERT_TRUE(general);
  EXPECT_EQ(Print(*general),
            "fn f(x: f32[n0,n1], y: f32[n1], k: f32[3]) -> (f32[n0,n1]) {\n"
            "  a: f32[n0,n1] = broadcast[dims=[1], shape=<n0,n1>] y\n"
            "  b: f32[n0,n1] = mul x a\n"
            "  return b\n}\n");
  EXPECT_TRUE(FnEqual{}(Specialize(general, {{"n0", 60}, {"n1", 50}}), f));
}

TEST(GeneralizeTest, FunctionsThatOnlySizesTellApartBecomeOne) {
  const auto of_size = [](int64_t rows, int64_t columns) {
    Builder b("f");
    const Atom x = b.Parameter({DType::kF64, {rows, columns}}), y = b.Parameter({DType::kF64, {rows, 7}});
    const Atom both = b.Emit1(FindPrim("concatenate"), {x, y}, {{"dim", int64_t{1}}});
    return b.Build({b.Emit1(FindPrim("sin"), {both})});
  };
  const FnRef general = Generalize(of_size(60, 50), 8);
  ASSERT_TRUE(general);
  EXPECT_TRUE(FnEqual{}(general, Generalize(of_size(61, 40), 8)));
  // Columns and rows of one number are one symbol: another function.
  const FnRef square = Generalize(of_size(60, 60), 8);
  ASSERT_TRUE(square);
  EXPECT_FALSE(FnEqual{}(general, square));
}

TEST(GeneralizeTest, NothingToGeneralize) {
  const std::string body = "-> (f32[5]) {\n  a: f32[5] = sin x\n  return a\n}\n";
  EXPECT_FALSE(Generalize(ParseFn("fn f(x: f32[5]) " + body), 6)) << "no size is large enough";
  EXPECT_TRUE(Generalize(ParseFn("fn f(x: f32[5]) " + body), 5));
  EXPECT_FALSE(Generalize(ParseFn("fn f() -> () {\n  return\n}\n"), 0));
  EXPECT_FALSE(Generalize(ParseFn("fn f(x: f32[n]) -> (f32[n]) {\n  a: f32[n] = sin x\n  return a\n}\n"), 2))
      << "sizes are symbols already";
}

TEST(GeneralizeTest, AnOperationThatNeedsANumber) {
  // The rows of a literal are as many as they are.
  Builder b("f");
  const Atom x = b.Parameter({DType::kF32, {40}});
  const FnRef f = b.Build({b.Emit1(FindPrim("add"), {x, Atom(Tensor::Zeros(DType::kF32, {40}))})});
  EXPECT_FALSE(Generalize(f, 2));
}

// Whatever comes out is a valid function, and gives the one that it was made of when it is specialized.
class GeneralizedSamplesTest : public ::testing::TestWithParam<const Prim*> {};

TEST_P(GeneralizedSamplesTest, SpecializedAreWhatTheyWereMadeOf) {
  const Prim& prim = *GetParam();
  const std::vector<Sample> samples = prim.samples();
  for (size_t i = 0; i < samples.size(); ++i) {
    const Sample& s = samples[i];
    SCOPED_TRACE(prim.name + ", sample " + std::to_string(i));
    Builder b;
    Atoms operands;
    for (const Type& t : s.operands) operands.push_back(b.Parameter(t));
    const FnRef f = b.Build(b.Emit(prim, operands, s.attrs, s.regions), /*keep_dead=*/true);
    for (const int64_t least : {0, 3}) {
      const FnRef general = Generalize(f, least);
      if (!general) continue;
      Verify(*general);
      std::vector<Type> types;
      for (const Param& p : f->params()) types.push_back(p.type);
      EXPECT_TRUE(FnEqual{}(Specialize(general, MatchArguments(*general, types)), f)) << Print(*general) << Print(*f);
    }
    if (!s.regions.empty()) {
      EXPECT_FALSE(Generalize(f, 0));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GeneralizedSamplesTest, ::testing::ValuesIn(AllPrims()),
                         [](const auto& info) { return info.param->name; });

}  // namespace
}  // namespace weft
