#include "backends/cpu/core/other_cpus.h"

#include <new>

namespace weft::cpu {

void OtherCpus::Add(pid_t thread) {
  Thread added{thread, {}, {}};
  if (sched_getaffinity(thread, sizeof(cpu_set_t), &added.may) != 0) return;  // more CPUs than a set holds
  added.set = added.may;
  const std::lock_guard<std::mutex> lock(mutex_);
  try {
    threads_.push_back(added);
  } catch (const std::bad_alloc&) {
    // It runs where the scheduler puts it.
  }
}

void OtherCpus::KeepOffThisCpu() {
  const int here = sched_getcpu();
  if (here < 0 || here == kept_off_.load(std::memory_order_relaxed)) return;
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock) return;  // another caller is at it
  kept_off_.store(here, std::memory_order_relaxed);
  for (Thread& thread : threads_) {
    cpu_set_t now;
    if (sched_getaffinity(thread.id, sizeof(cpu_set_t), &now) != 0) continue;
    if (!CPU_EQUAL(&now, &thread.set)) thread.may = now;
    thread.set = thread.may;
    CPU_CLR(static_cast<size_t>(here), &thread.set);
    if (CPU_COUNT(&thread.set) == 0) thread.set = thread.may;
    // Where this is not allowed the thread stays as it is.
    if (sched_setaffinity(thread.id, sizeof(cpu_set_t), &thread.set) != 0) thread.set = now;
  }
}

}  // namespace weft::cpu
