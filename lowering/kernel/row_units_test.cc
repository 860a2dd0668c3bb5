// Which units of a kernel compute which rows. The oracle counts: every point of the domain is computed by one unit, in
// the order of the loops, and touches what its offset says.
#include "lowering/kernel/row_units.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace weft {
namespace {

Target OfLanes(int bytes) {
  Target t;
  t.vector_bytes = bytes;
  return t;
}

// stores[last] = relu(loads[0] + ...), each at its offset.
KernelSpec Kernel(std::vector<Dim> sizes, const std::vector<Affine>& loads, const Affine& store, bool sum = false) {
  KernelSpec k;
  k.num_outer = static_cast<int>(sizes.size()) - (sum ? 1 : 0);
  k.sizes = std::move(sizes);
  const auto add = [&](KernelNode n) {
    n.dtype = DType::kF32;
    k.nodes.push_back(std::move(n));
    return static_cast<int>(k.nodes.size()) - 1;
  };
  const auto op = [&](KernelNode::Kind kind, const std::string& name, std::vector<int> operands) {
    KernelNode n;
    n.kind = kind;
    n.op = name;
    n.operands = std::move(operands);
    return add(std::move(n));
  };
  int value = -1;
  for (const Affine& offset : loads) {
    KernelNode n;
    n.kind = KernelNode::Kind::kLoad;
    n.access = {k.num_operands++, DType::kF32, offset, {}};
    const int loaded = add(std::move(n));
    value = value < 0 ? loaded : op(KernelNode::Kind::kOp, "add", {value, loaded});
  }
  if (sum) value = op(KernelNode::Kind::kReduce, "sum", {value});
  k.stores.push_back({value, {k.num_operands++, DType::kF32, store, {}}, false});
  k.written.assign(static_cast<size_t>(k.num_operands), false);
  k.written.back() = true;
  return k;
}

using Range = std::pair<int64_t, int64_t>;

// Of unit `unit`, by operand: the first and the last element that it touches.
std::map<int, Range> TouchedBy(const KernelSpec& k, const LoopPlan& plan, int64_t unit) {
  const size_t rank = k.sizes.size();
  std::vector<int64_t> begin(rank, 0), end(rank);
  for (size_t v = 0; v < rank; ++v) end[v] = *k.sizes[v].TryValue();
  const auto take = [&](int dim, int64_t step) {
    const auto v = static_cast<size_t>(dim);
    const int64_t size = *k.sizes[v].TryValue(), steps = (size + step - 1) / step;
    begin[v] = unit % steps * step;
    end[v] = std::min(size, begin[v] + step);
    unit /= steps;
  };
  if (plan.lanes > 0 && !plan.vector_inner) take(plan.vector_dim, plan.block);
  for (size_t i = plan.unit_dims.size(); i-- > 0;) take(plan.unit_dims[i], plan.Step(plan.unit_dims[i]));
  std::map<int, Range> touched;
  const auto note = [&](const Access& a) {
    int64_t low = *a.offset.constant().TryValue(), high = low;
    for (size_t v = 0; v < rank; ++v) {
      const int64_t c = *a.offset.Coefficient(static_cast<int>(v)).TryValue();
      low += c * (c < 0 ? end[v] - 1 : begin[v]);
      high += c * (c < 0 ? begin[v] : end[v] - 1);
    }
    const auto [at, is_new] = touched.emplace(a.operand, Range{low, high});
    if (!is_new) at->second = {std::min(at->second.first, low), std::max(at->second.second, high)};
  };
  for (const KernelNode& n : k.nodes) {
    if (n.kind == KernelNode::Kind::kLoad) note(n.access);
  }
  for (const KernelStore& s : k.stores) note(s.access);
  return touched;
}

int64_t UnitsIn(const KernelSpec& k, const LoopPlan& plan) {
  int64_t units = 1;
  const auto times = [&](int dim, int64_t step) {
    units *= (*k.sizes[static_cast<size_t>(dim)].TryValue() + step - 1) / step;
  };
  if (plan.lanes > 0 && !plan.vector_inner) times(plan.vector_dim, plan.block);
  for (const int d : plan.unit_dims) times(d, plan.Step(d));
  return units;
}

// What there is for `rows` rows holds, cut at every place where it may be.
RowUnits Checked(const KernelSpec& spec, int64_t rows, int bytes = 64) {
  const KernelSpec k = InRows(spec, rows);
  const LoopPlan plan = PlanLoops(k, OfLanes(bytes));
  const std::optional<RowUnits> found = UnitsOfRows(k, plan, rows);
  if (!found) return {0, 0, {}};
  const int64_t units = UnitsIn(k, plan);
  EXPECT_EQ((rows + found->step - 1) / found->step * found->units, units);
  for (int64_t first = 0; first < rows; first += found->step) {
    const int64_t last = std::min(rows, first + found->step);
    for (int64_t u = first / found->step * found->units; u < (first / found->step + 1) * found->units; ++u) {
      for (const auto& [operand, range] : TouchedBy(k, plan, u)) {
        const int64_t row = found->bytes[static_cast<size_t>(operand)] / 4;
        if (row == 0) continue;
        EXPECT_GE(range.first, first * row) << "unit " << u << ", operand " << operand;
        EXPECT_LT(range.second, last * row) << "unit " << u << ", operand " << operand;
      }
    }
  }
  return *found;
}

const Affine i = Affine::Var(0), j = Affine::Var(1), l = Affine::Var(2);

TEST(RowUnits, ABiasAndWhatIsAsLargeAsTheResult) {
  for (const int64_t n : {8, 17, 100, 512, 1000, 4099}) {
    for (const int bytes : {32, 64}) {
      const RowUnits rows = Checked(Kernel({256, n}, {i * n + j, j, i * n + j}, i * n + j), 256, bytes);
      EXPECT_EQ(rows.step, 1) << n;
      EXPECT_EQ(rows.bytes, (std::vector<int64_t>{4 * n, 0, 4 * n, 4 * n})) << n;
    }
  }
}

// A domain of one dimension, cut at rows although vectors are not.
TEST(RowUnits, RowsOfALongLine) {
  for (const int64_t n : {1, 3, 16, 24, 100, 127, 512, 1000}) {
    for (const int64_t m : {64, 100, 1031}) {
      for (const int bytes : {32, 64}) {
        const RowUnits rows = Checked(Kernel({m * n}, {i, i}, i), m, bytes);
        EXPECT_EQ(rows.units, 1) << m << " " << n;
        EXPECT_EQ(64 % rows.step, 0) << m << " " << n;
        EXPECT_EQ(rows.bytes, (std::vector<int64_t>(3, 4 * n))) << m << " " << n;
      }
    }
  }
}

TEST(RowUnits, SumsOfRows) {
  const RowUnits rows = Checked(Kernel({128, 300}, {i * 300 + j, j}, i, /*sum=*/true), 128);
  EXPECT_EQ(rows.bytes, (std::vector<int64_t>{1200, 0, 4}));
}

// Every result takes in all rows.
TEST(RowUnits, SumsOfColumnsHaveNoRows) {
  for (const int64_t m : {64, 128, 300}) {
    const RowUnits rows = Checked(Kernel({300, m}, {j * 300 + i}, i, /*sum=*/true), m);
    EXPECT_TRUE(rows.bytes.empty() || rows.bytes[0] == 0) << m;
  }
}

// Products of a stack, each of which has rows of its own here; two dimensions that are one stack.
TEST(RowUnits, OfStacks) {
  EXPECT_EQ(Checked(Kernel({12, 40, 50}, {i * 2000 + j * 50 + l, j * 50 + l}, i * 2000 + j * 50 + l), 12).bytes,
            (std::vector<int64_t>{8000, 0, 8000}));
  EXPECT_EQ(Checked(Kernel({480, 50}, {i * 50 + j, j}, i * 50 + j), 12).bytes, (std::vector<int64_t>{8000, 0, 8000}));
  EXPECT_EQ(Checked(Kernel({3, 4, 50}, {i * 200 + j * 50 + l, i * 50 + l}, i * 200 + j * 50 + l), 12).bytes,
            (std::vector<int64_t>{200, 0, 200}));
  EXPECT_EQ(Checked(Kernel({3, 4, 50}, {j * 150 + i * 50 + l}, i * 200 + j * 50 + l), 12).bytes[0], 0);
}

TEST(RowUnits, TransposedReadsAreWalkedInTiles) {
  const RowUnits rows = Checked(Kernel({128, 96}, {j * 128 + i, i * 96 + j}, i * 96 + j), 128);
  EXPECT_EQ(rows.step, 16);
  EXPECT_EQ(rows.bytes, (std::vector<int64_t>{0, 384, 384}));
}

// What a row reads beyond itself, from before itself, or backwards.
TEST(RowUnits, NeighboursAreNotRows) {
  EXPECT_EQ(Checked(Kernel({64, 32}, {i * 32 + j + Affine(Dim(1)), i * 32 + j}, i * 32 + j), 64).bytes,
            (std::vector<int64_t>{0, 128, 128}));
  EXPECT_EQ(Checked(Kernel({64, 32}, {i * 33 + j, i * 31 + j}, i * 32 + j), 64).bytes,
            (std::vector<int64_t>{132, 0, 128}));
  EXPECT_EQ(Checked(Kernel({64, 32}, {i * -32 + j + Affine(Dim(63 * 32))}, i * 32 + j), 64).bytes[0], 0);
}

TEST(RowUnits, SymbolicSizesHaveNone) {
  const Dim n = Dim::Symbol("n");
  const KernelSpec k = Kernel({n, 32}, {i * 32 + j}, i * 32 + j);
  EXPECT_FALSE(UnitsOfRows(k, PlanLoops(k, OfLanes(64)), 64).has_value());
}

}  // namespace
}  // namespace weft
