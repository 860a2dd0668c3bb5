// Slots of weft.Array's type that have files of their own.
#ifndef WEFT_PYTHON_NATIVE_ARRAY_SLOTS_H_
#define WEFT_PYTHON_NATIVE_ARRAY_SLOTS_H_

#include <Python.h>

#include <string>

#include "python/native/array.h"

namespace weft::python {

// bool(), int(), float(), operator.index() and complex() of an array of one element (array_numbers.cc).
int BoolSlot(PyObject* self);
PyObject* IntSlot(PyObject* self);
PyObject* FloatSlot(PyObject* self);
PyObject* IndexSlot(PyObject* self);
PyObject* ComplexMethod(PyObject* self, PyObject*);
// The value of an array of one element; `why` begins the error of another one.
Tensor OneElement(PyObject* self, const char* why);

// len(), the row at a position, and iteration over rows (array_rows.cc).
Py_ssize_t Length(PyObject* self);
PyObject* RowAt(PyObject* self, Py_ssize_t i);
PyObject* Iterate(PyObject* self);

// The buffer protocol: read-only, no copy (array_buffer.cc).
int GetBuffer(PyObject* self, Py_buffer* view, int flags);
void ReleaseBuffer(PyObject*, Py_buffer* view);
// The format of a dtype in the buffer protocol; null: it has none.
const char* BufferFormat(DType t);

// Whether the array was donated or deleted, and what that error says.
inline bool IsGone(PyObject* self) { return reinterpret_cast<ArrayObject*>(self)->deleted != nullptr; }
std::string DeletedText(PyObject* self);

}  // namespace weft::python
#endif  // WEFT_PYTHON_NATIVE_ARRAY_SLOTS_H_
