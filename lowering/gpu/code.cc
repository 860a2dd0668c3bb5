#include "lowering/gpu/code.h"

#include <memory>
#include <mutex>

#include "ir/error.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/MemoryBufferRef.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "lowering/abi/emulation_abi.h"
#include "lowering/cpu/codegen.h"
#include "lowering/cpu/compiler_memory.h"
#include "lowering/cpu/mlir/builder.h"
#include "lowering/gpu/lower.h"
#include "mlir/IR/BuiltinOps.h"

namespace weft {
namespace {

constexpr char kTriple[] = "nvptx64-nvidia-cuda";

std::unique_ptr<llvm::TargetMachine> MachineFor(const GpuTarget& target) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;  // where an operation says so (MlirBuilder::MulForSum)
  // PTX 8.0 is what sm_90a needs, and what drivers of CUDA 12.0 and later read.
  return std::unique_ptr<llvm::TargetMachine>(CodeGeneratorFor(kTriple).createTargetMachine(
      kTriple, target.sm, "+ptx80", options, std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

void LinkLibdevice(llvm::Module& module, const std::string& path) {
  bool needed = false;
  for (const llvm::Function& f : module) needed = needed || (f.isDeclaration() && f.getName().starts_with("__nv_"));
  if (!needed) return;
  llvm::SMDiagnostic diagnostic;
  std::unique_ptr<llvm::Module> library = llvm::getLazyIRFileModule(path, diagnostic, module.getContext());
  if (library == nullptr)
    throw Error(ErrorKind::kRuntime, "cuda: cannot read libdevice at " + path + ": " + diagnostic.getMessage().str());
  library->setTargetTriple(module.getTargetTriple());
  library->setDataLayout(module.getDataLayout());
  const bool failed = llvm::Linker::linkModules(module, std::move(library), llvm::Linker::LinkOnlyNeeded);
  WEFT_CHECK(!failed) << "linking libdevice failed";
  for (llvm::Function& f : module) {
    if (!f.getName().starts_with("__nv")) continue;
    if (f.getName() == "__nvvm_reflect") continue;  // becomes a constant
    WEFT_CHECK(!f.isDeclaration()) << "libdevice has no " << f.getName().str();
    f.setLinkage(llvm::GlobalValue::InternalLinkage);
  }
  // Subnormal numbers stay what they are.
  module.addModuleFlag(llvm::Module::Override, "nvvm-reflect-ftz", uint32_t{0});
}

std::string Ptx(llvm::Module& module, const std::vector<GpuKernel>& kernels, const GpuTarget& target,
                const std::string& libdevice) {
  const std::unique_ptr<llvm::TargetMachine> machine = MachineFor(target);
  module.setTargetTriple(kTriple);
  module.setDataLayout(machine->createDataLayout());
  llvm::LLVMContext& context = module.getContext();
  llvm::NamedMDNode* annotations = module.getOrInsertNamedMetadata("nvvm.annotations");
  for (const GpuKernel& k : kernels) {
    llvm::Function* f = module.getFunction(k.name);
    auto annotate = [&](const char* what, int value) {
      llvm::Type* i32 = llvm::Type::getInt32Ty(context);
      annotations->addOperand(llvm::MDNode::get(
          context, {llvm::ValueAsMetadata::get(f), llvm::MDString::get(context, what),
                    llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(i32, static_cast<uint64_t>(value)))}));
    };
    f->setCallingConv(llvm::CallingConv::PTX_Kernel);
    annotate("kernel", 1);
    annotate("maxntidx", k.threads);
    // Without it ptxas spills to make room for one more block.
    annotate("minctasm", 1);
  }
  LinkLibdevice(module, libdevice);
  {
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager components;
    llvm::ModuleAnalysisManager modules;
    llvm::PassBuilder passes(machine.get());
    passes.registerModuleAnalyses(modules);
    passes.registerCGSCCAnalyses(components);
    passes.registerFunctionAnalyses(functions);
    passes.registerLoopAnalyses(loops);
    passes.crossRegisterProxies(loops, functions, components, modules);
    passes.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
  }
  return EmitFile(*machine, module, /*assembly=*/true);
}

// Replaces what only a GPU has by calls through the table of emulation_abi.h.
class EmulationMaker {
 public:
  explicit EmulationMaker(llvm::Module& module) : module_(module), builder_(module.getContext()) {
    table_ =
        new llvm::GlobalVariable(module, builder_.getPtrTy(), /*isConstant=*/false, llvm::GlobalValue::ExternalLinkage,
                                 llvm::ConstantPointerNull::get(builder_.getPtrTy()), "weft_emulation");
  }

  void Run(const std::vector<GpuKernel>& kernels) {
    for (const GpuKernel& k : kernels) {
      llvm::Function* f = module_.getFunction(k.name);
      std::vector<llvm::Instruction*> instructions;
      for (llvm::Instruction& i : llvm::instructions(*f)) instructions.push_back(&i);
      for (llvm::Instruction* i : instructions) Rewrite(*i);
      if (llvm::GlobalVariable* shared = module_.getNamedGlobal(k.name + "_shared"))
        shared->setLinkage(llvm::GlobalValue::ExternalLinkage);
      Launcher(*f);
    }
  }

 private:
  static int IndexOf(llvm::StringRef name) {
    for (int i = 0; i < kNumEmulationFunctions; ++i) {
      if (name == kEmulationFunctions[i]) return i;
    }
    return -1;
  }

  llvm::CallInst* Call(int entry, llvm::Type* result, const std::vector<llvm::Value*>& arguments) {
    std::vector<llvm::Type*> types;
    for (llvm::Value* v : arguments) types.push_back(v->getType());
    llvm::Value* table = builder_.CreateLoad(builder_.getPtrTy(), table_);
    llvm::Value* place = builder_.CreateConstGEP1_32(builder_.getPtrTy(), table, static_cast<unsigned>(entry));
    return builder_.CreateCall(llvm::FunctionType::get(result, types, false),
                               builder_.CreateLoad(builder_.getPtrTy(), place), arguments);
  }

  void Access(llvm::Instruction& before, llvm::Value* address, llvm::Type* type, llvm::Align alignment, bool write) {
    builder_.SetInsertPoint(&before);
    Call(IndexOf("weft_access"), builder_.getVoidTy(),
         {builder_.CreateAddrSpaceCast(address, builder_.getPtrTy()),
          builder_.getInt64(module_.getDataLayout().getTypeStoreSize(type)), builder_.getInt64(alignment.value()),
          builder_.getInt32(write)});
  }

  void Rewrite(llvm::Instruction& i) {
    if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&i))
      return Access(i, load->getPointerOperand(), load->getType(), load->getAlign(), false);
    if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&i))
      return Access(i, store->getPointerOperand(), store->getValueOperand()->getType(), store->getAlign(), true);
    if (auto* rounding = llvm::dyn_cast<llvm::FPTruncInst>(&i); rounding && rounding->getType()->isBFloatTy())
      return RoundToBF16(*rounding);
    auto* call = llvm::dyn_cast<llvm::CallInst>(&i);
    if (call != nullptr && call->isInlineAsm()) return Assembly(*call);
    if (call == nullptr || call->getCalledFunction() == nullptr) return;
    const llvm::StringRef name = call->getCalledFunction()->getName();
    builder_.SetInsertPoint(call);
    llvm::Value* replacement = nullptr;
    if (name == "llvm.nvvm.read.ptx.sreg.tid.x") {
      replacement = Call(IndexOf("weft_thread"), call->getType(), {});
    } else if (name == "llvm.nvvm.read.ptx.sreg.ctaid.x") {
      replacement = Call(IndexOf("weft_block"), call->getType(), {});
    } else if (name == "llvm.nvvm.barrier0") {
      Call(IndexOf("weft_barrier"), call->getType(), {builder_.getInt32(sites_++)});
    } else if (name == "llvm.nvvm.shfl.sync.bfly.i32") {
      replacement = Call(IndexOf("weft_shuffle"), call->getType(),
                         {builder_.getInt32(sites_++), call->getArgOperand(1), call->getArgOperand(2)});
    } else if (const int entry = IndexOf(name); entry >= 0) {
      replacement = Call(entry, call->getType(), {call->arg_begin(), call->arg_end()});
    } else {
      WEFT_CHECK(!name.starts_with("llvm.nvvm.") && !name.starts_with("__nv_"))
          << "host emulation lacks " << name.str();
      return;
    }
    if (replacement != nullptr) call->replaceAllUsesWith(replacement);
    call->eraseFromParent();
  }

  void Replace(llvm::Instruction& i, llvm::Value* by) {
    i.replaceAllUsesWith(by);
    i.eraseFromParent();
  }

  // To nearest, ties to even, on the bits: for this processor LLVM would call a function that a kernel does not have.
  void RoundToBF16(llvm::FPTruncInst& i) {
    builder_.SetInsertPoint(&i);
    llvm::Value* x = i.getOperand(0);
    llvm::Value* bits = builder_.CreateBitCast(x, builder_.getInt32Ty());
    llvm::Value* odd = builder_.CreateAnd(builder_.CreateLShr(bits, 16), 1);
    llvm::Value* rounded = builder_.CreateAdd(bits, builder_.CreateAdd(odd, builder_.getInt32(0x7FFF)));
    llvm::Value* kept = builder_.CreateSelect(builder_.CreateFCmpUNO(x, x), builder_.getInt32(0x7FFF0000), rounded);
    Replace(i, builder_.CreateBitCast(builder_.CreateTrunc(builder_.CreateLShr(kept, 16), builder_.getInt16Ty()),
                                      i.getType()));
  }

  void Assembly(llvm::CallInst& call) {
    const llvm::StringRef text = llvm::cast<llvm::InlineAsm>(call.getCalledOperand())->getAsmString();
    WEFT_CHECK(text == kDivFull) << "host emulation lacks " << text.str();
    builder_.SetInsertPoint(&call);
    Replace(call, builder_.CreateFDiv(call.getArgOperand(0), call.getArgOperand(1)));
  }

  void Launcher(llvm::Function& f) {
    auto* launcher = llvm::Function::Create(llvm::FunctionType::get(builder_.getVoidTy(), {builder_.getPtrTy()}, false),
                                            llvm::GlobalValue::ExternalLinkage, f.getName() + "_launch", module_);
    builder_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "", launcher));
    std::vector<llvm::Value*> arguments;
    for (unsigned i = 0; i < f.arg_size(); ++i) {
      llvm::Value* place = builder_.CreateConstGEP1_32(builder_.getPtrTy(), launcher->getArg(0), i);
      arguments.push_back(
          builder_.CreateAddrSpaceCast(builder_.CreateLoad(builder_.getPtrTy(), place), f.getArg(i)->getType()));
    }
    builder_.CreateCall(&f, arguments);
    builder_.CreateRetVoid();
    f.setLinkage(llvm::GlobalValue::InternalLinkage);
  }

  llvm::Module& module_;
  llvm::IRBuilder<> builder_;
  llvm::GlobalVariable* table_ = nullptr;
  uint32_t sites_ = 0;
};

}  // namespace

std::string EmulationOfLlvm(const std::string& llvm, const std::vector<GpuKernel>& kernels) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  std::unique_ptr<llvm::Module> ir = llvm::parseIR(llvm::MemoryBufferRef(llvm, "kernels"), diagnostic, context);
  if (ir == nullptr)
    throw ValueError("emulation: line ", diagnostic.getLineNo(), " of the LLVM IR: ", diagnostic.getMessage().str());
  EmulationMaker(*ir).Run(kernels);
  return CompileModule(*ir, Target::Host());
}

std::string GenerateGpuCode(mlir::ModuleOp module, const std::vector<GpuKernel>& kernels, const GpuTarget& target,
                            const std::string& libdevice, GpuCode stage) {
  if (stage == GpuCode::kMlir) return MlirText(module);
  const Held<llvm::LLVMContext> context(std::make_unique<llvm::LLVMContext>());
  const Held<llvm::Module> ir(Translate(module, *context));
  if (stage == GpuCode::kLlvm) return LlvmText(*ir);
  if (stage == GpuCode::kPtx) return Ptx(*ir, kernels, target, libdevice);
  EmulationMaker(*ir).Run(kernels);
  return CompileModule(*ir, Target::Host());
}

}  // namespace weft
