#include "tracer/context.h"

#include <atomic>

namespace weft {
namespace {

std::atomic<bool> g_settings[kNumSettings] = {};

}  // namespace

TraceContext& Context() {
  thread_local TraceContext context;
  return context;
}

void SetForProcess(Setting setting, bool on) { g_settings[static_cast<size_t>(setting)].store(on); }

bool TraceContext::On(Setting setting) const {
  const auto i = static_cast<size_t>(setting);
  return settings[i].empty() ? g_settings[i].load(std::memory_order_relaxed) : settings[i].back().on;
}

uint64_t OpenScope(Setting setting, bool on) {
  static std::atomic<uint64_t> last = 0;
  const uint64_t number = ++last;
  Context().settings[static_cast<size_t>(setting)].push_back({number, on});
  return number;
}

bool CloseScope(Setting setting, uint64_t number) {
  return std::erase_if(Context().settings[static_cast<size_t>(setting)],
                       [number](const OpenSetting& s) { return s.number == number; }) > 0;
}

ScopedSettings::All ScopedSettings::Here() {
  All all;
  for (size_t i = 0; i < kNumSettings; ++i) all[i] = On(static_cast<Setting>(i));
  return all;
}

ScopedSettings::ScopedSettings(const All& all) {
  for (size_t i = 0; i < kNumSettings; ++i) numbers_[i] = OpenScope(static_cast<Setting>(i), all[i]);
}

ScopedSettings::~ScopedSettings() {
  for (size_t i = 0; i < kNumSettings; ++i) CloseScope(static_cast<Setting>(i), numbers_[i]);
}

}  // namespace weft
