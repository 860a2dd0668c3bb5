#include "base/interrupt.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace weft {
namespace {

void (*g_handler)() = nullptr;
thread_local int64_t t_ask_at = 0;
thread_local const Section* t_section = nullptr;

// Nanoseconds. The most is for handlers that run long: the next signal is seen all the same.
constexpr int64_t kBetweenAsking = 50'000'000, kMostBetweenAsking = 500'000'000;

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

void SetInterruptHandler(void (*handler)()) { g_handler = handler; }

InSection::InSection(const Section* section) {
  if (section == nullptr || t_section != nullptr) return;
  section->enter();
  t_section = section;
  entered_ = true;
}
InSection::~InSection() {
  if (entered_) std::exchange(t_section, nullptr)->leave();
}
const Section* InSection::Current() { return t_section; }

void PollInterrupt() {
  const int64_t now = Now();
  if (now < t_ask_at || g_handler == nullptr) return;
  t_ask_at = now + kBetweenAsking;  // also if it throws
  {
    struct Outside {
      const Section* section = std::exchange(t_section, nullptr);
      Outside() {
        if (section != nullptr) section->leave();
      }
      ~Outside() {
        if (section != nullptr) section->enter();
        t_section = section;
      }
    } const outside;
    g_handler();
  }
  const int64_t after = Now();
  t_ask_at = after + std::clamp(100 * (after - now), kBetweenAsking, kMostBetweenAsking);
}

}  // namespace weft
