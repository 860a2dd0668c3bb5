// Operations with axes, shapes and indices, for weft.numpy and weft.lax.
#include <deque>

#include "python/native/bindings.h"
#include "tracer/context.h"
#include "tracer/ops.h"

namespace weft::python {
namespace {

py::object Wrap(Value v) { return Take(WrapValue(std::move(v))); }

// Axes of an operation: what is none is refused in its name.
std::string AxisOf(const std::string& operation) { return operation + ": axis"; }
std::optional<Ints> Axes(const py::object& o, const std::string& operation) {
  return AxesFrom(o.ptr(), AxisOf(operation).c_str());
}
int64_t Axis(py::handle o, const std::string& operation) { return IntFrom(o.ptr(), AxisOf(operation).c_str()); }
// ... where None does not stand for all.
Ints SomeAxes(const py::object& o, const std::string& operation) {
  return o.is_none() ? Ints{Axis(o, operation)} : *Axes(o, operation);
}
std::optional<int64_t> MaybeAxis(const py::object& o, const std::string& operation) {
  return o.is_none() ? std::nullopt : std::optional<int64_t>(Axis(o, operation));
}
std::optional<DType> MaybeDType(const py::object& o) {
  return o.is_none() ? std::nullopt : std::optional<DType>(DTypeFrom(o.ptr(), "dtype"));
}

// What users give is read by these functions, whose errors name the argument: pybind11's own name C++ types.
bool Flag(py::handle o, const std::string& what) {
  if (o.is_none()) return false;
  const PyNumberMethods* number = Py_TYPE(o.ptr())->tp_as_number;
  if (number == nullptr || number->nb_bool == nullptr)
    throw TypeError(what, ": True or False is needed, got ", Repr(o.ptr()));
  const int truth = PyObject_IsTrue(o.ptr());
  if (truth < 0) throw PythonError();
  return truth != 0;
}
std::string Text(py::handle o, const std::string& what) {
  if (!PyUnicode_Check(o.ptr())) throw TypeError(what, ": a string is needed, got ", Repr(o.ptr()));
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(o.ptr(), &size);
  if (text == nullptr) {
    PyErr_Clear();
    throw ValueError(what, ": the string ", Repr(o.ptr()), " is no text: it has half of a surrogate pair");
  }
  return {text, static_cast<size_t>(size)};
}
Ints SomeInts(py::handle list, const std::string& what) {
  Ints ints;
  for (py::handle i : list) ints.push_back(IntFrom(i.ptr(), what.c_str()));
  return ints;
}

Attr AttrFrom(py::handle o, const std::string& name) {
  if (py::isinstance<py::bool_>(o)) return o.cast<bool>();
  if (py::isinstance<py::int_>(o)) return IntFrom(o.ptr(), name.c_str());
  if (py::isinstance<py::float_>(o)) return o.cast<double>();
  if (py::isinstance<py::str>(o)) {
    if (name == "dtype") return DTypeFrom(o.ptr(), "dtype");
    return Text(o, name);
  }
  if (name == "shape" || name == "length") return DimsFrom(o.ptr(), name.c_str());
  if (PyTuple_Check(o.ptr()) || PyList_Check(o.ptr())) return SomeInts(o, name);
  return DTypeFrom(o.ptr(), name.c_str());
}

Update UpdateNamed(const std::string& name) {
  static const std::map<std::string, Update> kNames = {{"set", Update::kSet},
                                                       {"add", Update::kAdd},
                                                       {"mul", Update::kMul},
                                                       {"min", Update::kMin},
                                                       {"max", Update::kMax}};
  auto it = kNames.find(name);
  if (it == kNames.end()) throw ValueError("at[]: no update '", name, "'");
  return it->second;
}

// An operand given alone.
struct One {
  explicit One(py::handle o, const char* what, const char* argument = "the argument") {
    if (holder.Set(o.ptr())) return;
    throw TypeError(what, ": ", argument, " is ", Repr(o.ptr()), " of type '", Py_TYPE(o.ptr())->tp_name,
                    "'; expected an array or a number");
  }
  operator const Operand&() const { return holder.operand(); }
  OperandHolder holder;
};

py::object ResultType(const py::args& args) {
  std::optional<WeakDType> t;
  for (py::handle o : args) {
    OperandHolder holder;
    WeakDType mine;
    if (holder.Set(o.ptr()))
      mine = holder.operand().dtype();
    else
      mine = {DTypeFrom(o.ptr(), "result_type"), o.ptr() == reinterpret_cast<PyObject*>(&PyFloat_Type) ||
                                                     o.ptr() == reinterpret_cast<PyObject*>(&PyLong_Type) ||
                                                     o.ptr() == reinterpret_cast<PyObject*>(&PyComplex_Type)};
    t = t ? Promote(*t, mine) : mine;
  }
  if (!t) throw ValueError("result_type: at least one argument is needed");
  return Take(DTypeObject(t->dtype));
}

py::tuple AllPromoted(const py::args& xs, bool inexact) {
  const ScopedUsersArguments of_user;
  std::deque<One> operands;
  std::optional<WeakDType> t;
  for (py::handle x : xs) {
    const Operand& operand = operands.emplace_back(x, "promote");
    t = t ? Promote(*t, operand.dtype()) : operand.dtype();
  }
  py::tuple out(xs.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    const Operand& x = operands[i];
    const WeakDType to = inexact ? ToInexact(*t) : *t;
    // A Python integer has to fit.
    out[i] = Wrap(x.is_scalar() ? Value(NumberTensor(to.dtype, x.scalar()), to.weak) : Astype(x, to.dtype, to.weak));
  }
  return out;
}

// NumPy's array of a list or a text: every number becomes the dtype by itself, and those that do not fit are refused.
py::object ArrayByNumpy(py::handle o, DType dtype) {
  try {
    return py::module_::import("numpy").attr("asarray")(o, Take(DTypeObject(dtype)));
  } catch (const py::error_already_set& error) {
    // What a function of the user's raised, called from there, stays as it is.
    if (error.trace()) throw;
    SetPythonException(error.type().ptr(), "array: " + py::cast<std::string>(py::str(error.value())));
    throw PythonError();
  }
}

// The dtype in which numbers of this one are read exactly: 1.0000001 is not rounded twice on its way to float16.
std::optional<DType> ReadAs(DType dtype) {
  if (IsInteger(dtype) && IsStored(dtype)) return DType::kI64;
  if (IsBool(dtype) || IsInteger(dtype)) return dtype;
  if (IsFloat(dtype)) return DType::kF64;
  if (IsComplex(dtype)) return DType::kC128;
  return std::nullopt;
}

// A Python number loses no imaginary part unasked; arrays do, as with astype.
void RefuseComplex(py::handle o, std::optional<DType> dtype, const char* what) {
  if (dtype && PyComplex_Check(o.ptr()) && IsPythonNumber(o.ptr()) && !IsComplex(*dtype) && !IsBool(*dtype))
    throw TypeError(what, ": the complex number ", Repr(o.ptr()), " does not fit the dtype ", NumpyName(*dtype),
                    "; take its .real, or a complex dtype");
}

// The items of a list as one array.
Value StackItems(const OperandList& items) {
  for (const Operand& item : items.operands) {
    if (!(item.dims() == items.operands[0].dims()))
      throw ValueError("array: the items of a list must have one shape, got ", ShapeText(items.operands[0].dims()),
                       " and ", ShapeText(item.dims()));
  }
  return Stack(items.operands, 0);
}

}  // namespace

void BindNumpy(py::module_& m) {
  // bind(name, operands, attrs): one equation, as it is.
  m.def("bind", [](const std::string& name, py::handle operands, const py::dict& attrs) {
    Attrs a;
    for (auto [k, v] : attrs) a.Set(py::cast<std::string>(k), AttrFrom(v, py::cast<std::string>(k)));
    return Take(WrapValues(Bind(FindPrim(name), ValuesFrom(operands, name.c_str()), std::move(a))));
  });
  m.def("bind_elementwise", [](const std::string& name, py::handle operands, const py::dict& attrs) {
    Attrs a;
    for (auto [k, v] : attrs) a.Set(py::cast<std::string>(k), AttrFrom(v, py::cast<std::string>(k)));
    OperandList xs(operands, name.c_str());
    return Wrap(Elementwise(FindPrim(name), xs.operands, std::move(a)));
  });

  // Creation.
  m.def("array", [](py::handle o, const py::object& dtype, py::handle copied) {
    const bool copy = Flag(copied, "array: copy");
    const auto want = MaybeDType(dtype);
    if (IsArray(o.ptr())) {
      const Value& v = ValueOf(o.ptr());
      return Wrap(want ? Astype(v, *want) : v);
    }
    if (ArrayMethodOf(o.ptr()) != nullptr) {
      const Value v = ValueFrom(o, "array");
      return Wrap(want ? Astype(v, *want) : v);
    }
    bool weak = false;
    Tensor t;
    const bool list = PyList_Check(o.ptr()) || PyTuple_Check(o.ptr());
    const bool text = PyUnicode_Check(o.ptr()) || PyBytes_Check(o.ptr());
    RefuseComplex(o, want, "array");
    if (IsNumpyArray(o.ptr())) {
      t = TensorFromBuffer(o.ptr(), Sharing::kConstant, "array");
      if (copy && !t.made_here()) t = t.Copy();
    } else if (IsPythonNumber(o.ptr()) && want) {
      // As in lists: what a float has no integer for is an error, not the end of a range.
      const bool whole = PyFloat_Check(o.ptr()) && IsInteger(*want);
      if (whole && !std::isfinite(PyFloat_AS_DOUBLE(o.ptr())))
        throw ValueError("array: ", Repr(o.ptr()), " is no number of dtype ", *want);
      const Scalar number = ScalarFrom(Ref(whole ? Check(PyNumber_Long(o.ptr())) : Py_NewRef(o.ptr())).get());
      // In JAX it wraps around beside an array, and in dtypes of some bits, but not here.
      if (IsInteger(*want) && BitWidth(*want) >= 8 && number.kind == Scalar::Kind::kInt && !Fits(number, *want))
        throw IntegerOverflow("array: the Python integer ", number.ToString(), " does not fit ", *want);
      t = NumberTensor(*want, number);
    } else if (list || text) {
      // Lists that hold arrays, traced ones too, are stacked.
      bool arrays = false;
      if (list) {
        for (py::handle item : o)
          arrays |= IsArray(item.ptr()) || PyList_Check(item.ptr()) || PyTuple_Check(item.ptr());
      }
      if (arrays && py::len(o) > 0) {
        const py::object self = py::module_::import("weft._weft").attr("array");
        py::list rows;
        for (py::handle item : o) {
          rows.append(PyList_Check(item.ptr()) || PyTuple_Check(item.ptr()) ? self(item, dtype, true)
                                                                            : py::reinterpret_borrow<py::object>(item));
        }
        const Value v = StackItems(OperandList(rows, "array"));
        return Wrap(want ? Astype(v, *want) : v.WithWeak(false));  // lists are not weak
      }
      const auto read_as = want ? ReadAs(*want) : std::nullopt;
      t = read_as ? TensorFromBuffer(ArrayByNumpy(o, *read_as).ptr(), Sharing::kConstant, "array", Width::kOwn)
                  : TensorFromAnything(o.ptr(), "array", &weak);
      if (want && IsInteger(*want) && read_as != want) {  // what does not fit is refused
        for (int64_t i = 0; i < t.size(); ++i) NumberLiteral(*want, Scalar::Int(t.at<int64_t>(i)));
      }
    } else
      t = TensorFromAnything(o.ptr(), "array", &weak);
    const Value v(Trace::OwnNumber(std::move(t)), weak);
    return Wrap(want ? Astype(v, *want) : v);
  });
  m.def("from_dlpack", [](py::handle o, py::handle copied) {
    const bool decides = !copied.is_none();
    const bool copies = decides && Flag(copied, "from_dlpack: copy");
    const Value v = FromDLPack(o.ptr(), /*may_copy=*/copies || !decides);
    return Wrap(copies && !v.tensor().made_here() ? Value(v.tensor().Copy()) : v);
  });
  m.def("full", [](py::handle shape, py::handle value, const py::object& dtype) {
    const auto want = MaybeDType(dtype);
    RefuseComplex(value, want, "full");
    return Wrap(Full(DimsFrom(shape.ptr(), "full"), One(value, "full", "the value"), want));
  });
  m.def("iota", [](py::handle shape, py::handle dimension, const py::object& dtype) {
    const int64_t axis = IntFrom(dimension.ptr(), "iota: dimension");
    return Wrap(IotaLike(DimsFrom(shape.ptr(), "iota"), axis, MaybeDType(dtype).value_or(DefaultInt())));
  });
  m.def("default_dtype", [](const std::string& kind) {
    return Take(DTypeObject(kind == "float" ? DefaultFloat() : kind == "int" ? DefaultInt() : DefaultComplex()));
  });
  m.def("ask_about_narrowing", [](py::handle f) { SetQuestion(Question::kNarrowing, f.ptr()); });
  m.def("ask_about_bounds", [](py::handle f) { SetQuestion(Question::kBounds, f.ptr()); });
  m.def("set_key_dtype", [](py::handle o) { SetKeyDTypeObject(o.ptr()); });
  m.def("dtype", [](py::handle o) { return Take(DTypeObject(DTypeFrom(o.ptr(), "dtype"))); });
  m.def("is_inexact", [](py::handle o) { return IsInexact(DTypeFrom(o.ptr(), "dtype")); });
  m.def("dtype_kind", [](py::handle o) {
    const DType t = DTypeFrom(o.ptr(), "dtype");
    return std::string(IsBool(t)       ? "bool"
                       : IsSigned(t)   ? "signed"
                       : IsUnsigned(t) ? "unsigned"
                       : IsFloat(t)    ? "float"
                                       : "complex");
  });
  m.def("result_type", &ResultType);
  m.def("users_result_type", [](const py::args& args) {
    const ScopedUsersArguments of_user;
    return ResultType(args);
  });
  m.def("weak_result_type", [](py::handle a, py::handle b) {
    const WeakDType t = Promote(One(a, "promote").holder.operand().dtype(), One(b, "promote").holder.operand().dtype());
    return py::make_tuple(NumpyName(t.dtype), t.weak);
  });
  m.def("astype", [](py::handle x, py::handle dtype) {
    return Wrap(Astype(One(x, "astype"), DTypeFrom(dtype.ptr(), "astype")));
  });
  m.def("promote_inexact", [](py::handle x) {
    One v(x, "promote");
    const WeakDType t = ToInexact(v.holder.operand().dtype());
    return Wrap(Astype(v, t.dtype, t.weak));
  });
  // All of them in the dtype that they have together: Python's numbers are rounded once, to that.
  m.def("promote_all", [](py::args xs) { return AllPromoted(xs, false); });
  m.def("promote_all_inexact", [](py::args xs) { return AllPromoted(xs, true); });
  m.def("strong", [](py::handle x) { return Wrap(ValueFrom(x, "strong").WithWeak(false)); });
  m.def("weak", [](py::handle x) { return Wrap(ValueFrom(x, "weak").WithWeak(true)); });

  // Logic and selection.
  m.def("logical_not", [](py::handle x) { return Wrap(Apply(Unary::kLogicalNot, One(x, "logical_not"))); });
  m.def("absolute", [](py::handle x) { return Wrap(Apply(Unary::kAbsolute, One(x, "absolute"))); });
  m.def("where", [](py::handle p, py::handle x, py::handle y) {
    return Wrap(Where(One(p, "where", "condition"), One(x, "where", "x"), One(y, "where", "y")));
  });

  // Shapes.
  m.def("reshape",
        [](py::handle x, py::handle shape) { return Wrap(Reshape(One(x, "reshape"), NewDimsFrom(shape.ptr()))); });
  m.def("broadcast_to", [](py::handle x, py::handle shape) {
    return Wrap(BroadcastTo(One(x, "broadcast_to"), DimsFrom(shape.ptr(), "broadcast_to")));
  });
  m.def("broadcast_shapes", [](py::args shapes) {
    Dims out;
    for (py::handle s : shapes) out = BroadcastShapes(out, DimsFrom(s.ptr(), "broadcast_shapes"), "broadcast_shapes");
    py::list dims;
    for (const Dim& d : out) dims.append(Take(DimObject(d)));
    return py::tuple(dims);
  });
  m.def("transpose", [](py::handle x, const py::object& axes) {
    return Wrap(Transpose(One(x, "transpose"), Axes(axes, "transpose")));
  });
  m.def("moveaxis", [](py::handle x, const py::object& from, const py::object& to) {
    return Wrap(MoveAxis(One(x, "moveaxis"), SomeAxes(from, "moveaxis"), SomeAxes(to, "moveaxis")));
  });
  m.def("expand_dims", [](py::handle x, const py::object& axes) {
    return Wrap(ExpandDims(One(x, "expand_dims"), *Axes(axes, "expand_dims")));
  });
  m.def("squeeze",
        [](py::handle x, const py::object& axes) { return Wrap(Squeeze(One(x, "squeeze"), Axes(axes, "squeeze"))); });
  m.def("concatenate", [](py::handle xs, py::handle axis) {
    OperandList list(xs, "concatenate");
    return Wrap(ConcatenateValues(list.operands, Axis(axis, "concatenate")));
  });
  m.def("stack", [](py::handle xs, py::handle axis) {
    OperandList list(xs, "stack");
    return Wrap(Stack(list.operands, Axis(axis, "stack")));
  });
  m.def("flip", [](py::handle x, const py::object& axes) { return Wrap(Flip(One(x, "flip"), Axes(axes, "flip"))); });
  m.def("pad_constant", [](py::handle x, py::handle lo, py::handle hi, py::handle value) {
    return Wrap(PadConstant(One(x, "pad"), SomeInts(lo, "pad"), SomeInts(hi, "pad"), One(value, "pad")));
  });
  m.def("slice_axis", [](py::handle x, int64_t axis, int64_t start, int64_t limit, int64_t stride) {
    return Wrap(SliceAxis(One(x, "slice"), axis, start, limit, stride));
  });
  m.def("check_axis", [](py::handle axis, int rank, const std::string& what) {
    return CheckAxis(Axis(axis, what), rank, what.c_str());
  });

  // Reductions.
  m.def("reduce", [](const std::string& prim, py::handle x, const py::object& axes, py::handle keepdims) {
    const char* what = weft::NumpyName(prim);
    return Wrap(ReduceAxes(prim, One(x, what), Axes(axes, what), Flag(keepdims, std::string(what) + ": keepdims")));
  });
  m.def("mean", [](py::handle x, const py::object& axes, py::handle keepdims) {
    return Wrap(MeanAxes(One(x, "mean"), Axes(axes, "mean"), Flag(keepdims, "mean: keepdims")));
  });
  m.def("argreduce", [](const std::string& prim, py::handle x, const py::object& axis, py::handle keepdims) {
    return Wrap(ArgReduce(prim, One(x, prim.c_str()), MaybeAxis(axis, prim), Flag(keepdims, prim + ": keepdims")));
  });
  m.def("cumulative", [](const std::string& prim, py::handle x, const py::object& axis, py::handle reverse) {
    return Wrap(Cumulative(prim, One(x, prim.c_str()), MaybeAxis(axis, prim), Flag(reverse, prim + ": reverse")));
  });

  // Contraction.
  m.def("matmul", [](py::handle x, py::handle y) { return Wrap(Matmul(One(x, "matmul"), One(y, "matmul"))); });
  m.def("dot", [](py::handle x, py::handle y) { return Wrap(Dot(One(x, "dot"), One(y, "dot"))); });
  m.def("tensordot", [](py::handle x, py::handle y, const Ints& a, const Ints& b) {
    return Wrap(Tensordot(One(x, "tensordot"), One(y, "tensordot"), a, b));
  });
  m.def("einsum", [](py::handle spec, py::handle xs) {
    OperandList list(xs, "einsum");
    return Wrap(Einsum(Text(spec, "einsum: subscripts"), list.operands));
  });

  // Indexing.
  m.def("getitem", [](py::handle x, py::handle key, const std::string& mode) {
    return Wrap(GetItemAt(ValueFrom(x, "getitem"), key.ptr(), mode));
  });
  m.def("update_item",
        [](py::handle x, py::handle key, py::handle value, const std::string& update, const std::string& mode) {
          return Wrap(UpdateItemObject(ValueFrom(x, "at[]"), key.ptr(), value.ptr(), UpdateNamed(update), mode));
        });
  m.def("take", [](py::handle x, py::handle indices, int64_t axis, const std::string& mode) {
    return Wrap(Take(One(x, "take"), ValueFrom(indices, "take"), axis, mode));
  });
  m.def("take_along_axis", [](py::handle x, py::handle indices, int64_t axis) {
    return Wrap(TakeAlongAxis(One(x, "take_along_axis"), ValueFrom(indices, "take_along_axis"), axis));
  });
  m.def("nonzero", [](py::handle x) { return Take(WrapValues(NonZero(Astype(One(x, "nonzero"), DType::kBool)))); });
}

}  // namespace weft::python
