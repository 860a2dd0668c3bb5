// What compiled programs do besides computing, answered by whoever embeds the back end (the driver).
#ifndef WEFT_BACKENDS_CPU_CORE_EFFECTS_H_
#define WEFT_BACKENDS_CPU_CORE_EFFECTS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/tape.h"

namespace weft::cpu {

// An array that an effect reads, or (callbacks' results) has to fill.
struct EffectArray {
  void* data = nullptr;
  int dtype = 0;
  std::vector<int64_t> shape;
};

struct EffectHooks {
  std::function<void(const std::string& format, const std::vector<EffectArray>&)> print;
  // The text of a failed assertion.
  std::function<std::string(const std::string& message, const std::vector<EffectArray>&)> describe;
  // What it throws ends the program, and is thrown again by whoever runs it. Tapes among the results are made in
  // `tapes`.
  std::function<void(int64_t callback, const std::vector<EffectArray>& in, const std::vector<EffectArray>& out,
                     TapeRegion& tapes)>
      callback;
};
// Set once, before programs run.
void SetEffectHooks(EffectHooks hooks);

}  // namespace weft::cpu
#endif  // WEFT_BACKENDS_CPU_CORE_EFFECTS_H_
