// Every element-wise primitive has code for every dtype that it takes.
#include <gtest/gtest.h>

#include "lowering/cpu/scalar_code.h"
#include "lowering/ops/op_table.h"

namespace weft {
namespace {

TEST(ScalarOps, EveryElementwisePrimitiveHasCode) {
  int seen = 0;
  for (const Prim* p : AllPrims()) {
    if (RowOf(*p).as != OpRow::Kind::kElementwise) continue;
    for (int i = 0; i < kNumDTypes; ++i) {
      const auto dtype = static_cast<DType>(i);
      if (!p->dtypes.Has(dtype)) continue;
      ++seen;
      EXPECT_TRUE(HasScalarCode(*p, dtype)) << p->name << " has no row in lowering/cpu/scalar_ops.cc that computes "
                                            << dtype << ", and no function in lowering/abi/math_table.h";
    }
  }
  EXPECT_GT(seen, 300);
}

// The test above can fail.
TEST(ScalarOps, OthersHaveNone) {
  for (const Prim* p : AllPrims()) {
    if (p->is_elementwise()) continue;
    EXPECT_FALSE(HasScalarCode(*p, DType::kF32)) << p->name;
    EXPECT_FALSE(HasScalarCode(*p, DType::kI32)) << p->name;
  }
  EXPECT_FALSE(HasScalarCode(FindPrim("and"), DType::kF32));
  EXPECT_FALSE(HasScalarCode(FindPrim("shift_left"), DType::kF8E5M2));
}

}  // namespace
}  // namespace weft
