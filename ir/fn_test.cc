// Functions whose regions are shared: what is asked of them takes time by their text, not by their expansion.
#include "ir/fn.h"

#include <gtest/gtest.h>

#include <limits>

#include "ir/builder.h"
#include "ir/ops.h"

namespace weft {
namespace {

// x + 1 + ... + 1, 2^depth times: each level calls the one before twice.
FnRef Doubling(int depth) {
  FnRef f;
  {
    Builder b("one");
    const Expr x{&b, b.Parameter({DType::kF32, {}, {}})};
    f = b.Build({x + 1.0});
  }
  for (int i = 0; i < depth; ++i) {
    Builder b("twice");
    Atom x = b.Parameter({DType::kF32, {}, {}});
    for (int k = 0; k < 2; ++k) x = b.Emit1(FindPrim("call"), {x}, {{"name", std::string("twice")}}, {f});
    f = b.Build({x});
  }
  return f;
}

TEST(FnTest, EquationsOfSharedRegionsCountAsOftenAsTheyOccur) {
  EXPECT_EQ(Doubling(0)->NumEqns(), 1);
  EXPECT_EQ(Doubling(3)->NumEqns(), 8 + 8 + 4 + 2);
  EXPECT_EQ(Doubling(200)->NumEqns(), std::numeric_limits<int64_t>::max());
}

TEST(FnTest, SharedRegionsAreComparedOnce) {
  const FnRef f = Doubling(200), g = Doubling(200);
  ASSERT_NE(f, g);
  EXPECT_TRUE(f->StructurallyEquals(*g));
  EXPECT_FALSE(f->StructurallyEquals(*Doubling(199)));
}

TEST(AttrsTest, NumbersAreEqualWhenTheirBitsAre) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Attrs a = {{"x", nan}}, b = {{"x", nan}}, zero = {{"x", 0.0}}, minus = {{"x", -0.0}};
  EXPECT_EQ(a, b);
  EXPECT_FALSE(zero == minus);
  EXPECT_FALSE(a == zero);
}

}  // namespace
}  // namespace weft
