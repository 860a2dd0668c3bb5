// How a kernel's domain is walked on a CPU: which dimension goes into vector lanes, how wide, and what one unit of
// parallel work is.
#ifndef WEFT_LOWERING_KERNEL_LOOP_PLAN_H_
#define WEFT_LOWERING_KERNEL_LOOP_PLAN_H_

#include <vector>

#include "lowering/kernel/kernel_spec.h"
#include "lowering/kernel/target.h"

namespace weft {

struct LoopPlan {
  int vector_dim = -1;        // -1: scalar code
  int lanes = 0;              // 0: scalar code
  bool vector_inner = false;  // the vector dimension is reduced
  // Units: one per combination of these dimensions, times the blocks of the vector dimension if that is an outer one.
  std::vector<int> unit_dims;
  int64_t block = 0;       // elements of the vector dimension per unit; 0: no blocks
  double unit_points = 1;  // static part of the points per unit, for the cost
  bool may_have_tail = false;
  // Transposed reads: this outer dimension is walked in tiles of `lanes`, and nodes of `tile_loads`, contiguous along
  // it, are read a square at a time and transposed in registers. -1: none.
  int tile_dim = -1;
  std::vector<int> tile_loads;
  // Sums in a fixed order: this outer dimension is walked `rows` elements at a time, which share what they load. -1:
  // none.
  int row_dim = -1;
  int rows = 1;
  // Reductions along columns of a large array: the first reduced dimension is walked in strips of so many rows, and all
  // columns of a unit's block take one strip before the next, with their accumulators in memory. So the rows of a strip
  // are read along memory, and each result still takes in one row after the other. 0: no strips.
  int strip = 0;

  // How many elements of one of `unit_dims` a unit has.
  int Step(int d) const { return d == tile_dim ? lanes : d == row_dim ? rows : 1; }
};

LoopPlan PlanLoops(const KernelSpec& spec, const Target& target);

}  // namespace weft
#endif  // WEFT_LOWERING_KERNEL_LOOP_PLAN_H_
