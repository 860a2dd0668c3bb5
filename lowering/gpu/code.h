// Internal to lowering/**.cc: from MLIR to PTX, or to host emulation of the kernels.
#ifndef WEFT_LOWERING_GPU_CODE_H_
#define WEFT_LOWERING_GPU_CODE_H_

#include <string>
#include <vector>

#include "lowering/abi/gpu_artifact.h"
#include "lowering/gpu/target.h"

namespace mlir {
class ModuleOp;
}

namespace weft {

enum class GpuCode { kMlir, kLlvm, kPtx, kEmulation };

// Lowers `module` (destroyed on the way): text, or the bytes of an ELF shared object (kEmulation).
std::string GenerateGpuCode(mlir::ModuleOp module, const std::vector<GpuKernel>& kernels, const GpuTarget& target,
                            const std::string& libdevice, GpuCode stage);

}  // namespace weft
#endif  // WEFT_LOWERING_GPU_CODE_H_
