// What running a program does besides computing: where debug_print writes and who answers callbacks. Whoever embeds
// Weft (the Python package, a test) installs handlers; the interpreter and compiled code call them.
//
//   EffectHandlers handlers = GetEffectHandlers();
//   handlers.print = [&](const std::string& text) { log << text; };
//   SetEffectHandlers(handlers);
#ifndef WEFT_IR_EVAL_EFFECTS_H_
#define WEFT_IR_EVAL_EFFECTS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "ir/tensor.h"

namespace weft {

// Where debug_print and the callbacks go. The default prints to standard output and refuses callbacks.
struct EffectHandlers {
  std::function<void(const std::string&)> print;
  std::function<Tensors(int64_t callback, const Tensors&, const Types& results)> callback;
};
void SetEffectHandlers(EffectHandlers handlers);
const EffectHandlers& GetEffectHandlers();
// "x={} y={:.3f}" with each field replaced by the NumPy-like text of the next tensor; a specification, as Python's for
// numbers, applies to every element.
// There is one value for each field (CheckFormat).
std::string FormatTensors(const std::string& format, const Tensors& values);

// Raises kValue where `format` has not one field for each of `values` values, or one with a specification that is none;
// `what` begins the message.
void CheckFormat(const std::string& what, const std::string& format, size_t values);

}  // namespace weft
#endif  // WEFT_IR_EVAL_EFFECTS_H_
