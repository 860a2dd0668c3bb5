#include "python/native/array.h"

#include <structmember.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "python/native/array_docs.h"
#include "python/native/array_slots.h"
#include "python/native/convert.h"
#include "python/native/frames.h"
#include "python/native/placed.h"
#include "tracer/context.h"
#include "tracer/differentiated.h"
#include "tracer/ops.h"

namespace weft::python {

PyTypeObject* g_array_type = nullptr;
PyTypeObject* g_tracer_type = nullptr;

namespace {

PyObject* NotImplementedObject() { return Py_NewRef(Py_NotImplemented); }

// Of operands of which one is no array: Python asks the other one. It would take containers for different from any
// array, and repeat a list as often as an array of one integer says.
PyObject* NotOperands(PyObject* a, PyObject* b) {
  for (PyObject* x : {a, b}) {
    if (PyList_Check(x) || PyTuple_Check(x) || PyAnySet_Check(x) || PyDict_Check(x))
      throw TypeError("an operator of an array and ", Repr(x), " of type '", Py_TYPE(x)->tp_name,
                      "': make an array of it (weft.numpy.array)");
  }
  return NotImplementedObject();
}

template <Binary kOp>
PyObject* BinarySlot(PyObject* a, PyObject* b) {
  return Guarded([&]() -> PyObject* {
    OperandHolder x, y;
    if (!x.Set(a) || !y.Set(b)) return NotOperands(a, b);
    return WrapValue(Apply(kOp, x.operand(), y.operand()));
  });
}

PyObject* PowerSlot(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) {
    SetPythonException(PyExc_NotImplementedError, "pow with a modulus");
    return nullptr;
  }
  return BinarySlot<Binary::kPower>(a, b);
}

PyObject* DivmodSlot(PyObject* a, PyObject* b) {
  Ref q(BinarySlot<Binary::kFloorDivide>(a, b));
  if (!q || q.get() == Py_NotImplemented) return q.release();
  Ref r(BinarySlot<Binary::kRemainder>(a, b));
  return r ? PyTuple_Pack(2, q.get(), r.get()) : nullptr;
}

template <Unary kOp>
PyObject* UnarySlot(PyObject* a) {
  return Guarded([&] { return WrapValue(Apply(kOp, Operand(ValueOf(a)))); });
}

// For JAX the operators order complex numbers, too, as the functions do.
template <Binary kOp>
PyObject* OrderSlot(PyObject* a, PyObject* b) {
  return Guarded([&]() -> PyObject* {
    OperandHolder x, y;
    if (!x.Set(a) || !y.Set(b)) return NotOperands(a, b);
    return WrapValue(On(Setting::kJaxSemantics) ? ApplyFunction(kOp, x.operand(), y.operand())
                                                : Apply(kOp, x.operand(), y.operand()));
  });
}

PyObject* RichCompare(PyObject* a, PyObject* b, int op) {
  switch (op) {
    case Py_LT: return OrderSlot<Binary::kLt>(a, b);
    case Py_LE: return OrderSlot<Binary::kLe>(a, b);
    case Py_EQ: return BinarySlot<Binary::kEq>(a, b);
    case Py_NE: return BinarySlot<Binary::kNe>(a, b);
    case Py_GT: return OrderSlot<Binary::kGt>(a, b);
    case Py_GE: return OrderSlot<Binary::kGe>(a, b);
  }
  return NotImplementedObject();
}

void Dealloc(PyObject* self) {
  auto* array = reinterpret_cast<ArrayObject*>(self);
  if (array->weakrefs) PyObject_ClearWeakRefs(self);
  array->value.~Value();
  array->deleted.~shared_ptr();
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* NoNew(PyTypeObject*, PyObject*, PyObject*) {
  SetPythonException(PyExc_TypeError, "use weft.numpy.array or weft.numpy.asarray to make an array");
  return nullptr;
}

PyObject* Numpy(PyObject* self) {
  return Guarded([&] { return NumpyFromTensor(DemandArray(ValueOf(self), "numpy.asarray()")); });
}

// The words of keys, as of weft.random.key_data.
Tensor KeyWords(const Tensor& keys) {
  Shape shape = keys.shape();
  shape.push_back(2);
  return Tensor(DType::kU32, std::move(shape), keys.owner(), const_cast<void*>(keys.raw()));
}

PyObject* Repr(PyObject* self) {
  return Guarded([&]() -> PyObject* {
    const auto without_elements = [](const Type& type) {
      return PyUnicode_FromFormat("Array(shape=%s, dtype=%s)", ShapeText(type.dims).c_str(),
                                  NumpyName(type.dtype).c_str());
    };
    if (const auto& deleted = reinterpret_cast<ArrayObject*>(self)->deleted)
      return PyUnicode_FromString(("Array<" + deleted->type.ToString() + ", deleted>").c_str());
    const Value& v = ValueOf(self);
    if (v.traced()) {
      const std::string text = "Tracer<" + v.type().ToString() + (v.weak() ? ", weak" : "") + ">";
      return PyUnicode_FromString(text.c_str());
    }
    if (v.dtype() == DType::kKey) {
      Ref words(Check(NumpyFromTensor(KeyWords(v.tensor()))));
      Ref text(Check(PyObject_Str(words.get())));
      return PyUnicode_FromFormat("Array(shape=%s, dtype=key) of the words\n%U", ShapeText(v.dims()).c_str(),
                                  text.get());
    }
    if (v.dtype() == DType::kTape || SpansProcesses(v)) return without_elements(v.type());
    Ref numpy_module(Check(PyImport_ImportModule("numpy")));
    Ref numpy(Numpy(self));
    if (!numpy) throw PythonError();
    Ref text(Check(PyObject_CallMethod(numpy_module.get(), "array2string", "OOOOss", numpy.get(), Py_None, Py_None,
                                       Py_None, ", ", "Array(")));
    const std::string weak = v.weak() ? ", weak_type=True" : "";
    if (v.tensor().size() == 0) {
      return PyUnicode_FromFormat("Array([], shape=%s, dtype=%s%s)", ShapeText(v.dims()).c_str(),
                                  NumpyName(v.dtype()).c_str(), weak.c_str());
    }
    return PyUnicode_FromFormat("Array(%U, dtype=%s%s)", text.get(), NumpyName(v.dtype()).c_str(), weak.c_str());
  });
}

bool HasNoElements(PyObject* self) {
  return IsGone(self) || PeekValue(self).traced() || PeekValue(self).dtype() == DType::kTape ||
         SpansProcesses(PeekValue(self));
}

PyObject* Str(PyObject* self) {
  if (HasNoElements(self) || PeekValue(self).dtype() == DType::kKey) return Repr(self);
  Ref numpy(Numpy(self));
  return numpy ? PyObject_Str(numpy.get()) : nullptr;
}

Type TypeOf(PyObject* self);

PyObject* Format(PyObject* self, PyObject* spec) {
  const bool number = TypeOf(self).rank() == 0 && TypeOf(self).dtype != DType::kKey;
  const bool plain = PyUnicode_Check(spec) && PyUnicode_GetLength(spec) == 0;
  if (plain && (!number || HasNoElements(self))) return Str(self);
  return Guarded([&]() -> PyObject* {
    // Formats are Python's of numbers.
    if (!number)
      throw TypeError("format(): the format ", python::Repr(spec), " is for single numbers, got ", TypeOf(self));
    Ref value(Check(PythonNumber(OneElement(self, "format()"))));
    return PyObject_Format(value.get(), spec);
  });
}

// --- Attributes ------------------------------------------------------------------------------------------------------

// Also of a deleted array.
Type TypeOf(PyObject* self) {
  return IsGone(self) ? reinterpret_cast<ArrayObject*>(self)->deleted->type : ValueOf(self).type();
}

PyObject* GetShape(PyObject* self, void*) {
  return Guarded([&]() -> PyObject* {
    if (!IsGone(self)) return ShapeObject(ValueOf(self));
    const Dims dims = TypeOf(self).dims;
    Ref tuple(Check(PyTuple_New(static_cast<Py_ssize_t>(dims.size()))));
    for (size_t i = 0; i < dims.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), DimObject(dims[i]));
    return tuple.release();
  });
}
PyObject* GetDType(PyObject* self, void*) {
  return Guarded([&] { return DTypeObject(TypeOf(self).dtype); });
}
PyObject* GetNdim(PyObject* self, void*) {
  return Guarded([&] { return PyLong_FromLong(TypeOf(self).rank()); });
}
PyObject* GetSize(PyObject* self, void*) {
  return Guarded([&] { return DimObject(TypeOf(self).size()); });
}
PyObject* GetNbytes(PyObject* self, void*) {
  return Guarded([&] { return PyLong_FromLongLong(TypeOf(self).Bytes()); });
}
PyObject* GetItemsize(PyObject* self, void*) {
  return Guarded([&] { return PyLong_FromLong(ByteWidth(TypeOf(self).dtype)); });
}
PyObject* GetT(PyObject* self, void*) {
  return Guarded([&] { return WrapValue(Transpose(Operand(ValueOf(self)), std::nullopt)); });
}
PyObject* GetMT(PyObject* self, void*) {
  return Guarded([&] {
    const Value& v = ValueOf(self);
    if (v.rank() < 2)
      throw ValueError("mT: an array of at least two dimensions is needed, got shape ", ShapeText(v.dims()));
    return WrapValue(MoveAxis(Operand(v), {-1}, {-2}));
  });
}
PyObject* GetWeak(PyObject* self, void*) {
  return PyBool_FromLong(IsGone(self) ? reinterpret_cast<ArrayObject*>(self)->deleted->weak : PeekValue(self).weak());
}
PyObject* GetType(PyObject* self, void*) {
  return Guarded([&] { return PyUnicode_FromString(TypeOf(self).ToString().c_str()); });
}
PyObject* GetPriority(PyObject*, void*) { return PyLong_FromLong(100); }
PyObject* GetInterface(PyObject* self, void*) {
  return Guarded([&]() -> PyObject* {
    if (BufferFormat(ValueOf(self).dtype()) == nullptr) {  // NumPy asks __array__ then
      PyErr_SetString(PyExc_AttributeError, "__array_interface__");
      return nullptr;
    }
    Ref numpy(NumpyFromTensor(DemandArray(ValueOf(self), "numpy.asarray()")));
    reinterpret_cast<ArrayObject*>(self)->pinned = true;  // the interface is a number, and keeps nothing alive
    return PyObject_GetAttrString(numpy.get(), "__array_interface__");
  });
}

// What weft.mesh says of an array: its functions stand in its dictionary.
PyObject* AskMesh(PyObject* self, void* function) {
  return Guarded([&]() -> PyObject* {
    Ref module(Check(PyImport_ImportModule("weft.mesh")));
    return PyObject_CallMethod(module.get(), static_cast<const char*>(function), "(O)", self);
  });
}

PyObject* Devices(PyObject* self, PyObject*) { return AskMesh(self, const_cast<char*>("_devices_of")); }

PyGetSetDef kGetSet[] = {
    {"shape", GetShape, nullptr, docs::kShape, nullptr},
    {"dtype", GetDType, nullptr, docs::kDType, nullptr},
    {"ndim", GetNdim, nullptr, docs::kNdim, nullptr},
    {"size", GetSize, nullptr, docs::kSize, nullptr},
    {"nbytes", GetNbytes, nullptr, docs::kNbytes, nullptr},
    {"itemsize", GetItemsize, nullptr, docs::kItemsize, nullptr},
    {"T", GetT, nullptr, docs::kT, nullptr},
    {"mT", GetMT, nullptr, docs::kMT, nullptr},
    {"weak_type", GetWeak, nullptr, docs::kWeak, nullptr},
    {"sharding", AskMesh, nullptr, docs::kSharding, const_cast<char*>("_sharding_of")},
    {"addressable_shards", AskMesh, nullptr, docs::kShards, const_cast<char*>("_shards_of")},
    {"is_fully_addressable", AskMesh, nullptr, docs::kFullyAddressable, const_cast<char*>("_is_fully_addressable")},
    {"is_fully_replicated", AskMesh, nullptr, docs::kFullyReplicated, const_cast<char*>("_is_fully_replicated")},
    {"type", GetType, nullptr, docs::kType, nullptr},
    {"__array_priority__", GetPriority, nullptr, nullptr, nullptr},
    {"__array_interface__", GetInterface, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

// --- Methods ---------------------------------------------------------------------------------------------------------

PyObject* AstypeMethod(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* kNames[] = {"dtype", "copy", nullptr};
  PyObject *dtype, *copy = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O", const_cast<char**>(kNames), &dtype, &copy)) return nullptr;
  return Guarded([&] { return WrapValue(Astype(Operand(ValueOf(self)), DTypeFrom(dtype, "astype"))); });
}

PyObject* ReshapeMethod(PyObject* self, PyObject* args, PyObject* kwargs) {
  return Guarded([&]() -> PyObject* {
    bool columns_first = false;
    if (kwargs && PyDict_GetItemString(kwargs, "out_sharding") != nullptr) {
      Ref module(Check(PyImport_ImportModule("weft.numpy")));
      Ref function(Check(PyObject_GetAttrString(module.get(), "reshape")));
      PyObject* shape = PyTuple_GET_SIZE(args) == 1 ? PyTuple_GET_ITEM(args, 0) : args;
      Ref given(Check(PyTuple_Pack(2, self, shape)));
      return Check(RunningPython([&] { return PyObject_Call(function.get(), given.get(), kwargs); }));
    }
    if (kwargs && PyDict_GET_SIZE(kwargs) > 0) {
      PyObject *key, *order = nullptr;
      for (Py_ssize_t at = 0; PyDict_Next(kwargs, &at, &key, &order);) {
        if (PyUnicode_CompareWithASCIIString(key, "order") != 0)
          throw TypeError("reshape: there is no argument ", python::Repr(key),
                          "; expected sizes, order and out_sharding");
      }
      columns_first = PyUnicode_Check(order) && PyUnicode_CompareWithASCIIString(order, "F") == 0;
      if (!columns_first && !(PyUnicode_Check(order) && PyUnicode_CompareWithASCIIString(order, "C") == 0))
        throw ValueError("reshape: order must be 'C' or 'F', got ", python::Repr(order));
    }
    PyObject* shape = PyTuple_GET_SIZE(args) == 1 ? PyTuple_GET_ITEM(args, 0) : args;
    Dims dims = NewDimsFrom(shape);
    if (!columns_first) return WrapValue(Reshape(Operand(ValueOf(self)), dims));
    std::reverse(dims.begin(), dims.end());
    const Value rows = Transpose(Operand(ValueOf(self)), std::nullopt);
    return WrapValue(Transpose(Operand(Reshape(Operand(rows), dims)), std::nullopt));
  });
}

PyObject* TransposeMethod(PyObject* self, PyObject* args) {
  return Guarded([&] {
    PyObject* axes =
        PyTuple_GET_SIZE(args) == 1 && PyTuple_GET_ITEM(args, 0) != Py_None && !PyLong_Check(PyTuple_GET_ITEM(args, 0))
            ? PyTuple_GET_ITEM(args, 0)
            : args;
    const bool none =
        PyTuple_GET_SIZE(args) == 0 || (PyTuple_GET_SIZE(args) == 1 && PyTuple_GET_ITEM(args, 0) == Py_None);
    return WrapValue(Transpose(Operand(ValueOf(self)), none ? std::nullopt : AxesFrom(axes, "transpose")));
  });
}

PyObject* Item(PyObject* self, PyObject* args) {
  return Guarded([&]() -> PyObject* {
    if (PyTuple_GET_SIZE(args) == 0) return PythonNumber(OneElement(self, "item()"));
    PyObject* key = PyTuple_GET_SIZE(args) == 1 ? PyTuple_GET_ITEM(args, 0) : args;
    // One number counts through the flattened array.
    Ref flat(key != args && PyIndex_Check(key) && ValueOf(self).rank() != 1
                 ? WrapValue(Reshape(Operand(ValueOf(self)), {Dim(-1)}))
                 : Py_NewRef(self));
    Ref element(GetItemObject(flat.get(), key));
    if (!element) throw PythonError();
    return PythonNumber(OneElement(element.get(), "item()"));
  });
}

// NumPy's array of the values; of traced ones the error names the method.
PyObject* NumpyFor(PyObject* self, const char* method) {
  return Guarded([&]() -> PyObject* {
    if (ValueOf(self).traced()) Demand(ValueOf(self), method);
    return Numpy(self);
  });
}

PyObject* ToList(PyObject* self, PyObject*) {
  Ref numpy(NumpyFor(self, "tolist()"));
  return numpy ? PyObject_CallMethod(numpy.get(), "tolist", nullptr) : nullptr;
}

PyObject* ToBytes(PyObject* self, PyObject* args, PyObject* kwargs) {
  Ref numpy(NumpyFor(self, "tobytes()"));
  Ref method(numpy ? PyObject_GetAttrString(numpy.get(), "tobytes") : nullptr);
  return method ? PyObject_Call(method.get(), args, kwargs) : nullptr;
}

PyObject* ArrayMethod(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* kNames[] = {"dtype", "copy", nullptr};
  PyObject *dtype = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO", const_cast<char**>(kNames), &dtype, &copy)) return nullptr;
  Ref numpy(Numpy(self));
  if (!numpy) return nullptr;
  if (dtype != Py_None) numpy = Ref(PyObject_CallMethod(numpy.get(), "astype", "(O)", dtype));
  if (numpy && copy == Py_True) numpy = Ref(PyObject_CallMethod(numpy.get(), "copy", nullptr));
  return numpy.release();
}

PyObject* Copy(PyObject* self, PyObject*) {
  return Guarded([&] {
    const Value& v = ValueOf(self);
    return v.traced() ? Py_NewRef(self) : WrapValue(CopyOfConcrete(v));
  });
}
PyObject* Self(PyObject* self, PyObject*) {  // values never change
  return Guarded([&] {
    PeekValue(self);
    return Py_NewRef(self);
  });
}
PyObject* BlockUntilReady(PyObject* self, PyObject*) {
  return Guarded([&] {
    const Value v = ValueOf(self);
    if (v.shards()) v.shards()->Wait();
    return Py_NewRef(self);
  });
}
PyObject* CopyToHostAsync(PyObject* self, PyObject*) {
  return Guarded([&]() -> PyObject* {
    const Value v = ValueOf(self);
    if (v.shards() && v.shards()->layout().complete) v.tensor();
    Py_RETURN_NONE;
  });
}

PyObject* DeleteMethod(PyObject* self, PyObject*) {
  return Guarded([&]() -> PyObject* {
    if (IsGone(self)) Py_RETURN_NONE;
    const Value& v = ValueOf(self);
    if (v.traced()) throw TypeError("delete(): a traced value has no memory");
    Delete(self, std::make_shared<Deletion>(Deletion{v.type(), v.weak(), "was deleted by delete()"}), UserLoc());
    Py_RETURN_NONE;
  });
}
PyObject* IsDeleted(PyObject* self, PyObject*) { return PyBool_FromLong(IsGone(self)); }

PyObject* Reduce(PyObject* self, PyObject*) {
  return Guarded([&]() -> PyObject* {
    const Value& v = ValueOf(self);
    if (v.traced()) throw UserError(ErrorKind::kTracer, {}, "pickle.dumps() of a traced value: it has no number yet");
    RefuseTape(v.dtype());
    Ref module(Check(PyImport_ImportModule("weft._pickled")));
    Ref rebuild(Check(PyObject_GetAttrString(module.get(), v.placement() ? "placed_array" : "array")));
    Ref shape(ShapeObject(v));
    const Tensor whole = v.shards() ? v.shards()->Assembled() : v.tensor();
    Ref bytes(Check(PyBytes_FromStringAndSize(static_cast<const char*>(whole.raw()), whole.bytes())));
    if (v.placement()) {
      Ref place(Check(RunningPython([&] { return PyObject_CallMethod(ShardingOf(v), "_pickled", nullptr); })));
      return Py_BuildValue("O(sOOOO)", rebuild.get(), Name(v.dtype()), shape.get(), bytes.get(),
                           v.weak() ? Py_True : Py_False, place.get());
    }
    return Py_BuildValue("O(sOOO)", rebuild.get(), Name(v.dtype()), shape.get(), bytes.get(),
                         v.weak() ? Py_True : Py_False);
  });
}

template <const char* const& kPrim>
PyObject* ReduceMethod(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* kNames[] = {"axis", "dtype", "out", "keepdims", "initial", "where", nullptr};
  PyObject *axis = Py_None, *dtype = Py_None, *out = Py_None, *initial = Py_None, *where = Py_None;
  int keepdims = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOOpOO", const_cast<char**>(kNames), &axis, &dtype, &out, &keepdims,
                                   &initial, &where))
    return nullptr;
  return Guarded([&]() -> PyObject* {
    if (initial != Py_None || where != Py_None) {  // rare: weft.numpy says what they mean
      Ref module(Check(PyImport_ImportModule("weft.numpy")));
      Ref function(Check(PyObject_GetAttrString(module.get(), kPrim + sizeof "reduce_" - 1)));
      Ref operands(Check(Py_BuildValue("(O)", self)));
      Ref keywords(Check(Py_BuildValue("{sOsOsOsOsOsO}", "axis", axis, "dtype", dtype, "out", out, "keepdims",
                                       keepdims ? Py_True : Py_False, "initial", initial, "where", where)));
      return Check(PyObject_Call(function.get(), operands.get(), keywords.get()));
    }
    if (out != Py_None) throw TypeError("out= is not supported: arrays never change");
    Value v = ValueOf(self);
    if (dtype == Py_None) return WrapValue(ReduceAxes(kPrim, v, AxesFrom(axis, "axis"), keepdims));
    // Narrow integers are added in wider ones; who names a dtype gets it.
    const DType to = DTypeFrom(dtype, "dtype");
    return WrapValue(Astype(ReduceAxes(kPrim, Astype(v, to), AxesFrom(axis, "axis"), keepdims), to));
  });
}
constexpr const char* kSum = "reduce_sum";
constexpr const char* kProd = "reduce_prod";

// A function with keyword arguments in a method table.
PyCFunction Function(PyCFunctionWithKeywords f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

PyMethodDef kMethods[] = {{"astype", Function(AstypeMethod), METH_VARARGS | METH_KEYWORDS, docs::kAstype},
                          {"reshape", Function(ReshapeMethod), METH_VARARGS | METH_KEYWORDS, docs::kReshape},
                          {"transpose", TransposeMethod, METH_VARARGS, docs::kTranspose},
                          {"sum", Function(ReduceMethod<kSum>), METH_VARARGS | METH_KEYWORDS, docs::kSum},
                          {"prod", Function(ReduceMethod<kProd>), METH_VARARGS | METH_KEYWORDS, docs::kProd},
                          {"item", Item, METH_VARARGS, docs::kItem},
                          {"tolist", ToList, METH_NOARGS, docs::kToList},
                          {"tobytes", Function(ToBytes), METH_VARARGS | METH_KEYWORDS, docs::kToBytes},
                          {"copy", Copy, METH_NOARGS, docs::kCopy},
                          {"devices", Devices, METH_NOARGS, docs::kDevices},
                          {"block_until_ready", BlockUntilReady, METH_NOARGS, docs::kBlock},
                          {"copy_to_host_async", CopyToHostAsync, METH_NOARGS, docs::kCopyToHostAsync},
                          {"delete", DeleteMethod, METH_NOARGS, docs::kDelete},
                          {"is_deleted", IsDeleted, METH_NOARGS, docs::kIsDeleted},
                          {"__array__", Function(ArrayMethod), METH_VARARGS | METH_KEYWORDS, nullptr},
                          {"__complex__", ComplexMethod, METH_NOARGS, nullptr},
                          {"__format__", Format, METH_O, nullptr},
                          {"__copy__", Self, METH_NOARGS, nullptr},
                          {"__deepcopy__", Self, METH_O, nullptr},
                          {"__reduce__", Reduce, METH_NOARGS, nullptr},
                          {"__dlpack__", Function(ToDLPack), METH_VARARGS | METH_KEYWORDS, nullptr},
                          {"__dlpack_device__", DLPackDevice, METH_NOARGS, nullptr},
                          {nullptr, nullptr, 0, nullptr}};

PyMemberDef kMembers[] = {{"__weaklistoffset__", T_PYSSIZET, offsetof(ArrayObject, weakrefs), READONLY, nullptr},
                          {nullptr, 0, 0, 0, nullptr}};

PyType_Slot kSlots[] = {
    {Py_tp_doc, const_cast<char*>(docs::kArray)},
    {Py_tp_new, reinterpret_cast<void*>(NoNew)},
    {Py_tp_dealloc, reinterpret_cast<void*>(Dealloc)},
    {Py_tp_repr, reinterpret_cast<void*>(Repr)},
    {Py_tp_str, reinterpret_cast<void*>(Str)},
    {Py_tp_richcompare, reinterpret_cast<void*>(RichCompare)},
    {Py_tp_hash, reinterpret_cast<void*>(PyObject_HashNotImplemented)},
    {Py_tp_iter, reinterpret_cast<void*>(Iterate)},
    {Py_tp_getset, kGetSet},
    {Py_tp_methods, kMethods},
    {Py_tp_members, kMembers},
    {Py_bf_getbuffer, reinterpret_cast<void*>(GetBuffer)},
    {Py_bf_releasebuffer, reinterpret_cast<void*>(ReleaseBuffer)},
    {Py_mp_subscript, reinterpret_cast<void*>(static_cast<PyObject* (*)(PyObject*, PyObject*)>(GetItemObject))},
    {Py_mp_length, reinterpret_cast<void*>(Length)},
    {Py_sq_length, reinterpret_cast<void*>(Length)},
    {Py_sq_item, reinterpret_cast<void*>(RowAt)},
    {Py_nb_add, reinterpret_cast<void*>(BinarySlot<Binary::kAdd>)},
    {Py_nb_subtract, reinterpret_cast<void*>(BinarySlot<Binary::kSub>)},
    {Py_nb_multiply, reinterpret_cast<void*>(BinarySlot<Binary::kMul>)},
    {Py_nb_true_divide, reinterpret_cast<void*>(BinarySlot<Binary::kTrueDivide>)},
    {Py_nb_floor_divide, reinterpret_cast<void*>(BinarySlot<Binary::kFloorDivide>)},
    {Py_nb_remainder, reinterpret_cast<void*>(BinarySlot<Binary::kRemainder>)},
    {Py_nb_divmod, reinterpret_cast<void*>(DivmodSlot)},
    {Py_nb_power, reinterpret_cast<void*>(PowerSlot)},
    {Py_nb_matrix_multiply, reinterpret_cast<void*>(BinarySlot<Binary::kMatmul>)},
    {Py_nb_and, reinterpret_cast<void*>(BinarySlot<Binary::kAnd>)},
    {Py_nb_or, reinterpret_cast<void*>(BinarySlot<Binary::kOr>)},
    {Py_nb_xor, reinterpret_cast<void*>(BinarySlot<Binary::kXor>)},
    {Py_nb_lshift, reinterpret_cast<void*>(BinarySlot<Binary::kShiftLeft>)},
    {Py_nb_rshift, reinterpret_cast<void*>(BinarySlot<Binary::kShiftRight>)},
    {Py_nb_negative, reinterpret_cast<void*>(UnarySlot<Unary::kNegative>)},
    {Py_nb_positive, reinterpret_cast<void*>(UnarySlot<Unary::kPositive>)},
    {Py_nb_absolute, reinterpret_cast<void*>(UnarySlot<Unary::kAbsolute>)},
    {Py_nb_invert, reinterpret_cast<void*>(UnarySlot<Unary::kInvert>)},
    {Py_nb_bool, reinterpret_cast<void*>(BoolSlot)},
    {Py_nb_int, reinterpret_cast<void*>(IntSlot)},
    {Py_nb_float, reinterpret_cast<void*>(FloatSlot)},
    {Py_nb_index, reinterpret_cast<void*>(IndexSlot)},
    {0, nullptr}};

PyType_Spec kArraySpec = {"weft.Array", sizeof(ArrayObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, kSlots};

PyType_Slot kTracerSlots[] = {{Py_tp_doc, const_cast<char*>(docs::kTracer)},
                              {Py_tp_hash, reinterpret_cast<void*>(PyObject_HashNotImplemented)},
                              {Py_tp_richcompare, reinterpret_cast<void*>(RichCompare)},
                              {0, nullptr}};
PyType_Spec kTracerSpec = {"weft.Tracer", sizeof(ArrayObject), 0, Py_TPFLAGS_DEFAULT, kTracerSlots};

}  // namespace

std::string DeletedText(PyObject* self) {
  const auto* array = reinterpret_cast<ArrayObject*>(self);
  std::string text = "the array " + array->deleted->type.ToString() + " " + array->deleted->how;
  if (array->deleted_at) text += " at " + array->deleted_at.ToString();
  return text + "; its memory is gone";
}
void ThrowDeleted(PyObject* array) { throw Error(ErrorKind::kRuntime, DeletedText(array)); }

Value Delete(PyObject* array, std::shared_ptr<const Deletion> how, Loc where) {
  auto* object = reinterpret_cast<ArrayObject*>(array);
  Value value = std::move(object->value);
  object->deleted_sharding = ShardingOf(value);
  object->value = Value();
  object->deleted = std::move(how);
  object->deleted_at = where;
  return value;
}

PyObject* WrapValues(const Values& values) {
  Ref list(Check(PyList_New(static_cast<Py_ssize_t>(values.size()))));
  for (size_t i = 0; i < values.size(); ++i)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), WrapValue(values[i]));
  return list.release();
}

bool AddArrayTypes(PyObject* module) {
  g_array_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&kArraySpec));
  if (g_array_type == nullptr) return false;
  Ref bases(PyTuple_Pack(1, g_array_type));
  g_tracer_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpecWithBases(&kTracerSpec, bases.get()));
  if (g_tracer_type == nullptr) return false;
  return PyModule_AddObjectRef(module, "Array", reinterpret_cast<PyObject*>(g_array_type)) == 0 &&
         PyModule_AddObjectRef(module, "Tracer", reinterpret_cast<PyObject*>(g_tracer_type)) == 0;
}

}  // namespace weft::python
