#include "tracer/context.h"

#include <atomic>

namespace weft {
namespace internal {

std::atomic<uint32_t> g_on = 0;
constinit thread_local uint32_t t_set = 0;
constinit thread_local uint32_t t_on = 0;

}  // namespace internal
namespace {

// Writes down what the open scopes of this thread say of a setting.
void Update(Setting setting) {
  const uint32_t bit = Settings({setting}).bits();
  const std::vector<OpenSetting>& scopes = Context().settings[static_cast<size_t>(setting)];
  internal::t_set = scopes.empty() ? internal::t_set & ~bit : internal::t_set | bit;
  internal::t_on = !scopes.empty() && scopes.back().on ? internal::t_on | bit : internal::t_on & ~bit;
}

OwnCode g_own_code = nullptr;
thread_local int t_users_arguments = 0;

}  // namespace

void SetOwnCode(OwnCode ask) { g_own_code = ask; }
bool IsOwnCode() { return t_users_arguments == 0 && g_own_code != nullptr && g_own_code(); }
ScopedUsersArguments::ScopedUsersArguments() { ++t_users_arguments; }
ScopedUsersArguments::~ScopedUsersArguments() { --t_users_arguments; }

TraceContext& Context() {
  thread_local TraceContext context;
  return context;
}

void SetForProcess(Setting setting, bool on) {
  const uint32_t bit = Settings({setting}).bits();
  if (on)
    internal::g_on.fetch_or(bit);
  else
    internal::g_on.fetch_and(~bit);
}

uint64_t OpenScope(Setting setting, bool on) {
  static std::atomic<uint64_t> last = 0;
  const uint64_t number = ++last;
  Context().settings[static_cast<size_t>(setting)].push_back({number, on});
  Update(setting);
  return number;
}

bool CloseScope(Setting setting, uint64_t number) {
  const bool found = std::erase_if(Context().settings[static_cast<size_t>(setting)],
                                   [number](const OpenSetting& s) { return s.number == number; }) > 0;
  Update(setting);
  return found;
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
