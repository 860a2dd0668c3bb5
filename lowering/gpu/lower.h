// Fn -> GpuArtifact: the compiler's entry for GPUs. Needs no device and, but for libdevice's functions, no CUDA.
//
//   GpuArtifact a = LowerGpu(fn, GpuTarget::Named("cuda:sm_90a"), {.ptx = true});
//
// Fusion, views and elementwise bodies are those of the CPU. What has no GPU code yet raises kUnsupported, naming the
// operation and the user's line.
#ifndef WEFT_LOWERING_GPU_LOWER_H_
#define WEFT_LOWERING_GPU_LOWER_H_

#include <string>
#include <vector>

#include "ir/fn.h"
#include "lowering/abi/gpu_artifact.h"
#include "lowering/gpu/target.h"

namespace weft {

struct GpuLowerOptions {
  bool ptx = true;         // make GpuArtifact::ptx
  bool emulation = false;  // make GpuArtifact::emulation
};

// Compiles `fn`, which is taken as it is: optimising it first is the caller's business.
GpuArtifact LowerGpu(const FnRef& fn, const GpuTarget& target, const GpuLowerOptions& options = {});

// The text of a stage: "schedule", "mlir", "llvm" or "ptx". Raises kValue for another name.
std::string LowerGpuToText(const FnRef& fn, const GpuTarget& target, const std::string& stage);

// Host emulation of LLVM IR in text form, as the stage "llvm" gives it: for tests that break a kernel. Raises kValue.
std::string EmulationOfLlvm(const std::string& llvm, const std::vector<GpuKernel>& kernels);

// libdevice.10.bc of the CUDA toolkit, by $CUDA_HOME or /usr/local/cuda; empty where there is none.
// WEFT_LIBDEVICE names another file, or none.
std::string FindLibdevice();

}  // namespace weft
#endif  // WEFT_LOWERING_GPU_LOWER_H_
