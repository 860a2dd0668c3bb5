// Python's subscripts as indices: x[1, ::2, None, ..., rows].
#include <algorithm>

#include "python/native/array.h"
#include "python/native/convert.h"
#include "tracer/context.h"

namespace weft::python {
namespace {

std::optional<int64_t> SlicePart(PyObject* part) {
  if (part == Py_None) return std::nullopt;
  if (IsArray(part) && ValueOf(part).traced()) {
    // The size of the result would depend on it.
    Ref number(PyNumber_Index(part));
    if (!number) {
      PyErr_Clear();
      // JAX's is an IndexError.
      const ErrorKind kind = On(Setting::kJaxSemantics) ? ErrorKind::kIndex : ErrorKind::kTracer;
      throw UserError(kind, {}, "slice bounds must be known while tracing, got a traced ", ValueOf(part).type(),
                      "; use weft.lax.dynamic_slice for a slice of known size at a computed place");
    }
  }
  if (!PyLong_Check(part)) return IntFrom(part, "a slice bound");
  // As in Python, what is beyond every array is its end. (Sums of these do not overflow.)
  constexpr Py_ssize_t kBeyond = Py_ssize_t{1} << 62;
  return std::clamp(PyNumber_AsSsize_t(part, nullptr), -kBeyond, kBeyond);
}

// Whether a traced value is somewhere in nested lists.
bool HasTraced(PyObject* item) {
  if (IsArray(item)) return ValueOf(item).traced();
  if (!PyList_Check(item) && !PyTuple_Check(item)) return false;
  if (Py_EnterRecursiveCall(" in an index") != 0) throw PythonError();
  bool any = false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(item) && !any; ++i)
    any = HasTraced(PySequence_Fast_GET_ITEM(item, i));
  Py_LeaveRecursiveCall();
  return any;
}

// Nested lists of integers and arrays, side by side.
Value Stacked(PyObject* key) {
  Ref items(Check(PySequence_Fast(key, "an index")));
  std::vector<OperandHolder> holders(PySequence_Fast_GET_SIZE(items.get()));
  Values lists;
  lists.reserve(holders.size());
  std::vector<Operand> operands;
  for (size_t i = 0; i < holders.size(); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), static_cast<Py_ssize_t>(i));
    if (PyList_Check(item) || PyTuple_Check(item)) {
      lists.push_back(Stacked(item));
      operands.emplace_back(lists.back());
      continue;
    }
    if (!holders[i].Set(item)) throw TypeError("an index list must hold integers, got ", Repr(item));
    operands.push_back(holders[i].operand());
  }
  return Stack(operands, 0);
}

// `anywhere`: integers may be out of bounds; modes say what that means.
Index IndexFrom(PyObject* key, bool anywhere = false) {
  if (key == Py_None) return Index::NewAxis();
  if (key == Py_Ellipsis) return Index::Ellipsis();
  if (PySlice_Check(key)) {
    auto* s = reinterpret_cast<PySliceObject*>(key);
    return Index::Slice(SlicePart(s->start), SlicePart(s->stop), SlicePart(s->step));
  }
  if (IsArray(key)) {
    const Value& v = ValueOf(key);
    // A known integer is an ordinary index: checked, and free of gathers.
    if (!anywhere && !v.traced() && v.rank() == 0 && IsInteger(v.dtype()))
      return Index::Int(static_cast<int64_t>(v.tensor().Get(0).real()));
    return Index::Array(v);
  }
  if (PyBool_Check(key)) return Index::Array(Value(NumberTensor(DType::kBool, Scalar::Int(key == Py_True))));
  if (PyLong_Check(key)) {
    int overflow = 0;
    const long long i = PyLong_AsLongLongAndOverflow(key, &overflow);
    if (overflow != 0) throw UserError(ErrorKind::kIndex, {}, "the index ", Repr(key), " does not fit 64 bits");
    if (anywhere) return Index::Array(Value(NumberTensor(DType::kI64, Scalar::Int(i))));
    return Index::Int(i);
  }
  if (IsNumpyArray(key) || IsNumpyScalar(key)) {
    Value v(TensorFromBuffer(key, Sharing::kConstant, "an index"));
    if (!anywhere && v.rank() == 0 && IsInteger(v.dtype()))
      return Index::Int(static_cast<int64_t>(v.tensor().Get(0).real()));
    return Index::Array(std::move(v));
  }
  if (PyList_Check(key) || PyTuple_Check(key)) {
    if (HasTraced(key)) return Index::Array(Stacked(key));
    bool weak = false;
    return Index::Array(Value(TensorFromAnything(key, "an index", &weak)));
  }
  if (PyIndex_Check(key)) return Index::Int(IntFrom(key, "an index"));
  throw TypeError("an index must be an integer, slice, None, '...', or an array of integers or booleans, got ",
                  Repr(key));
}

Indices IndicesFrom(PyObject* key, bool anywhere = false) {
  Indices entries;
  if (!PyTuple_Check(key)) {
    if (PyList_Check(key) && On(Setting::kJaxSemantics)) {
      throw TypeError("an index must not be a list, got ", Repr(key),
                      "; make an array of it (weft.numpy.array), or a tuple of one index per dimension");
    }
    entries.push_back(IndexFrom(key, anywhere));
    return entries;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i)
    entries.push_back(IndexFrom(PyTuple_GET_ITEM(key, i), anywhere));
  return entries;
}

// x.at[...] takes known integers that are out of bounds, too: what is wrong with ordinary ones is tried again as
// arrays.
template <class F>
auto Anywhere(PyObject* key, const F& use) {
  try {
    return use(IndicesFrom(key));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kIndex || Ask(Question::kBounds, key)) throw;
  }
  return use(IndicesFrom(key, /*anywhere=*/true));
}

}  // namespace

PyObject* GetItemObject(PyObject* self, PyObject* key) { return GetItemObject(self, key, "promise"); }

PyObject* GetItemObject(PyObject* self, PyObject* key, const std::string& mode) {
  return Guarded([&] {
    // JAX takes the nearest element for known integers, too.
    if (On(Setting::kJaxSemantics)) return WrapValue(GetItemAt(ValueOf(self), key, mode));
    return WrapValue(GetItem(Operand(ValueOf(self)), IndicesFrom(key), mode));
  });
}

Value GetItemAt(const Value& x, PyObject* key, const std::string& mode) {
  return Anywhere(key, [&](const Indices& entries) { return GetItem(Operand(x), entries, mode); });
}

Value UpdateItemObject(const Value& x, PyObject* key, PyObject* value, Update update, const std::string& mode) {
  OperandHolder v;
  Value converted;
  if (!v.Set(value)) {
    bool weak = false;
    converted = Value(TensorFromAnything(value, "the value of an indexed update", &weak), weak);
    return Anywhere(key, [&](const Indices& i) { return UpdateItem(Operand(x), i, Operand(converted), update, mode); });
  }
  return Anywhere(key, [&](const Indices& i) { return UpdateItem(Operand(x), i, v.operand(), update, mode); });
}

}  // namespace weft::python
