// A prepared program gives what Eval gives, and refuses what Eval refuses.
#include "ir/eval/eval.h"

#include <gtest/gtest.h>

#include <string>

#include "ir/builder.h"
#include "ir/ops.h"

namespace weft {
namespace {

FnRef Program(const Dim& n) {
  Builder b("f");
  const Expr x{&b, b.Parameter({DType::kF32, {n, 3}, {}}, "x")}, y{&b, b.Parameter({DType::kF32, {n, 3}, {}}, "y")};
  const Expr z = x * y + 2.0;
  return b.Build({ReduceSum(b, z, {0}), z});
}

Tensor Rows(int64_t n, float first) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < n * 3; ++i) numbers.push_back(first + static_cast<float>(i));
  return Tensor::FromVector<float>({n, 3}, numbers);
}

std::string MessageOf(const PreparedEval& f, const Tensors& args) {
  try {
    f(args);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(PreparedEvalTest, GivesWhatEvalGives) {
  for (const Dim& n : {Dim(2), Dim::Symbol("n")}) {
    const FnRef fn = Program(n);
    const PreparedEval prepared(fn);
    for (int call = 0; call < 3; ++call) {
      const int64_t rows = n.is_static() ? 2 : 1 + call;
      const Tensors args = {Rows(rows, static_cast<float>(call)), Rows(rows, -2)};
      const int64_t before = EvalCount();
      const Tensors got = prepared(args), wanted = Eval(*fn, args);
      EXPECT_EQ(EvalCount(), before + 2);
      ASSERT_EQ(got.size(), 2u);
      for (size_t r = 0; r < 2; ++r) EXPECT_TRUE(got[r].BitEquals(wanted[r]));
    }
  }
}

TEST(PreparedEvalTest, RefusesWhatDoesNotFit) {
  const PreparedEval prepared(Program(Dim(2)));
  EXPECT_NE(MessageOf(prepared, {Rows(2, 0), Rows(3, 0)}).find("argument 1 (y) is f32[3,3], expected f32[2,3]"),
            std::string::npos);
  EXPECT_NE(MessageOf(prepared, {Rows(2, 0)}).find("takes 2 arguments, got 1"), std::string::npos);
}

}  // namespace
}  // namespace weft
