// A program without its numbers, and with them, is what it was.
#include "transforms/opt/numbers.h"

#include <gtest/gtest.h>

#include <limits>

#include "absl/strings/str_replace.h"
#include "ir/builder.h"
#include "ir/eval/eval.h"
#include "ir/ops.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify.h"

namespace weft {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

Tensor Number(DType dtype, std::complex<double> v) {
  Tensor t(dtype, {});
  t.Set(0, v);
  return t;
}

// x * number, x of each shape.
FnRef Product(DType dtype, const Dims& shape, const Tensor& number) {
  Builder b("product");
  const Atom x = b.Parameter({dtype, shape, {}});
  return b.Build({Mul(b, x, Atom(number))});
}

TEST(Numbers, EachParticularOneIsAParameterInEveryDTypeAndShape) {
  for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kC64, DType::kC128}) {
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 3}}) {
      const Tensor number = Number(dtype, {0.3, IsComplex(dtype) ? -1.7 : 0});
      const FnRef fn = Product(dtype, Dims(shape.begin(), shape.end()), number);
      Tensors numbers;
      const FnRef code = NumbersAsParameters(fn, &numbers);
      Verify(*code);
      ASSERT_EQ(numbers.size(), 1u) << Print(*fn);
      ASSERT_EQ(code->params().size(), 2u);
      EXPECT_EQ(code->params()[1].type, number.type());
      // Another number makes the same code.
      Tensors others;
      const FnRef other =
          NumbersAsParameters(Product(dtype, Dims(shape.begin(), shape.end()), Number(dtype, {0.7, 0})), &others);
      EXPECT_TRUE(FnEqual()(code, other)) << Print(*code) << Print(*other);
      Tensor x(dtype, shape);
      for (int64_t i = 0; i < x.size(); ++i) x.Set(i, {0.1 + static_cast<double>(i), 0});
      const Tensor got = Eval(*code, {x, numbers[0]})[0], want = Eval(*fn, {x})[0];
      for (int64_t i = 0; i < want.size(); ++i) EXPECT_EQ(got.Get(i), want.Get(i));
    }
  }
}

TEST(Numbers, AllOfThemAreParametersWhereThatIsAskedFor) {
  for (DType dtype : {DType::kF32, DType::kF64, DType::kC64, DType::kI32, DType::kU8}) {
    FnRef first;
    for (double v : {2.0, 3.0, 5.0, 100.0}) {
      const FnRef fn = Product(dtype, {3}, Number(dtype, v));
      Tensors numbers;
      const FnRef code = NumbersAsParameters(fn, &numbers, WhichNumbers::kAll);
      Verify(*code);
      ASSERT_EQ(numbers.size(), 1u) << Print(*fn);
      if (first == nullptr) first = code;
      EXPECT_TRUE(FnEqual()(first, code)) << Print(*code);
    }
  }
}

TEST(Numbers, WhatProgramsHaveInCommonStays) {
  for (double v : {0.0, -0.0, 1.0, -1.0, 0.5, 0.25, 2.75, 1024.0, kInf, -kInf, kNaN}) {
    const FnRef fn = Product(DType::kF32, {3}, Number(DType::kF32, v));
    Tensors numbers;
    EXPECT_EQ(NumbersAsParameters(fn, &numbers), fn) << v;
    EXPECT_TRUE(numbers.empty());
  }
  const FnRef integers = Product(DType::kI32, {3}, Number(DType::kI32, 123457));
  Tensors numbers;
  EXPECT_EQ(NumbersAsParameters(integers, &numbers), integers);
}

TEST(Numbers, EqualOnesAreOneParameterAndThereAreAtMost32) {
  Builder b("many");
  Atom x = b.Parameter({DType::kF32, {3}, {}});
  for (int i = 0; i < 40; ++i) {
    x = Mul(b, x, Atom(Number(DType::kF32, 0.9 + 0.001 * i)));
    x = Add(b, x, Atom(Number(DType::kF32, 0.9 + 0.001 * i)));
  }
  const FnRef fn = b.Build({x});
  Tensors numbers;
  const FnRef code = NumbersAsParameters(fn, &numbers);
  Verify(*code);
  EXPECT_EQ(numbers.size(), 32u);
  Tensor in(DType::kF32, {3});
  for (int64_t i = 0; i < 3; ++i) in.Set(i, {1.0 + static_cast<double>(i), 0});
  Tensors args = {in};
  args.insert(args.end(), numbers.begin(), numbers.end());
  const Tensor got = Eval(*code, args)[0], want = Eval(*fn, {in})[0];
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(got.Get(i), want.Get(i));
}

constexpr const char* kRegions = R"(
fn body(c: f32[3], k: i32[]) -> (f32[3]) {
  a: f32[3] = mul c 0.3:f32
  b: f32[3] = cond k a (a: f32[3]) -> (f32[3]) {
    r: f32[3] = sub a NUMBER:f32
    return r
  } (a: f32[3]) -> (f32[3]) {
    r: f32[3] = while[num_carry=1] a (a: f32[3]) -> (bool[]) {
      s: f32[] = reduce_max[dims=[0]] a
      m: bool[] = lt s NUMBER:f32
      return m
    } (a: f32[3]) -> (f32[3]) {
      n: f32[3] = add a 0.6:f32
      return n
    }
    t: f32[3] = mul r NUMBER:f32
    return t
  }
  return b
}

fn f(x: f32[3], k: i32[2]) -> (f32[3], f32[3]) {
  a: f32[3] = scan[num_consts=0, num_carry=1, length=<2>, reverse=false] @body x k
  b: f32[3] = mul a 0.7:f32
  c: f32[3] = scan[num_consts=0, num_carry=1, length=<2>, reverse=true] @body b k
  return b, c
}
)";
FnRef WithRegions(const std::string& number) {
  return ParseModule(absl::StrReplaceAll(kRegions, {{"NUMBER", number}})).back();
}

TEST(Numbers, RegionsKeepTheirsWhereParticularOnesAreTaken) {
  Tensors numbers;
  const FnRef code = NumbersAsParameters(WithRegions("0.9"), &numbers);
  Verify(*code);
  ASSERT_EQ(numbers.size(), 1u);
  EXPECT_FLOAT_EQ(static_cast<float>(numbers[0].Get(0).real()), 0.7f);
}

TEST(Numbers, RegionsGetTheirsAsParametersWhereAllAreTaken) {
  FnRef first;
  for (const char* number : {"0.9", "1.7", "2.25"}) {
    const FnRef fn = WithRegions(number);
    Tensors numbers;
    const FnRef code = NumbersAsParameters(fn, &numbers, WhichNumbers::kAll);
    Verify(*code);
    EXPECT_EQ(numbers.size(), 4u);  // each once, wherever it is
    if (first == nullptr) first = code;
    EXPECT_TRUE(FnEqual()(first, code)) << Print(*code);
    Tensor x(DType::kF32, {3}), k(DType::kI32, {2});
    for (int64_t i = 0; i < 3; ++i) x.Set(i, {0.1 + static_cast<double>(i), 0});
    k.Set(1, {1, 0});
    Tensors args = {x, k};
    args.insert(args.end(), numbers.begin(), numbers.end());
    const Tensors got = Eval(*code, args), want = Eval(*fn, {x, k});
    for (size_t r = 0; r < want.size(); ++r) {
      for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(got[r].Get(i), want[r].Get(i));
    }
  }
}

}  // namespace
}  // namespace weft
