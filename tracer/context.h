// What surrounds the code that runs on a thread, besides its open traces: settings, named axes, a mesh. A traced
// function means all of it, so caches of traced functions have Key() in theirs.
//
// Each thread has its own. A setting that no `with` statement of the thread has set is that of the process.
#ifndef WEFT_TRACER_CONTEXT_H_
#define WEFT_TRACER_CONTEXT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/licences.h"
#include "tracer/axes.h"

namespace weft {

// kJaxSemantics: where Weft differs from JAX on purpose it follows JAX (docs/jax_programs.md). kDebugInfs: as
// kDebugNans, for infinities. kNoExecution: nothing may run. kStrictPromotion: dtypes are not promoted. kWatchRanks,
// kWatchTransfers: Python is told where operands of different ranks meet, and where its numbers and NumPy's arrays
// become arrays.
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
};
inline constexpr size_t kNumSettings = 9;

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
    key.push_back(static_cast<uint64_t>(On(Setting::kX64)) | static_cast<uint64_t>(mesh != nullptr) << 1 |
                  static_cast<uint64_t>(!axes.empty()) << 2 | static_cast<uint64_t>(On(Setting::kJaxSemantics)) << 3 |
                  static_cast<uint64_t>(CurrentLicences().bits()) << 4 |
                  static_cast<uint64_t>(On(Setting::kStrictPromotion)) << 62 |
                  static_cast<uint64_t>(On(Setting::kWatchRanks)) << 63);
    if (!axes.empty()) key.push_back(AxesKey());
  }

  bool On(Setting setting) const;
};

// Of this thread.
TraceContext& Context();
// The setting for this thread: of its innermost `with` statement that sets it, or else of the process.
inline bool On(Setting setting) { return Context().On(setting); }
// Whether one is on that asks what operations give, or whether they may run.
inline bool WatchesRuns() { return On(Setting::kDebugNans) || On(Setting::kDebugInfs) || On(Setting::kNoExecution); }
// ... of the process.
void SetForProcess(Setting setting, bool on);

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
