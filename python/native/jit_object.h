// The jitted function object, for the files that call, trace and place it (jit*.cc).
#ifndef WEFT_PYTHON_NATIVE_JIT_OBJECT_H_
#define WEFT_PYTHON_NATIVE_JIT_OBJECT_H_

#include <Python.h>

#include <string>

#include "ir/licences.h"
#include "python/native/jit_cache.h"
#include "python/native/run.h"

namespace weft::python {

struct JitObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* function;
  PyObject* static_argnums;   // frozenset of ints
  PyObject* static_argnames;  // frozenset of strings
  PyObject* donate_argnums;   // frozenset of ints
  PyObject* donate_argnames;  // frozenset of strings
  PyObject* dict;
  PyObject* weakrefs;
  EntryCache* cache;
  bool has_static, has_donated;
  bool stateful;  // uses references, so that every call goes through Python (weft.references)
};

// Of jit(backend=...); the outermost jitted function decides.
inline std::string BackendOf(const JitObject* self) {
  PyObject* name = self->dict ? PyDict_GetItemString(self->dict, "_backend") : nullptr;
  return name ? PyUnicode_AsUTF8(name) : HowToCompile().backend;
}
// jitted with deterministic=True
inline bool IsDeterministic(const JitObject* self) {
  return self->dict && PyDict_GetItemString(self->dict, "_deterministic") == Py_True;
}
// jitted with inline=True: no call where calls are kept (Setting::kKeepsCalls)
inline bool IsInline(const JitObject* self) {
  return self->dict && PyDict_GetItemString(self->dict, "_inline") == Py_True;
}

// Of jit(licence=...).
inline Licences LicencesOf(const JitObject* self) {
  PyObject* bits = self->dict ? PyDict_GetItemString(self->dict, "_licences") : nullptr;
  return bits ? Licences::OfBits(static_cast<uint8_t>(PyLong_AsLong(bits))) : Licences();
}

// (Traced, tree of the results, names of the leaves) of the version that a call with such arguments has traced and
// kept, or None. A new reference.
PyObject* TracedBefore(PyObject* object, PyObject* args, PyObject* kwargs);
// A call of it: of tp_vectorcall.
PyObject* CallJitted(PyObject* object, PyObject* const* args, size_t flags, PyObject* kwnames);

}  // namespace weft::python
#endif  // WEFT_PYTHON_NATIVE_JIT_OBJECT_H_
