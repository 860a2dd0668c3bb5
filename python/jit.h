// What the jitted function object (jit.cc) shares with the bindings (module.cc).
#ifndef WEFT_PYTHON_JIT_H_
#define WEFT_PYTHON_JIT_H_

#include <Python.h>

#include "tracer/trace.h"

namespace weft::python {

extern PyObject* g_flatten_hook;
extern PyObject* g_trace_jit_hook;
extern PyObject* g_refuse_hook;
extern PyObject* g_mesh_around;
extern PyObject* g_partition_hook;
extern bool g_disable_jit;
// Between BeingLowered(true) and BeingLowered(false) this thread traces a jitted function to look at its program.
void BeingLowered(bool begins);

// The traced function inside a weft._weft.Traced object.
const Traced& TracedOf(PyObject* object);
// A new reference to one that holds `traced`.
PyObject* WrapTraced(const Traced& traced);
// The function inside a weft._weft.Fn object.
FnRef FnOf(PyObject* object);

}  // namespace weft::python
#endif  // WEFT_PYTHON_JIT_H_
