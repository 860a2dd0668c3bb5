// What running programs do besides computing: printing, and calling back into Python.
#ifndef WEFT_PYTHON_EFFECTS_H_
#define WEFT_PYTHON_EFFECTS_H_

#include <Python.h>

#include <cstdint>

namespace weft::python {

void InstallEffects();
// Keeps a Python function for as long as the process lives and gives it a number for the IR.
int64_t RegisterCallback(PyObject* function);

}  // namespace weft::python
#endif  // WEFT_PYTHON_EFFECTS_H_
