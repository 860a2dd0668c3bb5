#include "base/at_fork.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/fork_safe_mutex.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

// Whether the child, which runs `body`, ends well within half a minute.
template <class Body>
bool ChildEnds(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    body();
    _exit(0);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0;
}

std::string& Log() {
  static auto& log = *new std::string;
  return log;
}

TEST(AtForkTest, StepsFollowEachOtherWhoeverRegisteredFirst) {
  AtFork(ForkStep::kMutexes, [] { Log() += "m"; }, [] { Log() += "M"; }, [] { Log() += "c"; });
  AtFork(ForkStep::kLibraries, [] { Log() += "l"; }, nullptr, [] { Log() += "b"; });
  AtFork(ForkStep::kCompilations, [] { Log() += "g"; }, [] { Log() += "G"; }, nullptr);
  AtFork(ForkStep::kLibraries, nullptr, [] { Log() += "K"; }, nullptr);
  for (int times = 0; times < 2; ++times) {
    Log().clear();
    EXPECT_TRUE(ChildEnds([] {
      if (Log() != "glmcb") _exit(1);
    }));
    EXPECT_EQ(Log(), "glmMKG");
  }
}

// Threads that take the locks in both orders that are possible without forks, one of them inside of the other.
TEST(ForkSafeMutexTest, ChildrenFindAllFreeWhateverThreadsHold) {
  static auto& outer = *new ForkSafeMutex;
  static auto& middle = *new ForkSafeMutex;
  static auto& inner = *new ForkSafeMutex;
  std::atomic<bool> stop{false};
  std::atomic<int> rounds{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        const std::lock_guard<ForkSafeMutex> first(outer);
        const std::lock_guard<ForkSafeMutex> second(middle);
        const std::lock_guard<ForkSafeMutex> third(inner);
        ForkSafeMutex of_its_own;
        const std::lock_guard<ForkSafeMutex> fourth(of_its_own);
        ++rounds;
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    const int before = rounds;
    while (rounds == before) std::this_thread::yield();
    EXPECT_TRUE(ChildEnds([] {
      const std::lock_guard<ForkSafeMutex> first(outer);
      const std::lock_guard<ForkSafeMutex> second(middle);
      const std::lock_guard<ForkSafeMutex> third(inner);
    })) << i;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace weft
