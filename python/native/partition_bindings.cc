// Programs cut over the devices of a mesh: constraints, and what compiling with sharded arguments does.
#include <algorithm>

#include "python/native/bindings.h"
#include "python/native/jit_mesh.h"
#include "python/native/plans.h"
#include "python/native/typed_layouts.h"
#include "transforms/opt/pass.h"
#include "transforms/shard/deterministic.h"
#include "transforms/shard/explicit_types.h"
#include "transforms/shard/partition.h"
#include "transforms/shard/program_meshes.h"

namespace weft::python {
namespace {

using Axes = std::vector<std::pair<std::string, int64_t>>;
using CutsOfDims = std::vector<Strings>;  // by dimension

Mesh MeshFrom(const Axes& axes) {
  Mesh mesh;
  for (const auto& [name, size] : axes) mesh.axes.push_back({name, size});
  return mesh;
}

Axes AxesOf(const Mesh& mesh) {
  Axes axes;
  for (const Mesh::Axis& a : mesh.axes) axes.emplace_back(a.name, a.size);
  return axes;
}

OptionalLayouts LayoutsFrom(const Mesh& mesh, const std::vector<std::optional<CutsOfDims>>& cuts) {
  OptionalLayouts layouts;
  for (const auto& c : cuts) layouts.push_back(c ? std::optional(LayoutOf(mesh, Sharding{*c, {}})) : std::nullopt);
  return layouts;
}

// How a result was asked to lie, axes of size 1 included, and on which mesh; nullopt where nothing was said of it.
std::optional<std::pair<PlacedMesh, Sharding>> AskedFor(const Fn& fn, const Atom& a) {
  for (const Eqn& e : fn.eqns()) {
    if (!a.is_var() || a.id() < e.first_result || a.id() >= e.first_result + e.num_results) continue;
    if (IsConstraint(e) && e.attrs.Get<Ints>("open").empty())
      return {{PlacedMesh::Of(e), e.attrs.Get<Shardings>("sharding")[0]}};
    if (e.prim->region_use == RegionUse::kCall) {
      const Fn& called = *e.regions[0];
      const Atom& result = called.results()[a.id() - e.first_result];
      const bool passed_on = result.is_var() && result.id() < called.params().size();
      return passed_on ? AskedFor(fn, e.operands[result.id()]) : AskedFor(called, result);
    }
    if (e.prim->region_use != RegionUse::kDevices) continue;
    Sharding sharding = e.attrs.Get<Shardings>("out_shardings")[a.id() - e.first_result];
    sharding.partial.clear();
    return {{PlacedMesh::Of(e), sharding}};
  }
  return std::nullopt;
}

// (cuts, unreduced, reduced) of each parameter; nullopt where nobody said it.
using GivenLayouts = std::vector<std::optional<std::tuple<CutsOfDims, Strings, Strings>>>;

TypedLayouts ParamsFrom(const Fn& fn, const ExplicitTypes& types, const GivenLayouts& given) {
  TypedLayouts params;
  for (size_t i = 0; i < fn.params().size(); ++i) {
    if (i < given.size() && given[i]) {
      const auto& [cuts, unreduced, reduced] = *given[i];
      params.push_back(types.Of(Sharding{cuts, {}}, unreduced, reduced));
    } else {
      params.push_back(types.Open(fn.TypeOf(Var{static_cast<uint32_t>(i)}).rank()));
    }
  }
  return params;
}

uint32_t BitsOf(const Mesh& mesh, const Strings& names) {
  uint32_t bits = 0;
  for (size_t a = 0; a < mesh.axes.size(); ++a) {
    if (std::find(names.begin(), names.end(), mesh.axes[a].name) != names.end()) bits |= AxisBit(static_cast<int>(a));
  }
  return bits;
}

}  // namespace

void BindPartition(py::module_& m) {
  // x, which is to lie as `cuts` say on a mesh of these axes and devices; nothing is said of its dimensions `open`.
  // Along `unreduced` its type counts it as a sum in parts, along `reduced` its cotangent as one.
  m.def(
      "sharding_constraint",
      [](py::handle x, const Axes& axes, const Ints& devices, const CutsOfDims& cuts, const Ints& open,
         const Strings& unreduced, const Strings& reduced) {
        const Value v = ValueFrom(x, "with_sharding_constraint");
        Attrs attrs = {{"mesh", MeshFrom(axes)}, {"sharding", Shardings{{cuts, {}}}}, {"open", open}};
        if (!devices.empty()) attrs.Set("devices", devices);
        if (!unreduced.empty()) attrs.Set("unreduced", unreduced);
        if (!reduced.empty()) attrs.Set("reduced", reduced);
        if (!unreduced.empty() || !reduced.empty()) UseSumsAmongDevices();
        return Take(WrapValue(Bind(FindPrim("sharding_constraint"), {v}, attrs)[0].WithWeak(v.weak())));
      },
      py::arg("x"), py::arg("axes"), py::arg("devices"), py::arg("cuts"), py::arg("open"),
      py::arg("unreduced") = Strings{}, py::arg("reduced") = Strings{});
  // The parts of a sum along these axes, side by side along dimension 0, which x has with size 1: those that devices
  // hold where x is such a sum already, else x and zeros.
  m.def("parts_beside", [](py::handle x, const Strings& axes, int64_t count) {
    const Value v = ValueFrom(x, "shard_map");
    Ints none(static_cast<size_t>(v.rank()), 0), hi = none;
    hi[0] = count - 1;
    const Attrs attrs = {{"lo", none}, {"hi", hi}, {"interior", none}, {"parts", axes}};
    return Take(
        WrapValue(Bind(FindPrim("pad"), {v, Value(Tensor::Zeros(v.dtype(), {}))}, attrs)[0].WithWeak(v.weak())));
  });
  // The meshes of the constraints and the spmd equations of a program: [(axes, devices), ...].
  m.def("meshes_of", [](const Traced& t) {
    std::vector<std::pair<Axes, Ints>> meshes;
    for (const PlacedMesh& m : MeshesOf(*t.fn)) meshes.emplace_back(AxesOf(m.mesh), m.devices);
    return meshes;
  });
  // The program with its constraints on some meshes, [(axes, {axis: axes of the other one}), ...], on another mesh.
  m.def("with_constraints_on", [](const Traced& t, const Axes& axes, const Ints& devices,
                                  const std::vector<std::pair<Axes, std::map<std::string, Strings>>>& from) {
    Traced moved = t;
    moved.fn = WithConstraintsOn(t.fn, {MeshFrom(axes), devices}, [&](const PlacedMesh& m) {
      const auto it = std::find_if(from.begin(), from.end(), [&](const auto& f) { return f.first == AxesOf(m.mesh); });
      return it == from.end() ? nullptr : &it->second;
    });
    return moved;
  });
  // For each result (axes, devices, cuts) as a constraint or spmd says that it lies, or None.
  m.def("asked_for", [](const Traced& t) {
    py::list asked;
    for (const Atom& a : t.fn->results()) {
      const auto said = AskedFor(*t.fn, a);
      asked.append(said ? py::make_tuple(AxesOf(said->first.mesh), said->first.devices, said->second.dims)
                        : py::object(py::none()));
    }
    return asked;
  });
  // Whether each parameter is read by something else than constraints, which move it.
  m.def("stays", [](const Traced& t, bool constrained) {
    std::vector<bool> stays(t.fn->params().size(), false);
    const auto read = [&](const Atom& a) {
      if (a.is_var() && a.id() < stays.size()) stays[a.id()] = true;
    };
    for (const Eqn& e : t.fn->eqns()) {
      if (IsConstraint(e) && !constrained) continue;
      for (const Atom& a : e.operands) read(a);
    }
    for (const Atom& a : t.fn->results()) read(a);
    return stays;
  });
  // How each result lies along axes whose types say it: explicit_cuts(traced, axes of the mesh, those axes, (cuts,
  // unreduced, reduced) of each parameter or None) -> [(cuts, unreduced, reduced), ...]
  m.def("explicit_cuts", [](const Traced& t, const Axes& axes, const Strings& said, const GivenLayouts& given) {
    const Mesh mesh = MeshFrom(axes);
    const ExplicitTypes types(mesh, BitsOf(mesh, said));
    std::vector<std::tuple<CutsOfDims, Strings, Strings>> results;
    for (const TypedLayout& l : types.Results(*t.fn, ParamsFrom(*t.fn, types, given), IsOneOperation())) {
      CutsOfDims dims;
      for (const auto& of_dim : l.dims) {
        dims.emplace_back();
        for (int a : of_dim) dims.back().push_back(mesh.axes[static_cast<size_t>(a)].name);
      }
      results.emplace_back(std::move(dims), AxisNames(mesh, l.unreduced), AxisNames(mesh, l.reduced));
    }
    return results;
  });
  // The program with what types say, as constraints.
  m.def("with_typed_constraints",
        [](const Traced& t, const Axes& axes, const Strings& said, const GivenLayouts& given) {
          const Mesh mesh = MeshFrom(axes);
          const uint32_t bits = BitsOf(mesh, said);
          return FnHandle{WithTypedConstraints(t.fn, mesh, bits, ParamsFrom(*t.fn, ExplicitTypes(mesh, bits), given))};
        });
  // (mesh, axes of each dimension, axes along which it is unreduced, and reduced, whether nobody said anything) of what
  // the type of an array says, or None.
  m.def("have_typed_layouts", [](const py::list& leaves) {
    return std::any_of(leaves.begin(), leaves.end(),
                       [](py::handle x) { return IsArray(x.ptr()) && TypedLayoutOf(ValueOf(x.ptr())).has_value(); });
  });
  m.def("typed_layout", [](py::handle x) -> py::object {
    if (!IsArray(x.ptr())) return py::none();
    const std::optional<ValueLayout> l = TypedLayoutOf(ValueOf(x.ptr()));
    if (!l) return py::none();
    return py::make_tuple(py::reinterpret_borrow<py::object>(l->mesh.get()), l->dims, l->unreduced, l->reduced,
                          l->open);
  });
  // (unreduced, reduced): axes of the shard_map around along which a value is a sum in parts, or its cotangent.
  m.def("sums_among_devices", [](py::handle x) {
    const SumsOfDevices sums = IsArray(x.ptr()) ? SumsAmongDevices(ValueOf(x.ptr())) : SumsOfDevices{};
    return std::make_pair(sums.unreduced, sums.reduced);
  });
  m.def("mesh_of_trace", []() -> py::object {
    const Ref mesh = MeshOfTrace();
    return mesh ? py::reinterpret_borrow<py::object>(mesh.get()) : py::none();
  });
  m.def("enter_typed_mesh", [](py::handle mesh) { EnterTypedMesh(mesh.ptr()); });
  m.def("leave_typed_mesh", &LeaveTypedMesh, py::arg("failed"));
  m.def("set_typed_hook", [](py::handle hook) { SetTypedHook(hook.ptr()); });
  m.def("has_constraint", [](const Traced& t) { return HasConstraint(*t.fn); });
  // The same program with deterministic sums.
  m.def("fixed_order", [](const Traced& t) {
    Traced fixed = t;
    fixed.fn = WithDeterministicSums(t.fn);
    return fixed;
  });
  // partition(traced, axes of the mesh, cuts of each parameter or None, with cheaper layouts, deterministic sums,
  //           cuts of each result or None; [] where nothing is said of them, axes along which each parameter, and
  //           result, is a sum in parts, which lie side by side in the program that is made)
  //   -> (Fn, cuts of each parameter, cuts of each result, communications, bytes in all, (number, cuts) of each
  //   callback that asks)
  m.def("partition", [](const Traced& t, const Axes& axes, const std::vector<std::optional<CutsOfDims>>& cuts,
                        bool cheaper, bool deterministic, const std::vector<std::optional<CutsOfDims>>& results_as,
                        const std::vector<Strings>& params_in_parts, const std::vector<Strings>& results_in_parts) {
    const Mesh mesh = MeshFrom(axes);
    PartitionOptions options{.mesh = mesh,
                             .params = LayoutsFrom(mesh, cuts),
                             .results = LayoutsFrom(mesh, results_as),
                             .deterministic = deterministic};
    for (const Strings& names : params_in_parts)
      options.params_in_parts.push_back(LayoutOf(mesh, Sharding{{}, names}).partial);
    for (const Strings& names : results_in_parts)
      options.results_in_parts.push_back(LayoutOf(mesh, Sharding{{}, names}).partial);
    const WatchOfTrace watch;  // the plan around leaves out rules here, too
    Partitioned p;
    std::vector<CheaperLayout> less;
    {
      py::gil_scoped_release unlocked;
      p = Partition(t.fn, options);
      if (cheaper) less = CheaperLayouts(t.fn, static_cast<size_t>(t.num_params), options, p);
    }
    std::vector<CutsOfDims> params, results;
    for (const Layout& l : p.params) params.push_back(ShardingOf(mesh, l).dims);
    for (const Layout& l : p.results) results.push_back(ShardingOf(mesh, l).dims);
    // Of the argument that is moved, or else of the one with which least is sent.
    const auto least = std::min_element(
        less.begin(), less.end(), [](const CheaperLayout& a, const CheaperLayout& b) { return a.bytes < b.bytes; });
    py::list comms;
    for (const Communication& c : p.comms) {
      auto l = std::find_if(less.begin(), less.end(), [&](const CheaperLayout& l) { return l.param == c.param; });
      if (l == less.end()) l = least;
      py::object better = py::none();
      if (l != less.end()) better = py::make_tuple(l->param, ShardingOf(mesh, l->layout).dims, l->bytes);
      comms.append(py::make_tuple(c.prim, c.axes, c.bytes, c.times, c.cause, c.loc ? c.loc.ToString() : "", better));
    }
    std::vector<std::pair<int64_t, CutsOfDims>> told;
    for (const auto& [number, layout] : p.told) told.emplace_back(number, ShardingOf(mesh, layout).dims);
    return py::make_tuple(FnHandle{p.fn}, params, results, comms, p.Bytes(), told);
  });
}

}  // namespace weft::python
