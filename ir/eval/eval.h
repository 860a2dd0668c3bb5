// The reference interpreter: the meaning of every primitive, written to be read. Tests compare everything else with
// it; nothing that has to be fast may call it.
//
//   Tensors out = Eval(*fn, {x, y});       // out[i] has the type of result i
#ifndef WEFT_IR_EVAL_EVAL_H_
#define WEFT_IR_EVAL_EVAL_H_

#include <cstdint>
#include <map>
#include <string>

#include "ir/eval/effects.h"
#include "ir/fn.h"
#include "ir/tensor.h"

namespace weft {

// Raises kType when an argument does not fit its parameter; dimension symbols are bound from the arguments' sizes.
Tensors Eval(const Fn& fn, const Tensors& args);

// How often the interpreter has run a function, regions included: tests prove by it that compiled code never does.
int64_t EvalCount();

// One equation on given operands.
Tensors EvalEqn(const Eqn& eqn, const Tensors& operands);

// The value of each dimension symbol, from the sizes of arguments. Raises kType naming parameter, given and expected
// type when an argument does not fit.
std::map<std::string, int64_t> BindSymbols(const Fn& fn, const Tensors& args);

}  // namespace weft
#endif  // WEFT_IR_EVAL_EVAL_H_
