#include "base/fork_safe_mutex.h"

#include <unistd.h>

#include "base/at_fork.h"

namespace weft {

struct AllForkSafeMutexes {
  std::mutex mutex;  // of the list; taken first, so that the list stays as it is until the process has forked
  ForkSafeMutex* first = nullptr;

  static AllForkSafeMutexes& Get() {
    static auto* all = [] {
      AtFork(ForkStep::kMutexes, LockAll, UnlockAll, UnlockAll);
      return new AllForkSafeMutexes;
    }();
    return *all;
  }

  // All or none: a thread that holds one may wait for another, so nothing is held while this waits.
  bool TryLockAll() {
    for (ForkSafeMutex* m = first; m != nullptr; m = m->next_) {
      if (m->mutex_.try_lock()) continue;
      for (ForkSafeMutex* held = first; held != m; held = held->next_) held->mutex_.unlock();
      return false;
    }
    return true;
  }
  static void LockAll() {
    AllForkSafeMutexes& all = Get();
    while (true) {
      all.mutex.lock();
      if (all.TryLockAll()) return;
      all.mutex.unlock();
      usleep(20);
    }
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

}  // namespace weft
