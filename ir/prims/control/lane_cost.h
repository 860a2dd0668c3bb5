// What one lane of a branch or loop body costs, counted on the IR: vmap decides by it how lanes that disagree run.
//
// The unit is one floating-point operation, or one byte that goes through memory (ir/analysis/cost.h). Element-wise
// operations, views and reductions fuse, so their operands are not counted as bytes; those of contractions, sorts and
// the like are. A symbolic dimension counts as 256.
#ifndef WEFT_IR_PRIMS_CONTROL_LANE_COST_H_
#define WEFT_IR_PRIMS_CONTROL_LANE_COST_H_

#include <cstdint>
#include <string>

#include "ir/fn.h"
#include "ir/prim.h"

namespace weft {

struct LaneCost {
  double work = 0;          // of one evaluation, bodies of loops of unknown length counted once
  bool repeats = false;     // holds a loop whose length depends on values: foreign values may keep it from ending
  bool checks = false;      // holds an assert, which foreign values may fail
  bool one_by_one = false;  // prints, calls the host or recurses: lanes run one after the other
  std::string collective;   // the name of a collective in it; empty when there is none

  // Whether it may run on values for which the program does not run it, its results thrown away.
  bool SafeOnForeignValues() const { return !repeats && !checks && !one_by_one; }
  LaneCost& operator+=(const LaneCost& other);
};

// Of a region, those inside included.
LaneCost LaneCostOf(const Fn& fn);
double BytesOf(const Type& type);

// Running a lane for nothing is cheaper than finding out which lanes need not run: 512 units, and moving the lane's
// `bytes` there and back.
inline bool CheapForAllLanes(const LaneCost& cost, double bytes) { return cost.work <= 512 + 2 * bytes; }

// How many lanes run at once: a power of two from 1 to 1024 (64 with loops inside), so that one block is about 2^16
// units of work; at least 16 where lanes share `shared_bytes` of more than 4096 bytes, which then are read once per
// block. Never more than there are lanes.
int64_t LanesPerBlock(const LaneCost& cost, double shared_bytes, const Dim& lanes);

// An inexact operand that lanes share is copied for each lane when it is at most this large, so that the cotangents of
// lanes that do not count can be left out one by one.
inline constexpr double kSmallSharedBytes = 128;

}  // namespace weft
#endif  // WEFT_IR_PRIMS_CONTROL_LANE_COST_H_
