#include "ir/shards.h"

#include <gtest/gtest.h>

#include <thread>

#include "ir/error.h"

namespace weft {
namespace {

const Mesh kGrid{{{"x", 2}, {"y", 3}}};
const Ints kDevices = {10, 11, 12, 13, 14, 15};

Placement On(const Mesh& mesh, Sharding sharding, Ints processes = {0, 0, 0, 0, 0, 0, 0}) {
  return {mesh, std::move(sharding), kDevices, std::move(processes), nullptr, false};
}

Tensor Counting(Shape shape) {
  Tensor t(DType::kI32, std::move(shape));
  for (int64_t i = 0; i < t.size(); ++i) t.data<int32_t>()[i] = static_cast<int32_t>(i);
  return t;
}

std::vector<Sharding> EveryKind() {
  return {{{{}, {}, {}}, {}},
          {{{"x"}, {}, {}}, {}},
          {{{}, {"x"}, {"y"}}, {}},
          {{{"y"}, {}, {"x"}}, {}},
          {{{"x", "y"}, {}, {}}, {}},
          {{{}, {}, {"y", "x"}}, {}},
          {{{"x"}}, {}},
          {{{"y", "x"}}, {}}};
}

// Element by element, from the definition of a block.
void ExpectBlocks(const Shards& shards, const Tensor& whole, const Placement& p) {
  Sharding s = p.sharding;
  s.dims.resize(3);
  for (size_t k = 0; k < shards.num_buffers(); ++k) {
    const Tensor block = shards.Block(k);
    EXPECT_EQ(shards.buffer(k).device, kDevices[k]);
    const std::vector<int64_t> at = kGrid.Coordinates(static_cast<int64_t>(k));
    const Shape& n = block.shape();
    int64_t e = 0;
    for (int64_t i = 0; i < n[0]; ++i)
      for (int64_t j = 0; j < n[1]; ++j)
        for (int64_t l = 0; l < n[2]; ++l) {
          const int64_t gi = BlockOf(kGrid, s, 0, at).index * n[0] + i, gj = BlockOf(kGrid, s, 1, at).index * n[1] + j,
                        gl = BlockOf(kGrid, s, 2, at).index * n[2] + l;
          ASSERT_EQ(block.at<int32_t>(e++), whole.at<int32_t>((gi * whole.shape()[1] + gj) * whole.shape()[2] + gl));
        }
  }
}

TEST(Shards, CutsAndPutsTogether) {
  const Tensor whole = Counting({6, 4, 6});
  for (const Sharding& s : EveryKind()) {
    const Placement p = On(kGrid, s);
    const auto layout = ShardLayout::Make(p, DType::kI32, whole.shape());
    const auto shards = Shards::Cut(layout, whole);
    ExpectBlocks(*shards, whole, p);
    EXPECT_TRUE(shards->Whole().BitEquals(whole)) << s.ToString();
    // From buffers that lie apart, in memory of their own.
    std::vector<Buffer> buffers;
    for (size_t k = 0; k < shards->num_buffers(); ++k) {
      const Tensor own = shards->Block(k).Copy();
      buffers.push_back({kDevices[k], const_cast<void*>(own.raw()), own.bytes(), own.owner(), nullptr});
    }
    const void* second = buffers[1].address;
    const Shards apart(layout, buffers);
    EXPECT_EQ(apart.buffer(1).address, second);
    ExpectBlocks(apart, whole, p);
    EXPECT_TRUE(apart.Whole().BitEquals(whole)) << s.ToString();
    ExpectBlocks(apart, whole, p);
  }
}

// Of a sum in parts each device has a block of its own; all of it is their sum.
TEST(Shards, HoldsSumsInParts) {
  const Tensor whole = Counting({6, 4, 6});
  for (const Sharding& s :
       {Sharding{{{"x"}, {}, {}}, {"y"}}, Sharding{{{}, {}, {"y"}}, {"x"}}, Sharding{{}, {"x", "y"}}}) {
    const auto layout = ShardLayout::Make(On(kGrid, s), DType::kI32, whole.shape());
    EXPECT_EQ(layout->held.index.size(), kDevices.size());
    EXPECT_TRUE(layout->complete && !layout->in_order);
    const auto shards = Shards::Cut(layout, whole);  // the first device has all, and the others nothing
    EXPECT_TRUE(shards->Whole().BitEquals(whole)) << s.ToString();
    Tensor stack = shards->Stack().Copy();
    for (int64_t i = 0; i < stack.size(); ++i) stack.data<int32_t>()[i] = 1;
    const Shards ones(layout, stack);
    const int64_t parts = s.partial.size() == 2 ? 6 : kGrid.Size(s.partial[0]);
    for (int64_t i = 0; i < whole.size(); ++i) ASSERT_EQ(ones.Whole().at<int32_t>(i), parts);
    // To blocks of the sum, and back.
    const Placement cut = On(kGrid, {{{"y"}, {}, {"x"}}, {}});
    const auto to = ShardLayout::Make(cut, DType::kI32, whole.shape());
    ExpectBlocks(Shards(to, shards->StackAs(*to)), whole, cut);
    const Shards back(layout, Shards(to, shards->StackAs(*to)).StackAs(*layout));
    EXPECT_TRUE(back.Stack().BitEquals(shards->Stack())) << s.ToString();
  }
}

TEST(Shards, CopiesNothingThatLiesInOrder) {
  const Tensor whole = Counting({6, 4, 6});
  const int64_t cut = CountedShardCopies().cut, assembled = CountedShardCopies().assembled;
  for (const Sharding& s : {Sharding{{{"x"}}, {}}, Sharding{{{"x", "y"}}, {}}, Sharding{{}, {}}}) {
    const Placement p = On(kGrid, s);
    const auto shards = Shards::Cut(ShardLayout::Make(p, DType::kI32, whole.shape()), whole);
    EXPECT_EQ(shards->buffer(0).address, whole.raw());
    EXPECT_EQ(shards->Whole().raw(), whole.raw());
  }
  EXPECT_EQ(CountedShardCopies().cut, cut);
  EXPECT_EQ(CountedShardCopies().assembled, assembled);
  const Placement p = On(kGrid, {{{}, {"x"}}, {}});
  const auto shards = Shards::Cut(ShardLayout::Make(p, DType::kI32, whole.shape()), whole);
  EXPECT_EQ(CountedShardCopies().cut, cut + 1);
  EXPECT_EQ(shards->Whole().raw(), shards->Whole().raw());
  EXPECT_EQ(CountedShardCopies().assembled, assembled + 1);  // and kept
}

TEST(Shards, DevicesThatHoldTheSameShareIt) {
  const Placement p = On(kGrid, {{{"x"}}, {}});
  const auto shards = Shards::Cut(ShardLayout::Make(p, DType::kI32, {6, 4}), Counting({6, 4}));
  EXPECT_EQ(shards->buffer(0).address, shards->buffer(2).address);
  EXPECT_NE(shards->buffer(0).address, shards->buffer(3).address);
}

TEST(Shards, KnowsWhoHoldsItsMemory) {
  const Placement p = On(kGrid, {{{}, {"x"}}, {}});
  const auto layout = ShardLayout::Make(p, DType::kI32, {6, 4});
  const auto shards = Shards::Cut(layout, Counting({6, 4}));
  EXPECT_TRUE(shards->HoldsAlone());
  {
    const Tensor view = shards->Block(1);
    EXPECT_FALSE(shards->HoldsAlone());
  }
  EXPECT_TRUE(shards->HoldsAlone());
  {
    const Tensor whole = shards->Whole();  // memory of its own
    EXPECT_TRUE(shards->HoldsAlone());
  }
  const Placement in_order = On(kGrid, {{{"x"}}, {}});
  const auto rows = Shards::Cut(ShardLayout::Make(in_order, DType::kI32, {6, 4}), Counting({6, 4}));
  EXPECT_TRUE(rows->HoldsAlone());
  rows->Whole();
  EXPECT_TRUE(rows->HoldsAlone());
  {
    const Tensor whole = rows->Whole();
    EXPECT_FALSE(rows->HoldsAlone());
  }
  // Of blocks that lie apart.
  std::vector<Buffer> buffers;
  for (size_t k = 0; k < rows->num_buffers(); ++k) {
    const Tensor own = rows->Block(k / 3 * 3).Copy();
    buffers.push_back({kDevices[k], const_cast<void*>(own.raw()), own.bytes(), own.owner(), nullptr});
  }
  buffers[1] = buffers[2] = buffers[0];
  Shards apart(rows->shared_layout(), buffers);
  EXPECT_FALSE(apart.HoldsAlone());
  buffers.clear();
  EXPECT_TRUE(apart.HoldsAlone());
}

// Every layout of one mesh made of every one of another, block by block: no whole array is made.
TEST(Shards, MovesBlocksBetweenLayouts) {
  const Mesh line{{{"x", 6}}}, turned{{{"x", 3}, {"y", 2}}}, more{{{"x", 2}, {"y", 3}, {"z", 1}}};
  const Tensor whole = Counting({6, 12, 6});
  std::vector<Placement> places;
  for (const Mesh& mesh : {kGrid, turned, more}) {
    for (const Sharding& s : EveryKind()) places.push_back(On(mesh, s));
  }
  for (const Sharding& s : {Sharding{{{"x"}}, {}}, Sharding{{{}, {"x"}}, {}}, Sharding{{{}, {}, {"x"}}, {}}})
    places.push_back(On(line, s));
  int copied = 0;
  for (const Placement& from : places) {
    const auto source = Shards::Cut(ShardLayout::Make(from, DType::kI32, whole.shape()), whole);
    std::vector<Buffer> buffers;
    for (size_t k = 0; k < source->num_buffers(); ++k) {
      const Tensor own = source->Block(k).Copy();
      buffers.push_back({kDevices[k], const_cast<void*>(own.raw()), own.bytes(), own.owner(), nullptr});
    }
    const Shards apart(source->shared_layout(), buffers);
    for (const Placement& to : places) {
      const auto wanted = ShardLayout::Make(to, DType::kI32, whole.shape());
      const Tensor want = StackOfBlocks(whole, *wanted);
      const int64_t moved = CountedShardCopies().moved, assembled = CountedShardCopies().assembled;
      const int64_t cut = CountedShardCopies().cut;
      const Tensor stack = source->StackAs(*wanted);
      EXPECT_TRUE(stack.BitEquals(want)) << from.sharding.ToString() << " to " << to.sharding.ToString();
      const bool same = source->layout().SameBlocks(*wanted) || (source->layout().in_order && wanted->in_order);
      EXPECT_EQ(CountedShardCopies().moved, moved + (same ? 0 : 1));
      EXPECT_EQ(stack.owner() == source->Stack().owner(), same);
      copied += !same;
      EXPECT_EQ(CountedShardCopies().assembled, assembled);
      EXPECT_EQ(CountedShardCopies().cut, cut);
      if (!same) {
        EXPECT_TRUE(apart.StackAs(*wanted).BitEquals(want));
      }
    }
  }
  EXPECT_GT(copied, 400);
  // Without elements, and without dimensions.
  for (const Shape& shape : {Shape{0, 6}, Shape{6, 0}}) {
    const Tensor none = Counting(shape);
    const Placement rows = On(line, {{{"x"}}, {}}), columns = On(line, {{{}, {"x"}}, {}});
    const auto shards = Shards::Cut(ShardLayout::Make(rows, DType::kI32, shape), none);
    const auto wanted = ShardLayout::Make(columns, DType::kI32, shape);
    EXPECT_TRUE(shards->StackAs(*wanted).BitEquals(StackOfBlocks(none, *wanted)));
  }
}

TEST(Shards, MovesWhatThisProcessHas) {
  const Ints processes = {1, 0, 0, 0, 1, 1, 1};
  const Tensor whole = Counting({6, 12});
  const auto on = [&](Sharding s) { return On(kGrid, std::move(s), processes); };
  const Placement same = on({{}, {}}), rows = on({{{"x"}}, {}}), both = on({{{"x"}, {"y"}}, {}}),
                  columns = on({{{}, {"y"}}, {}});
  const auto make = [&](const Placement& p) { return ShardLayout::Make(p, DType::kI32, whole.shape()); };
  for (const Placement* to : {&rows, &both, &columns}) {
    const Tensor want = StackOfBlocks(whole, *make(*to));
    EXPECT_TRUE(Shards::Cut(make(same), whole)->StackAs(*make(*to)).BitEquals(want));
  }
  EXPECT_TRUE(Shards::Cut(make(rows), whole)->StackAs(*make(both)).BitEquals(StackOfBlocks(whole, *make(both))));
  EXPECT_THROW(Shards::Cut(make(rows), whole)->StackAs(*make(columns)), Error);
  // Two halves, and the first two quarters.
  const Mesh line{{{"x", 4}}}, pairs{{{"x", 2}, {"y", 2}}};
  const Ints two = {0, 0, 0, 1, 1};
  const auto halves = ShardLayout::Make(pairs, {{{}, {"y"}}, {}}, two, DType::kI32, {6, 12}, nullptr);
  const auto quarters = ShardLayout::Make(line, {{{}, {"x"}}, {}}, two, DType::kI32, {6, 12}, nullptr);
  EXPECT_TRUE(Shards::Cut(halves, whole)->StackAs(*quarters).BitEquals(StackOfBlocks(whole, *quarters)));
  EXPECT_THROW(Shards::Cut(make(both), whole)->StackAs(*make(same)), Error);
}

TEST(Shards, OfOtherProcessesCannotBeHadWhole) {
  const Placement p = On(kGrid, {{{"x"}}, {}}, {1, 0, 0, 0, 1, 1, 1});
  EXPECT_TRUE(p.Spans());
  const auto layout = ShardLayout::Make(p, DType::kI32, {6, 4});
  const auto shards = Shards::Cut(layout, Counting({6, 4}));
  EXPECT_EQ(shards->num_buffers(), 3u);
  EXPECT_EQ(shards->buffer(0).device, 13);
  EXPECT_EQ(shards->Block(0).at<int32_t>(0), 12);
  EXPECT_THROW(shards->Whole(), Error);
  const Placement same = On(kGrid, {{}, {}}, {1, 0, 0, 0, 1, 1, 1});
  EXPECT_FALSE(same.Spans());
  EXPECT_EQ(Shards::Cut(ShardLayout::Make(same, DType::kI32, {6, 4}), Counting({6, 4}))->Whole().at<int32_t>(5), 5);
  // One process that happens to have both blocks does what the others do.
  const Placement middle = On(kGrid, {{{"x"}}, {}}, {1, 0, 0, 1, 1, 2, 2});
  EXPECT_THROW(Shards::Cut(ShardLayout::Make(middle, DType::kI32, {6, 4}), Counting({6, 4}))->Whole(), Error);
  const Placement none = On(kGrid, {{{"x"}}, {}}, {2, 0, 0, 0, 1, 1, 1});
  EXPECT_THROW(ShardLayout::Make(none, DType::kI32, {6, 4}), Error);
  const Placement uneven = On(kGrid, {{{"y"}}, {}});
  EXPECT_THROW(ShardLayout::Make(uneven, DType::kI32, {4}), Error);
}

// Writes its memory when somebody waits for it.
struct Later : Event {
  Tensor t;
  int waits = 0;
  explicit Later(Tensor tensor) : t(std::move(tensor)) {}
  bool Done() const override { return waits > 0; }
  void Wait() override {
    if (waits++ == 0) std::fill_n(t.data<int32_t>(), t.size(), 7);
  }
};

TEST(Shards, WhoReadsABufferWaitsForIt) {
  const Placement p = On(kGrid, {{{}, {"x"}}, {}});
  const auto layout = ShardLayout::Make(p, DType::kI32, {6, 4});
  const auto read = [&](int how, const Shards& shards) {
    if (how == 0) return shards.Whole().at<int32_t>(0);
    if (how == 1) return shards.Stack().at<int32_t>(0);
    if (how == 2) return shards.Block(0).at<int32_t>(0);
    shards.Wait();
    return *static_cast<int32_t*>(shards.buffer(0).address);
  };
  for (int how = 0; how < 4; ++how) {
    const Tensor stack = Tensor::Zeros(DType::kI32, layout->stack);
    const auto later = std::make_shared<Later>(stack);
    const Shards shards(layout, stack, later);
    EXPECT_FALSE(shards.buffer(0).Ready());
    EXPECT_EQ(read(how, shards), 7);
    EXPECT_TRUE(shards.buffer(0).Ready());
    std::vector<Buffer> buffers;
    for (size_t k = 0; k < 6; ++k) {
      const Tensor own = Tensor::Zeros(DType::kI32, layout->block);
      buffers.push_back(
          {kDevices[k], const_cast<void*>(own.raw()), own.bytes(), own.owner(), std::make_shared<Later>(own)});
    }
    EXPECT_EQ(read(how, Shards(layout, buffers)), 7);
  }
}

TEST(Shards, ThreadsMayShareThem) {
  const Tensor whole = Counting({60, 40});
  const Placement p = On(kGrid, {{{}, {"x"}}, {}});
  const auto layout = ShardLayout::Make(p, DType::kI32, whole.shape());
  for (int round = 0; round < 20; ++round) {
    std::vector<Buffer> buffers;
    const auto cut = Shards::Cut(layout, whole);
    for (size_t k = 0; k < 6; ++k) {
      const Tensor own = cut->Block(k).Copy();
      buffers.push_back({kDevices[k], const_cast<void*>(own.raw()), own.bytes(), own.owner(), nullptr});
    }
    const Shards shards(layout, buffers);
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t)
      threads.emplace_back([&, t] {
        if (t % 3 == 0) {
          EXPECT_TRUE(shards.Whole().BitEquals(whole));
        }
        if (t % 3 == 1) {
          EXPECT_EQ(shards.Stack().size(), whole.size());
        }
        if (t % 3 == 2) {
          EXPECT_EQ(shards.Block(4).at<int32_t>(0), 20);
        }
      });
    for (std::thread& t : threads) t.join();
  }
}

}  // namespace
}  // namespace weft
