// Which calls of a program stay calls: those of functions that are large and called more than once, which are then
// compiled once. All others are inlined, where they fuse with what is around them.
#ifndef WEFT_TRANSFORMS_OPT_CALLS_H_
#define WEFT_TRANSFORMS_OPT_CALLS_H_

#include "absl/container/flat_hash_set.h"
#include "ir/fn.h"

namespace weft {

class CalledFunctions {
 public:
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

// The equations of a program, those of its regions included, once every call is inlined; at most 2^40.
int64_t EquationsOnceInlined(const Fn& program);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_CALLS_H_
