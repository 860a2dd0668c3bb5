// How deep the derivative rules of custom_jvp and custom_vjp are traced.
//
// A rule may call its own function, for the derivative of the derivative. Each rule is traced while its function is,
// and inside it that of the function again, as deep as derivatives are being taken around the outermost rule, and at
// least three deep (a program may be differentiated after it was traced). Below that the function has no rule, and to
// differentiate it is an error. Derivatives taken inside rules do not count: each would bring a rule that takes one.
//
// Like the stack of traces this belongs to the thread.
#ifndef WEFT_TRACER_RULE_DEPTH_H_
#define WEFT_TRACER_RULE_DEPTH_H_

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

// Inside the scope a rule is traced.
class ScopedRule {
 public:
  ScopedRule();
  ~ScopedRule();
  ScopedRule(const ScopedRule&) = delete;
};

inline constexpr int kLeastRuleDepth = 3;
// How many rules deeper tracing goes from here; kLeastRuleDepth where nothing is differentiated.
int RulesLeft();

}  // namespace weft
#endif  // WEFT_TRACER_RULE_DEPTH_H_
