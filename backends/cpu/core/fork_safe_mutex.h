// A mutex that a fork leaves free in the child: forking waits until no other thread holds one. For short critical
// sections that take no other lock inside.
#ifndef WEFT_BACKENDS_CPU_CORE_FORK_SAFE_MUTEX_H_
#define WEFT_BACKENDS_CPU_CORE_FORK_SAFE_MUTEX_H_

#include <mutex>

namespace weft::cpu {

class ForkSafeMutex {
 public:
  ForkSafeMutex();
  ~ForkSafeMutex();
  ForkSafeMutex(const ForkSafeMutex&) = delete;
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  friend struct AllForkSafeMutexes;
  std::mutex mutex_;
  ForkSafeMutex *next_ = nullptr, *previous_ = nullptr;  // all there are
};

}  // namespace weft::cpu
#endif  // WEFT_BACKENDS_CPU_CORE_FORK_SAFE_MUTEX_H_
