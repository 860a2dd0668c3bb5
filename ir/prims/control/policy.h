// Which values reverse mode may keep: the policy of a `remat` equation, and of whoever cuts a program into a forward
// and a backward half. A policy is a text, so that it is an attribute like others, prints and parses:
//
//   everything_saveable   nothing_saveable   dots_saveable   dots_with_no_batch_dims_saveable
//   save_only_these_names("a","b")           save_any_names_but_these("a")      save_anything_except_these_names("a")
//   save_from_both_policies(P,Q)             callback(3)
//
//   const CutFn cut = CutByPolicy(f, Policy::Parse("dots_saveable"), Mask(f->results().size(), true));
//   // cut.keep: parameters -> results of f, saved     cut.rest: saved, parameters -> results of f
//
// The names are those of `checkpoint_name` equations. Names and meanings are JAX's.
#ifndef WEFT_IR_PRIMS_CONTROL_POLICY_H_
#define WEFT_IR_PRIMS_CONTROL_POLICY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ir/fn.h"

namespace weft {

class Policy {
 public:
  // Raises kValue for a text that is no policy, naming those that there are.
  static Policy Parse(const std::string& text);
  std::string ToString() const;
  // The numbers of its functions (ir/host_functions.h), and the policy with others in their places.
  Ints Callbacks() const;
  Policy Renumbered(const std::function<int64_t(int64_t)>& number) const;
  // For each equation, whether its results may be kept.
  Mask Saves(const Fn& fn) const;

 private:
  enum class Kind { kEverything, kNothing, kDots, kPlainDots, kOnlyNames, kAnyNameBut, kAnythingBut, kBoth, kCallback };
  Kind kind_ = Kind::kNothing;
  std::vector<std::string> names_;
  std::vector<Policy> both_;
  int64_t callback_ = 0;
};

// A function whose `known` values are cut in those that are kept and those that are made again.
struct CutFn {
  FnRef keep;   // parameters -> results, saved values
  FnRef rest;   // saved values, parameters -> the results that are needed
  Types saved;  // only what `rest` reads
};
CutFn CutByPolicy(const FnRef& fn, const Policy& policy, const Mask& needed);

// Answers for callback(id): a policy that is a function of whoever embeds Weft.
using PolicyCallback = std::function<bool(int64_t id, const Fn& fn, const Eqn& eqn)>;
void SetPolicyCallback(PolicyCallback callback);

}  // namespace weft
#endif  // WEFT_IR_PRIMS_CONTROL_POLICY_H_
