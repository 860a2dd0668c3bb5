// What the jitted function object (jit*.cc) shares with the bindings (module.cc).
#ifndef WEFT_PYTHON_NATIVE_JIT_H_
#define WEFT_PYTHON_NATIVE_JIT_H_

#include <Python.h>

#include "tracer/trace.h"

namespace weft::python {

extern PyObject* g_flatten_hook;
extern PyObject* g_trace_jit_hook;
extern PyObject* g_refuse_hook;
extern PyObject* g_stateful_hook;
extern PyObject* g_stateful_error;
extern PyObject* g_partition_hook;
extern PyObject* g_compiled_hook;
// Between BeingLowered(true) and BeingLowered(false) this thread traces a jitted function to look at its program.
void BeingLowered(bool begins);

// How long a thread waits for another one that traces the function that both call for the first time, before it traces
// it as well. That one runs Python, and may need a lock that the waiting thread holds.
void SetPatienceWithTracing(double seconds);

// The traced function inside a weft._weft.Traced object.
const Traced& TracedOf(PyObject* object);
// A new reference to one that holds `traced`.
PyObject* WrapTraced(const Traced& traced);
// The function inside a weft._weft.Fn object.
FnRef FnOf(PyObject* object);
PyObject* WrapFn(const FnRef& fn);  // a new reference

}  // namespace weft::python
#endif  // WEFT_PYTHON_NATIVE_JIT_H_
