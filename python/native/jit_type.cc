// The Python type of jitted functions.
#include <Python.h>
#include <structmember.h>

#include <new>
#include <string>

#include "ir/analysis/residuals.h"
#include "python/native/convert.h"
#include "python/native/errors.h"
#include "python/native/function.h"
#include "python/native/jit.h"
#include "python/native/jit_object.h"
#include "python/native/jit_trace.h"

namespace weft::python {
namespace {

PyTypeObject* g_jit_type = nullptr;

PyObject* New(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* kNames[] = {"function",       "static_argnums",  "static_argnames",
                                 "donate_argnums", "donate_argnames", nullptr};
  PyObject *function, *nums, *names, *donate_nums, *donate_names;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOO", const_cast<char**>(kNames), &function, &nums, &names,
                                   &donate_nums, &donate_names))
    return nullptr;
  auto* self = reinterpret_cast<JitObject*>(type->tp_alloc(type, 0));
  if (self == nullptr) return nullptr;
  self->vectorcall = CallJitted;
  self->function = Py_NewRef(function);
  self->static_argnums = Py_NewRef(nums);
  self->static_argnames = Py_NewRef(names);
  self->donate_argnums = Py_NewRef(donate_nums);
  self->donate_argnames = Py_NewRef(donate_names);
  self->cache = new (std::nothrow) EntryCache();
  if (self->cache == nullptr) {
    Py_DECREF(self);
    return PyErr_NoMemory();
  }
  self->has_static = PySet_Size(nums) > 0 || PySet_Size(names) > 0;
  self->has_donated = PySet_Size(donate_nums) > 0 || PySet_Size(donate_names) > 0;
  return reinterpret_cast<PyObject*>(self);
}

int Traverse(PyObject* object, visitproc visit, void* arg) {
  auto* self = reinterpret_cast<JitObject*>(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->function);
  Py_VISIT(self->dict);
  return self->cache ? self->cache->Traverse(visit, arg) : 0;
}

int Clear(PyObject* object) {
  auto* self = reinterpret_cast<JitObject*>(object);
  Py_CLEAR(self->function);
  Py_CLEAR(self->dict);
  if (self->cache) self->cache->Clear();
  return 0;
}

void Dealloc(PyObject* object) {
  auto* self = reinterpret_cast<JitObject*>(object);
  PyObject_GC_UnTrack(object);
  if (self->weakrefs) PyObject_ClearWeakRefs(object);
  Clear(object);
  Py_CLEAR(self->static_argnums);
  Py_CLEAR(self->static_argnames);
  Py_CLEAR(self->donate_argnums);
  Py_CLEAR(self->donate_argnames);
  delete self->cache;
  PyTypeObject* type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject* Bound(PyObject* self, PyObject* object, PyObject*) {
  return object == nullptr || object == Py_None ? Py_NewRef(self) : PyMethod_New(self, object);
}

PyObject* Repr(PyObject* object) {
  return PyUnicode_FromFormat("<weft.jit of %R>", reinterpret_cast<JitObject*>(object)->function);
}

PyObject* ClearCache(PyObject* object, PyObject*) {
  reinterpret_cast<JitObject*>(object)->cache->Clear();
  Py_RETURN_NONE;
}

PyObject* CacheSize(PyObject* object, PyObject*) {
  return PyLong_FromSize_t(reinterpret_cast<JitObject*>(object)->cache->size());
}

PyObject* Explain(PyObject* object, PyObject*) {
  return Guarded([&]() -> PyObject* {
    Ref list(Check(PyList_New(0)));
    for (const auto& entry : reinterpret_cast<JitObject*>(object)->cache->Entries()) {
      std::string types;
      for (int i = 0; i < entry->traced.num_params; ++i)
        types += (i ? ", " : "") + entry->traced.fn->params()[i].type.ToString();
      Ref item(Check(Py_BuildValue("{s:s,s:L,s:L}", "signature", types.c_str(), "calls",
                                   static_cast<long long>(entry->calls), "equations",
                                   static_cast<long long>(entry->traced.fn->NumEqns()))));
      if (entry->program) {
        for (const auto& [name, value] : entry->program->Facts()) {
          Ref number(Check(PyFloat_FromDouble(value)));
          if (value == static_cast<double>(static_cast<int64_t>(value))) number = Ref(Check(PyLong_FromDouble(value)));
          CheckStatus(PyDict_SetItemString(item.get(), name.c_str(), number.get()));
        }
      }
      const std::vector<std::string> loops = LoopMemory(*entry->traced.fn);
      Ref lines(Check(PyList_New(0)));
      for (const std::string& line : loops) {
        Ref text(Check(PyUnicode_FromStringAndSize(line.data(), static_cast<Py_ssize_t>(line.size()))));
        CheckStatus(PyList_Append(lines.get(), text.get()));
      }
      CheckStatus(PyDict_SetItemString(item.get(), "loops", lines.get()));
      CheckStatus(PyList_Append(list.get(), item.get()));
    }
    return list.release();
  });
}

// The traced programs of its versions, in the order of explain().
PyObject* Programs(PyObject* object, PyObject*) {
  return Guarded([&]() -> PyObject* {
    Ref list(Check(PyList_New(0)));
    for (const auto& entry : reinterpret_cast<JitObject*>(object)->cache->Entries()) {
      const Ref traced(Check(WrapTraced(entry->traced)));
      CheckStatus(PyList_Append(list.get(), traced.get()));
    }
    return list.release();
  });
}

// What a call with such arguments (a tuple, a dictionary) has traced, or None.
PyObject* Version(PyObject* object, PyObject* args) {
  PyObject *positional, *named;
  if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &positional, &PyDict_Type, &named)) return nullptr;
  return TracedBefore(object, positional, named);
}

// A compiled function never changes: a copy is itself.
PyObject* Itself(PyObject* self, PyObject*) { return Py_NewRef(self); }

PyMethodDef kMethods[] = {
    {"__copy__", Itself, METH_NOARGS, nullptr},
    {"__deepcopy__", Itself, METH_O, nullptr},
    {"clear_cache", ClearCache, METH_NOARGS, "clear_cache($self, /)\n--\n\nForgets every compiled version."},
    {"_programs", Programs, METH_NOARGS, "What was traced of its versions."},
    {"_traced_before", Version, METH_VARARGS, "What a call with such arguments has traced, or None."},
    {"_cache_size", CacheSize, METH_NOARGS, "The number of compiled versions."},
    {"explain", Explain, METH_NOARGS,
     "explain($self, /)\n--\n\n"
     "A list with one dict per compiled version: signature (the types of its arguments), calls and equations; once\n"
     "compiled also milliseconds of compiling, kernels, library calls, bytes moved and copied per call, and bytes of "
     "the\n"
     "arena for temporaries. `loops` has a line for each loop that records something: bytes per trip, and trips where\n"
     "their number is known.\n"},
    {nullptr, nullptr, 0, nullptr}};
PyMemberDef kMembers[] = {{"_stateful", T_BOOL, offsetof(JitObject, stateful), 0, nullptr},
                          {"__vectorcalloffset__", T_PYSSIZET, offsetof(JitObject, vectorcall), READONLY, nullptr},
                          {"__dictoffset__", T_PYSSIZET, offsetof(JitObject, dict), READONLY, nullptr},
                          {"__weaklistoffset__", T_PYSSIZET, offsetof(JitObject, weakrefs), READONLY, nullptr},
                          {"_function", T_OBJECT, offsetof(JitObject, function), READONLY, nullptr},
                          {"_static_argnums", T_OBJECT, offsetof(JitObject, static_argnums), READONLY, nullptr},
                          {"_static_argnames", T_OBJECT, offsetof(JitObject, static_argnames), READONLY, nullptr},
                          {"_donate_argnums", T_OBJECT, offsetof(JitObject, donate_argnums), READONLY, nullptr},
                          {"_donate_argnames", T_OBJECT, offsetof(JitObject, donate_argnames), READONLY, nullptr},
                          {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef kGetSet[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                         {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot kSlots[] = {{Py_tp_new, reinterpret_cast<void*>(New)},
                        {Py_tp_dealloc, reinterpret_cast<void*>(Dealloc)},
                        {Py_tp_traverse, reinterpret_cast<void*>(Traverse)},
                        {Py_tp_clear, reinterpret_cast<void*>(Clear)},
                        {Py_tp_repr, reinterpret_cast<void*>(Repr)},
                        {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                        {Py_tp_descr_get, reinterpret_cast<void*>(Bound)},
                        {Py_tp_members, kMembers},
                        {Py_tp_methods, kMethods},
                        {Py_tp_getset, kGetSet},
                        {0, nullptr}};
PyType_Spec kSpec = {"weft.JitFunction", sizeof(JitObject), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, kSlots};

}  // namespace

bool AddJitType(PyObject* module) {
  g_jit_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&kSpec));
  return AddRecursionPending(module) && g_jit_type &&
         PyModule_AddObjectRef(module, "JitFunction", reinterpret_cast<PyObject*>(g_jit_type)) == 0;
}

}  // namespace weft::python
