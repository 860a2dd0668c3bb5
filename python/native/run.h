// Compiles and runs functions for Python. Of the front end only run.cc, and eager.cc for single operations, know the
// compiler and the interpreter.
#ifndef WEFT_PYTHON_NATIVE_RUN_H_
#define WEFT_PYTHON_NATIVE_RUN_H_

#include <Python.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "driver/executable.h"
#include "ir/fn.h"
#include "ir/tensor.h"
#include "python/native/errors.h"

namespace weft::python {

using Program = const Executable;

// How a function is compiled, as far as the front end decides.
struct HowToCompile {
  std::string backend = "cpu";  // see driver/backend.h
  // By parameter: arguments whose memory may be overwritten where nobody else holds it; empty: none.
  std::vector<bool> donated = {};
  bool same_bits = false;  // rounding does not depend on what is computed beside what
  bool optimized = false;  // the passes have run
};
// WEFT_INTERPRET=1 in the environment makes everything run through the interpreter, as it stands, but for what is
// compiled for another target than this CPU.
CompileRequest RequestFor(const FnRef& fn, const HowToCompile& how = {});
// Compiled, whatever its size; an operation without compiled code is an error.
std::shared_ptr<Program> ProgramOf(const FnRef& fn, const HowToCompile& how = {});
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
// Raises where nothing may run (Setting::kNoExecution); `what` would.
void CheckMayRun(const std::string& what);
// Runs it, with Python's lock released unless it is over at once. Arguments fit the parameters of the function.
Tensors RunProgram(Program& program, Tensors args);
// WEFT_INTERPRET=1: everything runs through the interpreter.
bool InterpretAlways();
// Makes tracer/ run functions (programs of little work through the interpreter), and starts loading the compiler.
void InstallRunner();
// Waits until the compiler is loaded: before a fork, and at exit.
void FinishWarmUp();

}  // namespace weft::python
#endif  // WEFT_PYTHON_NATIVE_RUN_H_
