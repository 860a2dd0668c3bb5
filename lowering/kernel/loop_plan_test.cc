// Which dimension of a kernel goes into vector lanes.
#include "lowering/kernel/loop_plan.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

struct Kernel : KernelSpec {
  int Add(KernelNode n) {
    n.dtype = DType::kF32;
    nodes.push_back(std::move(n));
    return static_cast<int>(nodes.size()) - 1;
  }
  int Load(const Affine& offset) {
    KernelNode n;
    n.kind = KernelNode::Kind::kLoad;
    n.access = {num_operands++, DType::kF32, offset, {}};
    return Add(n);
  }
  int Op(const std::string& op, std::vector<int> operands) {
    KernelNode n;
    n.op = op;
    n.operands = std::move(operands);
    return Add(n);
  }
  int Sum(int x) {
    KernelNode n;
    n.kind = KernelNode::Kind::kReduce;
    n.op = "sum";
    n.operands = {x};
    return Add(n);
  }
  void Store(int node, const Affine& offset) { stores.push_back({node, {num_operands++, DType::kF32, offset, {}}}); }
};

Target Avx512() {
  Target t;
  t.vector_bytes = 64;
  return t;
}

// The distances of 64 points in space, and a power of them: one power per pair, three coordinates that are next to each
// other. The pairs go into lanes, not the coordinates.
TEST(LoopPlan, AShortContiguousDimensionLeavesLanesEmpty) {
  const Affine i = Affine::Var(0), j = Affine::Var(1), axis = Affine::Var(2);
  Kernel k;
  k.sizes = {64, 64, 3};
  k.num_outer = 2;
  const int apart = k.Op("sub", {k.Load(j * 3 + axis), k.Load(i * 3 + axis)});
  const int r2 = k.Sum(k.Op("mul", {apart, apart}));
  k.Store(apart, i * 192 + j * 3 + axis);
  k.Store(k.Op("pow", {r2, k.Load(Affine(Dim(0)))}), i * 64 + j);
  EXPECT_EQ(PlanLoops(k, Avx512()).vector_dim, 1);
}

// The sum over 64 points of weighted coordinates: the points, although each lane reads an address of its own.
TEST(LoopPlan, ALongReductionRatherThanThreeResults) {
  const Affine i = Affine::Var(0), axis = Affine::Var(1), j = Affine::Var(2);
  Kernel k;
  k.sizes = {64, 3, 64};
  k.num_outer = 2;
  k.Store(k.Sum(k.Op("mul", {k.Load(i * 192 + axis + j * 3), k.Load(i * 64 + j)})), i * 3 + axis);
  const LoopPlan plan = PlanLoops(k, Avx512());
  EXPECT_EQ(plan.vector_dim, 2);
  EXPECT_TRUE(plan.vector_inner);
}

// Sums of exp(x - r) with a number r per row: rows are read along, although r and the sums are contiguous the other
// way.
TEST(LoopPlan, NumbersPerRowWeighLittle) {
  const Affine row = Affine::Var(0), column = Affine::Var(1);
  Kernel k;
  k.sizes = {64, 1024};
  k.num_outer = 1;
  k.Store(k.Sum(k.Op("exp", {k.Op("sub", {k.Load(row * 1024 + column), k.Load(row)})})), row);
  EXPECT_EQ(PlanLoops(k, Avx512()).vector_dim, 1);
}

// Distances of 300 points with 64 coordinates from 300 others: coordinates, which every pair reads again, although the
// results are contiguous the other way.
TEST(LoopPlan, WhatEveryRowReadsAgainWeighsAsOften) {
  const Affine i = Affine::Var(0), j = Affine::Var(1), axis = Affine::Var(2);
  Kernel k;
  k.sizes = {300, 300, 64};
  k.num_outer = 2;
  const int apart = k.Op("sub", {k.Load(i * 64 + axis), k.Load(j * 64 + axis)});
  k.Store(k.Sum(k.Op("mul", {apart, apart})), i * 300 + j);
  const LoopPlan plan = PlanLoops(k, Avx512());
  EXPECT_EQ(plan.vector_dim, 2);
  EXPECT_TRUE(plan.vector_inner);
}

// Contiguous rows that fill the lanes stay: of 16 results with 64 addends each, the results.
TEST(LoopPlan, FullLanesStayContiguous) {
  const Affine row = Affine::Var(0), j = Affine::Var(1);
  Kernel k;
  k.sizes = {16, 64};
  k.num_outer = 1;
  k.Store(k.Sum(k.Load(row + j * 16)), row);
  EXPECT_EQ(PlanLoops(k, Avx512()).vector_dim, 0);
}

// Reductions along the columns of large arrays go in strips of rows, in blocks that are wide and yet make units for
// several threads; small arrays, and rows, do not.
TEST(LoopPlan, ColumnsOfLargeArraysGoInStrips) {
  const auto plan = [](int64_t rows, int64_t columns, bool along_rows) {
    const Affine i = Affine::Var(0), j = Affine::Var(1);
    Kernel k;
    k.sizes = {along_rows ? rows : columns, along_rows ? columns : rows};
    k.num_outer = 1;
    k.Store(k.Sum(k.Load(along_rows ? i * columns + j : i + j * columns)), i);
    return PlanLoops(k, Avx512());
  };
  const LoopPlan large = plan(2048, 2048, false);
  EXPECT_GT(large.strip, 0);
  EXPECT_EQ(large.vector_dim, 0);
  EXPECT_GE(large.block, 256);
  EXPECT_GE(2048 / large.block, 2);
  EXPECT_EQ(large.block % large.lanes, 0);
  EXPECT_EQ(plan(64, 64, false).strip, 0);
  EXPECT_EQ(plan(4, 100000, false).strip, 0);
  EXPECT_EQ(plan(2048, 2048, true).strip, 0);
}

// Products of 39 rows with 100 columns in a fixed order, in 16 leaves of four terms.
Kernel Product(const Affine& y) {
  Kernel k;
  k.sizes = {39, 100, 16, 4};
  k.num_outer = 2;
  const Affine term = Affine::Var(2) * 4 + Affine::Var(3);
  const int row = k.Load(Affine::Var(0) * 64 + term), column = k.Load(y);
  for (int factor : {row, column}) k.nodes[k.Op("convert", {factor})].dtype = DType::kF64;
  k.nodes[k.Sum(2)].op = "tree";
  k.nodes[k.Tree()].operands = {2, 3};
  k.Store(k.Tree(), Affine::Var(0) * 100 + Affine::Var(1));
  return k;
}

TEST(LoopPlan, RowsInAFixedOrderShareColumns) {
  const Affine column = Affine::Var(1), term = Affine::Var(2) * 4 + Affine::Var(3);
  const LoopPlan plan = PlanLoops(Product(term * 100 + column), Avx512());
  EXPECT_EQ(plan.vector_dim, 1);
  EXPECT_EQ(plan.lanes, 32);  // four registers of doubles
  EXPECT_FALSE(plan.vector_inner);
  EXPECT_EQ(plan.row_dim, 0);
  EXPECT_EQ(plan.rows, 4);
  EXPECT_TRUE(plan.may_have_tail);
}

// Gathered lanes are those of one register, which more rows share.
TEST(LoopPlan, RowsInAFixedOrderShareGatheredColumns) {
  const Affine column = Affine::Var(1), term = Affine::Var(2) * 4 + Affine::Var(3);
  const LoopPlan plan = PlanLoops(Product(column * 64 + term), Avx512());
  EXPECT_EQ(plan.vector_dim, 1);
  EXPECT_EQ(plan.lanes, 8);
  EXPECT_EQ(plan.rows, 8);
}

TEST(KernelSpec, LeavesAreNotMergedWithTheirTerms) {
  Kernel k = Product((Affine::Var(2) * 4 + Affine::Var(3)) * 100 + Affine::Var(1));
  k.Collapse();
  EXPECT_EQ(k.sizes.size(), 4u);
  k.sizes[2] = 1;
  k.Collapse();
  EXPECT_EQ(k.sizes.size(), 4u);
}

}  // namespace
}  // namespace weft
