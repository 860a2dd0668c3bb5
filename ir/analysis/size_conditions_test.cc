#include "ir/analysis/size_conditions.h"

#include <gtest/gtest.h>

#include <string>

#include "ir/builder.h"
#include "ir/eval/eval.h"
#include "ir/ops.h"

namespace weft {
namespace {

std::string TextOf(const std::vector<SizeCondition>& conditions) {
  std::string text;
  for (const SizeCondition& c : conditions)
    text += c.what + ": " + c.size.ToString() + " >= " + std::to_string(c.least) + " if " + c.reads.ToString() + "\n";
  return text;
}

TEST(SizeConditions, OfSymbolsAlone) {
  const Dim n = Dim::Symbol("n"), m = Dim::Symbol("m");
  Builder b("f");
  const Atom x = b.Parameter({DType::kF32, {m, n + 1}, {}}), known = b.Parameter({DType::kF32, {5}, {}});
  const Atom largest = b.Emit(FindPrim("top_k"), {x}, {{"k", int64_t{3}}})[0];
  const Atom one = b.Emit(FindPrim("top_k"), {x}, {{"k", int64_t{1}}})[0];  // n + 1 is enough
  const Atom again = b.Emit(FindPrim("top_k"), {x}, {{"k", int64_t{2}}})[0];
  const Atom five = b.Emit(FindPrim("top_k"), {known}, {{"k", int64_t{5}}})[0];
  const Atom cut = Pad(b, x, Atom::Scalar(DType::kF32, 0), {-2, 0}, {0, -1}, {0, 0});
  const FnRef fn = b.Build({largest, one, again, five, cut});
  EXPECT_EQ(TextOf(SizeConditions(*fn)),
            "top_k: dimension 1 of f32[m,n+1]: n+1 >= 3 if 1\n"
            "top_k: dimension 1 of f32[m,n+1]: -n-1 >= -2147483648 if 1\n");
  EXPECT_EQ(TextOf(ResultSizes(*fn)), "pad: a dimension of the result f32[m-2,n]: m-2 >= 0 if 1\n");
}

// Upper bounds are bounds of the negative.
TEST(SizeConditions, OfPositions) {
  const Dim n = Dim::Symbol("n");
  Builder b("f");
  const Atom x = b.Parameter({DType::kF32, {n, 3}, {}});
  const Atom size = b.Emit1(FindPrim("dim_size"), {x}, {{"dim", int64_t{0}}});
  const Atom wide = Iota(b, {n}, 0, DType::kI64), narrow = Iota(b, {n}, 0, DType::kI8),
             usual = Iota(b, {n}, 0, DType::kI32);
  const Atom first = b.Emit1(FindPrim("argmax"), {x}, {{"dim", int64_t{1}}, {"dtype", DType::kI8}});
  const FnRef fn = b.Build({size, wide, narrow, usual, first});
  EXPECT_EQ(TextOf(SizeConditions(*fn)), "dim_size: dimension 0 of f32[n,3]: -n >= -2147483647 if 1\n");
  EXPECT_THROW(Iota(b, {Dim(int64_t{1} << 33)}, 0, DType::kI32), Error);
  EXPECT_THROW(b.Emit1(FindPrim("argmax"), {b.Parameter({DType::kF32, {129}, {}})},
                       {{"dim", int64_t{0}}, {"dtype", DType::kI8}}),
               Error);
}

TEST(SizeConditions, OfRegions) {
  const Type array{DType::kF32, {Dim::Symbol("n")}, {}};
  Builder shorter("shorter"), b("f");
  const Atom y = shorter.Parameter(array);
  const Atom cut = Pad(shorter, y, Atom::Scalar(DType::kF32, 0), {-1}, {0}, {0});
  const FnRef region =
      shorter.Build({shorter.Emit1(FindPrim("argmax"), {cut}, {{"dim", int64_t{0}}, {"dtype", DType::kI32}})});
  const Atom which = b.Parameter({DType::kBool, {}, {}}), x = b.Parameter(array);
  const FnRef fn = b.Build(b.Emit(FindPrim("cond"), {which, x}, {}, {region, region}));
  EXPECT_EQ(TextOf(SizeConditions(*fn)), "");
  EXPECT_EQ(TextOf(SizeConditions(*region)),
            "argmax: dimension 0 of f32[n-1]: n-1 >= 1 if 1\n"
            "argmax: dimension 0 of f32[n-1]: -n+1 >= -2147483648 if 1\n");
  EXPECT_EQ(TextOf(ResultSizes(*fn)), "pad: a dimension of the result f32[n-1]: n-1 >= 0 if 1\n");
}

TEST(SizeConditions, TheInterpreterChecksThem) {
  Builder b("f");
  const Atom x = b.Parameter({DType::kF32, {Dim::Symbol("n")}, {}});
  const FnRef fn = b.Build(b.Emit(FindPrim("top_k"), {x}, {{"k", int64_t{3}}}));
  EXPECT_EQ(Eval(*fn, {Tensor::FromVector<float>({3}, {1, 2, 3})})[0].size(), 3);
  EXPECT_THROW(Eval(*fn, {Tensor::FromVector<float>({2}, {1, 2})}), Error);
}

}  // namespace
}  // namespace weft
