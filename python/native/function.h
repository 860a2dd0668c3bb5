// Callables of the native module: element-wise operations and jitted functions, both called through vectorcall.
#ifndef WEFT_PYTHON_NATIVE_FUNCTION_H_
#define WEFT_PYTHON_NATIVE_FUNCTION_H_

#include <Python.h>

#include <string>

#include "tracer/ops.h"

namespace weft::python {

bool AddFunctionTypes(PyObject* module);  // function.cc
bool AddJitType(PyObject* module);        // jit_type.cc

// An element-wise primitive as a Python function, with NumPy's promotion and broadcasting.
PyObject* MakeElementwise(const Prim& prim, const std::string& name, Promotion promotion);
// A binary operation of Python or NumPy ("floor_divide").
PyObject* MakeBinary(Binary op);

}  // namespace weft::python
#endif  // WEFT_PYTHON_NATIVE_FUNCTION_H_
