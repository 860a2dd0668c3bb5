// Operations with axes, shapes and indices, for weft.numpy and weft.lax.
#include "python/bindings.h"
#include "tracer/ops.h"

namespace weft::python {
namespace {

py::object Wrap(Value v) { return Take(WrapValue(std::move(v))); }

std::optional<Ints> Axes(const py::object& o, const char* what) { return AxesFrom(o.ptr(), what); }
std::optional<DType> MaybeDType(const py::object& o) {
  return o.is_none() ? std::nullopt : std::optional<DType>(DTypeFrom(o.ptr(), "dtype"));
}

Attr AttrFrom(py::handle o, const std::string& name) {
  if (py::isinstance<py::bool_>(o)) return o.cast<bool>();
  if (py::isinstance<py::int_>(o)) return o.cast<int64_t>();
  if (py::isinstance<py::float_>(o)) return o.cast<double>();
  if (py::isinstance<py::str>(o)) {
    if (name == "dtype") return DTypeFrom(o.ptr(), "dtype");
    return o.cast<std::string>();
  }
  if (name == "shape" || name == "length") return DimsFrom(o.ptr(), name.c_str());
  if (PyTuple_Check(o.ptr()) || PyList_Check(o.ptr())) {
    Ints ints;
    for (py::handle i : o) ints.push_back(IntFrom(i.ptr(), name.c_str()));
    return ints;
  }
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
  explicit One(py::handle o, const char* what) : list(py::make_tuple(o), what) {}
  operator const Operand&() const { return list.operands[0]; }
  OperandList list;
};

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
  m.def("array", [](py::handle o, const py::object& dtype, bool copy) {
    const auto want = MaybeDType(dtype);
    if (IsArray(o.ptr())) {
      const Value& v = ValueOf(o.ptr());
      return Wrap(want ? Astype(v, *want) : v);
    }
    bool weak = false;
    Tensor t;
    if (IsNumpyArray(o.ptr()))
      t = TensorFromBuffer(o.ptr(), !copy, "array");
    else if (IsPythonNumber(o.ptr()) && want)
      t = NumberTensor(*want, ScalarFrom(o.ptr()));
    else if (PyList_Check(o.ptr()) || PyTuple_Check(o.ptr())) {
      // Lists that hold arrays, traced ones too, are stacked.
      bool arrays = false;
      for (py::handle item : o) arrays |= IsArray(item.ptr()) || PyList_Check(item.ptr()) || PyTuple_Check(item.ptr());
      if (arrays && py::len(o) > 0) {
        const py::object self = py::module_::import("weft._weft").attr("array");
        py::list rows;
        bool nested_arrays = false;
        for (py::handle item : o) {
          rows.append(PyList_Check(item.ptr()) || PyTuple_Check(item.ptr()) ? self(item, py::none(), true)
                                                                            : py::reinterpret_borrow<py::object>(item));
          nested_arrays |= IsArray(rows[rows.size() - 1].ptr());
        }
        OperandList xs(rows, "array");
        const Value v = Stack(xs.operands, 0);
        return Wrap(want ? Astype(v, *want) : v.WithWeak(false));  // lists are not weak
      }
      if (want && (IsInteger(*want) || *want == DType::kF64 || *want == DType::kC128)) {
        const py::object wide = py::module_::import("numpy").attr("asarray")(o, Take(DTypeObject(*want)));
        t = TensorFromBuffer(wide.ptr(), false, "array");
      } else {
        t = TensorFromAnything(o.ptr(), "array", &weak);
      }
    } else
      t = TensorFromAnything(o.ptr(), "array", &weak);
    const Value v(std::move(t), weak);
    return Wrap(want ? Astype(v, *want) : v);
  });
  m.def("from_dlpack", [](py::handle o) { return Wrap(FromDLPack(o.ptr())); });
  m.def("full", [](py::handle shape, py::handle value, const py::object& dtype) {
    return Wrap(Full(DimsFrom(shape.ptr(), "full"), One(value, "full"), MaybeDType(dtype)));
  });
  m.def("iota", [](py::handle shape, int64_t axis, const py::object& dtype) {
    return Wrap(IotaLike(DimsFrom(shape.ptr(), "iota"), axis, MaybeDType(dtype).value_or(DefaultInt())));
  });
  m.def("default_dtype", [](const std::string& kind) {
    return Take(DTypeObject(kind == "float" ? DefaultFloat() : kind == "int" ? DefaultInt() : DefaultComplex()));
  });
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
  m.def("result_type", [](py::args args) {
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
  });
  m.def("weak_result_type", [](py::handle a, py::handle b) {
    const WeakDType t = Promote(One(a, "promote").list.operands[0].dtype(), One(b, "promote").list.operands[0].dtype());
    return py::make_tuple(NumpyName(t.dtype), t.weak);
  });
  m.def("astype", [](py::handle x, py::handle dtype) {
    return Wrap(Astype(One(x, "astype"), DTypeFrom(dtype.ptr(), "astype")));
  });
  m.def("promote_inexact", [](py::handle x) {
    One v(x, "promote");
    const WeakDType t = ToInexact(v.list.operands[0].dtype());
    return Wrap(Astype(v, t.dtype, t.weak));
  });
  m.def("strong", [](py::handle x) { return Wrap(ValueFrom(x, "strong").WithWeak(false)); });
  m.def("weak", [](py::handle x) { return Wrap(ValueFrom(x, "weak").WithWeak(true)); });

  // Logic and selection.
  m.def("logical_not", [](py::handle x) { return Wrap(Apply(Unary::kLogicalNot, One(x, "logical_not"))); });
  m.def("absolute", [](py::handle x) { return Wrap(Apply(Unary::kAbsolute, One(x, "absolute"))); });
  m.def("where", [](py::handle p, py::handle x, py::handle y) {
    return Wrap(Where(One(p, "where"), One(x, "where"), One(y, "where")));
  });

  // Shapes.
  m.def("reshape", [](py::handle x, py::handle shape) {
    return Wrap(Reshape(One(x, "reshape"), DimsFrom(shape.ptr(), "reshape")));
  });
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
    return Wrap(
        MoveAxis(One(x, "moveaxis"), Axes(from, "moveaxis").value_or(Ints{}), Axes(to, "moveaxis").value_or(Ints{})));
  });
  m.def("expand_dims", [](py::handle x, const py::object& axes) {
    return Wrap(ExpandDims(One(x, "expand_dims"), *Axes(axes, "expand_dims")));
  });
  m.def("squeeze",
        [](py::handle x, const py::object& axes) { return Wrap(Squeeze(One(x, "squeeze"), Axes(axes, "squeeze"))); });
  m.def("concatenate", [](py::handle xs, int64_t axis) {
    OperandList list(xs, "concatenate");
    return Wrap(ConcatenateValues(list.operands, axis));
  });
  m.def("stack", [](py::handle xs, int64_t axis) {
    OperandList list(xs, "stack");
    return Wrap(Stack(list.operands, axis));
  });
  m.def("flip", [](py::handle x, const py::object& axes) { return Wrap(Flip(One(x, "flip"), Axes(axes, "flip"))); });
  m.def("pad_constant", [](py::handle x, const Ints& lo, const Ints& hi, py::handle value) {
    return Wrap(PadConstant(One(x, "pad"), lo, hi, One(value, "pad")));
  });
  m.def("slice_axis", [](py::handle x, int64_t axis, int64_t start, int64_t limit, int64_t stride) {
    return Wrap(SliceAxis(One(x, "slice"), axis, start, limit, stride));
  });
  m.def("check_axis",
        [](int64_t axis, int rank, const std::string& what) { return CheckAxis(axis, rank, what.c_str()); });

  // Reductions.
  m.def("reduce", [](const std::string& prim, py::handle x, const py::object& axes, bool keepdims) {
    return Wrap(ReduceAxes(prim, One(x, prim.c_str()), Axes(axes, "axis"), keepdims));
  });
  m.def("mean", [](py::handle x, const py::object& axes, bool keepdims) {
    return Wrap(MeanAxes(One(x, "mean"), Axes(axes, "axis"), keepdims));
  });
  m.def("count", [](py::handle x, const py::object& axes) { return CountAxes(One(x, "mean"), Axes(axes, "axis")); });
  m.def("argreduce", [](const std::string& prim, py::handle x, std::optional<int64_t> axis, bool keepdims) {
    return Wrap(ArgReduce(prim, One(x, prim.c_str()), axis, keepdims));
  });
  m.def("cumulative", [](const std::string& prim, py::handle x, std::optional<int64_t> axis, bool reverse) {
    return Wrap(Cumulative(prim, One(x, prim.c_str()), axis, reverse));
  });

  // Contraction.
  m.def("matmul", [](py::handle x, py::handle y) { return Wrap(Matmul(One(x, "matmul"), One(y, "matmul"))); });
  m.def("dot", [](py::handle x, py::handle y) { return Wrap(Dot(One(x, "dot"), One(y, "dot"))); });
  m.def("tensordot", [](py::handle x, py::handle y, const Ints& a, const Ints& b) {
    return Wrap(Tensordot(One(x, "tensordot"), One(y, "tensordot"), a, b));
  });
  m.def("einsum", [](const std::string& spec, py::handle xs) {
    OperandList list(xs, "einsum");
    return Wrap(Einsum(spec, list.operands));
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
