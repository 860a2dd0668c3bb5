#include "python/native/convert.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "python/native/array.h"
#include "tracer/context.h"
#include "tracer/site.h"

namespace weft::python {
namespace {

PyObject* g_numpy = nullptr;
PyObject* g_ndarray = nullptr;
PyObject* g_generic = nullptr;
PyObject* g_np_dtype = nullptr;
std::array<PyObject*, kNumDTypes> g_dtype_objects{};
PyObject* g_dtype_cache = nullptr;  // dict: dtype-like object -> index

// A dtype of ml_dtypes.
bool IsExtended(DType t) { return !IsOpaque(t) && RowOf(t).buffer == nullptr; }

// NumPy's own type of as many bytes, as which such elements leave and enter.
DType BytesOf(DType t) { return ByteWidth(t) == 2 ? DType::kU16 : IsSigned(t) ? DType::kI8 : DType::kU8; }

std::optional<DType> DTypeNamed(const std::string& name) {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (name == kDTypeRows[i].numpy && static_cast<DType>(i) != DType::kTape) return static_cast<DType>(i);
  }
  if (name == "bool_") return DType::kBool;
  return name == "tape" ? std::nullopt : ParseDType(name);  // nobody makes one but a loop
}

void CopyStrided(const char* from, char* to, const Py_ssize_t* shape, const Py_ssize_t* strides, int ndim,
                 Py_ssize_t width) {
  if (ndim == 0) {
    std::memcpy(to, from, width);
    return;
  }
  Py_ssize_t inner = width;
  for (int i = 1; i < ndim; ++i) inner *= shape[i];
  if (ndim == 1 && strides[0] == width) {
    std::memcpy(to, from, width * shape[0]);
    return;
  }
  for (Py_ssize_t i = 0; i < shape[0]; ++i) {
    CopyStrided(from + i * strides[0], to + i * inner, shape + 1, strides + 1, ndim - 1, width);
  }
}

struct BufferOwner {
  Py_buffer view{};
  ~BufferOwner() {
    const PyGILState_STATE state = PyGILState_Ensure();
    PyBuffer_Release(&view);
    PyGILState_Release(state);
  }
};

std::string TypeName(PyObject* object) { return Py_TYPE(object)->tp_name; }

// What the elements of a NumPy array or scalar are. NumPy's dtype says it, not the buffer's format: dates, durations
// and texts are exported as plain bytes.
struct Elements {
  std::optional<DType> dtype;  // none: without counterpart
  bool swapped = false;        // of the other byte order
};

Elements ElementsOf(PyObject* array_or_scalar) {
  Ref dtype(PyObject_GetAttrString(array_or_scalar, "dtype"));
  if (!dtype) {
    PyErr_Clear();
    return {};
  }
  // NumPy has one object for each of its own dtypes.
  for (int i = 0; i < kNumDTypes; ++i) {
    if (dtype.get() == g_dtype_objects[i]) return {static_cast<DType>(i), false};
  }
  Ref name(PyObject_GetAttrString(dtype.get(), "name"));
  Ref native(PyObject_GetAttrString(dtype.get(), "isnative"));
  const char* text = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
  PyErr_Clear();
  for (int i = 0; text != nullptr && i < kNumDTypes; ++i) {
    const auto t = static_cast<DType>(i);
    if (!IsOpaque(t) && std::strcmp(text, kDTypeRows[i].numpy) == 0) return {t, native && native.get() == Py_False};
  }
  return {};
}

// What to do with an array of a dtype without counterpart.
const char* RemedyFor(PyObject* dtype) {
  Ref kind(dtype ? PyObject_GetAttrString(dtype, "kind") : nullptr);
  Ref fields(dtype ? PyObject_GetAttrString(dtype, "names") : nullptr);
  PyErr_Clear();
  if (fields && fields.get() != Py_None) return "; pass its fields one by one";
  const char* text = kind && PyUnicode_Check(kind.get()) ? PyUnicode_AsUTF8(kind.get()) : nullptr;
  switch (text ? *text : '\0') {
    case 'M':
    case 'm': return "; take its numbers, .astype('int64')";
    case 'f': return "; round it, .astype('float64')";
    case 'c': return "; round it, .astype('complex128')";
    case 'O': return "; give it a dtype of numbers, .astype('float64')";
    default: return "; use a bool, integer, float or complex dtype";
  }
}

// Whether nobody can write to a NumPy array's memory, now or later: it belongs to an array of ours or to bytes.
bool IsConstantMemory(PyObject* array) {
  Ref at = Ref::Borrow(array);
  while (IsNumpyArray(at.get())) {
    Ref flags(PyObject_GetAttrString(at.get(), "flags"));
    Ref writeable(flags ? PyObject_GetAttrString(flags.get(), "writeable") : nullptr);
    Ref base(writeable && writeable.get() == Py_False ? PyObject_GetAttrString(at.get(), "base") : nullptr);
    PyErr_Clear();
    // An array that owns its memory is read-only only until its owner says otherwise.
    if (!base || base.get() == Py_None) return false;
    at = base;
  }
  if (PyMemoryView_Check(at.get())) {
    const PyObject* exporter = PyMemoryView_GET_BUFFER(at.get())->obj;
    at = exporter ? Ref::Borrow(const_cast<PyObject*>(exporter)) : Ref();
  }
  return at && (IsArray(at.get()) || PyBytes_CheckExact(at.get()));
}

// The same elements in memory of ours.
Tensor CopyOf(const Py_buffer& view, DType dtype) {
  Tensor t(dtype, Shape(view.shape, view.shape + view.ndim));
  if (PyBuffer_IsContiguous(&view, 'C'))
    std::memcpy(t.raw(), view.buf, t.bytes());
  else
    CopyStrided(static_cast<const char*>(view.buf), static_cast<char*>(t.raw()), view.shape, view.strides, view.ndim,
                view.itemsize);
  return t.WithNumbersAlone();
}

}  // namespace

bool InitConvert() {
  g_numpy = PyImport_ImportModule("numpy");
  if (g_numpy == nullptr) return false;
  g_ndarray = PyObject_GetAttrString(g_numpy, "ndarray");
  g_generic = PyObject_GetAttrString(g_numpy, "generic");
  g_np_dtype = PyObject_GetAttrString(g_numpy, "dtype");
  g_dtype_cache = PyDict_New();
  for (int i = 0; i < kNumDTypes; ++i) {  // so that arrays of NumPy's own dtypes are known by them
    const auto t = static_cast<DType>(i);
    if (!IsExtended(t) && !IsOpaque(t)) Py_XDECREF(DTypeObject(t));
  }
  return g_ndarray && g_generic && g_np_dtype && g_dtype_cache;
}

std::string Text(PyObject* object) {
  if (!PyUnicode_Check(object)) return Repr(object);
  Ref bytes(Check(PyUnicode_AsEncodedString(object, "utf-8", "backslashreplace")));
  return std::string(PyBytes_AS_STRING(bytes.get()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.get())));
}

std::string Repr(PyObject* object) {
  Ref text(PyObject_Repr(object));
  if (!text) {
    PyErr_Clear();
    return "<" + TypeName(object) + ">";
  }
  std::string s = Text(text.get());
  if (s.size() > 200) s.replace(197, std::string::npos, "...");
  return s;
}

std::string NumpyName(DType dtype) { return RowOf(dtype).numpy; }

PyObject* DTypeObject(DType dtype) {
  PyObject*& object = g_dtype_objects[static_cast<int>(dtype)];
  if (object == nullptr) {
    const char* name = RowOf(dtype).numpy;
    if (IsExtended(dtype)) {
      Ref ml(PyImport_ImportModule("ml_dtypes"));
      Ref scalar(ml ? PyObject_GetAttrString(ml.get(), name) : nullptr);
      if (scalar) object = PyObject_CallOneArg(g_np_dtype, scalar.get());
      PyErr_Clear();
    }
    if (object == nullptr && (IsExtended(dtype) || IsOpaque(dtype))) object = PyUnicode_InternFromString(name);
    if (object == nullptr) object = Check(PyObject_CallFunction(g_np_dtype, "s", name));
  }
  return Py_NewRef(object);
}

void SetKeyDTypeObject(PyObject* object) {
  PyObject*& known = g_dtype_objects[static_cast<int>(DType::kKey)];
  Py_XDECREF(std::exchange(known, Py_NewRef(object)));
}

namespace {
std::array<PyObject*, 2> g_questions{};

// What NumPy takes for a dtype, where Weft has it.
std::optional<DType> DTypeOfNumPy(PyObject* object, const char* what) {
  std::optional<DType> found;
  Ref dtype(PyObject_CallOneArg(g_np_dtype, object));
  Ref name(dtype ? PyObject_GetAttrString(dtype.get(), "name") : nullptr);
  const char* text = name ? PyUnicode_AsUTF8(name.get()) : nullptr;
  if (text) found = DTypeNamed(text);
  Ref native(found ? PyObject_GetAttrString(dtype.get(), "isnative") : nullptr);
  PyErr_Clear();
  if (native && native.get() != Py_True)
    throw TypeError(what, ": ", Repr(object),
                    " is not in this machine's byte order, which all arrays have; expected \"", text, "\"");
  return found;
}

// The dtype that arrays have of one that is asked for.
DType Available(DType dtype) {
  const DType canonical = Canonical(dtype);
  if (canonical == dtype || g_questions[static_cast<int>(Question::kNarrowing)] == nullptr) return canonical;
  return Ask(Question::kNarrowing, Ref(DTypeObject(dtype)).get()) ? dtype : canonical;
}
}  // namespace

void SetQuestion(Question which, PyObject* function) {
  PyObject*& known = g_questions[static_cast<int>(which)];
  Py_XDECREF(std::exchange(known, function == Py_None ? nullptr : Py_NewRef(function)));
}

bool Ask(Question which, PyObject* argument) {
  PyObject* function = g_questions[static_cast<int>(which)];
  if (function == nullptr) return false;
  Ref answer(PyObject_CallOneArg(function, argument));
  if (!answer) throw PythonError();
  return PyObject_IsTrue(answer.get()) == 1;
}

DType DTypeFrom(PyObject* object, const char* what) {
  if (object == g_dtype_objects[static_cast<int>(DType::kKey)]) return DType::kKey;
  // The default types are not cached: config.x64 changes them.
  if (object == Py_None || object == reinterpret_cast<PyObject*>(&PyFloat_Type)) return DefaultFloat();
  if (object == reinterpret_cast<PyObject*>(&PyLong_Type)) return DefaultInt();
  if (object == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::kBool;
  if (object == reinterpret_cast<PyObject*>(&PyComplex_Type)) return DefaultComplex();
  // Of other objects, those that are equal may be different dtypes or none: 2.0 and np.int8(2).
  const bool cached = PyUnicode_Check(object) || PyType_Check(object) || PyObject_IsInstance(object, g_np_dtype) == 1;
  if (PyObject* known = cached ? PyDict_GetItemWithError(g_dtype_cache, object) : nullptr)
    return Available(static_cast<DType>(PyLong_AsLong(known)));
  PyErr_Clear();
  // NumPy first: to it "i4" has four bytes, in the IR four bits. f32, bf16, key ... are names in the IR alone.
  std::optional<DType> found = DTypeOfNumPy(object, what);
  if (!found && PyUnicode_Check(object)) {
    const char* text = PyUnicode_AsUTF8(object);
    if (text) found = DTypeNamed(text);
    PyErr_Clear();
  }
  if (!found) throw TypeError(what, ": ", Repr(object), " is not a dtype that Weft has");
  if (cached) {
    Ref index(PyLong_FromLong(static_cast<long>(*found)));
    if (PyDict_SetItem(g_dtype_cache, object, index.get()) < 0) PyErr_Clear();
  }
  return Available(*found);
}

bool IsNumpyArray(PyObject* object) { return PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(g_ndarray)); }
bool IsNumpyScalar(PyObject* object) { return PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(g_generic)); }
bool IsNumberOfOwnClass(PyObject* object) {
  return (PyLong_Check(object) && !PyLong_CheckExact(object) && !PyBool_Check(object)) ||
         (PyFloat_Check(object) && !PyFloat_CheckExact(object) && !IsNumpyScalar(object)) ||
         (PyComplex_Check(object) && !PyComplex_CheckExact(object) && !IsNumpyScalar(object));
}
bool IsPythonNumber(PyObject* object) {
  return PyFloat_CheckExact(object) || PyLong_CheckExact(object) || PyBool_Check(object) ||
         PyComplex_CheckExact(object) || IsNumberOfOwnClass(object);
}

Scalar ScalarFrom(PyObject* number) {
  if (PyBool_Check(number)) return Scalar::Bool(number == Py_True);
  if (PyLong_Check(number)) {
    int overflow = 0;
    const long long i = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (overflow == 0) {
      if (i == -1 && PyErr_Occurred()) throw PythonError();
      return Scalar::Int(i);
    }
    const unsigned long long u = overflow > 0 ? PyLong_AsUnsignedLongLong(number) : 0;
    if (overflow > 0 && !PyErr_Occurred()) return {Scalar::Kind::kUint, static_cast<int64_t>(u), 0, 0};
    PyErr_Clear();
    const double rounded = PyLong_AsDouble(number);
    if (rounded == -1 && PyErr_Occurred()) {
      PyErr_Clear();
      throw IntegerOverflow("the Python integer of ",
                            Repr(Ref(Check(PyObject_CallMethod(number, "bit_length", nullptr))).get()),
                            " bits does not fit a float64");
    }
    return {Scalar::Kind::kLarge, 0, rounded, 0};
  }
  if (PyFloat_Check(number)) return Scalar::Float(PyFloat_AS_DOUBLE(number));
  const Py_complex c = PyComplex_AsCComplex(number);
  return {Scalar::Kind::kComplex, 0, c.real, c.imag};
}

Tensor KeptOnce(Tensor t, const void* from) {
  if (Trace::Current() == nullptr || IsLiteralWhenCaptured(Value(t)))
    return Trace::OwnNumber(t.made_here() ? t : t.Copy());
  struct Kept {
    DType dtype;
    Shape shape;
    std::weak_ptr<void> owner;
    void* data;
  };
  // By where the elements came from. What else is found there later has other bytes, or may share them.
  thread_local auto& kept = *new std::unordered_map<const void*, Kept>();
  if (const auto it = kept.find(from);
      it != kept.end() && it->second.dtype == t.dtype() && it->second.shape == t.shape()) {
    if (std::shared_ptr<void> owner = it->second.owner.lock()) {
      const Tensor earlier(t.dtype(), t.shape(), std::move(owner), it->second.data);
      if (std::memcmp(earlier.raw(), t.raw(), static_cast<size_t>(t.bytes())) == 0) return earlier;
    }
  }
  if (!t.made_here()) t = t.Copy();
  if (kept.size() >= 64) std::erase_if(kept, [](const auto& entry) { return entry.second.owner.expired(); });
  kept.insert_or_assign(from, Kept{t.dtype(), t.shape(), t.owner(), t.raw()});
  return t;
}

namespace {
PyObject *g_transfer_hook = nullptr, *g_rank_hook = nullptr;

void TellOfRanks(const char* what, Operands xs) {
  size_t highest = 0;
  for (const Operand& x : xs) highest = std::max(highest, x.dims().size());
  if (std::all_of(xs.begin(), xs.end(), [&](const Operand& x) { return x.rank() == 0 || x.dims().size() == highest; }))
    return;
  if (IsOwnCode()) return;
  Ref shapes(Check(PyList_New(0)));
  for (const Operand& x : xs) {
    const Ref text(Check(PyUnicode_FromString(ShapeText(x.dims()).c_str())));
    if (x.rank() > 0) CheckStatus(PyList_Append(shapes.get(), text.get()));
  }
  const Ref done(Check(RunningPython([&] { return PyObject_CallFunction(g_rank_hook, "sO", what, shapes.get()); })));
}
}  // namespace

void SetWatchers(PyObject* transfer_hook, PyObject* rank_hook) {
  g_transfer_hook = transfer_hook;
  g_rank_hook = rank_hook;
  SetRankWatcher(TellOfRanks);
}

void WatchTransfer(PyObject* object) {
  if (!On(Setting::kWatchTransfers) || g_transfer_hook == nullptr) return;
  // Numbers in Weft's own functions are theirs.
  if ((PyLong_Check(object) || PyFloat_CheckExact(object) || PyComplex_CheckExact(object)) && IsOwnCode()) return;
  const Ref done(Check(RunningPython([&] { return PyObject_CallOneArg(g_transfer_hook, object); })));
}

Tensor TensorFromBuffer(PyObject* object, Sharing sharing, const char* what, Width width) {
  WatchTransfer(object);
  // A masked array: its memory says nothing of the mask.
  if (Py_TYPE(object) != reinterpret_cast<PyTypeObject*>(g_ndarray) && IsNumpyArray(object) &&
      PyObject_HasAttrString(object, "filled"))
    throw ValueError(what, ": masked arrays have no counterpart; pass its .filled(value), or its .data and .mask");
  const Elements elements = ElementsOf(object);
  if (!elements.dtype) {
    Ref dtype(PyObject_GetAttrString(object, "dtype"));
    PyErr_Clear();
    throw TypeError(what, ": ",
                    dtype ? (IsNumpyArray(object) ? "an array of dtype " : "a NumPy scalar of dtype ") +
                                Text(Ref(Check(PyObject_Str(dtype.get()))).get())
                          : "an object of type '" + TypeName(object) + "'",
                    " has no counterpart", RemedyFor(dtype.get()));
  }
  const DType dtype = width == Width::kOwn ? *elements.dtype : Canonical(*elements.dtype);
  Ref source = Ref::Borrow(object);
  if (elements.swapped || dtype != *elements.dtype) {
    Ref native(DTypeObject(dtype));
    source = Ref(Check(PyObject_CallMethod(object, "astype", "(O)", native.get())));
  }
  // NumPy exports no buffer of them.
  if (IsExtended(dtype))
    source = Ref(Check(PyObject_CallMethod(source.get(), "view", "s", RowOf(BytesOf(dtype)).numpy)));
  auto owner = std::make_shared<BufferOwner>();
  if (PyObject_GetBuffer(source.get(), &owner->view, PyBUF_RECORDS_RO) < 0) throw PythonError();
  const Py_buffer& view = owner->view;
  WEFT_CHECK(view.itemsize == ByteWidth(dtype)) << "a buffer of other elements than its dtype says";
  const bool aligned = reinterpret_cast<uintptr_t>(view.buf) % ByteWidth(dtype) == 0;
  if (aligned && view.ndim > 0 && PyBuffer_IsContiguous(&view, 'C')) {
    const auto shared = [&] {
      return Tensor(dtype, Shape(view.shape, view.shape + view.ndim), std::shared_ptr<void>(owner, view.buf), view.buf)
          .WithNumbersAlone();
    };
    if (sharing == Sharing::kDuringCall || IsConstantMemory(object)) return shared();
    if (Trace::Current() != nullptr) return KeptOnce(shared(), view.buf);
  }
  return KeptOnce(CopyOf(view, dtype), view.buf);
}

bool Fits(const Scalar& integer, DType dtype) {
  const int bits = BitWidth(dtype) - (IsSigned(dtype) ? 1 : 0);
  const __int128 limit = static_cast<__int128>(1) << bits;
  return integer.i < limit && integer.i >= (IsSigned(dtype) ? -limit : 0);
}

namespace {

// What numbers in nested lists have together, by the rules for operands.
std::optional<WeakDType> DTypeOfItems(PyObject* object, int depth) {
  if (IsPythonNumber(object)) {
    if (PyBool_Check(object)) return WeakDType{DType::kBool, false};
    return WeakDType{PyFloat_Check(object)  ? DefaultFloat()
                     : PyLong_Check(object) ? DefaultInt()
                                            : DefaultComplex(),
                     true};
  }
  if (IsNumpyArray(object) || IsNumpyScalar(object)) {
    const std::optional<DType> dtype = ElementsOf(object).dtype;
    return dtype ? std::optional<WeakDType>(WeakDType{Canonical(*dtype), false}) : std::nullopt;
  }
  if (depth > 64 || !(PyList_Check(object) || PyTuple_Check(object))) return std::nullopt;
  std::optional<WeakDType> joined;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
    const std::optional<WeakDType> one = DTypeOfItems(PySequence_Fast_GET_ITEM(object, i), depth + 1);
    if (one) joined = joined ? Promote(*joined, *one) : *one;
  }
  return joined;
}

// The first integer beyond 64 bits in nested lists (borrowed); null: there is none.
PyObject* LargeInteger(PyObject* object, int depth) {
  if (PyLong_Check(object)) {
    int overflow = 0;
    PyLong_AsLongLongAndOverflow(object, &overflow);
    return overflow != 0 ? object : nullptr;
  }
  if (depth > 64 || !(PyList_Check(object) || PyTuple_Check(object))) return nullptr;
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(object);
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (PyObject* found = LargeInteger(PySequence_Fast_GET_ITEM(object, i), depth + 1)) return found;
  }
  return nullptr;
}

}  // namespace

Tensor TensorFromAnything(PyObject* object, const char* what, bool* weak) {
  *weak = false;
  if (IsArray(object)) {
    *weak = ValueOf(object).weak();
    return Demand(ValueOf(object), what);
  }
  if (IsNumpyArray(object) || IsNumpyScalar(object)) return TensorFromBuffer(object, Sharing::kConstant, what);
  if (IsPythonNumber(object)) {
    const Scalar s = ScalarFrom(object);
    *weak = s.dtype().weak;
    return NumberTensor(s.dtype().dtype, s);
  }
  // The argument in a tuple of its own: "O" would take a tuple for the list of arguments.
  Ref array(PyObject_CallMethod(g_numpy, "asarray", "(O)", object));
  if (!array) throw PythonError();
  Ref elements(Check(PyObject_GetAttrString(array.get(), "dtype")));
  Ref kind(Check(PyObject_GetAttrString(elements.get(), "kind")));
  // What NumPy has no numbers for becomes an array of this one object; and a text is one.
  const bool one =
      PyUnicode_Check(object) || PyBytes_Check(object) ||
      (PyUnicode_CompareWithASCIIString(kind.get(), "O") == 0 && !PyList_Check(object) && !PyTuple_Check(object));
  if (one)
    throw TypeError(what, ": ", Repr(object), " of type '", TypeName(object), "' has no counterpart; expected numbers");
  if (const PyObject* large =
          PyUnicode_CompareWithASCIIString(kind.get(), "O") == 0 ? LargeInteger(object, 0) : nullptr)
    throw IntegerOverflow(what, ": the Python integer ", Repr(const_cast<PyObject*>(large)),
                          " does not fit 64 bits; give a float dtype");
  const bool items = PyList_Check(object) || PyTuple_Check(object) || PyRange_Check(object);
  Tensor t = TensorFromBuffer(array.get(), Sharing::kConstant, what, items ? Width::kOwn : Width::kCanonical);
  // Lists and ranges of Python numbers get the default dtypes, as Python numbers do; beside NumPy's they take those.
  if (items) {
    const std::optional<WeakDType> joined = DTypeOfItems(object, 0);
    const DType to = joined && !joined->weak     ? joined->dtype
                     : t.dtype() == DType::kF64  ? DefaultFloat()
                     : t.dtype() == DType::kI64  ? DefaultInt()
                     : t.dtype() == DType::kC128 ? DefaultComplex()
                                                 : t.dtype();
    if (to != t.dtype()) {
      Tensor other(to, t.shape());
      for (int64_t i = 0; i < t.size(); ++i) {
        if (t.dtype() == DType::kI64 && IsInteger(to)) {
          const Ref number(Check(PyLong_FromLongLong(t.at<int64_t>(i))));
          const Scalar s = ScalarFrom(number.get());
          if (!Fits(s, to))
            throw IntegerOverflow(what, ": the Python integer ", s.ToString(), " does not fit ", to,
                                  "; give dtype=int64");
        }
        other.Set(i, t.Get(i));
      }
      return other;
    }
  }
  return t;
}

void RefuseTape(DType dtype) {
  if (dtype != DType::kTape) return;
  throw TypeError("a tape has no form outside of Weft: it refers to what a loop or a recursive function recorded");
}

PyObject* NumpyFromTensor(const Tensor& tensor) {
  // Through the buffer protocol of an array object; types of ml_dtypes as integers seen as their dtype.
  Tensor t = tensor;
  const DType dtype = t.dtype();
  RefuseTape(dtype);
  if (dtype == DType::kKey) throw TypeError("numpy.asarray(): ", kKeyIsNoNumber);
  if (t.shape().size() > 64)
    throw ValueError("numpy.asarray(): NumPy's arrays have at most 64 dimensions, this one has ", t.shape().size());
  if (IsExtended(dtype)) {
    t = Tensor(BytesOf(dtype), t.shape(), t.owner(), t.raw());
  }
  Ref array(WrapValue(Value(t)));
  // Itself NumPy would ask in other ways where there is no memory for a view, and so for this one again.
  Ref memory(Check(PyMemoryView_FromObject(array.get())));
  Ref numpy(Check(PyObject_CallMethod(g_numpy, "asarray", "(O)", memory.get())));
  if (IsExtended(dtype)) {
    Ref d(DTypeObject(dtype));
    if (PyUnicode_Check(d.get()) && IsInteger(dtype)) return numpy.release();  // the same numbers, in 8 bits
    if (PyUnicode_Check(d.get())) {
      throw UserError(ErrorKind::kUnsupported, {}, "NumPy has no dtype '", NumpyName(dtype),
                      "': install ml_dtypes, or convert with astype('float32')");
    }
    return Check(PyObject_CallMethod(numpy.get(), "view", "(O)", d.get()));
  }
  return numpy.release();
}

PyObject* PythonNumber(const Tensor& t) {
  const DType d = t.dtype();
  RefuseTape(d);
  if (IsBool(d)) return PyBool_FromLong(t.at<bool>(0));
  if (d == DType::kU64) return PyLong_FromUnsignedLongLong(t.at<uint64_t>(0));
  if (d == DType::kI64) return PyLong_FromLongLong(t.at<int64_t>(0));
  const std::complex<double> v = t.Get(0);
  if (IsInteger(d)) return PyLong_FromLongLong(static_cast<long long>(v.real()));
  if (IsComplex(d)) return PyComplex_FromDoubles(v.real(), v.imag());
  return PyFloat_FromDouble(v.real());
}

const char* ArrayMethodOf(PyObject* object) {
  if (PyType_Check(object)) return nullptr;  // the class has the method of its objects
  for (const char* name : {"__weft_array__", "__jax_array__"}) {
    if (PyObject_HasAttrString(object, name)) return name;
  }
  return nullptr;
}

bool IsOperand(PyObject* object) {
  if (IsArray(object) || IsPythonNumber(object)) return true;
  if (IsNumpyArray(object) || IsNumpyScalar(object)) return ElementsOf(object).dtype.has_value();
  return ArrayMethodOf(object) != nullptr;
}

bool OperandHolder::Set(PyObject* object) {
  if (IsArray(object)) {
    temporary_ = ValueOf(object);
    operand_ = Operand(temporary_);
    return true;
  }
  if (IsPythonNumber(object)) {
    WatchTransfer(object);
    operand_ = Operand(ScalarFrom(object));
    return true;
  }
  if (IsNumpyArray(object) || IsNumpyScalar(object)) {
    temporary_ = Value(TensorFromBuffer(object, Sharing::kConstant, "an operand"));
    operand_ = Operand(temporary_);
    return true;
  }
  if (const char* method = ArrayMethodOf(object)) {
    Ref array(Check(PyObject_CallMethod(object, method, nullptr)));
    const bool other = !IsArray(array.get()) && ArrayMethodOf(array.get()) != nullptr;  // which may give others
    if (other || !Set(array.get())) throw TypeError(method, " of ", Repr(object), " returned no array");
    return true;
  }
  return false;
}

}  // namespace weft::python
