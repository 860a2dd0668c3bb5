// The rules of custom_jvp, custom_vjp and custom_vmap, which are functions of the host. An equation names its rule by
// number (`rule`, ir/host_functions.h); the transform that meets the equation runs it, for the types that the operands
// have and for those of them that have tangents. Loops and branches are transformed until their masks agree, so what a
// rule gave is kept for the next time that the same is asked for.
//
// Who runs a transform holds HostFunctionsStay: what a rule gives may name further functions of the host.
#ifndef WEFT_IR_CUSTOM_RULES_H_
#define WEFT_IR_CUSTOM_RULES_H_

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/fork_safe_mutex.h"
#include "ir/host_functions.h"
#include "ir/loc.h"
#include "ir/prim.h"

namespace weft {

// The forward rule of a custom_vjp, traced: operands -> results, residuals. `backward` is the number of the
// BackwardRule that takes those residuals.
struct ForwardFn {
  FnRef fn;
  int64_t backward = 0;
};
// The backward rule, traced: residuals, cotangents of some results -> cotangents of the operands that had tangents.
struct BackwardFn {
  FnRef fn;
};

// Among what a rule throws: the host's own exception, of the rule rather than of the machine. Whoever runs a rule only
// to learn something of it catches this.
class RuleRaised {};

// A rule that has a derivative: `Result` is what it gives for operands of these types and a mask of them (a
// BackwardRule: for residuals of these types and a mask of the results). `loc`: of the equation, for messages.
template <class Result>
class HostRule {
 public:
  using Run = std::function<Result(const Types& types, const Mask& mask, const Loc& loc)>;
  explicit HostRule(Run run) : run_(std::move(run)) {}

  Result operator()(const Types& types, const Mask& mask, const Loc& loc) {
    {
      std::lock_guard lock(mutex_);
      for (const Given& g : given_) {
        if (g.types == types && g.mask == mask && AllThere(g.result)) return g.result;
      }
    }
    Result result = run_(types, mask, loc);  // without the lock: it may wait for others, and need this rule itself
    std::lock_guard lock(mutex_);
    std::erase_if(given_, [&](const Given& g) { return g.types == types && g.mask == mask; });
    given_.push_back({types, mask, result});
    return result;
  }

 private:
  struct Given {
    Types types;
    Mask mask;
    Result result;
  };
  // Whether the functions that it names still exist. (It does not hold them: a rule may name itself.)
  static bool AllThere(const Result& result) {
    Ints named = HostFunctionsOf(*result.fn);
    if constexpr (requires { result.backward; }) named.push_back(result.backward);
    return std::all_of(named.begin(), named.end(), HostFunctionExists);
  }

  Run run_;
  ForkSafeMutex mutex_;
  std::vector<Given> given_;
};

// custom_jvp: fn takes the operands, then the tangents of those in the mask.
using JvpHostRule = HostRule<JvpFn>;
using ForwardRule = HostRule<ForwardFn>;
using BackwardRule = HostRule<BackwardFn>;
// custom_vmap: what the function is over a mapped dimension of `size`, for arguments of the given types (without that
// dimension), of which those in `batched` are mapped. Values captured from around the function follow its arguments in
// both and are never mapped.
using BatchingRule = std::function<BatchedFn(const Dim& size, const Mask& batched, const Types& types)>;

// Holds a rule under `number`; one that the number already names stays.
inline HostFunctions HoldRule(JvpHostRule::Run rule, int64_t number) {
  return HostFunctions(std::make_shared<JvpHostRule>(std::move(rule)), number, HostKind::kJvpRule);
}
inline HostFunctions HoldRule(ForwardRule::Run rule, int64_t number) {
  return HostFunctions(std::make_shared<ForwardRule>(std::move(rule)), number, HostKind::kForwardRule);
}
inline HostFunctions HoldRule(BackwardRule::Run rule, int64_t number) {
  return HostFunctions(std::make_shared<BackwardRule>(std::move(rule)), number, HostKind::kBackwardRule);
}
inline HostFunctions HoldRule(BatchingRule rule, int64_t number) {
  return HostFunctions(std::make_shared<BatchingRule>(std::move(rule)), number, HostKind::kBatchingRule);
}

}  // namespace weft
#endif  // WEFT_IR_CUSTOM_RULES_H_
