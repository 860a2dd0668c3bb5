// Costs against counts made by hand.
#include "ir/analysis/cost.h"

#include <gtest/gtest.h>

#include "ir/text/parser.h"

namespace weft {
namespace {

Cost Of(const std::string& text, CostOptions options = {}) { return CostOf(*ParseFn(text), options); }

TEST(CostTest, ElementwiseCountsWorkPerElementAndEveryArrayOnce) {
  const Cost c = Of("fn f(x: f32[10,20]) -> (f32[10,20]) {\n  y: f32[10,20] = mul x 2.0:f32\n  return y\n}");
  EXPECT_EQ(c.flops, 200);
  EXPECT_EQ(c.bytes, 2 * 200 * 4);  // the number is no traffic
  EXPECT_GT(Of("fn f(x: f64[10]) -> (f64[10]) {\n  y: f64[10] = exp x\n  return y\n}").flops, 100);
}

// Such an equation, at the end of a function without another value, has no variable.
TEST(CostTest, EquationsWithoutResults) {
  EXPECT_EQ(Of("fn f() -> () {\n  debug_print[format=\"a\"]\n  return\n}").flops, 0);
  EXPECT_EQ(Of("fn f(x: f32[]) -> () {\n  debug_print[format=\"a\"]\n  return\n}").flops, 0);
}

TEST(CostTest, ContractionsCountProductsAndSums) {
  const Cost c =
      Of("fn f(x: f32[8,3,4], y: f32[8,4,5]) -> (f32[8,3,5]) {\n  z: f32[8,3,5] = contract[spec=\"bmk,bkn->bmn\"] x y\n"
         "  return z\n}");
  EXPECT_EQ(c.flops, 2.0 * 8 * 3 * 4 * 5);
  EXPECT_EQ(c.bytes, 4 * (8 * 3 * 4 + 8 * 4 * 5 + 8 * 3 * 5));
}

TEST(CostTest, ReductionsReadTheirOperand) {
  const Cost c = Of("fn f(x: f32[6,7]) -> (f32[6]) {\n  y: f32[6] = reduce_sum[dims=[1]] x\n  return y\n}");
  EXPECT_EQ(c.flops, 42);
  EXPECT_EQ(c.bytes, 4 * (42 + 6));
}

TEST(CostTest, SymbolicSizesTakeTheAssumedSize) {
  CostOptions options;
  options.symbol = 10;
  const char* text = "fn f(x: f32[n,2*n+1]) -> (f32[n,2*n+1]) {\n  y: f32[n,2*n+1] = neg x\n  return y\n}";
  EXPECT_EQ(Of(text, options).flops, 10 * 21);
}

TEST(CostTest, ACountedLoopCostsItsBodyTimesItsLength) {
  const Cost c =
      Of("fn f(x: f32[4]) -> (f32[4]) {\n"
         "  y: f32[4] = scan[length=<9>, num_carry=1, num_consts=0, reverse=false] x (a: f32[4]) {\n"
         "    b: f32[4] = add a a\n    return b\n  }\n"
         "  return y\n}");
  EXPECT_EQ(c.flops, 9 * 4);
  EXPECT_EQ(c.bytes, 9 * 2 * 16);  // a is read once
}

TEST(CostTest, FusedValuesDoNotReachMemory) {
  const Cost c =
      Of("fn f(x: f32[10], y: f32[10]) -> (f32[10], f32[]) {\n"
         "  a: f32[10] = mul x y\n  b: f32[10] = add a x\n  s: f32[] = reduce_sum[dims=[0]] a\n  return b, s\n}");
  EXPECT_EQ(c.flops, 30);
  EXPECT_EQ(c.bytes, 3 * 40 + 4);  // x and y are read, b and s written
  // A product wants its operand as an array.
  const Cost d =
      Of("fn f(x: f32[10]) -> (f32[]) {\n"
         "  a: f32[10] = neg x\n  s: f32[] = contract[spec=\"i,i->\"] a a\n  return s\n}");
  EXPECT_EQ(d.bytes, 40 + 40 + 40 + 4);
}

}  // namespace
}  // namespace weft
