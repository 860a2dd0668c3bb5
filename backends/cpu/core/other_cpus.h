// Keeps threads off the CPU of whoever wakes them.
//
// The scheduler of Linux puts a thread that is woken where it ran last, or to whoever woke it, unless it sees another
// CPU that is idle. In a virtual machine it takes CPUs that are idle for such as the host has taken away: a pool's
// thread that once lay on the caller's CPU stayed there, call after call, while the others did nothing. So it may not
// run there; where else is the scheduler's choice.
#ifndef WEFT_BACKENDS_CPU_CORE_OTHER_CPUS_H_
#define WEFT_BACKENDS_CPU_CORE_OTHER_CPUS_H_

#include <sched.h>
#include <sys/types.h>

#include <atomic>
#include <mutex>
#include <vector>

namespace weft::cpu {

class OtherCpus {
 public:
  // A thread to keep off. Does nothing without memory for it.
  void Add(pid_t thread);
  // From now on they may run wherever they might, but on the CPU that this thread is on; a thread that has only that
  // one stays. What others make of their CPUs meanwhile (taskset) stays, unless it
  // is what they have.
  void KeepOffThisCpu();

 private:
  struct Thread {
    pid_t id;
    cpu_set_t may;  // without us
    cpu_set_t set;  // by us
  };

  std::mutex mutex_;
  std::vector<Thread> threads_;
  std::atomic<int> kept_off_{-1};
};

}  // namespace weft::cpu
#endif  // WEFT_BACKENDS_CPU_CORE_OTHER_CPUS_H_
