#include "lowering/codegen.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <mutex>

#include "ir/error.h"
#include "lld/Common/CommonLinkerContext.h"
#include "lld/Common/Driver.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Pass.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Scalar.h"
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

LLD_HAS_DRIVER(elf)

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

llvm::TargetMachine& MachineFor(const Target& target) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
  });
  thread_local std::string current;
  thread_local std::unique_ptr<llvm::TargetMachine> machine;
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

std::string Emit(llvm::Module& module, const Target& target, bool assembly) {
  llvm::TargetMachine& machine = MachineFor(target);
  module.setTargetTriple(target.triple);
  module.setDataLayout(machine.createDataLayout());
  // Without the first every masked access is split into branches: passes take the target for one that has none.
  return EmitFile(machine, module, assembly,
                  {llvm::createTargetTransformInfoWrapperPass(machine.getTargetIRAnalysis()),
                   llvm::createEarlyCSEPass(), llvm::createLICMPass()});
}

// A private folder in memory, gone with its file when this goes. lld reads and writes paths only, and replaces its
// output by renaming, which memory files (memfd) do not support.
class LinkFolder {
 public:
  LinkFolder() {
    for (const char* pattern : {"/dev/shm/weft-XXXXXX", "/tmp/weft-XXXXXX"}) {
      path_ = pattern;
      if (mkdtemp(path_.data()) != nullptr) return;
    }
    throw Error(ErrorKind::kRuntime, "compile: neither /dev/shm nor /tmp can be written, and linking needs a folder");
  }
  ~LinkFolder() {
    unlink(object().c_str());
    unlink(library().c_str());
    rmdir(path_.c_str());
  }
  LinkFolder(const LinkFolder&) = delete;
  std::string object() const { return path_ + "/object.o"; }
  std::string library() const { return path_ + "/library.so"; }

 private:
  std::string path_;
};

void WriteFile(const std::string& path, const std::string& bytes) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  size_t done = 0;
  while (fd >= 0 && done < bytes.size()) {
    const ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  if (fd >= 0) close(fd);
  if (done < bytes.size()) throw Error(ErrorKind::kRuntime, "compile: cannot write " + path);
}

std::string ReadFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw Error(ErrorKind::kRuntime, "compile: cannot read " + path);
  std::string bytes(static_cast<size_t>(lseek(fd, 0, SEEK_END)), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  close(fd);
  if (done < bytes.size()) throw Error(ErrorKind::kRuntime, "compile: cannot read " + path);
  return bytes;
}

std::string LinkShared(const std::string& object) {
  static std::mutex mutex;  // lld keeps global state
  std::lock_guard<std::mutex> lock(mutex);
  LeaveSignalsToTheProgram();
  const LinkFolder folder;
  const std::string in_path = folder.object(), out_path = folder.library();
  WriteFile(in_path, object);
  const char* args[] = {"ld.lld",        "-shared", "--threads=1",   "--no-mmap-output-file", "-z",
                        "norelro",       "-z",      "noexecstack",   "--hash-style=gnu",      "--build-id=none",
                        in_path.c_str(), "-o",      out_path.c_str()};
  std::string text;
  llvm::raw_string_ostream errors(text);
  const bool ok = lld::elf::link(args, errors, errors, /*exitEarly=*/false, /*disableOutput=*/false);
  lld::CommonLinkerContext::destroy();
  WEFT_CHECK(ok) << "linking failed: " << text;
  return ReadFile(out_path);
}

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

}  // namespace

void LeaveSignalsToTheProgram() {
  static const bool once = [] {
    constexpr int kSignals = 65;
    struct sigaction program[kSignals];
    bool known[kSignals] = {};
    stack_t stack;
    for (int i = 1; i < kSignals; ++i) known[i] = sigaction(i, nullptr, &program[i]) == 0;
    const bool stack_known = sigaltstack(nullptr, &stack) == 0;
    llvm::sys::SetInfoSignalFunction(nullptr);  // takes all of them
    for (int i = 1; i < kSignals; ++i) {
      if (known[i]) sigaction(i, &program[i], nullptr);
    }
    if (stack_known) sigaltstack(&stack, nullptr);
    return true;
  }();
  (void)once;
}

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
  llvm::legacy::PassManager passes;  // after `out`, which its passes write to until they end
  for (llvm::Pass* pass : first) passes.add(pass);
  const bool failed = machine.addPassesToEmitFile(
      passes, out, nullptr, assembly ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile,
      /*DisableVerify=*/true);
  WEFT_CHECK(!failed) << "the target cannot emit this kind of file";
  passes.run(module);
  return std::string(bytes.data(), bytes.size());
}

std::string CompileShared(llvm::Module& module, const Target& target) {
  return LinkShared(Emit(module, target, /*assembly=*/false));
}

mlir::MLIRContext& CompilerContext() {
  thread_local std::unique_ptr<mlir::MLIRContext> context = [] {
    mlir::DialectRegistry registry;
    registry.insert<mlir::LLVM::LLVMDialect, mlir::arith::ArithDialect, mlir::math::MathDialect, mlir::scf::SCFDialect,
                    mlir::cf::ControlFlowDialect>();
    mlir::registerBuiltinDialectTranslation(registry);
    mlir::registerLLVMDialectTranslation(registry);
    auto c = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
    c->loadAllAvailableDialects();
    return c;
  }();
  return *context;
}

std::string GenerateCode(mlir::ModuleOp module, const Target& target, CodeStage stage) {
  if (stage == CodeStage::kMlir) return MlirText(module);
  llvm::LLVMContext context;
  const std::unique_ptr<llvm::Module> ir = Translate(module, context);
  if (stage == CodeStage::kLlvm) return LlvmText(*ir);
  if (stage == CodeStage::kAssembly) return Emit(*ir, target, /*assembly=*/true);
  return CompileShared(*ir, target);
}

}  // namespace weft
