// What compiling leaves to a thread's end.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/interrupt.h"
#include "ir/text/parser.h"
#include "lowering/lower.h"

namespace weft {
namespace {

std::atomic<int> g_entered{0}, g_left{0};
constexpr Section kCounted = {[] { ++g_entered; }, [] { ++g_left; }};

// MLIR's variables of a thread take locks when it ends. Whoever forks waits until nobody is inside of the section, so
// the thread is inside again then.
TEST(Codegen, ThreadsAreInsideOfTheSectionWhenTheirVariablesEnd) {
  const FnRef fn = ParseFn("fn f(x: f32[64]) -> f32[64] { y = exp x; return y }");
  for (const int count : {1, 2, 3}) {
    g_entered = g_left = 0;
    std::atomic<int> entered_before{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([&] {
        for (int times = 0; times < 2; ++times) {
          const InSection inside(&kCounted);
          ++entered_before;
          Lower(fn, Target::Host(), {});
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(entered_before, 2 * count);
    EXPECT_EQ(g_entered, entered_before + count);  // once more, at the end of each
    EXPECT_EQ(g_left, g_entered);
  }
}

// Others have nothing that ends.
TEST(Codegen, ThreadsThatCompileNothingEndOutside) {
  g_entered = g_left = 0;
  std::thread([] { const InSection inside(&kCounted); }).join();
  EXPECT_EQ(g_entered, 1);
  EXPECT_EQ(g_left, 1);
}

}  // namespace
}  // namespace weft
