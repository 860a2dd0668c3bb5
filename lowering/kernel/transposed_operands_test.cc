// Which operands are transposed first. That the kernels compute the same is tested on compiled code
// (driver/strips_test.cc).
#include "lowering/kernel/transposed_operands.h"

#include <gtest/gtest.h>

#include "lowering/kernel/loop_plan.h"

namespace weft {
namespace {

using Kind = KernelNode::Kind;

// result[i, j] = sum over k of x[i, k] - y[j, k]
KernelSpec Pairs(int64_t rows, int64_t columns, int64_t features) {
  const Affine i = Affine::Var(0), j = Affine::Var(1), k = Affine::Var(2);
  KernelSpec spec;
  spec.sizes = {Dim(rows), Dim(columns), Dim(features)};
  spec.num_outer = 2;
  KernelNode x, y, apart, sum;
  x.kind = y.kind = Kind::kLoad;
  x.access = {0, DType::kF32, i * Dim(features) + k, {}};
  y.access = {1, DType::kF32, j * Dim(features) + k, {}};
  apart.op = "sub";
  apart.operands = {0, 1};
  sum.kind = Kind::kReduce;
  sum.op = "sum";
  sum.operands = {2};
  spec.nodes = {x, y, apart, sum};
  spec.stores = {{3, {2, DType::kF32, i * Dim(columns) + j, {}}}};
  spec.num_operands = 3;
  spec.written = {false, false, true};
  return spec;
}

TEST(TransposeForLanes, TheOneThatJumpsAlongTheResults) {
  const auto moved = TransposeForLanes(Pairs(600, 500, 16));
  ASSERT_TRUE(moved.has_value());
  ASSERT_EQ(moved->kernels.size(), 2u);
  ASSERT_EQ(moved->transposed.size(), 1u);
  EXPECT_EQ(moved->transposed[0].size().value(), 500 * 16);
  const KernelSpec &copy = moved->kernels[0], &reduction = moved->kernels[1];
  EXPECT_EQ(copy.nodes[0].access.operand, 1);
  EXPECT_EQ(copy.stores[0].access.operand, 3);
  EXPECT_EQ(reduction.nodes[0].access.operand, 0);
  EXPECT_EQ(reduction.nodes[1].access.operand, 3);
  // Now the results go into the lanes.
  Target target;
  target.vector_bytes = 64;
  EXPECT_TRUE(PlanLoops(Pairs(600, 500, 16), target).vector_inner);
  EXPECT_EQ(PlanLoops(reduction, target).vector_dim, 1);
}

TEST(TransposeForLanes, LeavesAloneLongSumsAndWhatIsReadOnce) {
  EXPECT_FALSE(TransposeForLanes(Pairs(600, 500, 1000)));
  EXPECT_FALSE(TransposeForLanes(Pairs(600, 500, 2)));
  EXPECT_FALSE(TransposeForLanes(Pairs(4, 50000, 16)));
  EXPECT_FALSE(TransposeForLanes(Pairs(30, 40, 16)));
}

}  // namespace
}  // namespace weft
