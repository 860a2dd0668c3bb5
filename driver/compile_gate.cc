#include "driver/compile_gate.h"

#include <new>
#include <shared_mutex>

#include "base/at_fork.h"

namespace weft {
namespace {

std::shared_mutex& Gate() {
  static auto* gate = [] {
    static auto* made = new std::shared_mutex;
    // The child's thread has another number than the one that locked, so it cannot unlock.
    AtFork(ForkStep::kCompilations, [] { made->lock(); }, [] { made->unlock(); }, [] { new (made) std::shared_mutex; });
    return made;
  }();
  return *gate;
}

constexpr Section kSection = {[] { Gate().lock_shared(); }, [] { Gate().unlock_shared(); }};

}  // namespace

Compiling::Compiling() : inside_(&kSection) {}

}  // namespace weft
