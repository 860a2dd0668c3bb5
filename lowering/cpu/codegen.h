// Internal to lowering/**.cc: from MLIR to object files, and the process-wide compiler state.
#ifndef WEFT_LOWERING_CPU_CODEGEN_H_
#define WEFT_LOWERING_CPU_CODEGEN_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lowering/kernel/target.h"

namespace llvm {
class LLVMContext;
class Module;
class Pass;
class Target;
class TargetMachine;
}  // namespace llvm
namespace mlir {
class MLIRContext;
class ModuleOp;
}  // namespace mlir

namespace weft {

// Calls `f` with an empty module, in a context that compilations hand on one to the next and no two have at once. A
// std::bad_alloc from `f`, or from LLVM below it (lowering/cpu/compiler_memory.h), leaves the context behind.
// `equations`: how long the program is; OutOfMemory where there is not even memory to begin with.
std::string WithModule(size_t equations, const std::function<std::string(mlir::ModuleOp)>& f);

enum class CodeStage { kMlir, kLlvm, kAssembly, kObject };

// Lowers `module` (destroyed on the way) to the wanted stage: text, or the bytes of an object file.
std::string GenerateCode(mlir::ModuleOp module, const Target& target, CodeStage stage);

// The parts of it, for other kinds of machines too: the module as text; as LLVM IR; the code generator of a triple that
// has been initialised; what it makes of LLVM IR after `first`, which it owns; a linked image for this machine's kind
// (lowering/cpu/link.h).
std::string MlirText(mlir::ModuleOp module);
std::unique_ptr<llvm::Module> Translate(mlir::ModuleOp module, llvm::LLVMContext& context);
std::string LlvmText(const llvm::Module& module);
const llvm::Target& CodeGeneratorFor(const std::string& triple);
std::string EmitFile(llvm::TargetMachine& machine, llvm::Module& module, bool assembly,
                     const std::vector<llvm::Pass*>& first = {});
std::string CompileModule(llvm::Module& module, const Target& target);

}  // namespace weft
#endif  // WEFT_LOWERING_CPU_CODEGEN_H_
