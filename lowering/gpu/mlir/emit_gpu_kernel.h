// Internal to lowering/**.cc: a KernelSpec as an LLVM-dialect function for NVPTX.
//
// The function takes a pointer to global memory for each operand that the kernel touches, in order. It calls
// llvm.nvvm.* intrinsics for the thread's place, barriers and shuffles, and functions __nv_* of libdevice.
#ifndef WEFT_LOWERING_GPU_MLIR_EMIT_GPU_KERNEL_H_
#define WEFT_LOWERING_GPU_MLIR_EMIT_GPU_KERNEL_H_

#include <string>

#include "lowering/cpu/mlir/builder.h"
#include "lowering/gpu/plan.h"
#include "lowering/kernel/kernel_spec.h"

namespace weft {

// Raises kUnsupported for an operation without a GPU rule: its message begins with the operation's name and a colon.
void EmitGpuKernel(mlir::ModuleOp module, const KernelSpec& spec, const GpuPlan& plan, const std::string& name,
                   bool libdevice);

}  // namespace weft
#endif  // WEFT_LOWERING_GPU_MLIR_EMIT_GPU_KERNEL_H_
