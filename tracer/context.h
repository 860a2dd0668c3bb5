// What surrounds the code that runs on a thread, besides its open traces: settings, named axes, derivatives that are
// being taken, a mesh. A traced function means all of it, so caches of traced functions have Key() in theirs.
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
#include "tracer/rule_depth.h"

namespace weft {

enum class Setting : uint8_t { kX64, kDisableJit, kDebugNans };
inline constexpr size_t kNumSettings = 3;

struct TraceContext {
  std::optional<bool> settings[kNumSettings];  // of this thread's `with` statements
  std::vector<NamedAxis> axes;                 // that are bound (tracer/axes.h), the innermost last
  // tracer/rule_depth.h
  int derivatives = 0;              // taken outside of rules
  int inner_derivatives = 0;        // taken inside of them
  std::vector<int64_t> open_rules;  // the functions whose rules are being traced
  // The front end's object for the mesh around the code, which keeps it alive; null: there is none.
  void* mesh = nullptr;

  // Appends numbers that are equal for contexts in which a function is traced alike, except for the mesh, of which they
  // say only that there is one: two of them are equal where the front end says so.
  template <class Numbers>
  void AppendKey(Numbers& key) const {
    const bool in_rules = !open_rules.empty() || derivatives > kLeastRuleDepth;
    key.push_back(static_cast<uint64_t>(On(Setting::kX64)) | static_cast<uint64_t>(mesh != nullptr) << 1 |
                  static_cast<uint64_t>(!axes.empty()) << 2 | static_cast<uint64_t>(in_rules) << 3);
    if (!axes.empty()) key.push_back(AxesKey());
    if (!in_rules) return;
    for (uint64_t number : RulesKey()) key.push_back(number);
  }

  bool On(Setting setting) const;

 private:
  std::vector<uint64_t> RulesKey() const;
};

// Of this thread.
TraceContext& Context();
// The setting for this thread: of its innermost `with` statement that sets it, or else of the process.
inline bool On(Setting setting) { return Context().On(setting); }
// ... of the process.
void SetForProcess(Setting setting, bool on);

}  // namespace weft
#endif  // WEFT_TRACER_CONTEXT_H_
