// The cost of running a branch or loop body for one element of a batch, counted on the IR. By it vmap decides how
// elements that diverge run (divergence.h).
//
// The unit is one floating-point operation, or one byte that goes through memory (ir/analysis/cost.h). Element-wise
// operations, views and reductions fuse, so their operands are not counted as bytes; those of contractions, sorts and
// the like are. A symbolic dimension counts as 256.
#ifndef WEFT_IR_PRIMS_CONTROL_REGION_COST_H_
#define WEFT_IR_PRIMS_CONTROL_REGION_COST_H_

#include <cstdint>
#include <string>

#include "ir/fn.h"
#include "ir/prim.h"

namespace weft {

struct RegionCost {
  double work = 0;  // of one evaluation, bodies of loops of unknown length counted once
  bool repeats =
      false;  // holds a loop whose length depends on values: values of inactive elements may keep it from ending
  bool checks = false;      // holds an assert, which values of inactive elements may fail
  bool one_by_one = false;  // prints, calls the host or recurses: elements run one after the other
  std::string collective;   // the name of a collective in it; empty when there is none

  // Whether it may run for inactive elements, too, its results thrown away.
  bool IsSpeculatable() const { return !repeats && !checks && !one_by_one; }
  RegionCost& operator+=(const RegionCost& other);
};

// Of a region, those inside included.
RegionCost RegionCostOf(const Fn& fn);
double BytesOf(const Type& type);

// Whether running an element for nothing is cheaper than finding out which elements are active: 512 units, and moving
// the element's `bytes` there and back.
inline bool CheapForAllElements(const RegionCost& cost, double bytes) { return cost.work <= 512 + 2 * bytes; }

// How many elements run at once: a power of two from 1 to 1024 (64 with loops inside), so that one block is about 2^16
// units of work; at least 16 where elements share `shared_bytes` of more than 4096 bytes, which then are read once per
// block. Never more than there are in the batch.
int64_t ElementsPerBlock(const RegionCost& cost, double shared_bytes, const Dim& elements);

// An inexact operand that elements share is copied for each of them when it is at most this large, so that the
// cotangents of inactive elements can be left out one by one.
inline constexpr double kSmallSharedBytes = 128;

}  // namespace weft
#endif  // WEFT_IR_PRIMS_CONTROL_REGION_COST_H_
