// DLPack, both directions, without copies where the consumer can be told that the memory is read-only.
// The structures follow the DLPack 1.0 header (https://dmlc.github.io/dlpack/latest/c_api.html).
#include <cstdlib>
#include <cstring>
#include <limits>

#include "python/native/array.h"
#include "python/native/convert.h"
#include "tracer/differentiated.h"

namespace weft::python {
namespace {

struct DLDevice {
  int32_t device_type, device_id;
};
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);
};
struct DLPackVersion {
  uint32_t major, minor;
};
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;
  DLTensor dl_tensor;
};
constexpr uint64_t kReadOnly = 1, kIsCopied = 2;
constexpr int kCpu = 1;

// None where DLPack has no code, or packs several elements in a byte.
std::optional<DLDataType> TypeOf(DType t) {
  if (RowOf(t).dlpack < 0) return std::nullopt;
  return DLDataType{static_cast<uint8_t>(RowOf(t).dlpack), static_cast<uint8_t>(BitWidth(t)), 1};
}

DType DTypeOfCode(DLDataType t) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const std::optional<DLDataType> have = TypeOf(static_cast<DType>(i));
    if (have && t.lanes == 1 && have->code == t.code && have->bits == t.bits) return static_cast<DType>(i);
  }
  throw TypeError("from_dlpack: elements of type code ", int{t.code}, " with ", int{t.bits},
                  " bits have no counterpart");
}

template <class Managed>
struct Export {
  Managed managed{};
  Tensor tensor;
  std::vector<int64_t> shape, strides;
};

template <class Managed>
Managed* MakeManaged(const Tensor& t) {
  const std::optional<DLDataType> type = TypeOf(t.dtype());
  if (!type)
    throw UserError(ErrorKind::kUnsupported, {}, "__dlpack__(): DLPack has no elements as ", NumpyName(t.dtype()),
                    " arrays store them", IsOpaque(t.dtype()) ? "" : "; convert with astype first");
  auto* e = new Export<Managed>;
  e->tensor = t;
  e->shape = t.shape();
  e->strides = RowMajorStrides(t.shape());
  e->managed.dl_tensor = {const_cast<void*>(t.raw()), {kCpu, 0}, t.rank(), *type, e->shape.data(),
                          e->strides.data(),          0};
  e->managed.manager_ctx = e;
  e->managed.deleter = [](Managed* m) { delete static_cast<Export<Managed>*>(m->manager_ctx); };
  return &e->managed;
}

template <class Managed>
void DropCapsule(PyObject* capsule) {
  const char* name = PyCapsule_GetName(capsule);
  if (name == nullptr || std::strncmp(name, "used", 4) == 0) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (managed && managed->deleter) managed->deleter(managed);
}

// A later major version may lay out everything after the version in another way.
constexpr uint32_t kMajor = 1;
void CheckVersion(const DLManagedTensor&) {}
void CheckVersion(const DLManagedTensorVersioned& managed) {
  if (managed.version.major != kMajor)
    throw UserError(ErrorKind::kUnsupported, {}, "from_dlpack: the array is of version ", managed.version.major, ".",
                    managed.version.minor, " of DLPack; expected ", kMajor);
}

constexpr int kMaxRank = 64;

// The sizes, where there are so many elements and they have addresses.
Shape CheckedShape(const DLTensor& t, DType dtype) {
  if (t.ndim < 0 || t.ndim > kMaxRank)
    throw ValueError("from_dlpack: the array has ", t.ndim, " dimensions; expected 0 to ", kMaxRank);
  if (t.ndim > 0 && t.shape == nullptr)
    throw ValueError("from_dlpack: the array has ", t.ndim, " dimensions and no sizes");
  Shape shape;
  for (int i = 0; i < t.ndim; ++i) {
    if (t.shape[i] < 0) throw ValueError("from_dlpack: dimension ", i, " has the size ", t.shape[i]);
    shape.push_back(t.shape[i]);
  }
  const int64_t elements = NumElements(shape), most = std::numeric_limits<int64_t>::max() / ByteWidth(dtype);
  if (elements > most) throw ValueError("from_dlpack: an array of more than 2^63 bytes");
  if (elements > 0 && t.data == nullptr)
    throw ValueError("from_dlpack: the array has ", elements, " elements and no data");
  if (elements > 0 && t.byte_offset > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    throw ValueError("from_dlpack: the array begins ", t.byte_offset, " bytes after its memory");
  if (t.strides != nullptr && elements > 0) {
    int64_t reach = 0;  // in elements, of all dimensions together
    for (int i = 0; i < t.ndim; ++i) {
      int64_t of_dimension = 0;
      if (shape[i] > 1 && (t.strides[i] == std::numeric_limits<int64_t>::min() ||
                           __builtin_mul_overflow(std::abs(t.strides[i]), shape[i] - 1, &of_dimension) ||
                           __builtin_add_overflow(reach, of_dimension, &reach) || reach > most))
        throw ValueError("from_dlpack: dimension ", i, " has the stride ", t.strides[i], ", beyond all memory");
    }
  }
  return shape;
}

// Whether every element is where a row-major array has it.
bool IsRowMajor(const DLTensor& t, const Shape& shape) {
  if (t.strides == nullptr || NumElements(shape) == 0) return true;
  const std::vector<int64_t> want = RowMajorStrides(shape);
  for (int i = 0; i < t.ndim; ++i) {
    if (shape[i] > 1 && t.strides[i] != want[i]) return false;
  }
  return true;
}

// A row-major array of the elements at `data`.
Tensor Gathered(const DLTensor& t, DType dtype, const Shape& shape, const char* data) {
  Tensor out(dtype, shape);
  const int64_t width = ByteWidth(dtype), elements = out.size();
  char* to = static_cast<char*>(out.raw());
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t i = 0; i < elements; ++i, to += width) {
    std::memcpy(to, data, static_cast<size_t>(width));
    for (size_t d = index.size(); d-- > 0;) {
      data += t.strides[d] * width;
      if (++index[d] < shape[d]) break;
      data -= index[d] * t.strides[d] * width;
      index[d] = 0;
    }
  }
  return out;
}

template <class Managed>
Value Import(PyObject* capsule, const char* name, const char* used, bool may_copy) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (managed == nullptr) throw PythonError();
  CheckVersion(*managed);
  const DLTensor& t = managed->dl_tensor;
  if (t.device.device_type != kCpu)
    throw UserError(ErrorKind::kUnsupported, {}, "from_dlpack: the array is not in host memory");
  const DType dtype = DTypeOfCode(t.dtype);
  Shape shape = CheckedShape(t, dtype);
  char* data = static_cast<char*>(t.data) + t.byte_offset;
  const bool is_row_major = IsRowMajor(t, shape);
  const bool is_aligned = reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(ByteWidth(dtype)) == 0;
  if (!may_copy && !(is_row_major && is_aligned)) {
    throw ValueError(
        "from_dlpack: the array is not row-major, or begins in the middle of a number; Specified copy=False, which "
        "requires a copy");
  }
  PyCapsule_SetName(capsule, used);
  std::shared_ptr<void> owner(data ? static_cast<void*>(data) : managed, [managed](void*) {
    const PyGILState_STATE state = PyGILState_Ensure();
    if (managed->deleter) managed->deleter(managed);
    PyGILState_Release(state);
  });
  if (!is_row_major) return Value(Gathered(t, dtype, shape, data).WithNumbersAlone());
  Tensor tensor(dtype, std::move(shape), std::move(owner), data);
  if (!is_aligned) tensor = tensor.Copy();
  return Value(tensor.WithNumbersAlone());
}

}  // namespace

PyObject* ToDLPack(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* kNames[] = {"stream", "max_version", "dl_device", "copy", nullptr};
  PyObject *stream = Py_None, *max_version = Py_None, *device = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO", const_cast<char**>(kNames), &stream, &max_version, &device,
                                   &copy))
    return nullptr;
  return Guarded([&]() -> PyObject* {
    Tensor t = DemandArray(ValueOf(self), "__dlpack__()");
    bool versioned = false;
    if (PyTuple_Check(max_version) && PyTuple_GET_SIZE(max_version) == 2)
      versioned = IntFrom(PyTuple_GET_ITEM(max_version, 0), "max_version") >= 1;
    if (copy == Py_True) t = t.Copy();
    if (versioned) {
      auto* managed = MakeManaged<DLManagedTensorVersioned>(t);
      managed->version = {1, 0};
      managed->flags = copy == Py_True ? kIsCopied : kReadOnly;
      return PyCapsule_New(managed, "dltensor_versioned", DropCapsule<DLManagedTensorVersioned>);
    }
    // The older form cannot say "read-only", so its consumer gets memory of its own.
    if (copy != Py_True) t = t.Copy();
    return PyCapsule_New(MakeManaged<DLManagedTensor>(t), "dltensor", DropCapsule<DLManagedTensor>);
  });
}

PyObject* DLPackDevice(PyObject*, PyObject*) { return Py_BuildValue("(ii)", kCpu, 0); }

Value FromDLPack(PyObject* object, bool may_copy) {
  Ref capsule;
  if (PyCapsule_CheckExact(object)) {
    capsule = Ref::Borrow(object);
  } else {
    Ref method(Check(PyObject_GetAttrString(object, "__dlpack__")));
    Ref empty(Check(PyTuple_New(0)));
    Ref kwargs(Check(Py_BuildValue("{s(ii)}", "max_version", 1, 0)));
    capsule = Ref(PyObject_Call(method.get(), empty.get(), kwargs.get()));
    if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {  // an exporter older than max_version
      PyErr_Clear();
      capsule = Ref(PyObject_CallNoArgs(method.get()));
    }
    if (!capsule) throw PythonError();
  }
  if (PyCapsule_IsValid(capsule.get(), "dltensor_versioned")) {
    return Import<DLManagedTensorVersioned>(capsule.get(), "dltensor_versioned", "used_dltensor_versioned", may_copy);
  }
  if (!PyCapsule_IsValid(capsule.get(), "dltensor")) {
    const char* name = PyCapsule_CheckExact(capsule.get()) ? PyCapsule_GetName(capsule.get()) : nullptr;
    throw ValueError("from_dlpack: ", Repr(object), " gives ",
                     name == nullptr ? "no capsule of DLPack" : std::string("a capsule '") + name + "'",
                     "; expected one named 'dltensor' or 'dltensor_versioned', which is taken once");
  }
  return Import<DLManagedTensor>(capsule.get(), "dltensor", "used_dltensor", may_copy);
}

}  // namespace weft::python
