// A mutex that a fork leaves free in the child: forking waits until no other thread holds one. For every lock of the
// process that a thread may hold while another forks, outside of the gate of compilations (driver/compile_gate.h); for
// short critical sections, which may take others of these.
#ifndef WEFT_BASE_FORK_SAFE_MUTEX_H_
#define WEFT_BASE_FORK_SAFE_MUTEX_H_

#include <mutex>

namespace weft {

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

}  // namespace weft
#endif  // WEFT_BASE_FORK_SAFE_MUTEX_H_
