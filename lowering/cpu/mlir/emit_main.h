// Internal to lowering/**.cc: the main function, native calls of kernels and operations in the schedule's order.
#ifndef WEFT_LOWERING_CPU_MLIR_EMIT_MAIN_H_
#define WEFT_LOWERING_CPU_MLIR_EMIT_MAIN_H_

#include <vector>

#include "lowering/cpu/mlir/builder.h"
#include "lowering/kernel/loop_plan.h"
#include "lowering/program/program.h"

namespace weft {

// Adds `weft_main` to the module; kernel i is the function "k<i>".
void EmitMain(mlir::ModuleOp module, const Program& program, const std::vector<LoopPlan>& plans);

}  // namespace weft
#endif  // WEFT_LOWERING_CPU_MLIR_EMIT_MAIN_H_
