// Named axes and the collectives over them, functions on meshes, and how arrays lie on devices.
#include "python/native/bindings.h"
#include "tracer/collective_ops.h"
#include "tracer/regions.h"

namespace weft::python {
namespace {

py::object Wrap(Value v) { return Take(WrapValue(std::move(v))); }

// An operand given alone.
struct One {
  explicit One(py::handle o, const char* what) : list(py::make_tuple(o), what) {}
  operator const Operand&() const { return list.operands[0]; }
  OperandList list;
};

// The first device's value along an axis, on all of them.
Atom OfFirstDevice(Builder& b, const Atom& x, const std::string& axis) {
  const Type type = b.TypeOf(x);
  if (IsBool(type.dtype)) return Convert(b, OfFirstDevice(b, Convert(b, x, DType::kI32), axis), DType::kBool);
  const Atom place = b.Emit1(FindPrim("axis_index"), {}, {{"axes", Strings{axis}}, {"varying", true}});
  const Atom first = Broadcast(b, Eq(b, place, Atom::Scalar(DType::kI32, 0)), type.dims, {});
  return Psum(b, Select(b, first, x, Zeros(b, type)), {axis});
}

Shardings ShardingsFrom(const std::vector<std::vector<Strings>>& cuts) {
  Shardings shardings;
  for (const auto& dims : cuts) shardings.push_back({dims, {}});
  return shardings;
}

}  // namespace

std::vector<NamedAxis> NamedAxesFrom(py::handle list) {
  std::vector<NamedAxis> axes;
  for (py::handle item : list) {
    const auto entry = py::reinterpret_borrow<py::tuple>(item);
    const std::string name = entry[0].cast<std::string>();
    const Dims size = DimsFrom(py::make_tuple(entry[1]).ptr(), "the size of a named axis");
    axes.push_back({name, size[0], entry[2].cast<bool>(), entry.size() > 3 && entry[3].cast<bool>()});
  }
  return axes;
}

void BindMesh(py::module_& m) {
  m.def("axis_size",
        [](const Strings& axes, const std::string& what) { return Take(DimObject(AxisSize(axes, what))); });
  m.def("axis_is_bound", &AxisIsBound);
  // (name, size) of each, the outermost first.
  m.def("bound_axes", [] {
    py::list axes;
    for (const NamedAxis& axis : BoundAxes()) axes.append(py::make_tuple(axis.name, Take(DimObject(axis.size))));
    return axes;
  });
  m.def("axes_of_lanes", &AxesOfPmap);
  m.def("axis_index", [](const Strings& axes) { return Wrap(AxisIndex(axes)); });
  // psum, pmax, pmin
  m.def("reduce_over_devices", [](const std::string& prim, py::handle x, const Strings& axes) {
    return Wrap(ReduceOverDevices(prim, One(x, prim.c_str()), axes));
  });
  m.def("all_gather", [](py::handle x, const Strings& axes, int64_t dim, bool tiled) {
    return Wrap(AllGather(One(x, "all_gather"), axes, dim, tiled));
  });
  m.def("psum_scatter", [](py::handle x, const Strings& axes, int64_t dim, bool tiled) {
    return Wrap(PsumScatter(One(x, "psum_scatter"), axes, dim, tiled));
  });
  m.def("all_to_all", [](py::handle x, const Strings& axes, int64_t split, int64_t concat, bool tiled) {
    return Wrap(AllToAll(One(x, "all_to_all"), axes, split, concat, tiled));
  });
  m.def("ppermute", [](py::handle x, const Strings& axes, const std::vector<std::pair<int64_t, int64_t>>& perm) {
    return Wrap(Ppermute(One(x, "ppermute"), axes, perm));
  });
  // The mesh axes over which the value of an array or ShapeDtype varies.
  m.def("varying", [](py::handle leaf) -> Strings {
    if (IsArray(leaf.ptr())) return TypeHere(ValueOf(leaf.ptr())).varying;
    return py::hasattr(leaf, "varying") ? leaf.attr("varying").cast<Strings>() : Strings{};
  });
  // (axes over which result i varies, what it is)
  m.def("result_varying", [](const Traced& t, size_t i) {
    const Atom& a = t.fn->results().at(i);
    const Type type = t.fn->TypeOf(a);
    std::string what = type.ToString();
    for (const Eqn& e : t.fn->eqns()) {
      if (a.is_var() && a.id() >= e.first_result && a.id() < e.first_result + e.num_results)
        what += ", the result of '" + e.prim->name + "'" + (e.loc ? " at " + e.loc.ToString() : "");
    }
    if (a.is_var() && a.id() < t.fn->params().size()) {
      const std::string& name = t.fn->params()[a.id()].name;
      what += name.empty() ? ", an argument" : ", the argument '" + name + "'";
    }
    return py::make_tuple(type.varying, what);
  });
  // spmd(traced, axes of the mesh, its devices, cuts of the operands, of the results, axes along which the first
  // device's result is taken, axes along which a result is the sum of what devices have, operands, axes over which
  // nobody asked for it): what the function captured is the same on all devices.
  m.def("spmd", [](const Traced& t, const std::vector<std::pair<std::string, int64_t>>& axes, const Ints& devices,
                   const std::vector<std::vector<Strings>>& in_cuts, const std::vector<std::vector<Strings>>& out_cuts,
                   const std::vector<Strings>& unchecked, const std::vector<Strings>& sums, py::handle operands,
                   const Strings& alone) {
    Mesh mesh;
    for (const auto& [name, size] : axes) mesh.axes.push_back({name, size});
    Shardings in = ShardingsFrom(in_cuts), out = ShardingsFrom(out_cuts);
    Aligned a = AlignCaptures({t});
    Values args = ValuesFrom(operands, "shard_map");
    for (const Value& v : a.captures) {
      args.push_back(v);
      in.push_back({std::vector<Strings>(static_cast<size_t>(v.rank())), {}});
    }
    Builder b(a.fns[0]->name());
    Atoms params;
    for (const Param& p : a.fns[0]->params()) params.push_back(b.Parameter(p.type, p.name));
    b.set_loc(CurrentLoc());
    Atoms results = b.Inline(*a.fns[0], params);
    for (size_t i = 0; i < results.size(); ++i) {
      for (const std::string& axis : unchecked[i]) results[i] = OfFirstDevice(b, results[i], axis);
      out[i].partial = sums[i];
      results[i] = Pvary(b, results[i], UnionOfAxes(out[i].Axes(), out[i].partial));
    }
    Attrs attrs = {{"mesh", mesh}, {"in_shardings", in}, {"out_shardings", out}};
    if (!devices.empty()) attrs.Set("devices", devices);
    if (!alone.empty()) attrs.Set("alone", alone);
    Values values = Bind(FindPrim("spmd"), args, attrs, {b.Build(results)});
    for (size_t i = 0; i < values.size(); ++i) values[i] = values[i].WithWeak(t.weak_results[i]);
    return Take(WrapValues(values));
  });
  m.def("pvary", [](py::handle x, const Strings& axes) { return Wrap(PvaryOver(One(x, "pvary"), axes)); });
}

}  // namespace weft::python
