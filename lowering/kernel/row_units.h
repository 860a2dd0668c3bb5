// Which units of a kernel compute which rows, where a kernel is run on some rows after the other.
#ifndef WEFT_LOWERING_KERNEL_ROW_UNITS_H_
#define WEFT_LOWERING_KERNEL_ROW_UNITS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "lowering/kernel/kernel_spec.h"
#include "lowering/kernel/loop_plan.h"

namespace weft {

// Rows are equal parts of a kernel's domain, in the order of its units.
struct RowUnits {
  int64_t step = 1;   // `step` rows, from a multiple of it on, ...
  int64_t units = 1;  // ... are so many units
  // By operand: how far apart rows are in it, in bytes, if all that the kernel touches for a row lies between it and
  // the next; else 0.
  std::vector<int64_t> bytes;
};

// Nothing where the domain has no such rows, its sizes are symbolic, or a unit is part of several rows.
std::optional<RowUnits> UnitsOfRows(const KernelSpec& spec, const LoopPlan& plan, int64_t rows);

// The same kernel with units that are whole rows, where its domain is one dimension that has them.
KernelSpec InRows(KernelSpec spec, int64_t rows);

}  // namespace weft
#endif  // WEFT_LOWERING_KERNEL_ROW_UNITS_H_
