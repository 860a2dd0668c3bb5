#include "backends/cpu/ops/blas_workspace.h"

#include <cblas.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "base/at_fork.h"
#include "base/fork_safe_mutex.h"
#include "base/out_of_memory.h"

// What its own functions call; weak, since other builds of it may not show them.
extern "C" {
void* blas_memory_alloc(int) __attribute__((weak));
void blas_memory_free(void*) __attribute__((weak));
}

namespace weft::cpu {
namespace {

// A piece of OpenBLAS on x86-64, and what it may need beside it.
constexpr int64_t kPiece = int64_t{128} << 20, kBeside = int64_t{4} << 20;
// It has twice as many as the processors that it was built for, 64, and ends the process beyond.
constexpr int kMost = 64;

std::atomic<int> g_used{0}, g_there{0};
std::atomic<bool> g_forking{false};

struct Growth {
  ForkSafeMutex mutex;
  std::vector<void*> pieces;  // all that were seen
};

Growth& TheGrowth() {
  static auto& growth = *[] {
    openblas_set_num_threads(1);
    auto* made = new Growth;
    made->pieces.reserve(kMost);
    // Calls that run may hold OpenBLAS' own lock, which the child would find locked by a thread that it does not have:
    // forking waits for them, but not for long ones. The child has none of the threads that use pieces, and theirs stay
    // taken.
    AtFork(
        ForkStep::kLibraries,
        [] {
          g_forking = true;
          constexpr int kMostWaits = 20000;
          for (int i = 0; i < kMostWaits && g_used != 0; ++i) usleep(50);
        },
        [] { g_forking = false; },
        [] {
          g_used = 0;
          g_there = 0;
          TheGrowth().pieces.clear();
          g_forking = false;
        });
    return made;
  }();
  return growth;
}

bool Take() {
  int used = g_used.load(std::memory_order_relaxed);
  while (used < g_there.load(std::memory_order_acquire)) {
    if (!g_used.compare_exchange_weak(used, used + 1)) continue;
    if (!g_forking.load()) return true;
    g_used.fetch_sub(1);
    while (g_forking.load()) usleep(50);
    used = g_used.load(std::memory_order_relaxed);
  }
  return false;
}

// Makes OpenBLAS map one piece more than it has. False where there is no memory for it.
bool Grow() {
  Growth& growth = TheGrowth();
  const std::lock_guard<ForkSafeMutex> lock(growth.mutex);
  const int there = g_there.load(std::memory_order_relaxed);
  if (g_used.load(std::memory_order_relaxed) < there) return true;  // another thread was faster, or has ended
  if (there >= kMost || !CanAllocate(kPiece + kBeside)) return false;
  void* taken[kMost];
  int n = 0;
  // Those that are free, until one comes that was not there before.
  bool fresh = false;
  while (!fresh && n < kMost) {
    void* piece = blas_memory_alloc(0);
    taken[n++] = piece;
    fresh = std::find(growth.pieces.begin(), growth.pieces.end(), piece) == growth.pieces.end();
  }
  if (fresh) growth.pieces.push_back(taken[n - 1]);
  while (n > 0) blas_memory_free(taken[--n]);
  if (fresh) g_there.store(there + 1, std::memory_order_release);
  return fresh;
}

}  // namespace

BlasWorkspace::BlasWorkspace() {
  if (blas_memory_alloc == nullptr || blas_memory_free == nullptr) return;
  while (!Take()) {
    if (Grow()) continue;
    if (g_there.load() == 0)
      throw OutOfMemory("out of memory: OpenBLAS needs " + std::to_string(kPiece) +
                        " bytes of address space to work in");
    usleep(50);  // until another call has ended
  }
}

BlasWorkspace::~BlasWorkspace() {
  if (blas_memory_alloc != nullptr && blas_memory_free != nullptr) g_used.fetch_sub(1, std::memory_order_release);
}

}  // namespace weft::cpu
