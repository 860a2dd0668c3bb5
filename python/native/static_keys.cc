#include "python/native/static_keys.h"

#include <bit>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "python/native/array.h"
#include "python/native/convert.h"
#include "python/native/errors.h"
#include "tracer/context.h"

namespace weft::python {
namespace {

PyObject* g_tree_type = nullptr;
PyObject* g_fields_hook = nullptr;

enum class Kind {
  kFloat,
  kComplex,
  kNumpyScalar,
  kTuple,
  kList,
  kDict,
  kSet,
  kRange,
  kDecimal,
  kTree,
  kArray,
  kMayHaveFields,
  kOther
};

// A class that inherits == from its base says nothing of its own.
bool ComparesLike(PyTypeObject* type, const PyTypeObject& base) { return type->tp_richcompare == base.tp_richcompare; }

bool HasFields(PyTypeObject* type) {
  static PyObject* const names[] = {PyUnicode_InternFromString("__dataclass_fields__"),
                                    PyUnicode_InternFromString("__attrs_attrs__")};
  return PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) &&
         (_PyType_Lookup(type, names[0]) != nullptr || _PyType_Lookup(type, names[1]) != nullptr);
}

Kind KindOf(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (type == &PyUnicode_Type || type == &PyLong_Type || type == &PyBool_Type || o == Py_None) return Kind::kOther;
  if (ComparesLike(type, PyFloat_Type)) return Kind::kFloat;
  if (ComparesLike(type, PyTuple_Type)) return Kind::kTuple;
  if (ComparesLike(type, PyComplex_Type)) return Kind::kComplex;
  if (type == &PyFrozenSet_Type || type == &PySet_Type) return Kind::kSet;
  if (type == &PyRange_Type) return Kind::kRange;
  if (type == &PyList_Type) return Kind::kList;
  if (type == &PyDict_Type) return Kind::kDict;
  if (reinterpret_cast<PyObject*>(type) == g_tree_type) return Kind::kTree;
  if (IsNumpyScalar(o)) return Kind::kNumpyScalar;
  if (IsNumpyArray(o) || IsArray(o)) return Kind::kArray;
  if (std::strcmp(type->tp_name, "decimal.Decimal") == 0) return Kind::kDecimal;
  return HasFields(type) ? Kind::kMayHaveFields : Kind::kOther;
}

class Nested {
 public:
  Nested() {
    if (Py_EnterRecursiveCall(" while static values were compared") != 0) throw PythonError();
  }
  ~Nested() { Py_LeaveRecursiveCall(); }
  Nested(const Nested&) = delete;
};

Ref Attribute(PyObject* o, const char* name) { return Ref(Check(PyObject_GetAttrString(o, name))); }
Ref Method(PyObject* o, const char* name) {
  return Ref(Check(RunningPython([&] { return PyObject_CallMethod(o, name, nullptr); })));
}
// (compared, hashed), or null.
Ref FieldsOf(PyObject* o) {
  Ref pair(Check(RunningPython([&] { return PyObject_CallOneArg(g_fields_hook, o); })));
  return pair.get() == Py_None ? Ref() : pair;
}
uint64_t Bits(double x) { return std::bit_cast<uint64_t>(x); }

// What __eq__ raises is raised; in JAX it is the cause of a ValueError.
[[noreturn]] void RaiseNotComparable(PyObject* a) {
  if (!On(Setting::kJaxSemantics) || !PyErr_ExceptionMatches(PyExc_Exception)) throw PythonError();
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback != nullptr) PyException_SetTraceback(value, traceback);
  const Ref owned[] = {Ref(type), Ref(value), Ref(traceback)};
  PyErr_Format(PyExc_ValueError,
               "static arguments and static parts of containers are compared by each call, by __eq__: that of '%s' "
               "raised %R",
               Py_TYPE(a)->tp_name, value);
  PyObject *raised_type = nullptr, *raised = nullptr, *raised_traceback = nullptr;
  PyErr_Fetch(&raised_type, &raised, &raised_traceback);
  PyErr_NormalizeException(&raised_type, &raised, &raised_traceback);
  PyException_SetCause(raised, Py_NewRef(value));
  PyErr_Restore(raised_type, raised, raised_traceback);
  throw PythonError();
}

bool Equal(PyObject* a, PyObject* b) {
  const int same = RunningPython([&] { return PyObject_RichCompareBool(a, b, Py_EQ); });
  if (same < 0) RaiseNotComparable(a);
  return same == 1;
}

bool SameInOrder(PyObject* const* a, PyObject* const* b, Py_ssize_t n) {
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (!SameStatic(a[i], b[i])) return false;
  }
  return true;
}

// The members of a set or a dictionary. Not by its own look-up, which goes by ==.
std::vector<Ref> Members(PyObject* container) {
  std::vector<Ref> members;
  const Ref each(Check(PyObject_GetIter(container)));
  while (PyObject* member = PyIter_Next(each.get())) members.emplace_back(member);
  if (PyErr_Occurred()) throw PythonError();
  return members;
}

// Sets and dictionaries, whatever their order.
bool SameMembers(PyObject* a, PyObject* b, bool values) {
  std::unordered_multimap<uint64_t, Ref> theirs;
  for (const Ref& key : Members(b)) theirs.emplace(StaticHash(key.get()), key);
  const auto value = [](PyObject* dict, const Ref& key) {
    PyObject* found = PyDict_GetItemWithError(dict, key.get());
    if (found == nullptr && !PyErr_Occurred()) PyErr_SetObject(PyExc_KeyError, key.get());
    return Ref::Borrow(Check(found));
  };
  for (const Ref& key : Members(a)) {
    auto [it, end] = theirs.equal_range(StaticHash(key.get()));
    while (it != end && !SameStatic(key.get(), it->second.get())) ++it;
    if (it == end) return false;
    if (values && !SameStatic(value(a, key).get(), value(b, it->second).get())) return false;
    theirs.erase(it);
  }
  return theirs.empty();
}

uint64_t Mixed(uint64_t h, uint64_t x) {
  h = (h ^ x) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 32;
}

}  // namespace

void SetStaticKinds(PyObject* tree_type, PyObject* fields_hook) {
  g_tree_type = Py_NewRef(tree_type);
  g_fields_hook = Py_NewRef(fields_hook);
}

bool SameStatic(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  const Nested nested;
  switch (KindOf(a)) {
    case Kind::kFloat: return Bits(PyFloat_AS_DOUBLE(a)) == Bits(PyFloat_AS_DOUBLE(b));
    case Kind::kComplex: {
      const Py_complex x = PyComplex_AsCComplex(a), y = PyComplex_AsCComplex(b);
      return Bits(x.real) == Bits(y.real) && Bits(x.imag) == Bits(y.imag);
    }
    case Kind::kNumpyScalar:
      return Equal(Attribute(a, "dtype").get(), Attribute(b, "dtype").get()) &&
             Equal(Method(a, "tobytes").get(), Method(b, "tobytes").get());
    case Kind::kTuple: {
      const Py_ssize_t n = PyTuple_GET_SIZE(a);
      return n == PyTuple_GET_SIZE(b) &&
             SameInOrder(reinterpret_cast<PyTupleObject*>(a)->ob_item, reinterpret_cast<PyTupleObject*>(b)->ob_item, n);
    }
    case Kind::kList: {  // comparing may run code that changes it
      const Ref x(Check(PyList_AsTuple(a))), y(Check(PyList_AsTuple(b)));
      return SameStatic(x.get(), y.get());
    }
    case Kind::kDict: return SameMembers(a, b, true);
    case Kind::kSet: return SameMembers(a, b, false);
    case Kind::kRange:
      return Equal(Attribute(a, "start").get(), Attribute(b, "start").get()) &&
             Equal(Attribute(a, "stop").get(), Attribute(b, "stop").get()) &&
             Equal(Attribute(a, "step").get(), Attribute(b, "step").get());
    case Kind::kDecimal: return Equal(Ref(Check(PyObject_Str(a))).get(), Ref(Check(PyObject_Str(b))).get());
    case Kind::kTree: return SameStatic(Method(a, "__getstate__").get(), Method(b, "__getstate__").get());
    case Kind::kArray:
      throw TypeError("a static part of an argument is an array (", Repr(a),
                      "); static parts are compared by each call: make it a child of its container, or a tuple of "
                      "numbers");
    case Kind::kMayHaveFields: {
      const Ref x = FieldsOf(a);
      if (!x) return Equal(a, b);
      const Ref y = FieldsOf(b);
      return SameStatic(PyTuple_GET_ITEM(x.get(), 0), PyTuple_GET_ITEM(y.get(), 0));
    }
    case Kind::kOther: return Equal(a, b);
  }
  return false;
}

uint64_t StaticHash(PyObject* o) {
  const auto hashed = [](PyObject* object) {
    const Py_hash_t h = RunningPython([&] { return PyObject_Hash(object); });
    if (h == -1) throw PythonError();
    return static_cast<uint64_t>(h);
  };
  if (Py_TYPE(o)->tp_hash == PyObject_HashNotImplemented) return hashed(o);  // raises
  const Nested nested;
  switch (KindOf(o)) {
    case Kind::kFloat: return Mixed(1, Bits(PyFloat_AS_DOUBLE(o)));
    case Kind::kComplex: {
      const Py_complex x = PyComplex_AsCComplex(o);
      return Mixed(Mixed(2, Bits(x.real)), Bits(x.imag));
    }
    case Kind::kNumpyScalar: return hashed(Method(o, "tobytes").get());
    case Kind::kTuple: {
      if (Py_TYPE(o)->tp_hash != PyTuple_Type.tp_hash) return hashed(o);
      uint64_t h = 3;
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) h = Mixed(h, StaticHash(PyTuple_GET_ITEM(o, i)));
      return h;
    }
    case Kind::kSet: {
      uint64_t sum = 4;
      Ref each(Check(PyObject_GetIter(o)));
      while (Ref member{PyIter_Next(each.get())}) sum += Mixed(5, StaticHash(member.get()));
      if (PyErr_Occurred()) throw PythonError();
      return sum;
    }
    case Kind::kDecimal: return hashed(Ref(Check(PyObject_Str(o))).get());
    case Kind::kMayHaveFields: {
      const Ref pair = FieldsOf(o);
      return pair ? Mixed(6, StaticHash(PyTuple_GET_ITEM(pair.get(), 1))) : hashed(o);
    }
    case Kind::kList:
    case Kind::kDict:
    case Kind::kRange:
    case Kind::kTree:
    case Kind::kArray:
    case Kind::kOther: return hashed(o);
  }
  return 0;
}

}  // namespace weft::python
