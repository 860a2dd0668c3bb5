// What the reference interpreter computes, seen from outside: tests prove by counts that lazy things stay lazy, and
// weft.debug_nans finds the operation inside a loop.
//
//   EvaluatedElements count;
//   Eval(*fn, args);
//   count.Of("sin")            // elements of results of sin, in fn and its regions
#ifndef WEFT_IR_EVAL_EVALUATED_H_
#define WEFT_IR_EVAL_EVALUATED_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "ir/fn.h"
#include "ir/tensor.h"

namespace weft {

// While it lives, on this thread; of several, the innermost counts.
class EvaluatedElements {
 public:
  EvaluatedElements();
  ~EvaluatedElements();
  EvaluatedElements(const EvaluatedElements&) = delete;
  int64_t Of(const std::string& prim) const;
  static void Add(const std::string& prim, int64_t elements);

 private:
  std::map<std::string, int64_t> counts_;
  EvaluatedElements* outer_;
};

// While it lives, `see` gets every equation that this thread evaluates, with its results: those of regions first, in
// the order in which they run. What it throws ends the evaluation.
class EvaluatedEquations {
 public:
  using See = std::function<void(const Eqn& eqn, const Tensors& results)>;
  explicit EvaluatedEquations(See see);
  ~EvaluatedEquations();
  EvaluatedEquations(const EvaluatedEquations&) = delete;
  static const See* Here();  // null: nobody looks

 private:
  See see_;
  EvaluatedEquations* outer_;
};

}  // namespace weft
#endif  // WEFT_IR_EVAL_EVALUATED_H_
