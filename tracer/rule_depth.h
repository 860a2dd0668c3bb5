// How deep the derivative rules of custom_jvp and custom_vjp are traced.
//
// A rule may call its own function, for the derivative of the derivative. Each rule is traced while its function is,
// and inside it that of the function again, as deep as derivatives are being taken around the outermost rule, and at
// least three deep (a program may be differentiated after it was traced). Below that the function has no rule, and to
// differentiate it is an error.
//
// A rule may also take derivatives of other functions. Each makes room for one rule more, of functions other than those
// whose rules are open: the derivative of a function inside its own rule would bring that rule once more, without end.
//
// Like the stack of traces this belongs to the thread (tracer/context.h).
#ifndef WEFT_TRACER_RULE_DEPTH_H_
#define WEFT_TRACER_RULE_DEPTH_H_

#include <cstdint>

namespace weft {

// Inside the scope so many more derivatives are being taken of what is traced.
class ScopedDerivatives {
 public:
  explicit ScopedDerivatives(int count);
  ~ScopedDerivatives();
  ScopedDerivatives(const ScopedDerivatives&) = delete;

 private:
  int count_;
};

// Inside the scope a rule of the custom function with this number is traced.
class ScopedRule {
 public:
  explicit ScopedRule(int64_t function);
  ~ScopedRule();
  ScopedRule(const ScopedRule&) = delete;
};

inline constexpr int kLeastRuleDepth = 3;
// How many rules deeper tracing goes from here for a function; kLeastRuleDepth where nothing is differentiated.
int RulesLeft(int64_t function);

}  // namespace weft
#endif  // WEFT_TRACER_RULE_DEPTH_H_
