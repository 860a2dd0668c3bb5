#include "lowering/cpu/codegen.h"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/interrupt.h"
#include "base/out_of_memory.h"
#include "ir/error.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/CodeGen/MachineModuleInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Pass.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Scalar.h"
#include "lowering/cpu/compile_parts.h"
#include "lowering/cpu/compiler_memory.h"
#include "lowering/cpu/link.h"
#include "lowering/lower.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/DialectConversion.h"

namespace weft {
namespace {

// LLVM reports broken invariants of ours through diagnostics; collect them for the error message.
struct Diagnostics {
  explicit Diagnostics(mlir::MLIRContext* context)
      : handler(context, [this](mlir::Diagnostic& d) {
          text += d.str() + "\n";
          return mlir::success();
        }) {}
  std::string text;
  mlir::ScopedDiagnosticHandler handler;
};

// What one compilation leaves to the next.
struct CompilerState {
  std::unique_ptr<mlir::MLIRContext> context;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::string target;  // of the machine
  std::unique_ptr<CompilerState> next;
};

// Those that no compilation has: as many as there were compilations at once. Forking waits for whoever compiles
// (driver/compile_gate.h), so the lock is free in a child.
struct FreeStates {
  std::mutex mutex;
  std::unique_ptr<CompilerState> first;  // a list, so that giving one back needs no memory
};
FreeStates& TheFreeStates() {
  static auto& free = *new FreeStates;
  return free;
}

// The state of the compilation that the thread is in.
thread_local CompilerState* t_state = nullptr;

// MLIR has variables of each thread that take a context's locks when the thread ends. It is inside of the section again
// then, so that a fork does not find these held: thread_local variables end in the reverse order of their making, so
// one is made before MLIR's, and one after.
struct LeavesLast {
  const Section* entered = nullptr;
  ~LeavesLast() {
    if (entered != nullptr) entered->leave();
  }
};
struct EntersFirst {
  LeavesLast& last;
  const Section* section;
  ~EntersFirst() {
    section->enter();
    last.entered = section;
  }
};
LeavesLast& BeforeMlir() {
  thread_local LeavesLast last;
  return last;
}
void AfterMlir() {
  if (InSection::Current() == nullptr) return;
  thread_local const EntersFirst first{BeforeMlir(), InSection::Current()};
}

// Has one for the thread while it lives, unless the thread has one: compiling may ask for another program's code.
class WithState {
 public:
  WithState() {
    if (t_state != nullptr) return;
    BeforeMlir();
    FreeStates& free = TheFreeStates();
    {
      std::lock_guard<std::mutex> lock(free.mutex);
      mine_ = std::move(free.first);
      if (mine_ != nullptr) free.first = std::move(mine_->next);
    }
    if (mine_ == nullptr) mine_ = std::make_unique<CompilerState>();
    t_state = mine_.get();
  }
  ~WithState() {
    if (mine_ == nullptr) return;
    t_state = nullptr;
    AfterMlir();
    FreeStates& free = TheFreeStates();
    std::lock_guard<std::mutex> lock(free.mutex);
    mine_->next = std::move(free.first);
    free.first = std::move(mine_);
  }
  WithState(const WithState&) = delete;

 private:
  std::unique_ptr<CompilerState> mine_;
};

llvm::TargetMachine& MachineFor(const Target& target) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
  });
  std::string& current = t_state->target;
  std::unique_ptr<llvm::TargetMachine>& machine = t_state->machine;
  if (machine == nullptr || current != target.ToString()) {
    llvm::TargetOptions options;
    options.AllowFPOpFusion = llvm::FPOpFusion::Standard;  // where an operation says so (MlirBuilder::MulForSum)
    machine.reset(CodeGeneratorFor(target.triple)
                      .createTargetMachine(target.triple, target.cpu, target.features, options, llvm::Reloc::PIC_,
                                           std::nullopt, llvm::CodeGenOptLevel::Default));
    current = target.ToString();
  }
  return *machine;
}

// A quarter of the code generator's time, for nothing that the programs of bench/ show but 5 % of one whose body has
// five functions: addresses of our loops are as x86 wants them, and processors that reorder instructions do so without
// help.
class PassesForCpus : public llvm::OptPassGate {
 public:
  bool shouldRunPass(const llvm::StringRef pass, llvm::StringRef) override {
    return pass != "Loop Strength Reduction" && pass != "Machine Instruction Scheduler" &&
           pass != "Post RA top-down list latency scheduler";
  }
  bool isEnabled() const override { return true; }
};

std::string Emit(llvm::Module& module, const Target& target, bool assembly) {
  static auto& passes = *new PassesForCpus;
  module.getContext().setOptPassGate(passes);
  llvm::TargetMachine& machine = MachineFor(target);
  module.setTargetTriple(target.triple);
  module.setDataLayout(machine.createDataLayout());
  // Without the first every masked access is split into branches: passes take the target for one that has none.
  return EmitFile(machine, module, assembly,
                  {llvm::createTargetTransformInfoWrapperPass(machine.getTargetIRAnalysis()),
                   llvm::createEarlyCSEPass(), llvm::createLICMPass()});
}

// Before each function: whether the compilation is to end. Nothing is thrown through LLVM's frames, which are not made
// for it: what is left to do becomes nothing, and whoever runs the passes raises `end`.
class PollBeforeFunctions : public llvm::FunctionPass {
 public:
  explicit PollBeforeFunctions(std::optional<CompilationEnds>* end) : llvm::FunctionPass(id_), end_(end) {}
  llvm::StringRef getPassName() const override { return "Whether the compilation is to end"; }
  bool runOnFunction(llvm::Function& function) override {
    if (!*end_) {
      // A handler of signals may run programs, and so compile them.
      CompilerState* const state = std::exchange(t_state, nullptr);
      try {
        PollCompilation();
      } catch (const CompilationEnds& end) {
        *end_ = end;
      }
      t_state = state;
    }
    if (!*end_) return false;
    function.dropAllReferences();
    new llvm::UnreachableInst(function.getContext(), llvm::BasicBlock::Create(function.getContext(), "", &function));
    return true;
  }

 private:
  static char id_;
  std::optional<CompilationEnds>* const end_;
};
char PollBeforeFunctions::id_ = 0;

void ConvertToLlvm(mlir::ModuleOp module) {
  mlir::MLIRContext* context = module.getContext();
  Diagnostics diagnostics(context);
  mlir::LLVMConversionTarget target(*context);
  target.addLegalOp<mlir::ModuleOp>();
  mlir::LLVMTypeConverter types(context);
  mlir::RewritePatternSet patterns(context);
  mlir::populateSCFToControlFlowConversionPatterns(patterns);
  mlir::arith::populateArithToLLVMConversionPatterns(types, patterns);
  mlir::populateMathToLLVMConversionPatterns(types, patterns);
  mlir::cf::populateControlFlowToLLVMConversionPatterns(types, patterns);
  const bool ok = mlir::succeeded(mlir::applyFullConversion(module, target, std::move(patterns)));
  WEFT_CHECK(ok) << "lowering to the LLVM dialect failed: " << diagnostics.text;
}

// The context of the compilation that the thread is in, dialects loaded.
mlir::MLIRContext& CompilerContext() {
  std::unique_ptr<mlir::MLIRContext>& context = t_state->context;
  if (context == nullptr) {
    mlir::DialectRegistry registry;
    registry.insert<mlir::LLVM::LLVMDialect, mlir::arith::ArithDialect, mlir::math::MathDialect, mlir::scf::SCFDialect,
                    mlir::cf::ControlFlowDialect>();
    mlir::registerBuiltinDialectTranslation(registry);
    mlir::registerLLVMDialectTranslation(registry);
    Held<mlir::MLIRContext> made(std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED));
    made->loadAllAvailableDialects();
    context = made.Give();
  }
  return *context;
}

// After a compilation that ran out of memory: the next one begins anew. What there was is left as it is, some MiB.
void ForgetCompilerState() {
  (void)t_state->context.release();
  (void)t_state->machine.release();
}

// LLVM's own ends of the process become exceptions, and there is some memory and stack to begin with.
void PrepareCompiler(size_t equations) {
  static const bool once = [] {
    llvm::install_bad_alloc_error_handler([](void*, const char*, bool) { throw std::bad_alloc(); });
    llvm::install_fatal_error_handler(
        [](void*, const char* reason, bool) { throw Error(ErrorKind::kInternal, std::string("LLVM: ") + reason); });
    return true;
  }();
  (void)once;
  // Less than most programs take; where even this is not there, nothing is begun.
  const int64_t bytes = (int64_t{8} << 20) + static_cast<int64_t>(equations) * 4096;
  if (!CanAllocate(bytes))
    throw OutOfMemory("out of memory: the compiler needs at least " + std::to_string(bytes) +
                      " bytes for a program of " + std::to_string(equations) + " equations");
  EnsureStack(int64_t{1} << 20, "the compiler");
}

}  // namespace

std::string MlirText(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out);
  return text;
}

std::unique_ptr<llvm::Module> Translate(mlir::ModuleOp module, llvm::LLVMContext& context) {
  ConvertToLlvm(module);
  std::unique_ptr<llvm::Module> ir =
      mlir::translateModuleToLLVMIR(module, context, "weft", /*disableVerification=*/true);
  WEFT_CHECK(ir != nullptr) << "translation to LLVM IR failed";
  return ir;
}

std::string LlvmText(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, nullptr);
  return text;
}

const llvm::Target& CodeGeneratorFor(const std::string& triple) {
  std::string error;
  const llvm::Target* t = llvm::TargetRegistry::lookupTarget(triple, error);
  WEFT_CHECK(t != nullptr) << error;
  return *t;
}

std::string EmitFile(llvm::TargetMachine& machine, llvm::Module& module, bool assembly,
                     const std::vector<llvm::Pass*>& first) {
  llvm::SmallString<0> bytes;
  llvm::raw_svector_ostream out(bytes);
  std::optional<CompilationEnds> end;
  {
    // After `out`, which its passes write to until they end.
    const Held<llvm::legacy::PassManager> passes(std::make_unique<llvm::legacy::PassManager>());
    for (llvm::Pass* pass : first) passes->add(pass);
    // As TargetMachine::addPassesToEmitFile does, with one pass more, after the last that works on whole modules: all
    // that follows is done function by function, and takes most of the time.
    auto& generator = static_cast<llvm::LLVMTargetMachine&>(machine);
    auto* const info = new llvm::MachineModuleInfoWrapperPass(&generator);
    llvm::TargetPassConfig* const config = generator.createPassConfig(*passes);
    config->setDisableVerify(true);
    config->insertPass(&llvm::GCLoweringID, new PollBeforeFunctions(&end));
    passes->add(config);
    passes->add(info);
    bool failed = config->addISelPasses();
    config->addMachinePasses();
    config->setInitialized();
    failed |= generator.addAsmPrinter(
        *passes, out, nullptr, assembly ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile,
        info->getMMI().getContext());
    passes->add(llvm::createFreeMachineFunctionPass());
    WEFT_CHECK(!failed) << "the target cannot emit this kind of file";
    passes->run(module);
  }
  if (end) throw CompilationEnds(*end);
  return std::string(bytes.data(), bytes.size());
}

std::string CompileModule(llvm::Module& module, const Target& target) {
  const WithState state;
  return LinkObjects({Emit(module, target, /*assembly=*/false)});
}

std::string WithModule(size_t equations, const std::function<std::string(mlir::ModuleOp)>& f) {
  PrepareCompiler(equations);
  const CompilingThread compiling;
  const WithState state;
  CompilationEnds end;
  try {
    const Held<mlir::OwningOpRef<mlir::ModuleOp>> module(std::make_unique<mlir::OwningOpRef<mlir::ModuleOp>>(
        mlir::ModuleOp::create(mlir::UnknownLoc::get(&CompilerContext()))));
    try {
      return f(**module);
    } catch (const CompilationEnds& raised) {
      end = raised;  // and the module with its scope
    }
  } catch (const std::bad_alloc&) {
    ForgetCompilerState();
    throw;
  }
  if (end.why != nullptr) std::rethrow_exception(end.why);
  throw CompilationEnds(end);
}

std::string GenerateCode(mlir::ModuleOp module, const Target& target, CodeStage stage) {
  if (stage == CodeStage::kMlir) return MlirText(module);
  CompilationEnds end;
  {
    const Held<llvm::LLVMContext> context(std::make_unique<llvm::LLVMContext>());
    const Held<llvm::Module> ir(Translate(module, *context));
    if (stage == CodeStage::kLlvm) return LlvmText(*ir);
    try {
      return Emit(*ir, target, /*assembly=*/stage == CodeStage::kAssembly);
    } catch (const CompilationEnds& raised) {
      end = raised;  // and LLVM's things with their scope
    }
  }
  throw CompilationEnds(end);
}

}  // namespace weft
