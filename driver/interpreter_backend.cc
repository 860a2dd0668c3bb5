// The reference interpreter as a backend: no code, no kernels, one equation after the other (ir/eval/eval.h). And the
// same for what runs at once, outside of jit: operations whose results it does not have to the last bit are kernels.
#include <utility>

#include "driver/backend.h"
#include "driver/connect_effects.h"
#include "driver/executable.h"
#include "driver/operation_kernels.h"
#include "ir/error.h"
#include "ir/eval/eval.h"

namespace weft {
namespace {

// The kernel of an equation, which runs on its operands; empty: the interpreter does it.
PreparedEval::Run KernelOf(const Fn& fn, const Eqn& e) {
  if (!e.prim->is_elementwise() || !e.regions.empty() || e.operands.empty() || e.operands.size() > 2) return {};
  const DType dtype = fn.TypeOf(e.operands[0]).dtype;
  const Type& result = fn.TypeOf(e.result());
  if (InterpretedHasSameBits(*e.prim, dtype) || IsStored(dtype) || IsOpaque(dtype) || !result.is_static() ||
      result.size() == Dim(0))
    return {};
  std::vector<KernelOperand> operands;
  for (const Atom& a : e.operands) {
    const Type& type = fn.TypeOf(a);
    if (type.dtype != dtype) return {};
    operands.push_back({dtype, type.rank() == 0 && result.rank() > 0});
  }
  const FnRef program = OperationOnRows(*e.prim, dtype, e.attrs, operands);
  if (!program) return {};
  const Shape shape = StaticSizes(result.dims, "a kernel");
  return [operands, shape, code = Compile({program})](const Tensors& in) {
    Tensors rows;
    rows.reserve(in.size());
    for (size_t i = 0; i < in.size(); ++i) rows.push_back(operands[i].number ? in[i] : AsRow(in[i]));
    return OfShape(code->RunOwned(std::move(rows))[0], shape);
  };
}

class Interpreted : public LoadedProgram {
 public:
  explicit Interpreted(FnRef fn) : eval_(std::move(fn)) {}
  Interpreted(FnRef fn, const PreparedEval::Otherwise& otherwise) : eval_(std::move(fn), otherwise) {}
  Tensors Run(Tensors args) const override { return eval_(args); }
  std::vector<std::pair<std::string, double>> Facts() const override { return {{"interpreted", 1}}; }

 private:
  PreparedEval eval_;
};

class Interpreter : public Backend {
 public:
  std::string Description() const override { return "the interpreter"; }
  std::vector<Device> Devices() const override { return HostDevices(); }
  bool TakesBlocks() const override { return false; }
  const DeviceMemory& Memory() const override { return HostMemory(); }
  std::vector<std::string> Stages() const override { return {}; }
  std::string StageText(const CompileRequest&, const FnRef&, const std::string& stage) const override {
    throw ValueError(Description(), " has no stage '", stage, "'");
  }
  std::unique_ptr<const LoadedProgram> Load(const CompileRequest&, const FnRef& optimized) const override {
    ConnectEffects();
    return std::make_unique<Interpreted>(optimized);
  }
};

class Operations : public Interpreter {
 public:
  std::string Description() const override { return "one operation after the other"; }
  std::unique_ptr<const LoadedProgram> Load(const CompileRequest&, const FnRef& optimized) const override {
    ConnectEffects();
    return std::make_unique<Interpreted>(optimized, [&](const Eqn& e) { return KernelOf(*optimized, e); });
  }
};

}  // namespace

std::shared_ptr<const Backend> InterpreterBackend(const std::string& name) {
  static const auto& backend = *new std::shared_ptr<const Backend>(std::make_shared<Interpreter>());
  return name == "interpreter" ? backend : nullptr;
}

std::shared_ptr<const Backend> OperationsBackend(const std::string& name) {
  static const auto& backend = *new std::shared_ptr<const Backend>(std::make_shared<Operations>());
  return name == "operations" ? backend : nullptr;
}

}  // namespace weft
