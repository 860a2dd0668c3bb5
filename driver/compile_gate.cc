#include "driver/compile_gate.h"

#include <pthread.h>

#include <new>
#include <shared_mutex>

#include "backends/cpu/core/fork_safe_mutex.h"

namespace weft {
namespace {

std::shared_mutex& Gate() {
  static auto* gate = [] {
    // Before forking the mutexes of backends/ are locked after this one, since compiling takes them: the handlers run
    // in reverse order of registration, and making a mutex registers theirs.
    cpu::ForkSafeMutex();
    // The child's thread has another number than the one that locked, so it cannot unlock.
    pthread_atfork([] { Gate().lock(); }, [] { Gate().unlock(); }, [] { new (&Gate()) std::shared_mutex; });
    return new std::shared_mutex;
  }();
  return *gate;
}

constexpr Section kSection = {[] { Gate().lock_shared(); }, [] { Gate().unlock_shared(); }};

}  // namespace

Compiling::Compiling() : inside_(&kSection) {}

}  // namespace weft
