#include "lowering/lower.h"

#include <algorithm>
#include <numeric>

#include "base/environment.h"
#include "base/interrupt.h"
#include "base/run_messages.h"
#include "ir/builder.h"
#include "ir/ops.h"
#include "lowering/cpu/codegen.h"
#include "lowering/cpu/compile_parts.h"
#include "lowering/cpu/link.h"
#include "lowering/cpu/mlir/emit_kernel.h"
#include "lowering/cpu/mlir/emit_main.h"
#include "lowering/program/by_rows.h"
#include "lowering/program/launches.h"
#include "lowering/program/program.h"

namespace weft {
namespace {

// What LLVM takes for a kernel, in what it takes for a node of one: about 0.17 ms for a node, 1.7 ms for each kernel.
size_t WorkOf(const KernelSpec& kernel) { return kernel.nodes.size() + 10; }
// Work that is worth a thread, which takes some 0.1 ms to begin: about 7 ms.
constexpr size_t kWorkPerPart = 40;
constexpr size_t kMostParts = 16;

std::vector<LoopPlan> LoopPlansOf(const Program& program, const Target& target) {
  std::vector<LoopPlan> plans;
  for (const KernelSpec& kernel : program.kernels) plans.push_back(PlanLoops(kernel, target));
  return plans;
}

// By kernel, the part it is generated in; parts have about the same number of nodes, the first also the main function.
std::vector<size_t> PartsOf(const Program& program, size_t* count) {
  const size_t num_kernels = program.kernels.size();
  size_t work = 0;
  for (const KernelSpec& kernel : program.kernels) work += WorkOf(kernel);
  const auto threads = static_cast<size_t>(DefaultThreads());
  *count = std::max<size_t>(1, std::min({threads, kMostParts, num_kernels, work / kWorkPerPart}));
  std::vector<size_t> largest_first(num_kernels), load(*count), part_of(num_kernels);
  std::iota(largest_first.begin(), largest_first.end(), size_t{0});
  std::stable_sort(largest_first.begin(), largest_first.end(), [&](size_t a, size_t b) {
    return program.kernels[a].nodes.size() > program.kernels[b].nodes.size();
  });
  load[0] = program.steps.size();
  for (size_t k : largest_first) {
    const auto least = static_cast<size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    part_of[k] = least;
    load[least] += WorkOf(program.kernels[k]);
  }
  return part_of;
}

// The text of a stage, of the program as one module.
std::string StageOf(const Program& program, const Target& target, CodeStage stage, size_t equations) {
  return WithModule(equations, [&](mlir::ModuleOp module) {
    const std::vector<LoopPlan> plans = LoopPlansOf(program, target);
    for (size_t k = 0; k < plans.size(); ++k)
      EmitKernel(module, program.kernels[k], plans[k], target, "k" + std::to_string(k));
    EmitMain(module, program, plans);
    return GenerateCode(module, target, stage);
  });
}

// An image. Of many kernels in parts at once, since the code generator takes most of the time.
std::string CodeOf(const Program& program, const Target& target, size_t equations) {
  const std::vector<LoopPlan> plans = LoopPlansOf(program, target);
  size_t count = 0;
  const std::vector<size_t> part_of = PartsOf(program, &count);
  std::vector<std::string> objects(count);
  CompileParts(count, [&](size_t part) {
    objects[part] = WithModule(equations, [&](mlir::ModuleOp module) {
      for (size_t k = 0; k < plans.size(); ++k) {
        PollCompilation();
        const std::string name = "k" + std::to_string(k);
        if (part_of[k] == part)
          EmitKernel(module, program.kernels[k], plans[k], target, name, /*shared=*/count > 1);
        else if (part == 0)
          DeclareKernel(module, name);
      }
      if (part == 0) EmitMain(module, program, plans);
      return GenerateCode(module, target, CodeStage::kObject);
    });
  });
  return LinkObjects(objects);
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
  PollInterrupt();
  Program program = BuildProgram(*flat, options.fusion, options.donated);
  JoinByRows(&program, target);
  JoinLaunches(&program);
  PollInterrupt();
  program.artifact.code = CodeOf(program, target, flat->eqns().size());
  program.artifact.target = target.ToString();
  return std::move(program.artifact);
}

std::string LowerToText(const FnRef& fn, const Target& target, const LowerOptions& options, const std::string& stage) {
  CheckAxesBound(*fn);
  const FnRef flat = WithoutCalls(fn);
  if (stage == "fusion") {
    std::string text;
    for (const std::string& sentence : WhyNotFused(*flat, options.fusion)) text += sentence + "\n";
    return text;
  }
  Schedule schedule = BuildSchedule(*flat, options.fusion, options.donated);
  if (stage == "schedule") return schedule.ToString() + "kernels\n" + KernelsText(schedule.kernels);
  const Liveness liveness = FindLiveness(schedule);
  if (stage == "liveness") return liveness.ToString();
  const Assignment assignment = AssignBuffers(schedule, liveness);
  Program program = MakeProgram(*flat, std::move(schedule), assignment);
  if (stage == "buffers")
    return assignment.ToString() + MemoryText(program) + "descriptors\n" + program.artifact.DescriptorsText() +
           KernelsText(program.kernels);
  JoinByRows(&program, target);
  JoinLaunches(&program);
  const auto generate = [&](CodeStage s) { return StageOf(program, target, s, flat->eqns().size()); };
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
