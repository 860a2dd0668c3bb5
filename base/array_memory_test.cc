#include "base/array_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace weft {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr bool kUsesSlabs = false;
#else
constexpr bool kUsesSlabs = true;
#endif

struct Array {
  size_t bytes;
  unsigned char* memory;
};

Array Filled(size_t bytes, unsigned char with) {
  auto* memory = static_cast<unsigned char*>(AllocateArray(bytes));
  EXPECT_NE(memory, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0U);
  std::memset(memory, with, bytes);
  return {bytes, memory};
}
bool IsFilled(const Array& a, unsigned char with) {
  for (size_t i = 0; i < a.bytes; i += 61) {
    if (a.memory[i] != with) return false;
  }
  return a.memory[a.bytes - 1] == with;
}

TEST(ArrayMemory, ArraysOfAllSizesKeepTheirElements) {
  const size_t kib = 1024, mib = kib * kib;
  std::vector<Array> arrays;
  const std::vector<size_t> sizes = {
      1,       64,          65,      4 * kib, 64 * kib - 1, 64 * kib, 64 * kib + 1, 100 * kib,    mib - 1,
      mib + 1, 3 * mib + 5, 4 * mib, 9 * mib, 4 * mib + 1,  200'000,  131'072,      256 * kib + 3};
  for (int times = 0; times < 9; ++times) {
    for (size_t bytes : sizes) arrays.push_back(Filled(bytes, static_cast<unsigned char>(arrays.size())));
  }
  for (size_t i = 0; i < arrays.size(); ++i)
    EXPECT_TRUE(IsFilled(arrays[i], static_cast<unsigned char>(i))) << arrays[i].bytes;
  for (const Array& a : arrays) FreeArray(a.memory, a.bytes);
  EXPECT_EQ(ArraySlabs(), 0U);
}

TEST(ArrayMemory, ManyOfASizeLieInSlabsAndFewDoNot) {
  if (!kUsesSlabs) GTEST_SKIP() << "AddressSanitizer wants to see what lies around each array";
  const size_t bytes = 200'000;
  std::vector<Array> arrays;
  while (arrays.size() < 30) arrays.push_back(Filled(bytes, 1));
  EXPECT_EQ(ArraySlabs(), 0U);
  while (arrays.size() < 300) arrays.push_back(Filled(bytes, 1));
  const size_t slabs = ArraySlabs();
  EXPECT_GE(slabs, 1U);
  EXPECT_LE(slabs, 3U);
  // What is given back is used again.
  for (size_t i = 100; i < 200; ++i) FreeArray(arrays[i].memory, bytes);
  for (size_t i = 100; i < 200; ++i) arrays[i] = Filled(bytes, 1);
  EXPECT_EQ(ArraySlabs(), slabs);
  for (const Array& a : arrays) FreeArray(a.memory, bytes);
  EXPECT_EQ(ArraySlabs(), 0U) << "a slab without arrays goes back to the system";
}

TEST(ArrayMemory, ThreadsShareSlabs) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t) {
    threads.emplace_back([t] {
      std::mt19937 random(t);
      std::vector<Array> arrays;
      for (int step = 0; step < 600; ++step) {
        if (arrays.size() < 60 || random() % 2 == 0) {
          arrays.push_back(Filled(random() % 3 == 0 ? 300'000 : 150'000, static_cast<unsigned char>(t + 1)));
          continue;
        }
        std::swap(arrays[random() % arrays.size()], arrays.back());
        EXPECT_TRUE(IsFilled(arrays.back(), static_cast<unsigned char>(t + 1)));
        FreeArray(arrays.back().memory, arrays.back().bytes);
        arrays.pop_back();
      }
      for (const Array& a : arrays) {
        EXPECT_TRUE(IsFilled(a, static_cast<unsigned char>(t + 1)));
        FreeArray(a.memory, a.bytes);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(ArraySlabs(), 0U);
}

TEST(ArrayMemory, MoreThanThereIsGivesNone) {
  EXPECT_EQ(AllocateArray(size_t{1} << 60), nullptr);
  EXPECT_EQ(AllocateArray(SIZE_MAX - 100), nullptr);
}

}  // namespace
}  // namespace weft
