// Long reductions in parts: what is split, into what, and what stays whole. That the parts compute the same is tested
// on compiled code (driver/reductions_test.cc).
#include "lowering/kernel/split_reduction.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

using Kind = KernelNode::Kind;

// store[rows] = reduce of load[rows, row] over the last dimension.
KernelSpec Reduction(const std::string& op, int64_t rows, int64_t row, DType dtype = DType::kF32) {
  KernelSpec k;
  if (rows > 1) k.sizes.push_back(rows);
  k.num_outer = static_cast<int>(k.sizes.size());
  k.sizes.push_back(row);
  const int inner = k.num_outer;
  KernelNode load;
  load.kind = Kind::kLoad;
  load.dtype = dtype;
  load.access = {0, dtype, Affine::Var(inner), {}};
  if (rows > 1) load.access.offset = load.access.offset + Affine::Var(0) * Dim(row);
  KernelNode reduce;
  reduce.kind = Kind::kReduce;
  reduce.op = op;
  reduce.dtype = dtype;
  reduce.operands = {0};
  k.nodes = {load, reduce};
  k.num_operands = 2;
  k.written = {false, true};
  k.stores = {{1, {1, dtype, rows > 1 ? Affine::Var(0) : Affine(), {}}}};
  return k;
}

TEST(SplitLongReduction, CoversEveryElementOnce) {
  for (int64_t n : {1000003, 10000000, 1048576}) {
    const auto split = SplitLongReduction(Reduction("sum", 1, n));
    ASSERT_TRUE(split.has_value());
    ASSERT_EQ(split->partial.size(), 1u);
    int64_t elements = 0, parts = 0;
    for (size_t i = 0; i + 1 < split->kernels.size(); ++i) {
      int64_t points = 1;
      for (const Dim& d : split->kernels[i].sizes) points *= d.value();
      elements += points;
      parts += split->kernels[i].num_outer == 0 ? 1 : split->kernels[i].sizes[0].value();
    }
    EXPECT_EQ(elements, n);
    EXPECT_EQ(split->partial[0].size().value(), parts);
    EXPECT_EQ(split->kernels.back().sizes.back().value(), parts);
    EXPECT_GE(parts, 16);
  }
}

// Reductions over nothing cannot be run: what is left over may be one element.
TEST(SplitLongReduction, EveryKernelReduces) {
  int of_one = 0;
  for (int64_t columns : {2999, 4000}) {
    for (int64_t n = 20; n < 400; ++n) {
      KernelSpec k = Reduction("sum", columns, n);
      k.nodes[0].access.offset = Affine::Var(0) + Affine::Var(1) * Dim(columns);
      const auto split = SplitLongReduction(k);
      if (!split) continue;
      for (const KernelSpec& part : split->kernels) {
        ASSERT_GT(part.sizes.size(), static_cast<size_t>(part.num_outer)) << n << "\n" << part.ToString();
        of_one += part.sizes.back() == Dim(1) ? 1 : 0;
      }
    }
  }
  EXPECT_GT(of_one, 0);
}

TEST(SplitLongReduction, LeavesAloneWhatIsCheapOrHasManyRows) {
  EXPECT_FALSE(SplitLongReduction(Reduction("sum", 1, 10000)));
  EXPECT_FALSE(SplitLongReduction(Reduction("sum", 1024, 100000)));
  EXPECT_TRUE(SplitLongReduction(Reduction("sum", 4, 1000000)));
}

TEST(SplitLongReduction, PartsOfHalvesKeepThePrecisionOfRegisters) {
  const auto split = SplitLongReduction(Reduction("sum", 1, 1000000, DType::kBF16));
  ASSERT_TRUE(split.has_value());
  EXPECT_EQ(split->partial[0].dtype, DType::kF32);
}

TEST(SplitLongReduction, LeavesAloneWhatReadsARowAgain) {
  KernelSpec k = Reduction("sum", 8, 100000);
  EXPECT_TRUE(SplitLongReduction(k));
  KernelNode centred;
  centred.op = "sub";
  centred.operands = {0, 1};
  k.nodes.push_back(centred);
  k.num_operands = 3;
  k.written.push_back(true);
  k.stores.push_back({2, {2, DType::kF32, k.nodes[0].access.offset, {}}});
  EXPECT_FALSE(SplitLongReduction(k));
  k.stores.back().node = 0;  // of every element, but not of the sum
  EXPECT_TRUE(SplitLongReduction(k));
}

TEST(SplitLongReduction, PlacesOfExtremesArePairs) {
  const int64_t n = 1000003;
  KernelSpec k = Reduction("argmax", 1, n, DType::kF16);
  KernelNode where;
  where.kind = Kind::kIndex;
  where.dtype = DType::kI32;
  where.index = Affine::Var(0);
  k.nodes.insert(k.nodes.begin() + 1, where);
  k.nodes[2].operands = {0, 1};
  k.nodes[2].dtype = DType::kU8;
  k.stores[0].node = 2;
  const auto split = SplitLongReduction(k);
  ASSERT_TRUE(split.has_value());
  // The extreme value and its index among all elements, not in the type of the result.
  ASSERT_EQ(split->partial.size(), 2u);
  EXPECT_EQ(split->partial[0].dtype, DType::kF32);
  EXPECT_EQ(split->partial[1].dtype, DType::kI32);
  const KernelSpec &parts = split->kernels[0], &total = split->kernels.back();
  EXPECT_NE(parts.ToString().find("reduce_max %0"), std::string::npos) << parts.ToString();
  EXPECT_NE(parts.ToString().find("= index 0+i0*"), std::string::npos) << parts.ToString();
  EXPECT_NE(total.ToString().find("u8 = reduce_argmax %0 %1"), std::string::npos) << total.ToString();
}

}  // namespace
}  // namespace weft
