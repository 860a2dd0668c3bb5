// Integers, shapes and axes that come from Python, and shapes that go there.
#include "python/native/array.h"
#include "python/native/convert.h"

namespace weft::python {

int64_t IntFrom(PyObject* object, const char* what) {
  if (PyFloat_Check(object)) throw TypeError(what, ": an integer is needed, got ", Repr(object));
  Ref index(PyNumber_Index(object));
  if (!index) {
    if (PyErr_ExceptionMatches(PyExc_TypeError) && !IsArray(object)) {
      PyErr_Clear();
      throw TypeError(what, ": an integer is needed, got ", Repr(object));
    }
    throw PythonError();
  }
  int overflow = 0;
  const long long i = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
  if (overflow != 0) throw ValueError(what, ": the integer ", Repr(index.get()), " does not fit 64 bits");
  if (i == -1 && PyErr_Occurred()) throw PythonError();
  return i;
}

namespace {
PyObject* g_dim_type = nullptr;  // of module.cc
PyObject* (*g_make_dim)(const Dim&) = nullptr;
const Dim* (*g_get_dim)(PyObject*) = nullptr;
}  // namespace

void SetDimConversions(PyObject* type, PyObject* (*make)(const Dim&), const Dim* (*get)(PyObject*)) {
  g_dim_type = type, g_make_dim = make, g_get_dim = get;
}

PyObject* DimObject(const Dim& dim) {
  if (const auto size = dim.TryValue()) return PyLong_FromLongLong(*size);
  WEFT_CHECK(g_make_dim) << "no symbolic dimensions in Python";
  return Check(g_make_dim(dim));
}

static Dim DimFrom(PyObject* object, const char* what) {
  if (g_dim_type && Py_TYPE(object) == reinterpret_cast<PyTypeObject*>(g_dim_type)) return *g_get_dim(object);
  return Dim(IntFrom(object, what));
}

// Whether it is several numbers: a tuple, list, range or another sequence, but no array, which may be a number.
static bool IsSequence(PyObject* object) {
  if (PyTuple_Check(object) || PyList_Check(object)) return true;
  return !IsArray(object) && !IsNumpyArray(object) && !IsNumpyScalar(object) && !PyUnicode_Check(object) &&
         !PyDict_Check(object) && PySequence_Check(object);
}

namespace {
// An array whose numbers are known: sizes, as NumPy's arrays may be.
bool IsKnownVector(PyObject* object) {
  return IsArray(object) && !ValueOf(object).traced() && ValueOf(object).rank() == 1;
}
}  // namespace

Dims DimsFrom(PyObject* object, const char* what) {
  Dims dims;
  if (IsSequence(object)) {
    Ref fast(Check(PySequence_Fast(object, "a shape")));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i) {
      dims.push_back(DimFrom(PySequence_Fast_GET_ITEM(fast.get(), i), what));
    }
  } else if (IsNumpyArray(object) || IsKnownVector(object)) {
    Ref list(Check(PyObject_CallMethod(object, "tolist", nullptr)));
    return DimsFrom(list.get(), what);
  } else {
    dims.push_back(DimFrom(object, what));
  }
  return dims;
}

Dims NewDimsFrom(PyObject* object) {
  Dims dims = DimsFrom(object, "reshape");
  for (const Dim& dim : dims) {
    if (const auto size = dim.TryValue(); size && *size < -1)
      throw TypeError("reshape: sizes are -1 or not negative, got ", ShapeText(dims));
  }
  return dims;
}

std::optional<Ints> AxesFrom(PyObject* object, const char* what) {
  if (object == nullptr || object == Py_None) return std::nullopt;
  Ints axes;
  if (IsSequence(object)) {
    Ref fast(Check(PySequence_Fast(object, "axes")));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i) {
      axes.push_back(IntFrom(PySequence_Fast_GET_ITEM(fast.get(), i), what));
    }
  } else {
    axes.push_back(IntFrom(object, what));
  }
  return axes;
}

PyObject* ShapeObject(const Value& value) {
  if (!value.traced()) {
    const Shape& shape = value.shape();
    Ref tuple(Check(PyTuple_New(static_cast<Py_ssize_t>(shape.size()))));
    for (size_t i = 0; i < shape.size(); ++i) PyTuple_SET_ITEM(tuple.get(), i, Check(PyLong_FromLongLong(shape[i])));
    return tuple.release();
  }
  const Dims dims = value.dims();
  Ref tuple(Check(PyTuple_New(static_cast<Py_ssize_t>(dims.size()))));
  for (size_t i = 0; i < dims.size(); ++i) PyTuple_SET_ITEM(tuple.get(), i, DimObject(dims[i]));
  return tuple.release();
}

}  // namespace weft::python
