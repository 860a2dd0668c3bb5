// Internal to lowering/*.cc: the last mile from MLIR to a loadable shared object, and the process-wide compiler state.
#ifndef WEFT_LOWERING_CODEGEN_H_
#define WEFT_LOWERING_CODEGEN_H_

#include <string>

#include "lowering/target.h"

namespace llvm {
class Module;
}
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

// The parts of it: to the LLVM dialect, and from LLVM IR to an ELF shared object for this machine's kind.
void ConvertToLlvm(mlir::ModuleOp module);
std::string CompileShared(llvm::Module& module, const Target& target);

}  // namespace weft
#endif  // WEFT_LOWERING_CODEGEN_H_
