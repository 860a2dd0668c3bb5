// Packs residuals: what the branches of a cond, or a function that is called, hand from their first half to their
// second. (Or what a policy saves.)
//
// One branch runs, so values of different branches share slots of equal type. Values that a cond inside handed over
// already would pass through every level on their way out: of many, the smaller ones are laid end to end in one array,
// so that each level hands over a bounded number of them and each value is copied a logarithmic number of times. The
// same is done for a function that calls others again and again, whose values double with every level of calls.
#ifndef WEFT_IR_PRIMS_CONTROL_BRANCH_SLOTS_H_
#define WEFT_IR_PRIMS_CONTROL_BRANCH_SLOTS_H_

#include <vector>

#include "ir/builder.h"
#include "ir/prim.h"

namespace weft {

class BranchSlots {
 public:
  // For each branch a function, of whose results those from `first[k]` on are handed over.
  BranchSlots(const std::vector<FnRef>& branches, const std::vector<size_t>& first);
  // The same of one function that is called.
  BranchSlots(const FnRef& called, size_t first);

  // Of what the first half gives and the second takes.
  const Types& types() const { return types_; }
  // In the first half of branch k: a value for each of `types`, zeros where the branch has none.
  Atoms Fill(Builder& b, size_t k, const Atoms& values) const;
  // In its second half: the values again, from those of `types`.
  Atoms Read(Builder& b, size_t k, const Atoms& filled) const;

 private:
  // How many values of those that may be packed pass through by themselves: small ones, and any.
  struct Limits {
    size_t small, any;
  };
  // The slots, and which of them hold what a cond inside has handed over.
  std::vector<bool> Assign(const std::vector<FnRef>& branches, const std::vector<size_t>& first);
  void Pack(const std::vector<bool>& may_be_packed, const Limits& limits);
  void ChoosePacks(const std::vector<bool>& may_be_packed, const Limits& limits);

  Types slots_;
  std::vector<std::vector<size_t>> slot_of_;  // per branch and value
  std::vector<std::vector<size_t>> packs_;    // slots that lie in one array each
  std::vector<bool> packed_;                  // per slot
  Types types_;                               // of slots that are not packed, then of the packs
};

}  // namespace weft
#endif  // WEFT_IR_PRIMS_CONTROL_BRANCH_SLOTS_H_
