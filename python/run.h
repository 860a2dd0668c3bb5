// How a function runs: run.cc, with eager.cc for single operations, is what knows the compiler and the interpreter.
#ifndef WEFT_PYTHON_RUN_H_
#define WEFT_PYTHON_RUN_H_

#include <Python.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/fn.h"
#include "ir/tensor.h"
#include "python/errors.h"

namespace weft::python {

class Program {
 public:
  virtual ~Program() = default;
  // Without the interpreter lock. Arguments fit the parameters of the function.
  virtual Tensors Run(Tensors args) = 0;
  // By parameter: a donated argument whose memory the program has a use for. Empty: none was donated.
  virtual std::vector<bool> UsesDonated() const { return {}; }
  // Named numbers about the compiled code, for explain().
  virtual std::vector<std::pair<std::string, double>> Facts() const { return {}; }
};

// Compiled, whatever its size; an operation without compiled code is an error.
// WEFT_INTERPRET=1 in the environment makes everything run through the interpreter.
// `donated`, by parameter: arguments whose memory may be overwritten where nobody else holds it; empty: none.
// `same_bits`: rounding does not depend on what is computed beside what.
std::shared_ptr<Program> ProgramOf(const FnRef& fn, const std::vector<bool>& donated = {}, bool same_bits = false);
// How many threads compile, run or wait without Python's lock.
inline std::atomic<int> g_unlocked{0};
// Without Python's lock, where the thread has it.
struct Unlocked {
  PyThreadState* state = nullptr;
  Unlocked() {
    g_unlocked.fetch_add(1);  // before the lock is let go: who ends the process holds it
    if (PyGILState_Check()) state = PyEval_SaveThread();
  }
  Unlocked(const Unlocked&) = delete;
  ~Unlocked() {
    g_unlocked.fetch_sub(1);
    if (state) RunningPython([&] { PyEval_RestoreThread(state); });
  }
};
// Called when the interpreter ends. If threads still compile or run when the process ends after that, it ends without
// destroying what they use (the compiler, the libraries of products), which would crash them.
void LeaveRunningThreads();
// Runs it with Python's lock released.
Tensors RunProgram(Program& program, Tensors args);
// The same as weft::StageText, with Python's lock released.
std::string StageText(const FnRef& fn, const std::string& stage, bool same_bits = false);
// WEFT_INTERPRET=1: everything runs through the interpreter.
bool InterpretAlways();
// Makes tracer/ run functions (programs of little work through the interpreter), and starts loading the compiler.
void InstallRunner();
// Waits until the compiler is loaded: before a fork, and at exit.
void FinishWarmUp();

}  // namespace weft::python
#endif  // WEFT_PYTHON_RUN_H_
