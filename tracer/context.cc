#include "tracer/context.h"

#include <algorithm>
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

std::vector<uint64_t> TraceContext::RulesKey() const {
  std::vector<uint64_t> key = {open_rules.size(), static_cast<uint64_t>(derivatives),
                               static_cast<uint64_t>(inner_derivatives)};
  key.insert(key.end(), open_rules.begin(), open_rules.end());
  std::sort(key.begin() + 3, key.end());
  return key;
}

}  // namespace weft
