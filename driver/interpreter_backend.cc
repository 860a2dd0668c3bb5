// The reference interpreter as a backend: no code, no kernels, one equation after the other (ir/eval/eval.h).
#include <utility>

#include "driver/backend.h"
#include "driver/connect_effects.h"
#include "ir/error.h"
#include "ir/eval/eval.h"

namespace weft {
namespace {

class Interpreted : public LoadedProgram {
 public:
  explicit Interpreted(FnRef fn) : eval_(std::move(fn)) {}
  Tensors Run(Tensors args) const override { return eval_(args); }
  std::vector<std::pair<std::string, double>> Facts() const override { return {{"interpreted", 1}}; }

 private:
  PreparedEval eval_;
};

class Interpreter : public Backend {
 public:
  std::string Description() const override { return "the interpreter"; }
  std::vector<Device> Devices() const override { return HostDevices(); }
  const DeviceMemory& Memory() const override { return HostMemory(); }
  std::vector<std::string> Stages() const override { return {}; }
  std::string StageText(const CompileRequest&, const FnRef&, const std::string& stage) const override {
    throw ValueError("the interpreter has no stage '", stage, "'");
  }
  std::unique_ptr<const LoadedProgram> Load(const CompileRequest&, const FnRef& optimized) const override {
    ConnectEffects();
    return std::make_unique<Interpreted>(optimized);
  }
};

}  // namespace

std::shared_ptr<const Backend> InterpreterBackend(const std::string& name) {
  static const auto& backend = *new std::shared_ptr<const Backend>(std::make_shared<Interpreter>());
  return name == "interpreter" ? backend : nullptr;
}

}  // namespace weft
