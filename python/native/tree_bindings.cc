// What trees have of Python's dictionaries. The library for trees brings them back with their keys in the order in
// which they were put in, and takes those of several classes for each other, both other than JAX; to look whether a
// tree has any for which that matters must cost less than to take it apart.
#include "python/native/bindings.h"

namespace weft::python {
namespace {

enum Found : int {
  kNothing = 0,
  kUnordered = 1,   // keys that do not stand in their sorted order, or of which nobody knows
  kOtherClass = 2,  // OrderedDict, defaultdict
  kAll = 3,
};
// Containers around each other; beyond that one may contain itself.
constexpr int kDeepest = 200;

PyObject* FromCollections(const char* name) {
  return py::object(py::module_::import("collections").attr(name)).release().ptr();
}

bool AscendTo(PyObject* key, PyObject* next) {
  if (PyUnicode_CheckExact(key) && PyUnicode_CheckExact(next)) return PyUnicode_Compare(key, next) < 0;
  return PyLong_CheckExact(key) && PyLong_CheckExact(next) && PyObject_RichCompareBool(key, next, Py_LT) == 1;
}

int DictionariesIn(PyObject* node, int depth) {
  static PyObject* const default_dict = FromCollections("defaultdict");
  static PyObject* const deque = FromCollections("deque");
  const auto* type = reinterpret_cast<PyObject*>(Py_TYPE(node));
  if (depth > kDeepest) return kAll;
  int found = kNothing;
  if (PyTuple_Check(node)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(node) && found != kAll; ++i)
      found |= DictionariesIn(PyTuple_GET_ITEM(node, i), depth + 1);
  } else if (PyList_CheckExact(node)) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(node) && found != kAll; ++i)
      found |= DictionariesIn(PyList_GET_ITEM(node, i), depth + 1);
  } else if (PyDict_CheckExact(node) || PyODict_CheckExact(node) || type == default_dict) {
    const bool keeps_order = PyODict_CheckExact(node);
    if (!PyDict_CheckExact(node)) found |= kOtherClass;
    PyObject *key = nullptr, *value = nullptr, *before = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(node, &at, &key, &value) && found != kAll; before = key) {
      if (before != nullptr && !keeps_order && !AscendTo(before, key)) found |= kUnordered;
      found |= DictionariesIn(value, depth + 1);
    }
  } else if (type == deque) {
    for (py::handle item : py::reinterpret_borrow<py::object>(node)) found |= DictionariesIn(item.ptr(), depth + 1);
  }
  return found;
}

}  // namespace

void BindTrees(py::module_& m) {
  // 1: a dictionary whose keys may stand in another order than their sorted one; 2: an OrderedDict or a defaultdict; 3:
  // both; 0: neither. Looks into Python's own containers, not into objects of registered classes.
  m.def("dictionaries_in", [](py::handle tree) { return DictionariesIn(tree.ptr(), 0); });
}

}  // namespace weft::python
