#include "base/at_fork.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdlib>

namespace weft {
namespace {

struct Handlers {
  void (*prepare)();
  void (*in_parent)();
  void (*in_child)();
};

// Filled without a lock, which a fork could find held.
struct Step {
  static constexpr int kMost = 8;
  std::array<Handlers, kMost> rows;
  std::array<std::atomic<bool>, kMost> filled;
  std::atomic<int> taken;
};
constexpr int kSteps = static_cast<int>(ForkStep::kMutexes) + 1;
Step g_steps[kSteps];

// Rows that are filled between preparing and forking have not prepared: these are left alone afterwards.
bool g_prepared[kSteps][Step::kMost];

void Prepare() {
  for (int s = 0; s < kSteps; ++s) {
    for (int i = 0; i < Step::kMost; ++i) {
      g_prepared[s][i] = g_steps[s].filled[i].load(std::memory_order_acquire);
      const Handlers& row = g_steps[s].rows[i];
      if (g_prepared[s][i] && row.prepare != nullptr) row.prepare();
    }
  }
}

void AfterFork(void (*Handlers::*which)()) {
  for (int s = kSteps; s-- > 0;) {
    for (int i = Step::kMost; i-- > 0;) {
      void (*const handler)() = g_steps[s].rows[i].*which;
      if (g_prepared[s][i] && handler != nullptr) handler();
    }
  }
}

}  // namespace

void AtFork(ForkStep step, void (*prepare)(), void (*in_parent)(), void (*in_child)()) {
  static const int registered =
      pthread_atfork(Prepare, [] { AfterFork(&Handlers::in_parent); }, [] { AfterFork(&Handlers::in_child); });
  Step& rows = g_steps[static_cast<int>(step)];
  const int mine = rows.taken.fetch_add(1);
  if (registered != 0 || mine >= Step::kMost) std::abort();
  rows.rows[mine] = {prepare, in_parent, in_child};
  rows.filled[mine].store(true, std::memory_order_release);
}

}  // namespace weft
