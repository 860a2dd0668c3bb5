#include "lowering/cpu/compile_parts.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace weft {
namespace {

TEST(CompileParts, EachIsCalledOnce) {
  for (size_t count : {1, 2, 3, 16}) {
    std::vector<std::atomic<int>> calls(count);
    CompileParts(count, [&](size_t i) { ++calls[i]; });
    for (const auto& c : calls) EXPECT_EQ(c.load(), 1);
  }
}

TEST(CompileParts, AllEndBeforeTheFirstFailureIsRaised) {
  for (size_t failing = 0; failing < 3; ++failing) {
    std::atomic<int> ended{0};
    try {
      CompileParts(4, [&](size_t i) {
        ++ended;
        if (i == failing) throw std::bad_alloc();
        if (i > failing) throw std::runtime_error(std::to_string(i));
      });
      FAIL() << "nothing was raised";
    } catch (const std::bad_alloc&) {
      EXPECT_EQ(ended.load(), 4);
    }
  }
}

// A thread that took a signal would run the program's handler where the program does not expect it.
TEST(CompileParts, OnlyTheCallersThreadTakesSignals) {
  std::atomic<int> blocked{0};
  CompileParts(3, [&](size_t i) {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    if (i > 0 && sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGALRM) == 1) ++blocked;
  });
  EXPECT_EQ(blocked.load(), 2);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGINT), 0);
}

}  // namespace
}  // namespace weft
