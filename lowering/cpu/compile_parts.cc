#include "lowering/cpu/compile_parts.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/interrupt.h"

namespace weft {
namespace {

// Of the parts that the thread works for: whether one has failed.
thread_local const std::atomic<bool>* t_failed = nullptr;
// The thread was started for a part.
thread_local bool t_is_helper = false;

constexpr std::chrono::milliseconds kBetweenInterrupts(50);

}  // namespace

void PollCompilation() {
  if (t_failed != nullptr && t_failed->load(std::memory_order_relaxed)) throw CompilationEnds{};
  if (t_is_helper) return;
  try {
    PollInterrupt();
  } catch (...) {
    throw CompilationEnds{std::current_exception()};
  }
}

void CompileParts(size_t count, const std::function<void(size_t)>& part) {
  std::vector<std::exception_ptr> failures(count);
  std::atomic<bool> failed{false};
  const auto guarded = [&](size_t i, const auto& work) {
    const std::atomic<bool>* const outer = std::exchange(t_failed, &failed);
    try {
      work();
    } catch (const CompilationEnds& end) {
      failures[i] = end.why;
      failed = true;
    } catch (...) {
      failures[i] = std::current_exception();
      failed = true;
    }
    t_failed = outer;
  };
  const auto run = [&](size_t i) { guarded(i, [&] { part(i); }); };
  std::mutex mutex;
  std::condition_variable ended;
  size_t helping = 0;
  const Section* const section = InSection::Current();
  const auto help = [&, section](size_t i) {
    const InSection inside(section);  // the caller leaves it when it asks for interrupts
    t_is_helper = true;
    run(i);
    const std::lock_guard<std::mutex> lock(mutex);
    --helping;
    ended.notify_one();
  };
  std::vector<std::thread> threads;
  threads.reserve(count);
  // Signals are for the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t process = getpid();
  size_t started = 1;
  try {
    for (; started < count; ++started) {
      threads.emplace_back(help, started);
      const std::lock_guard<std::mutex> lock(mutex);
      ++helping;
    }
  } catch (const std::exception&) {
    // There are no more threads, or no memory for one: this one does the rest.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  run(0);
  for (size_t i = started; i < count; ++i) run(i);
  // A handler of signals may have forked: then here are no other threads.
  const auto others_work = [&] { return getpid() == process && helping > 0; };
  if (!failed) {
    guarded(0, [&] {
      std::unique_lock<std::mutex> lock(mutex);
      while (others_work()) {
        ended.wait_for(lock, kBetweenInterrupts);
        lock.unlock();
        PollCompilation();
        lock.lock();
      }
    });
  }
  const bool here = getpid() == process;
  for (std::thread& t : threads) here ? t.join() : t.detach();
  for (size_t i = 1; i < started && !here; ++i) run(i);
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace weft
