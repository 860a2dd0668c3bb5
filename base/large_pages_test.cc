#include "base/large_pages.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <thread>

namespace weft {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr bool kKeeps = false;
#else
constexpr bool kKeeps = true;
#endif

TEST(LargePages, AReleasedBlockServesTheNextListOfItsSize) {
  if (!kKeeps) GTEST_SKIP() << "AddressSanitizer wants to see every release";
  std::thread([] {
    const void* first = nullptr;
    {
      LongList<int64_t> list(20'000);
      first = list.data();
    }
    EXPECT_EQ(KeptBlockBytes(), size_t{256} << 10);
    LongList<int32_t> next(50'000);  // another length and type, of the same power of two
    EXPECT_EQ(next.data(), first);
    EXPECT_EQ(KeptBlockBytes(), 0U);
    EXPECT_EQ(std::accumulate(next.begin(), next.end(), 0), 0) << "elements are made anew";
  }).join();
}

TEST(LargePages, WhatAThreadKeepsIsBounded) {
  {
    std::vector<LongList<char>> lists(100);
    for (LongList<char>& list : lists) list.reserve(1 << 20);
  }
  EXPECT_LE(KeptBlockBytes(), size_t{64} << 20);
  const size_t before = KeptBlockBytes();
  { LongList<char>().reserve(size_t{33} << 20); }
  { LongList<char>().reserve(1000); }
  EXPECT_EQ(KeptBlockBytes(), before);
}

TEST(LargePages, ListsPassBetweenThreadsAndOutliveThem) {
  LongList<int> made;
  std::thread([&] {
    made.resize(1'000'000);
    std::iota(made.begin(), made.end(), 0);
  }).join();
  EXPECT_EQ(made.back(), 999'999);
  std::thread([list = std::move(made)]() mutable { list.clear(), list.shrink_to_fit(); }).join();
}

TEST(LargePages, ListsGrow) {
  LongList<uint64_t> list;
  for (uint64_t i = 0; i < 5'000'000; ++i) list.push_back(i);  // through every size, up to one that is not kept
  for (uint64_t i = 0; i < list.size(); i += 997) ASSERT_EQ(list[i], i);
}

}  // namespace
}  // namespace weft
