// The reference interpreter: the meaning of every primitive, written to be read. Tests compare everything else with
// it; nothing that has to be fast may call it.
//
//   Tensors out = Eval(*fn, {x, y});       // out[i] has the type of result i
#ifndef WEFT_IR_EVAL_EVAL_H_
#define WEFT_IR_EVAL_EVAL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/eval/effects.h"
#include "ir/fn.h"
#include "ir/tensor.h"

namespace weft {

// Raises kType when an argument does not fit its parameter; dimension symbols are bound from the arguments' sizes.
Tensors Eval(const Fn& fn, const Tensors& args);

// A program that is evaluated many times: types and attributes, which do not depend on the numbers, are found once.
class PreparedEval {
 public:
  // How to compute the result of an equation from its operands otherwise than by the primitive's `eval`; empty: by
  // that.
  using Run = std::function<Tensor(const Tensors& operands)>;
  using Otherwise = std::function<Run(const Eqn& eqn)>;
  explicit PreparedEval(FnRef fn, const Otherwise& otherwise = {});
  Tensors operator()(const Tensors& args) const;  // as Eval

  // Of one equation.
  struct Step {
    Types operands, results;  // static types
    Mask literal;
    Attrs attrs;
    Run run;
  };

 private:
  FnRef fn_;
  bool static_ = false;  // no sizes are symbols
  std::vector<Step> steps_;
};

// How often the interpreter has run a function, regions included: tests prove by it that compiled code never does.
int64_t EvalCount();

// One equation on given operands.
Tensors EvalEqn(const Eqn& eqn, const Tensors& operands);

// The value of each dimension symbol, from the sizes of arguments. Raises kType naming parameter, given and expected
// type when an argument does not fit.
std::map<std::string, int64_t> BindSymbols(const Fn& fn, const Tensors& args);

}  // namespace weft
#endif  // WEFT_IR_EVAL_EVAL_H_
