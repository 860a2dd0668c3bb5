#include "python/native/function.h"

#include <structmember.h>

#include "python/native/array.h"
#include "python/native/convert.h"

namespace weft::python {
namespace {

struct OperationObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  const Prim* prim;  // null: `binary`
  Binary binary;
  Promotion promotion;
  int num_operands;
  PyObject* name;
  PyObject* doc;
};

PyTypeObject* g_operation_type = nullptr;

PyObject* Call(PyObject* self, PyObject* const* args, size_t flags, PyObject* kwnames) {
  auto* op = reinterpret_cast<OperationObject*>(self);
  return Guarded([&]() -> PyObject* {
    const auto n = static_cast<int>(PyVectorcall_NARGS(flags));
    const char* name = PyUnicode_AsUTF8(op->name);
    if (kwnames && PyTuple_GET_SIZE(kwnames) > 0) throw TypeError(name, ": takes positional arguments only");
    const int want = op->num_operands;
    if (n != want) throw TypeError(name, ": takes ", want, want == 1 ? " argument" : " arguments", ", got ", n);
    OperandHolder holders[4];
    Operand operands[4] = {Scalar(), Scalar(), Scalar(), Scalar()};
    WEFT_CHECK(n <= 4) << name;
    for (int i = 0; i < n; ++i) {
      if (!holders[i].Set(args[i])) {
        throw TypeError(name, ": argument ", i + 1, " is ", Repr(args[i]), " of type '", Py_TYPE(args[i])->tp_name,
                        "'; expected an array or a number (lists: weft.numpy.array)");
      }
      operands[i] = holders[i].operand();
    }
    if (op->prim) return WrapValue(Elementwise(*op->prim, absl::MakeConstSpan(operands, n), {}, op->promotion));
    return WrapValue(ApplyFunction(op->binary, operands[0], operands[1]));
  });
}

void Dealloc(PyObject* self) {
  auto* op = reinterpret_cast<OperationObject*>(self);
  Py_XDECREF(op->name);
  Py_XDECREF(op->doc);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* Repr(PyObject* self) {
  return PyUnicode_FromFormat("<weft function %U>", reinterpret_cast<OperationObject*>(self)->name);
}

PyObject* Reduce(PyObject* self, PyObject*) { return Py_NewRef(reinterpret_cast<OperationObject*>(self)->name); }

PyMethodDef kMethods[] = {{"__reduce__", Reduce, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};

PyMemberDef kMembers[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(OperationObject, vectorcall), READONLY, nullptr},
    {"__name__", T_OBJECT, offsetof(OperationObject, name), READONLY, nullptr},
    {"__qualname__", T_OBJECT, offsetof(OperationObject, name), READONLY, nullptr},
    {"__doc__", T_OBJECT, offsetof(OperationObject, doc), 0, nullptr},
    {"num_operands", T_INT, offsetof(OperationObject, num_operands), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot kSlots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(Dealloc)},
                        {Py_tp_repr, reinterpret_cast<void*>(Repr)},
                        {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                        {Py_tp_members, kMembers},
                        {Py_tp_methods, kMethods},
                        {0, nullptr}};
PyType_Spec kSpec = {"weft.Operation", sizeof(OperationObject), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION, kSlots};

OperationObject* NewOperation(const std::string& name, const std::string& doc, int num_operands) {
  auto* op = reinterpret_cast<OperationObject*>(g_operation_type->tp_alloc(g_operation_type, 0));
  if (op == nullptr) throw PythonError();
  op->vectorcall = Call;
  op->num_operands = num_operands;
  op->name = PyUnicode_InternFromString(name.c_str());
  op->doc = PyUnicode_FromString(doc.c_str());
  return op;
}

}  // namespace

PyObject* MakeElementwise(const Prim& prim, const std::string& name, Promotion promotion) {
  OperationObject* op = NewOperation(name, prim.doc, prim.num_operands);
  op->prim = &prim;
  op->promotion = promotion;
  return reinterpret_cast<PyObject*>(op);
}

PyObject* MakeBinary(Binary binary) {
  OperationObject* op = NewOperation(Name(binary), std::string("NumPy's ") + Name(binary) + ".", 2);
  op->prim = nullptr;
  op->binary = binary;
  return reinterpret_cast<PyObject*>(op);
}

bool AddFunctionTypes(PyObject* module) {
  g_operation_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&kSpec));
  return g_operation_type &&
         PyModule_AddObjectRef(module, "Operation", reinterpret_cast<PyObject*>(g_operation_type)) == 0;
}

}  // namespace weft::python
