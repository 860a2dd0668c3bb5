#include "python/native/call_arguments.h"

#include <algorithm>
#include <utility>

#include "python/native/array.h"
#include "python/native/convert.h"
#include "python/native/jit.h"
#include "python/native/typed_layouts.h"
#include "tracer/differentiated.h"

namespace weft::python {

namespace {

void AddVarying(const Strings& axes, Signature& s) {
  if (axes.empty()) return;
  s.tokens.push_back(kVaryingToken | axes.size() << 8);
  for (const std::string& axis : axes) s.objects.emplace_back(Check(PyUnicode_FromString(axis.c_str())));
}

void AddType(const Value& v, Signature& s) {
  const auto head = [&](DType dtype, size_t rank) {
    return kLeafToken | static_cast<uint64_t>(dtype) << 8 | static_cast<uint64_t>(v.weak()) << 16 |
           static_cast<uint64_t>(rank) << 32;
  };
  if (!v.traced()) {
    const Shape& shape = v.shape();
    s.tokens.push_back(head(v.shards() ? v.dtype() : v.tensor().dtype(), shape.size()));
    s.tokens.insert(s.tokens.end(), shape.begin(), shape.end());
    if (Trace::Current() != nullptr) AddVarying(TypeHere(v).varying, s);
    return;
  }
  const Type type = TypeHere(v);
  const Dims& dims = type.dims;
  s.tokens.push_back(head(type.dtype, dims.size()));
  AddVarying(type.varying, s);
  for (const Dim& d : dims) {
    if (const auto size = d.TryValue()) {
      s.tokens.push_back(static_cast<uint64_t>(*size));
    } else {
      s.tokens.push_back(~uint64_t{0});
      s.symbolic.push_back(d);
    }
  }
}

void Flatten(PyObject* o, Arguments& a);

// A container in a container: raises RecursionError where Python would, also for one that contains itself.
struct Nested {
  Nested() {
    if (Py_EnterRecursiveCall(" while the arguments of a jitted function were taken apart") != 0) throw PythonError();
  }
  ~Nested() { Py_LeaveRecursiveCall(); }
  Nested(const Nested&) = delete;
};

// Dictionaries are flattened in the order of their sorted keys, as optree does.
bool FlattenDict(PyObject* o, Arguments& a) {
  const Nested nested;
  absl::InlinedVector<std::pair<PyObject*, PyObject*>, 8> items;
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(o, &position, &key, &value)) {
    if (!PyUnicode_CheckExact(key)) return false;
    items.emplace_back(key, value);
  }
  auto less = [](const auto& x, const auto& y) { return PyUnicode_Compare(x.first, y.first) < 0; };
  if (!std::is_sorted(items.begin(), items.end(), less)) std::sort(items.begin(), items.end(), less);
  a.signature.tokens.push_back(kDictToken | items.size() << 8);
  for (auto& [k, v] : items) {
    a.signature.tokens.push_back(static_cast<uint64_t>(PyObject_Hash(k)));
    a.signature.objects.push_back(Ref::Borrow(k));
    Flatten(v, a);
  }
  return true;
}

bool FlattenLeaf(PyObject* o, Arguments& a) {
  if (IsArray(o)) {
    const Value& value = PeekValue(o);
    AddType(value, a.signature);
    AddTypedLayout(value, a.signature);
    if (const Placement* place = value.placement()) {
      a.signature.tokens.push_back(kShardingToken);
      a.signature.tokens.push_back(reinterpret_cast<uint64_t>(place));
      a.placed = true;
    }
    a.leaves.push_back({o, o});
    return true;
  }
  if (IsPythonNumber(o)) {
    WatchTransfer(o);
    const Scalar s = ScalarFrom(o);
    a.leaves.push_back({o, nullptr, s});
    a.signature.tokens.push_back(kNumberToken | static_cast<uint64_t>(s.kind) << 8);
    return true;
  }
  if (IsNumpyArray(o) || IsNumpyScalar(o)) {
    Tensor t;
    try {
      t = TensorFromBuffer(o, Sharing::kDuringCall, "a jitted function");
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kType) throw;
      return false;  // of a dtype without counterpart: who refuses it knows the argument's name
    }
    AddType(Value(t), a.signature);
    a.leaves.push_back({o, nullptr, {}, std::move(t)});
    return true;
  }
  return false;
}

void Flatten(PyObject* o, Arguments& a) {
  // A class of the user's that numbers are a base of may be a registered container.
  if (!IsNumberOfOwnClass(o) && FlattenLeaf(o, a)) return;
  auto& tokens = a.signature.tokens;
  if (o == Py_None) {
    tokens.push_back(kNoneToken);
  } else if (PyTuple_CheckExact(o)) {
    tokens.push_back(kTupleToken | static_cast<uint64_t>(PyTuple_GET_SIZE(o)) << 8);
    const Nested nested;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) Flatten(PyTuple_GET_ITEM(o, i), a);
  } else if (PyList_CheckExact(o)) {
    tokens.push_back(kListToken | static_cast<uint64_t>(PyList_GET_SIZE(o)) << 8);
    const Nested nested;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o); ++i) Flatten(PyList_GET_ITEM(o, i), a);
  } else if (PyDict_CheckExact(o) && FlattenDict(o, a)) {
  } else {
    // Raises for an object that is no tree.
    Ref pair(Check(RunningPython([&] { return PyObject_CallOneArg(g_flatten_hook, o); })));
    PyObject *leaves = PyTuple_GET_ITEM(pair.get(), 0), *tree = PyTuple_GET_ITEM(pair.get(), 1);
    // Without static parts that have no hash, which are compared all the same.
    const Py_hash_t hash = RunningPython([&] { return PyObject_Hash(tree); });
    if (hash == -1 && PyErr_Occurred()) throw PythonError();
    tokens.push_back(kTreeToken);
    tokens.push_back(static_cast<uint64_t>(hash));
    a.signature.objects.push_back(Ref::Borrow(tree));
    a.apart.push_back(pair);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(leaves); ++i) {
      PyObject* leaf = PyList_GET_ITEM(leaves, i);
      if (!FlattenLeaf(leaf, a)) throw NoArray{leaf};
    }
  }
}

}  // namespace

void FlattenArgument(PyObject* o, Arguments& a, bool donated) {
  const size_t first = a.leaves.size();
  Flatten(o, a);
  for (size_t i = first; donated && i < a.leaves.size(); ++i) a.leaves[i].donated = true;
}

std::string NameOf(PyObject* function) {
  Ref name(PyObject_GetAttrString(function, "__name__"));
  PyErr_Clear();
  return name && PyUnicode_Check(name.get()) ? Text(name.get()) : "a jitted function";
}

void AddStatic(PyObject* o, Arguments& a, const std::string& which, PyObject* function) {
  Ref number;
  if (IsArray(o) && ValueOf(o).traced() && ValueOf(o).rank() == 0) {  // outside of jit its number is known
    number = Ref(Check(PythonNumber(DemandArray(ValueOf(o), "a static argument"))));
    o = number.get();
  }
  uint64_t hash = 0;
  try {
    hash = StaticHash(o);
  } catch (const PythonError&) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw;  // of a __hash__ of the user's
    PyErr_Clear();
    throw ValueError(
        "static argument ", which, " of '", NameOf(function), "' is of type '", Py_TYPE(o)->tp_name,
        "', which is not hashable; static arguments are part of the cache key. Give a tuple instead of a list, "
        "a frozen dataclass, or an array that is not static");
  }
  a.signature.tokens.push_back(kStaticToken);
  a.signature.tokens.push_back(hash);
  a.signature.objects.push_back(Ref::Borrow(o));
}

}  // namespace weft::python
