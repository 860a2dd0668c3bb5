// weft.Array and its subtype weft.Tracer: Python objects that hold one weft::Value. Raw C API, because every traced
// operation and every call goes through them.
#ifndef WEFT_PYTHON_NATIVE_ARRAY_H_
#define WEFT_PYTHON_NATIVE_ARRAY_H_

#include <Python.h>

#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "python/native/errors.h"
#include "tracer/index_ops.h"
#include "tracer/ops.h"
#include "tracer/value.h"

namespace weft::python {

// Why the elements of an array cannot be had: its memory was given away.
struct Deletion {
  Type type;
  bool weak = false;
  std::string how;  // "was donated as argument 'x' of 'step'"
};

struct ArrayObject {
  PyObject_HEAD Value value;
  PyObject* weakrefs;
  std::shared_ptr<const Deletion> deleted;  // then `value` is empty
  Loc deleted_at;
  PyObject* deleted_sharding;  // how it lay, or null; borrowed, shardings of arrays stay
  PyObject* made_on;           // the default device when it was made, or null; borrowed, such shardings stay
  bool pinned;                 // somebody was told its address and may use it as long as this object lives
};

// Whether anybody has said on which device arrays are made, since the process began.
inline std::atomic<bool> g_default_place_said{false};
// On which device arrays are made that nobody puts anywhere: a sharding, or null for the first one.
PyObject* DefaultPlace();
// Of this thread (null: that of the process), or of the process; Py_None: the first device.
void SetDefaultPlace(PyObject* sharding, bool of_process);

extern PyTypeObject* g_array_type;   // concrete arrays; base of:
extern PyTypeObject* g_tracer_type;  // values of a function that is being traced

bool AddArrayTypes(PyObject* module);

inline bool IsArray(PyObject* object) {
  return Py_TYPE(object) == g_array_type || Py_TYPE(object) == g_tracer_type ||
         PyObject_TypeCheck(object, g_array_type);
}
[[noreturn]] void ThrowDeleted(PyObject* array);
// Raises RuntimeError for an array that was donated or deleted.
inline const Value& PeekValue(PyObject* array) {
  const auto* object = reinterpret_cast<const ArrayObject*>(array);
  if (object->deleted) ThrowDeleted(array);
  return object->value;
}
// A copy: while Python code runs, or another thread, the array may be donated.
inline Value ValueOf(PyObject* array) { return PeekValue(array); }
// Takes the value out of an array; from now on using the array raises.
Value Delete(PyObject* array, std::shared_ptr<const Deletion> how, Loc where);

// A new array object: a Tracer for traced values.
inline PyObject* WrapValue(Value value) {
  PyTypeObject* type = value.traced() ? g_tracer_type : g_array_type;
  auto* object = reinterpret_cast<ArrayObject*>(type->tp_alloc(type, 0));
  if (object == nullptr) throw PythonError();
  new (&object->value) Value(std::move(value));
  object->weakrefs = nullptr;
  new (&object->deleted) std::shared_ptr<const Deletion>();
  new (&object->deleted_at) Loc();
  object->deleted_sharding = nullptr;
  const bool said = g_default_place_said.load(std::memory_order_relaxed);
  object->made_on = said && !object->value.traced() ? DefaultPlace() : nullptr;
  object->pinned = false;
  return reinterpret_cast<PyObject*>(object);
}
// A list of array objects.
PyObject* WrapValues(const Values& values);

// x[key], for array_index.cc and x.at.
PyObject* GetItemObject(PyObject* self, PyObject* key);
PyObject* GetItemObject(PyObject* self, PyObject* key, const std::string& mode);
// x.at[key].get(mode=...): known integers may be out of bounds.
Value GetItemAt(const Value& x, PyObject* key, const std::string& mode);
Value UpdateItemObject(const Value& x, PyObject* key, PyObject* value, Update update, const std::string& mode);

// `__dlpack__` and from_dlpack (dlpack.cc).
PyObject* ToDLPack(PyObject* self, PyObject* args, PyObject* kwargs);
PyObject* DLPackDevice(PyObject* self, PyObject*);
Value FromDLPack(PyObject* object, bool may_copy);

}  // namespace weft::python
#endif  // WEFT_PYTHON_NATIVE_ARRAY_H_
