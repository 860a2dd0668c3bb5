// What surrounds the code that runs on a thread, besides its open traces: settings, named axes, a mesh. A traced
// function means all of it, so caches of traced functions have Key() in theirs.
//
// Each thread has its own. A setting that no `with` statement of the thread has set is that of the process.
#ifndef WEFT_TRACER_CONTEXT_H_
#define WEFT_TRACER_CONTEXT_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "ir/licences.h"
#include "tracer/axes.h"

namespace weft {

// kJaxSemantics: where Weft differs from JAX on purpose it follows JAX (docs/jax_programs.md). kDebugInfs: as
// kDebugNans, for infinities. kNoExecution: nothing may run. kStrictPromotion: dtypes are not promoted. kWatchRanks,
// kWatchTransfers: Python is told where operands of different ranks meet, and where its numbers and NumPy's arrays
// become arrays. kKeepsCalls: the program is looked at; jitted functions inside of it stay calls, and what arrays it
// captures are parameters, small ones too. kCountsInHalves: bits of random keys are those of JAX before version 0.5.
// kRefusesRanks: of kWatchRanks, those that may not meet. kWatchKeys: a key that is used twice is an error.
enum class Setting : uint8_t {
  kX64,
  kDisableJit,
  kDebugNans,
  kJaxSemantics,
  kDebugInfs,
  kNoExecution,
  kStrictPromotion,
  kWatchRanks,
  kWatchTransfers,
  kKeepsCalls,
  kCountsInHalves,
  kRefusesRanks,
  kWatchKeys,
};
inline constexpr size_t kNumSettings = 13;

// Some of the settings.
class Settings {
 public:
  constexpr Settings() = default;
  constexpr Settings(std::initializer_list<Setting> settings) {
    for (Setting s : settings) bits_ |= Bit(s);
  }
  constexpr explicit Settings(uint32_t bits) : bits_(bits) {}
  // As a number that is equal for equal ones, below 2 to the power of kNumSettings.
  constexpr uint32_t bits() const { return bits_; }
  constexpr bool Has(Setting s) const { return (bits_ & Bit(s)) != 0; }
  constexpr bool HasAny(Settings of) const { return (bits_ & of.bits_) != 0; }
  constexpr uint32_t Of(Settings of) const { return bits_ & of.bits_; }

 private:
  static constexpr uint32_t Bit(Setting s) { return uint32_t{1} << static_cast<unsigned>(s); }
  uint32_t bits_ = 0;
};

// What a traced function means: caches of them have these in their keys.
inline constexpr Settings kSettingsOfTraces = {
    Setting::kX64,        Setting::kJaxSemantics,   Setting::kStrictPromotion, Setting::kWatchRanks,
    Setting::kKeepsCalls, Setting::kCountsInHalves, Setting::kRefusesRanks,    Setting::kWatchKeys};
// Those that ask what operations give.
inline constexpr Settings kSettingsOfNans = {Setting::kDebugNans, Setting::kDebugInfs};
// Those that ask what operations give, or whether they may run.
inline constexpr Settings kSettingsOfRuns = {Setting::kDebugNans, Setting::kDebugInfs, Setting::kNoExecution};

// Which settings are on for this thread: of its innermost `with` statement that sets it, or else of the process. A call
// of a compiled function asks this several times, so it is two loads.
namespace internal {
extern std::atomic<uint32_t> g_on;                   // in the process
extern constinit thread_local uint32_t t_set, t_on;  // by open scopes of this thread; those which they switch on
}  // namespace internal
inline Settings SettingsHere() {
  return Settings((internal::g_on.load(std::memory_order_relaxed) & ~internal::t_set) | internal::t_on);
}
inline bool On(Setting setting) { return SettingsHere().Has(setting); }

// A scope of this thread that sets a setting.
struct OpenSetting {
  uint64_t number;  // no other has it
  bool on;
};

struct TraceContext {
  std::vector<OpenSetting> settings[kNumSettings];  // the scopes that are open, the innermost last
  std::vector<NamedAxis> axes;                      // that are bound (tracer/axes.h), the innermost last
  // The front end's object for the mesh around the code, which keeps it alive; null: there is none.
  void* mesh = nullptr;

  // Appends numbers that are equal for contexts in which a function is traced alike, except for the mesh, of which they
  // say only that there is one: two of them are equal where the front end says so.
  template <class Numbers>
  void AppendKey(Numbers& key) const {
    key.push_back(SettingsHere().Of(kSettingsOfTraces) | static_cast<uint64_t>(mesh != nullptr) << kNumSettings |
                  static_cast<uint64_t>(!axes.empty()) << (kNumSettings + 1) |
                  static_cast<uint64_t>(CurrentLicences().bits()) << (kNumSettings + 2));
    if (!axes.empty()) key.push_back(AxesKey());
  }
};

// Of this thread.
TraceContext& Context();
// ... of the process.
void SetForProcess(Setting setting, bool on);

// Whether an operation that is being made is one of the front end's own: its functions convert and broadcast on
// purpose, so that kStrictPromotion and kWatchRanks say nothing of them. Asked only where one of these would refuse
// something.
using OwnCode = bool (*)();
void SetOwnCode(OwnCode ask);
bool IsOwnCode();
// While one exists, what meets are the user's own arguments, whoever brings them together.
class ScopedUsersArguments {
 public:
  ScopedUsersArguments();
  ~ScopedUsersArguments();
  ScopedUsersArguments(const ScopedUsersArguments&) = delete;
};

// Opens a scope that sets it for this thread. Scopes may end in any order (of generators, say): the setting is that of
// the one that was opened last among those that are open.
uint64_t OpenScope(Setting setting, bool on);
// False where this thread has no such scope.
bool CloseScope(Setting setting, uint64_t number);

// All settings as they were somewhere else, for a scope: what runs there is part of what was written here.
class ScopedSettings {
 public:
  using All = std::array<bool, kNumSettings>;
  static All Here();
  explicit ScopedSettings(const All& all);
  ~ScopedSettings();
  ScopedSettings(const ScopedSettings&) = delete;

 private:
  uint64_t numbers_[kNumSettings];
};

}  // namespace weft
#endif  // WEFT_TRACER_CONTEXT_H_
