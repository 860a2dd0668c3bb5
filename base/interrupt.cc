#include "base/interrupt.h"

#include <algorithm>
#include <chrono>

namespace weft {
namespace {

void (*g_handler)() = nullptr;
thread_local int64_t t_ask_at = 0;
thread_local int t_scopes_without = 0;

constexpr int64_t kBetweenAsking = 50'000'000;  // nanoseconds

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

void SetInterruptHandler(void (*handler)()) { g_handler = handler; }

NoInterrupts::NoInterrupts() { ++t_scopes_without; }
NoInterrupts::~NoInterrupts() { --t_scopes_without; }

void PollInterrupt() {
  const int64_t now = Now();
  if (now < t_ask_at || t_scopes_without > 0 || g_handler == nullptr) return;
  t_ask_at = now + kBetweenAsking;  // also if it throws
  g_handler();
  const int64_t after = Now();
  t_ask_at = after + std::max(kBetweenAsking, 100 * (after - now));
}

}  // namespace weft
