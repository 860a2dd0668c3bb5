// Which calls of a program stay calls: those of functions that are large and called more than once, which are then
// compiled once. All others are inlined, where they fuse with what is around them.
#ifndef WEFT_TRANSFORMS_OPT_CALLS_H_
#define WEFT_TRANSFORMS_OPT_CALLS_H_

#include "absl/container/flat_hash_set.h"
#include "ir/fn.h"

namespace weft {

class CalledFunctions {
 public:
  // All calls are inlined in programs that are no longer than this then, where somebody asks for that
  // (InlineMostCalls).
  static constexpr int64_t kMostInlined = 10000;

  // Equations from which on a function is large: what passing operands and results through memory costs is little
  // beside it.
  static constexpr int64_t kLarge = 256;

  CalledFunctions() = default;  // no function stays
  static CalledFunctions Of(const Fn& program);

  // Whether an equation is a call that stays.
  bool Stays(const Eqn& eqn) const;
  bool empty() const { return stay_.empty(); }

 private:
  absl::flat_hash_set<FnRef, FnHash, FnEqual> stay_;
};

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_CALLS_H_
