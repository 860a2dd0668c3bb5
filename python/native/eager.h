// Element-wise operations and reductions that run at once, on arrays too small to compile a program for.
#ifndef WEFT_PYTHON_NATIVE_EAGER_H_
#define WEFT_PYTHON_NATIVE_EAGER_H_

namespace weft::python {

// Makes tracer/ run them here.
void InstallOperations();

}  // namespace weft::python
#endif  // WEFT_PYTHON_NATIVE_EAGER_H_
