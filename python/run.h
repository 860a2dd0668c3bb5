// How a function runs: the only file of the front end that knows what is behind it.
#ifndef WEFT_PYTHON_RUN_H_
#define WEFT_PYTHON_RUN_H_

#include <memory>
#include <string>

#include "ir/fn.h"
#include "ir/tensor.h"

namespace weft::python {

class Program {
 public:
  virtual ~Program() = default;
  // Without the interpreter lock. Arguments fit the parameters of the function.
  virtual Tensors Run(const Tensors& args) = 0;
};

// Compiled once per structure and kept.
std::shared_ptr<Program> ProgramOf(const FnRef& fn);
// Runs it with the interpreter lock released.
Tensors RunProgram(Program& program, const Tensors& args);
// "ir", "optimized", "schedule", "mlir", "llvm" or "asm". Raises kValue for another name.
std::string StageText(const FnRef& fn, const std::string& stage);
// Makes tracer/ run functions through ProgramOf, and effects print through Python.
void InstallRunner();

}  // namespace weft::python
#endif  // WEFT_PYTHON_RUN_H_
