// Divergent control flow under vmap: branches and loops of which the elements of a batch take different ones. What vmap
// emits runs a branch, or a trip of a loop, only for the elements that take it.
//
//   cond    cheap branches run on the whole batch and each element selects; another branch runs on blocks of the
//           elements that take it (OnActiveElements)
//   while   the whole batch at once, finished elements keeping their carries; or a block of slots, in which a waiting
//           element takes the place of one that has finished
//   both    one element after the other where an effect, a call of the host or recursion is inside (BatchOneByOne)
//
// region_cost.h decides. Elements that do not take a branch are padded: a branch that might not end or might fail gets
// the values of an element that takes it in their place. Their results are dropped, and no derivative passes through
// them.
#ifndef WEFT_IR_PRIMS_CONTROL_DIVERGENCE_H_
#define WEFT_IR_PRIMS_CONTROL_DIVERGENCE_H_

#include "ir/ops.h"
#include "ir/prim.h"
#include "ir/prims/control/region_cost.h"

namespace weft {

// The dtype of indices into a batch: i32 where that is wide enough.
DType BatchIndexDType(const Dim& elements);
// x[elements, ...] for x [n, ...] and elements [k] of an integer dtype; out of bounds as `mode` of gather says.
Atom ElementsAt(Builder& b, const Atom& x, const Atom& elements, const char* mode = "clip");
// x with row k of `rows` at elements[k]; one that is out of bounds is left out, none occurs twice.
Atom WithElementsAt(Builder& b, const Atom& x, const Atom& elements, const Atom& rows);
// x [n, ...] where `mask` [n] holds, else y.
Atom SelectElements(Builder& b, const Atom& mask, const Atom& x, const Atom& y);

// A region about to run on several elements of a batch at once.
struct BatchedRegion {
  FnRef fn;                     // on one element
  Mask batched;                 // the parameters whose operands are batched
  Mask copied;                  // small inexact ones that are shared: each element gets a copy
  bool shares_inexact = false;  // there are larger ones
  double shared_bytes = 0;      // of what all elements share and it reads
  double element_bytes = 0;     // of what it reads of one element, and gives
  RegionCost cost;

  BatchedRegion(const FnRef& fn, const Mask& batched, const Atoms& operands);
  // Inactive elements have to hold the values of an active one.
  bool NeedsPadding() const { return !cost.IsSpeculatable() || shares_inexact; }
  // fn on a batch of `elements`.
  FnRef Batched(const RegionRules& rules, const Dim& elements) const;
  // Operands for Batched, such that elements outside `mask` [elements] have no influence. `pad`: they get the values of
  // the first one inside, zeros if there is none.
  Atoms Operands(Builder& b, const Atom& mask, const Atoms& x, bool pad) const;
};

// base, with the results of the region for the active elements, those for which `taken` [n] holds. Runs on `block` of
// them at a time, the last block padded with its last element; not at all when there are none.
Atoms OnActiveElements(Builder& b, const RegionRules& rules, const BatchedRegion& region, const Atom& taken,
                       const Atoms& x, const Atoms& base, const Dim& elements, int64_t block);

// Raises kUnsupported: a collective under a condition that diverges.
void RefuseCollective(const BatchContext& c, const RegionCost& cost);

// Batching of cond, while and tape_scan where elements differ in their branch or their trip count.
void BatchDivergentCond(BatchContext& c);
void BatchDivergentWhile(BatchContext& c);
void BatchDivergentTapeScan(BatchContext& c);

}  // namespace weft
#endif  // WEFT_IR_PRIMS_CONTROL_DIVERGENCE_H_
