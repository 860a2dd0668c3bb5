// Programs for GPUs: their stages as text, and their kernels run thread by thread on the CPU.
//
//   std::string ptx = GpuStage(fn, "cuda:sm_90a", "ptx");
#ifndef WEFT_DRIVER_GPU_H_
#define WEFT_DRIVER_GPU_H_

#include <string>

#include "ir/fn.h"
#include "ir/tensor.h"

namespace weft {

// Raises kValue unless `name` is a GPU: "cuda:sm_90a", or a description (lowering/gpu/target.h).
void CheckGpuTarget(const std::string& name);

// The text of a stage (driver/stages.h). Raises kValue for another stage or an unknown target, kUnsupported for an
// operation without GPU code.
std::string GpuStage(const FnRef& fn, const std::string& target, const std::string& stage);

// Compiles for the target, and runs the kernels' twins on the CPU, one fibre per CUDA thread, with every access,
// barrier and shuffle checked (backends/cuda/twin_device.h). Slow: for tests. Raises kType for arguments that do not
// fit, kRuntime when a check fails.
Tensors EmulateGpu(const FnRef& fn, const std::string& target, const Tensors& args);

}  // namespace weft
#endif  // WEFT_DRIVER_GPU_H_
