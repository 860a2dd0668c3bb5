// Every primitive has a row, and a row says all that its kind needs.
#include "lowering/ops/op_table.h"

#include <gtest/gtest.h>

#include <set>

namespace weft {
namespace {

using Kind = OpRow::Kind;

TEST(OpTable, EveryPrimitiveHasARow) {
  for (const Prim* p : AllPrims()) EXPECT_NE(RowOf(*p).as, Kind::kNone) << p->name << " has no row in op_table.cc";
}

TEST(OpTable, NumbersOfPrimitivesAreDense) {
  std::set<int> ids;
  for (const Prim* p : AllPrims()) ids.insert(p->id);
  ASSERT_EQ(ids.size(), AllPrims().size());
  EXPECT_EQ(*ids.begin(), 0);
  EXPECT_EQ(*ids.rbegin(), static_cast<int>(AllPrims().size()) - 1);
}

TEST(OpTable, RowsAreComplete) {
  for (const Prim* p : AllPrims()) {
    const OpRow& row = RowOf(*p);
    EXPECT_EQ(row.as == Kind::kElementwise, p->is_elementwise() && row.as != Kind::kReplaced) << p->name;
    EXPECT_EQ(row.as == Kind::kReplaced, row.replace != nullptr) << p->name;
    EXPECT_EQ(row.as == Kind::kView, (row.index != nullptr) != (row.value != nullptr)) << p->name;
    EXPECT_EQ(row.as == Kind::kStep || row.as == Kind::kArgReduction, row.emit != nullptr) << p->name;
    EXPECT_TRUE(row.library == nullptr || row.emit != nullptr) << p->name;
    const bool in_kernels = row.as == Kind::kElementwise || row.as == Kind::kReduction || row.as == Kind::kArgReduction;
    EXPECT_EQ(!row.kernel_op.empty(), in_kernels) << p->name;
    EXPECT_TRUE(row.number == nullptr || row.as == Kind::kElementwise) << p->name;
    EXPECT_TRUE(!row.at_data || row.value != nullptr) << p->name;
  }
}

// What the IR says of an operation and how it is lowered agree.
TEST(OpTable, ViewsAreViews) {
  for (const Prim* p : AllPrims()) {
    const OpRow& row = RowOf(*p);
    EXPECT_EQ(row.as == Kind::kView && !row.at_data, p->view) << p->name;
    EXPECT_EQ(p->is_callback(), p->name.ends_with("_callback")) << p->name;
    const bool is_code = row.as == Kind::kStep && p->family == Family::kControl && p->region_use != RegionUse::kNone;
    if (p->region_use == RegionUse::kWithRules || p->region_use == RegionUse::kCall) {
      EXPECT_FALSE(is_code) << p->name << " is computed by its region";
    }
  }
}

// Rows that share a library call are told apart by their number.
TEST(OpTable, LibraryCallsAreDistinct) {
  std::set<std::pair<OpRow::Library, int>> seen;
  const std::set<std::string> same = {"io_callback"};  // is pure_callback, but for what may be dropped
  for (const Prim* p : AllPrims()) {
    const OpRow& row = RowOf(*p);
    if (row.library == nullptr || same.count(p->name)) continue;
    EXPECT_TRUE(seen.insert({row.library, row.kind}).second) << p->name;
  }
}

}  // namespace
}  // namespace weft
