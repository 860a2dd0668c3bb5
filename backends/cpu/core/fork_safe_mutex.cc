#include "backends/cpu/core/fork_safe_mutex.h"

#include <pthread.h>

namespace weft::cpu {

struct AllForkSafeMutexes {
  std::mutex mutex;  // of the list
  ForkSafeMutex* first = nullptr;

  static AllForkSafeMutexes& Get() {
    static auto* all = [] {
      pthread_atfork(LockAll, UnlockAll, UnlockAll);
      return new AllForkSafeMutexes;
    }();
    return *all;
  }
  static void LockAll() {
    Get().mutex.lock();
    for (ForkSafeMutex* m = Get().first; m != nullptr; m = m->next_) m->mutex_.lock();
  }
  static void UnlockAll() {
    for (ForkSafeMutex* m = Get().first; m != nullptr; m = m->next_) m->mutex_.unlock();
    Get().mutex.unlock();
  }
  void Add(ForkSafeMutex* m) {
    std::lock_guard<std::mutex> lock(mutex);
    m->next_ = first;
    if (first != nullptr) first->previous_ = m;
    first = m;
  }
  void Remove(ForkSafeMutex* m) {
    std::lock_guard<std::mutex> lock(mutex);
    (m->previous_ != nullptr ? m->previous_->next_ : first) = m->next_;
    if (m->next_ != nullptr) m->next_->previous_ = m->previous_;
  }
};

ForkSafeMutex::ForkSafeMutex() { AllForkSafeMutexes::Get().Add(this); }
ForkSafeMutex::~ForkSafeMutex() { AllForkSafeMutexes::Get().Remove(this); }

}  // namespace weft::cpu
