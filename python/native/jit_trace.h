// Tracing a jitted function, also one that calls itself.
#ifndef WEFT_PYTHON_NATIVE_JIT_TRACE_H_
#define WEFT_PYTHON_NATIVE_JIT_TRACE_H_

#include <Python.h>

#include "python/native/call_arguments.h"
#include "python/native/jit_object.h"
#include "tracer/trace.h"

namespace weft::python {

// weft.RecursionPending: a call of a function that is being traced, whose result is not known yet.
bool AddRecursionPending(PyObject* module);

// Raises NotImplementedError for a deterministic function inside of a trace that would lose that.
void CheckSurroundings(const JitObject* self);

// What rewriting may change: as the outermost jitted function says that is being traced, or else this one.
Licences LicencesHere(const JitObject* self);

// The traced values of the arguments.
Values ArgumentValues(Arguments& a);

// How many calls up a call with these arguments is being traced by this thread; -1: it is not.
int BeingTracedAt(JitObject* self, const Signature& signature);
// That call, as a value of the trace.
PyObject* RecursiveCall(int depth, Arguments& a);

// Traces the function until the types of its own calls agree with what it returns. `arguments`: of g_trace_jit_hook.
// (Traced, tree, names)
Ref TraceFunction(JitObject* self, PyObject* arguments, const Signature& signature, Traced* traced, bool* cacheable);

}  // namespace weft::python
#endif  // WEFT_PYTHON_NATIVE_JIT_TRACE_H_
