// weft.Array and its subtype weft.Tracer: Python objects that hold one weft::Value. Raw C API, because every traced
// operation and every call goes through them.
#ifndef WEFT_PYTHON_ARRAY_H_
#define WEFT_PYTHON_ARRAY_H_

#include <Python.h>

#include <new>
#include <utility>

#include "python/errors.h"
#include "tracer/index_ops.h"
#include "tracer/ops.h"
#include "tracer/value.h"

namespace weft::python {

struct ArrayObject {
  PyObject_HEAD Value value;
  PyObject* weakrefs;
};

extern PyTypeObject* g_array_type;   // concrete arrays; base of:
extern PyTypeObject* g_tracer_type;  // values of a function that is being traced

bool AddArrayTypes(PyObject* module);

inline bool IsArray(PyObject* object) {
  return Py_TYPE(object) == g_array_type || Py_TYPE(object) == g_tracer_type ||
         PyObject_TypeCheck(object, g_array_type);
}
inline const Value& ValueOf(PyObject* array) { return reinterpret_cast<ArrayObject*>(array)->value; }

// A new array object: a Tracer for traced values.
inline PyObject* WrapValue(Value value) {
  PyTypeObject* type = value.traced() ? g_tracer_type : g_array_type;
  auto* object = reinterpret_cast<ArrayObject*>(type->tp_alloc(type, 0));
  if (object == nullptr) throw PythonError();
  new (&object->value) Value(std::move(value));
  object->weakrefs = nullptr;
  return reinterpret_cast<PyObject*>(object);
}
// A list of array objects.
PyObject* WrapValues(const Values& values);

// x[key], for array_index.cc and x.at.
PyObject* GetItemObject(PyObject* self, PyObject* key);
PyObject* GetItemObject(PyObject* self, PyObject* key, const std::string& mode);
Value UpdateItemObject(const Value& x, PyObject* key, PyObject* value, Update update, const std::string& mode);

// `__dlpack__` and from_dlpack (dlpack.cc).
PyObject* ToDLPack(PyObject* self, PyObject* args, PyObject* kwargs);
PyObject* DLPackDevice(PyObject* self, PyObject*);
Value FromDLPack(PyObject* object);

}  // namespace weft::python
#endif  // WEFT_PYTHON_ARRAY_H_
