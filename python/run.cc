#include <Python.h>

#include "python/run.h"

#include <mutex>
#include <unordered_map>

#include "ir/eval.h"
#include "ir/text_printer.h"
#include "python/errors.h"
#include "tracer/trace.h"
#include "transforms/pass.h"

namespace weft::python {
namespace {

// The reference interpreter.
class Interpreted : public Program {
 public:
  explicit Interpreted(FnRef fn) : fn_(std::move(fn)) {}
  Tensors Run(const Tensors& args) override { return Eval(*fn_, args); }

 private:
  FnRef fn_;
};

void PrintThroughPython(const std::string& text) {
  const PyGILState_STATE state = PyGILState_Ensure();
  PySys_FormatStdout("%s\n", text.c_str());
  PyGILState_Release(state);
}

}  // namespace

std::shared_ptr<Program> ProgramOf(const FnRef& fn) {
  static auto& programs = *new std::unordered_map<FnRef, std::shared_ptr<Program>, FnHash, FnEqual>();
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<Program>& program = programs[fn];
  if (!program) program = std::make_shared<Interpreted>(fn);
  return program;
}

Tensors RunProgram(Program& program, const Tensors& args) {
  if (!PyGILState_Check()) return program.Run(args);
  struct Unlocked {
    PyThreadState* state = PyEval_SaveThread();
    ~Unlocked() { PyEval_RestoreThread(state); }
  } unlocked;
  return program.Run(args);
}

std::string StageText(const FnRef& fn, const std::string& stage) {
  if (stage == "ir") return Print(*fn);
  if (stage == "optimized") return Print(*Optimize(fn));
  if (stage == "schedule" || stage == "mlir" || stage == "llvm" || stage == "asm") {
    throw UserError(ErrorKind::kUnsupported, {}, "stage('", stage, "'): this build runs programs through the interpreter");
  }
  throw ValueError("there is no stage '", stage, "'; the stages are ir, optimized, schedule, mlir, llvm and asm");
}

void InstallRunner() {
  SetRunner([](const FnRef& fn, const Tensors& args) { return RunProgram(*ProgramOf(fn), args); });
  EffectHandlers handlers = GetEffectHandlers();
  handlers.print = PrintThroughPython;
  SetEffectHandlers(handlers);
}

}  // namespace weft::python
