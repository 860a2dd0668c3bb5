// Branches and loops under vmap where lanes disagree: what vmap emits so that a branch, or a trip of a loop, runs only
// for the lanes that take it.
//
//   cond    cheap branches run on all lanes and each lane selects; another branch runs on blocks of the lanes that
//           take it (OnTakenLanes)
//   while   all lanes at once, the finished ones keeping their carries; or a block of lanes, in which a lane that is
//           waiting takes the place of one that has finished
//   both    lane after lane where an effect, a call of the host or recursion is inside (BatchByLanes)
//
// lane_cost.h says which. No value of a lane that does not take a branch ever enters one that might not end or fail for
// it: in its place stands a copy of a lane that does. What is computed for such lanes is thrown away, and no derivative
// passes through it.
#ifndef WEFT_IR_PRIMS_CONTROL_LANES_H_
#define WEFT_IR_PRIMS_CONTROL_LANES_H_

#include "ir/ops.h"
#include "ir/prim.h"
#include "ir/prims/control/lane_cost.h"

namespace weft {

// i32 where that holds the number of every lane.
DType LaneDType(const Dim& lanes);
// x[lanes, ...] for x [n, ...] and lanes [k] of an integer dtype; out of bounds as `mode` of gather says.
Atom LanesAt(Builder& b, const Atom& x, const Atom& lanes, const char* mode = "clip");
// x with row k of `rows` at lanes[k]; one that is out of bounds is left out, none occurs twice.
Atom WithLanesAt(Builder& b, const Atom& x, const Atom& lanes, const Atom& rows);
// x [n, ...] where `mask` [n] holds, else y.
Atom SelectLanes(Builder& b, const Atom& mask, const Atom& x, const Atom& y);

// A region about to run on several lanes at once.
struct LaneRegion {
  FnRef fn;                     // on one lane
  Mask batched;                 // the parameters whose operands have lanes
  Mask copied;                  // small inexact ones that lanes share: each lane gets a copy
  bool shares_inexact = false;  // there are larger ones
  double shared_bytes = 0;      // of all that lanes share and it reads
  double lane_bytes = 0;        // of what it reads of one lane, and gives
  LaneCost cost;

  LaneRegion(const FnRef& fn, const Mask& batched, const Atoms& operands);
  // Lanes that do not count have to hold copies of one that does.
  bool NeedsPadding() const { return !cost.SafeOnForeignValues() || shares_inexact; }
  // fn on `lanes` lanes.
  FnRef Batched(const RegionRules& rules, const Dim& lanes) const;
  // Operands for Batched, such that lanes outside `mask` [lanes] have no influence. `pad`: they get the values of the
  // first lane inside, zeros if there is none.
  Atoms Operands(Builder& b, const Atom& mask, const Atoms& x, bool pad) const;
};

// base, with the results of the region in the lanes in which `taken` [n] holds. Runs on `block` lanes at a time, the
// last block filled up with its last lane; not at all when there are none.
Atoms OnTakenLanes(Builder& b, const RegionRules& rules, const LaneRegion& region, const Atom& taken, const Atoms& x,
                   const Atoms& base, const Dim& lanes, int64_t block);

// Raises kUnsupported: a collective under a condition on which lanes disagree.
void RefuseCollective(const BatchContext& c, const LaneCost& cost);

// Batching of cond, while and tape_scan where lanes disagree on the branch or the number of trips.
void BatchDisagreeingCond(BatchContext& c);
void BatchDisagreeingWhile(BatchContext& c);
void BatchDisagreeingTapeScan(BatchContext& c);

}  // namespace weft
#endif  // WEFT_IR_PRIMS_CONTROL_LANES_H_
