#include "lowering/lower.h"

#include "base/run_messages.h"
#include "ir/builder.h"
#include "ir/ops.h"
#include "lowering/cpu/codegen.h"
#include "lowering/cpu/mlir/emit_kernel.h"
#include "lowering/cpu/mlir/emit_main.h"
#include "lowering/program/program.h"

namespace weft {
namespace {

std::string Generate(const Program& program, const Target& target, CodeStage stage, size_t equations) {
  return WithModule(equations, [&](mlir::ModuleOp module) {
    std::vector<LoopPlan> plans;
    for (size_t k = 0; k < program.kernels.size(); ++k) {
      plans.push_back(PlanLoops(program.kernels[k], target));
      EmitKernel(module, program.kernels[k], plans.back(), target, "k" + std::to_string(k));
    }
    EmitMain(module, program, plans);
    return GenerateCode(module, target, stage);
  });
}

// A program is whole: something binds every axis.
void CheckAxesBound(const Fn& fn) {
  for (const Eqn& e : fn.eqns()) {
    const std::vector<std::string> free = e.FreeAxes();
    if (free.empty()) continue;
    for (const FnRef& r : e.regions) {
      if (r->UsesAxis(free[0])) CheckAxesBound(*r);
    }
    throw UserError(ErrorKind::kName, e.loc, UnboundAxisMessage(e.prim->name, free[0]));
  }
}

}  // namespace

Artifact Lower(const FnRef& fn, const Target& target, const LowerOptions& options) {
  CheckAxesBound(*fn);
  const FnRef flat = WithoutCalls(fn);
  Program program = BuildProgram(*flat, options.fusion, options.donated);
  program.artifact.code = Generate(program, target, CodeStage::kObject, flat->eqns().size());
  program.artifact.target = target.ToString();
  return std::move(program.artifact);
}

std::string LowerToText(const FnRef& fn, const Target& target, const LowerOptions& options, const std::string& stage) {
  CheckAxesBound(*fn);
  const FnRef flat = WithoutCalls(fn);
  if (stage == "fusion") {
    std::string text;
    for (const std::string& note : Fuse(*flat, options.fusion).notes) text += note + "\n";
    return text;
  }
  Schedule schedule = BuildSchedule(*flat, options.fusion, options.donated);
  if (stage == "schedule") return schedule.ToString() + "kernels\n" + KernelsText(schedule.kernels);
  const Liveness liveness = FindLiveness(schedule);
  if (stage == "liveness") return liveness.ToString();
  const Assignment assignment = AssignBuffers(schedule, liveness);
  const Program program = MakeProgram(*flat, std::move(schedule), assignment);
  if (stage == "buffers") return assignment.ToString() + MemoryText(program) + KernelsText(program.kernels);
  const auto generate = [&](CodeStage s) { return Generate(program, target, s, flat->eqns().size()); };
  if (stage == "mlir") return generate(CodeStage::kMlir);
  if (stage == "llvm") return generate(CodeStage::kLlvm);
  if (stage == "asm") return generate(CodeStage::kAssembly);
  throw ValueError("stage: code for a CPU has no stage '", stage, "'");
}

void WarmUpLowering() {
  Builder b("warm");
  const Atom x = b.Parameter({DType::kF32, {64}, {}});
  Lower(b.Build({Exp(b, x)}), Target::Host(), {});
}

}  // namespace weft
