// Counts what the reference interpreter computes: tests prove by it that lazy things stay lazy.
//
//   EvaluatedElements count;
//   Eval(*fn, args);
//   count.Of("sin")            // elements of results of sin, in fn and its regions
#ifndef WEFT_IR_EVAL_EVALUATED_H_
#define WEFT_IR_EVAL_EVALUATED_H_

#include <cstdint>
#include <map>
#include <string>

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

}  // namespace weft
#endif  // WEFT_IR_EVAL_EVALUATED_H_
