#include "lowering/cpu/compile_parts.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/interrupt.h"

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

// An interrupt that the caller's thread meets ends the others, too; and so does a failure.
TEST(CompileParts, WhatEndsOnePartEndsAll) {
  SetInterruptHandler([] { throw std::runtime_error("interrupted"); });
  const auto forever = [] {
    while (true) {
      PollCompilation();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  for (size_t count : {1, 2, 3, 5}) {
    for (size_t waiting = 0; waiting < count; ++waiting) {  // whose part is done at once
      try {
        CompileParts(count, [&](size_t i) {
          if (i != waiting || count == 1) forever();
        });
        FAIL() << "nothing was raised";
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "interrupted");
      }
    }
  }
  SetInterruptHandler(nullptr);
  for (size_t failing = 0; failing < 3; ++failing) {
    EXPECT_THROW(CompileParts(3,
                              [&](size_t i) {
                                if (i == failing) throw std::bad_alloc();
                                forever();
                              }),
                 std::bad_alloc);
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
