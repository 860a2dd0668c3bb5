#include "tracer/context.h"

#include <atomic>

namespace weft {
namespace {

std::atomic<bool> g_settings[kNumSettings] = {false, false, false};

}  // namespace

TraceContext& Context() {
  thread_local TraceContext context;
  return context;
}

void SetForProcess(Setting setting, bool on) { g_settings[static_cast<size_t>(setting)].store(on); }

bool TraceContext::On(Setting setting) const {
  const auto i = static_cast<size_t>(setting);
  return settings[i] ? *settings[i] : g_settings[i].load(std::memory_order_relaxed);
}

}  // namespace weft
