// Internal to lowering/*.cc: the last mile from MLIR to a loadable shared object, and the process-wide compiler state.
#ifndef WEFT_LOWERING_CODEGEN_H_
#define WEFT_LOWERING_CODEGEN_H_

#include <string>

#include "lowering/target.h"

namespace mlir {
class MLIRContext;
class ModuleOp;
}  // namespace mlir

namespace weft {

// The context of the calling thread, dialects loaded. Compilations of one thread share it; threads never do.
mlir::MLIRContext& CompilerContext();

enum class CodeStage { kMlir, kLlvm, kAssembly, kObject };

// Lowers `module` (destroyed on the way) to the wanted stage: text, or the bytes of an ELF shared object.
std::string GenerateCode(mlir::ModuleOp module, const Target& target, CodeStage stage);

}  // namespace weft
#endif  // WEFT_LOWERING_CODEGEN_H_
