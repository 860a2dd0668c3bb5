// Programs cut over the devices of a mesh: constraints, and what compiling with sharded arguments does.
#include <algorithm>

#include "python/native/bindings.h"
#include "transforms/opt/pass.h"
#include "transforms/shard/deterministic.h"
#include "transforms/shard/explicit_types.h"
#include "transforms/shard/partition.h"

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

}  // namespace

void BindPartition(py::module_& m) {
  // x, which is to lie as `cuts` say on a mesh of these axes and devices; nothing is said of its dimensions `open`.
  m.def("sharding_constraint",
        [](py::handle x, const Axes& axes, const Ints& devices, const CutsOfDims& cuts, const Ints& open) {
          const Value v = ValueFrom(x, "with_sharding_constraint");
          Attrs attrs = {{"mesh", MeshFrom(axes)}, {"sharding", Shardings{{cuts, {}}}}, {"open", open}};
          if (!devices.empty()) attrs.Set("devices", devices);
          return Take(WrapValue(Bind(FindPrim("sharding_constraint"), {v}, attrs)[0].WithWeak(v.weak())));
        });
  // The meshes of the constraints and the spmd equations of a program: [(axes, devices), ...].
  m.def("meshes_of", [](const Traced& t) {
    std::vector<std::pair<Axes, Ints>> meshes;
    for (const PlacedMesh& m : MeshesOf(*t.fn)) meshes.emplace_back(AxesOf(m.mesh), m.devices);
    return meshes;
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
  m.def("stays", [](const Traced& t) {
    std::vector<bool> stays(t.fn->params().size(), false);
    const auto read = [&](const Atom& a) {
      if (a.is_var() && a.id() < stays.size()) stays[a.id()] = true;
    };
    for (const Eqn& e : t.fn->eqns()) {
      if (IsConstraint(e)) continue;
      for (const Atom& a : e.operands) read(a);
    }
    for (const Atom& a : t.fn->results()) read(a);
    return stays;
  });
  // The cuts of each result along axes whose types say it: explicit_cuts(traced, axes of the mesh, those axes, cuts of
  // each parameter or None).
  m.def("explicit_cuts",
        [](const Traced& t, const Axes& axes, const Strings& said, const std::vector<std::optional<CutsOfDims>>& cuts) {
          const Mesh mesh = MeshFrom(axes);
          uint32_t bits = 0;
          for (size_t a = 0; a < mesh.axes.size(); ++a) {
            if (std::find(said.begin(), said.end(), mesh.axes[a].name) != said.end())
              bits |= AxisBit(static_cast<int>(a));
          }
          const OptionalLayouts given = LayoutsFrom(mesh, cuts);
          std::vector<Layout> params;
          for (size_t i = 0; i < t.fn->params().size(); ++i) {
            const bool known = i < given.size() && given[i];
            params.push_back(known ? *given[i] : Replicated(t.fn->TypeOf(Var{static_cast<uint32_t>(i)}).rank()));
          }
          std::vector<CutsOfDims> results;
          for (const Layout& l : ExplicitLayouts(t.fn, mesh, bits, params)) results.push_back(ShardingOf(mesh, l).dims);
          return results;
        });
  m.def("has_constraint", [](const Traced& t) { return HasConstraint(*t.fn); });
  // The same program with deterministic sums.
  m.def("fixed_order", [](const Traced& t) {
    Traced fixed = t;
    fixed.fn = WithDeterministicSums(t.fn);
    return fixed;
  });
  // partition(traced, axes of the mesh, cuts of each parameter or None, with cheaper layouts, deterministic sums,
  //           cuts of each result or None; [] where nothing is said of them)
  //   -> (Fn, cuts of each parameter, cuts of each result, communications, bytes in all)
  m.def("partition", [](const Traced& t, const Axes& axes, const std::vector<std::optional<CutsOfDims>>& cuts,
                        bool cheaper, bool deterministic, const std::vector<std::optional<CutsOfDims>>& results_as) {
    const Mesh mesh = MeshFrom(axes);
    PartitionOptions options{mesh, LayoutsFrom(mesh, cuts), LayoutsFrom(mesh, results_as), deterministic};
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
    return py::make_tuple(FnHandle{p.fn}, params, results, comms, p.Bytes());
  });
}

}  // namespace weft::python
