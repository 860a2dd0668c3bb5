#include "driver/connect_effects.h"

#include <cstring>
#include <mutex>

#include "backends/cpu/core/effects.h"
#include "base/tape.h"
#include "ir/error.h"
#include "ir/eval/effects.h"

namespace weft {
namespace {

Tensors AsTensors(const std::vector<cpu::EffectArray>& arrays) {
  Tensors out;
  for (const cpu::EffectArray& a : arrays) {
    // Copies: handlers may keep what they are given.
    out.push_back(
        Tensor(static_cast<DType>(a.dtype), a.shape, std::shared_ptr<void>(a.data, [](void*) {}), a.data).Copy());
  }
  return out;
}

}  // namespace

void ConnectEffects() {
  static std::once_flag once;
  std::call_once(once, [] {
    cpu::EffectHooks hooks;
    hooks.print = [](const std::string& format, const std::vector<cpu::EffectArray>& in) {
      GetEffectHandlers().print(FormatTensors(format, AsTensors(in)));
    };
    hooks.describe = [](const std::string& message, const std::vector<cpu::EffectArray>& in) {
      return FormatTensors(message, AsTensors(in));
    };
    hooks.callback = [](int64_t callback, const std::vector<cpu::EffectArray>& in,
                        const std::vector<cpu::EffectArray>& out, TapeRegion& tapes) {
      Types types;
      for (const cpu::EffectArray& a : out)
        types.push_back(Type{static_cast<DType>(a.dtype), Dims(a.shape.begin(), a.shape.end()), {}});
      const Tensors results = GetEffectHandlers().callback(callback, AsTensors(in), types);
      if (results.size() != out.size())
        throw TypeError("callback: gave ", results.size(), " results; expected ", out.size());
      for (size_t i = 0; i < out.size(); ++i) {
        if (!(results[i].type() == types[i]))
          throw TypeError("callback: result ", i, " is ", results[i].type(), "; expected ", types[i]);
        if (types[i].dtype == DType::kTape) {
          CopyTapes(tapes, results[i].data<uint64_t>(), results[i].size(), static_cast<uint64_t*>(out[i].data));
          continue;
        }
        std::memcpy(out[i].data, results[i].raw(), static_cast<size_t>(results[i].bytes()));
      }
    };
    cpu::SetEffectHooks(std::move(hooks));
  });
}

}  // namespace weft
