// The reference interpreter: the meaning of every primitive, written to be read. Tests compare everything else with
// it; nothing that has to be fast may call it.
//
//   Tensors out = Eval(*fn, {x, y});       // out[i] has the type of result i
#ifndef WEFT_IR_EVAL_H_
#define WEFT_IR_EVAL_H_

#include <functional>
#include <map>
#include <string>

#include "ir/fn.h"
#include "ir/tensor.h"

namespace weft {

// Raises kType when an argument does not fit its parameter; dimension symbols are bound from the arguments' sizes.
Tensors Eval(const Fn& fn, const Tensors& args);

// One equation on given operands.
Tensors EvalEqn(const Eqn& eqn, const Tensors& operands);

// The value of each dimension symbol, from the sizes of arguments. Raises kType naming parameter, given and expected type
// when an argument does not fit.
std::map<std::string, int64_t> BindSymbols(const Fn& fn, const Tensors& args);

// Where debug_print and the callbacks go. The default prints to standard output and refuses callbacks.
struct EffectHandlers {
  std::function<void(const std::string&)> print;
  std::function<Tensors(int64_t callback, const Tensors&, const Types& results)> callback;
};
void SetEffectHandlers(EffectHandlers handlers);
const EffectHandlers& GetEffectHandlers();
// "x={} y={}" with each {} replaced by the NumPy-like text of the next tensor.
std::string FormatTensors(const std::string& format, const Tensors& values);

}  // namespace weft
#endif  // WEFT_IR_EVAL_H_
