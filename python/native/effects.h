// What running programs do besides computing: printing, and calling back into Python.
#ifndef WEFT_PYTHON_NATIVE_EFFECTS_H_
#define WEFT_PYTHON_NATIVE_EFFECTS_H_

#include <Python.h>

#include <memory>

namespace weft::python {

void InstallEffects();
// The interpreter is about to end: other threads than its own do not enter it any more, and those inside have a second
// to leave.
void EndEffects();
// For a thread that holds the lock and is about to run Python code which may let go of it inside a library (the tree
// library does): the interpreter does not end meanwhile, or the thread stays here when it is ending already.
class InsidePython {
 public:
  InsidePython();
  ~InsidePython();
  InsidePython(const InsidePython&) = delete;
};
// A Python object as programs hold it (ir/host_functions.h): it may be let go on any thread, with Python's lock or
// without.
std::shared_ptr<void> HeldFunction(PyObject* function);
// A reference that this thread owns, with Python's lock or without.
void LetGo(PyObject* object);

}  // namespace weft::python
#endif  // WEFT_PYTHON_NATIVE_EFFECTS_H_
