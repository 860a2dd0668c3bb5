#include "backends/cpu/core/other_cpus.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

namespace weft::cpu {
namespace {

cpu_set_t CpusOf(pid_t thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(thread, sizeof set, &set), 0);
  return set;
}
cpu_set_t Only(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(cpu), &set);
  return set;
}
std::vector<int> Listed(const cpu_set_t& set) {
  std::vector<int> cpus;
  for (int c = 0; c < CPU_SETSIZE; ++c) {
    if (CPU_ISSET(static_cast<size_t>(c), &set)) cpus.push_back(c);
  }
  return cpus;
}

// Threads that wait until the test ends, and the calling thread's CPUs as they were.
class OtherCpusTest : public testing::Test {
 protected:
  void SetUp() override {
    all_ = CpusOf(0);
    for (int i = 0; i < 3; ++i) {
      std::atomic<pid_t> id{0};
      threads_.emplace_back([&] {
        id = gettid();
        id.notify_one();
        stop_.wait(false);
      });
      id.wait(0);
      ids_.push_back(id);
      other_.Add(id);
    }
  }
  void TearDown() override {
    stop_ = true;
    stop_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    sched_setaffinity(0, sizeof all_, &all_);
  }
  void StayOn(int cpu) {
    const cpu_set_t set = Only(cpu);
    ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
  }

  cpu_set_t all_;
  OtherCpus other_;
  std::vector<pid_t> ids_;

 private:
  std::vector<std::thread> threads_;
  std::atomic<bool> stop_{false};
};

TEST_F(OtherCpusTest, ThreadsMayRunEverywhereElse) {
  const std::vector<int> cpus = Listed(all_);
  if (cpus.size() < 2) GTEST_SKIP() << "one CPU";
  for (const int cpu : {cpus[0], cpus[1], cpus[0]}) {
    StayOn(cpu);
    other_.KeepOffThisCpu();
    cpu_set_t want = all_;
    CPU_CLR(static_cast<size_t>(cpu), &want);
    for (const pid_t id : ids_) EXPECT_EQ(Listed(CpusOf(id)), Listed(want)) << "caller on " << cpu;
  }
}

TEST_F(OtherCpusTest, WhatOthersChangeStays) {
  const std::vector<int> cpus = Listed(all_);
  if (cpus.size() < 2) GTEST_SKIP() << "one CPU";
  StayOn(cpus[0]);
  other_.KeepOffThisCpu();
  const cpu_set_t first = Only(cpus[0]);
  ASSERT_EQ(sched_setaffinity(ids_[1], sizeof first, &first), 0);
  for (const int cpu : {cpus[1], cpus[0], cpus[1]}) {  // on the first it has none but the caller's
    StayOn(cpu);
    other_.KeepOffThisCpu();
    EXPECT_EQ(Listed(CpusOf(ids_[1])), std::vector<int>{cpus[0]}) << "caller on " << cpu;
  }
}

TEST_F(OtherCpusTest, ThreadsThatHaveEndedAreNoError) {
  pid_t gone = 0;
  std::thread([&] {
    gone = gettid();
    other_.Add(gone);
  }).join();
  other_.KeepOffThisCpu();
  StayOn(Listed(all_).back());
  other_.KeepOffThisCpu();
}

}  // namespace
}  // namespace weft::cpu
