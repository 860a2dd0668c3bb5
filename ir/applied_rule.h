// A rule of simplification that applied, for explanations.
#ifndef WEFT_IR_APPLIED_RULE_H_
#define WEFT_IR_APPLIED_RULE_H_

#include <string>

#include "ir/loc.h"

namespace weft {

struct AppliedRule {
  std::string pass;  // that ran it
  std::string rule;
  std::string operation;  // of the equation that was replaced
  Loc at;                 // that equation's
  // The value of that equation and what replaced it, as expressions in letters that mean the same in both: "log(1 +
  // exp(x))" and "softplus(x)". Empty where nobody asked; `after` also of rules that rewrite a whole function.
  std::string before, after;
};

}  // namespace weft
#endif  // WEFT_IR_APPLIED_RULE_H_
