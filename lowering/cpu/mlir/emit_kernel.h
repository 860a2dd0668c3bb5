// Internal to lowering/**.cc: a KernelSpec as an LLVM-dialect function with the signature WeftKernel.
#ifndef WEFT_LOWERING_CPU_MLIR_EMIT_KERNEL_H_
#define WEFT_LOWERING_CPU_MLIR_EMIT_KERNEL_H_

#include <cstddef>
#include <string>

#include "lowering/abi/abi.h"
#include "lowering/cpu/mlir/builder.h"
#include "lowering/kernel/kernel_spec.h"
#include "lowering/kernel/loop_plan.h"

namespace weft {

// Byte offsets of the members of WeftFrame and WeftRuntime that code reads.
inline constexpr int kFrameSlots = offsetof(WeftFrame, slots), kFrameDesc = offsetof(WeftFrame, desc),
                     kFrameRuntime = offsetof(WeftFrame, runtime), kFrameError = offsetof(WeftFrame, error),
                     kFrameTrips = offsetof(WeftFrame, trips);
inline constexpr int kRuntimeThreads = offsetof(WeftRuntime, num_threads),
                     kRuntimeParallelFor = offsetof(WeftRuntime, parallel_for),
                     kRuntimeOps = offsetof(WeftRuntime, ops), kRuntimeMath = offsetof(WeftRuntime, math),
                     kRuntimePoll = offsetof(WeftRuntime, poll),
                     kRuntimeProductRows = offsetof(WeftRuntime, product_rows);

// `shared`: other modules of the same library call it, which declare it.
void EmitKernel(mlir::ModuleOp module, const KernelSpec& spec, const LoopPlan& plan, const Target& target,
                const std::string& name, bool shared = false);
void DeclareKernel(mlir::ModuleOp module, const std::string& name);

// The number of units of a kernel, computed where the main function calls it (`desc` points at the kernel's
// descriptor).
Value EmitUnits(MlirBuilder& m, const KernelSpec& spec, const LoopPlan& plan, Value desc);

}  // namespace weft
#endif  // WEFT_LOWERING_CPU_MLIR_EMIT_KERNEL_H_
