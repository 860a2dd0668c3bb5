#include "transforms/shard/processes.h"

#include <gtest/gtest.h>

#include "ir/builder.h"
#include "ir/ops.h"
#include "ir/prim.h"
#include "ir/verify.h"
#include "transforms/shard/partition.h"

namespace weft {
namespace {

const Mesh kGrid{{{"x", 2}, {"y", 3}}};

Tensor Counting(Shape shape) {
  Tensor t(DType::kI32, std::move(shape));
  for (int64_t i = 0; i < t.size(); ++i) t.data<int32_t>()[i] = static_cast<int32_t>(i);
  return t;
}

// Every block of every process, element by element from its definition.
TEST(Processes, StacksHoldTheBlocksOfTheirDevicesOnce) {
  const Tensor whole = Counting({6, 4, 6});
  const std::vector<Sharding> shardings = {
      {{{}, {}, {}}, {}},       {{{"x"}, {}, {}}, {}},      {{{}, {"x"}, {"y"}}, {}},
      {{{"y"}, {}, {"x"}}, {}}, {{{"x", "y"}, {}, {}}, {}}, {{{}, {}, {"y", "x"}}, {}},
  };
  const std::vector<Ints> owners = {{0, 0, 0, 1, 1, 1}, {0, 1, 2, 0, 1, 2}, {0, 1, 1, 0, 2, 0}, {5, 5, 5, 5, 5, 5}};
  for (const Sharding& s : shardings) {
    const Type local = LocalType(kGrid, s, whole.type(), "test");
    for (const Ints& of : owners) {
      for (int64_t process : {0, 1, 2, 5}) {
        Ints processes = {process};
        processes.insert(processes.end(), of.begin(), of.end());
        const HeldBlocks held = BlocksHeld(kGrid, s, processes);
        if (held.devices.empty()) continue;
        const auto layout = ShardLayout::Make(kGrid, s, processes, whole.dtype(), whole.shape(), nullptr);
        const Tensor stack = StackOfBlocks(whole, *layout);
        ASSERT_EQ(stack.shape()[0], static_cast<int64_t>(held.index.size()));
        size_t n = 0;
        for (int64_t device = 0; device < 6; ++device) {
          if (of[static_cast<size_t>(device)] != process) continue;
          ASSERT_EQ(held.devices[n], device);
          const auto block = static_cast<int64_t>(held.place[n++]);
          int64_t at = block * local.size().value("test");
          for (int64_t i = 0; i < local.dims[0].value("test"); ++i) {
            for (int64_t j = 0; j < local.dims[1].value("test"); ++j) {
              for (int64_t k = 0; k < local.dims[2].value("test"); ++k) {
                const std::vector<int64_t> place = kGrid.Coordinates(device);
                const int64_t gi = BlockOf(kGrid, s, 0, place).index * local.dims[0].value("test") + i;
                const int64_t gj = BlockOf(kGrid, s, 1, place).index * local.dims[1].value("test") + j;
                const int64_t gk = BlockOf(kGrid, s, 2, place).index * local.dims[2].value("test") + k;
                ASSERT_EQ(stack.at<int32_t>(at++), (gi * 4 + gj) * 6 + gk) << s.ToString();
              }
            }
          }
        }
        EXPECT_EQ(n, held.devices.size());
      }
    }
  }
}

TEST(Processes, ThePartOfAProcessTakesAndGivesStacks) {
  Builder b("f");
  const Atom x = b.Parameter(Type{DType::kF32, {6, 4}, {}}, "x");
  const FnRef fn = b.Build({Mul(b, x, x), ReduceSum(b, x, {0, 1})});
  const Partitioned p = Partition(fn, {kGrid, {LayoutOf(kGrid, Sharding{{{"x"}, {}}, {}})}, {}});
  const FnRef part = ForProcess(p.fn, {1, 0, 0, 1, 1, 1, 1}, "f", 7);
  Verify(*part);
  // Of the two halves of the rows, device 2 holds the first.
  EXPECT_EQ(part->params()[0].type.ToString(), "f32[2,3,4]");
  EXPECT_EQ(part->ResultTypes()[0].ToString(), "f32[2,3,4]");
  EXPECT_EQ(part->ResultTypes()[1].ToString(), "f32[1]");
  EXPECT_EQ(ForProcess(p.fn, {0, 0, 0, 1, 1, 1, 1}, "f", 7)->params()[0].type.ToString(), "f32[1,3,4]");
  EXPECT_THROW(ForProcess(p.fn, {3, 0, 0, 1, 1, 1, 1}, "f", 7), Error);
}

}  // namespace
}  // namespace weft
