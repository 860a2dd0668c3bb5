#include "lowering/cpu/compile_parts.h"

#include <pthread.h>
#include <signal.h>

#include <exception>
#include <thread>
#include <vector>

namespace weft {

void CompileParts(size_t count, const std::function<void(size_t)>& part) {
  std::vector<std::exception_ptr> failures(count);
  const auto run = [&](size_t i) {
    try {
      part(i);
    } catch (...) {
      failures[i] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(count);
  // Signals are for the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  size_t started = 1;
  try {
    for (; started < count; ++started) threads.emplace_back(run, started);
  } catch (const std::exception&) {
    // There are no more threads, or no memory for one: this one does the rest.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  run(0);
  for (size_t i = started; i < count; ++i) run(i);
  for (std::thread& t : threads) t.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace weft
