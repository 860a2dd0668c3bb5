// What surrounds the code that runs on a thread, besides its open traces: settings, named axes, a mesh. A traced
// function means all of it, so caches of traced functions have Key() in theirs.
//
// Each thread has its own. A setting that no `with` statement of the thread has set is that of the process.
#ifndef WEFT_TRACER_CONTEXT_H_
#define WEFT_TRACER_CONTEXT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tracer/axes.h"

namespace weft {

enum class Setting : uint8_t { kX64, kDisableJit, kDebugNans };
inline constexpr size_t kNumSettings = 3;

struct TraceContext {
  std::optional<bool> settings[kNumSettings];  // of this thread's `with` statements
  std::vector<NamedAxis> axes;                 // that are bound (tracer/axes.h), the innermost last
  // The front end's object for the mesh around the code, which keeps it alive; null: there is none.
  void* mesh = nullptr;

  // Appends numbers that are equal for contexts in which a function is traced alike, except for the mesh, of which they
  // say only that there is one: two of them are equal where the front end says so.
  template <class Numbers>
  void AppendKey(Numbers& key) const {
    key.push_back(static_cast<uint64_t>(On(Setting::kX64)) | static_cast<uint64_t>(mesh != nullptr) << 1 |
                  static_cast<uint64_t>(!axes.empty()) << 2);
    if (!axes.empty()) key.push_back(AxesKey());
  }

  bool On(Setting setting) const;
};

// Of this thread.
TraceContext& Context();
// The setting for this thread: of its innermost `with` statement that sets it, or else of the process.
inline bool On(Setting setting) { return Context().On(setting); }
// ... of the process.
void SetForProcess(Setting setting, bool on);

}  // namespace weft
#endif  // WEFT_TRACER_CONTEXT_H_
