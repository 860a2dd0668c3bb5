// Programs cut over the devices of a mesh: constraints, and what compiling with sharded arguments does.
#include "python/bindings.h"
#include "transforms/fixed_order.h"
#include "transforms/partition.h"

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

// How a result was asked to lie, axes of size 1 included; nullptr where nothing was said of it.
const Sharding* AskedFor(const Fn& fn, const Atom& a) {
  for (const Eqn& e : fn.eqns()) {
    if (a.is_var() && e.first_result == a.id() && e.prim->name == "sharding_constraint" &&
        e.attrs.Get<Ints>("open").empty())
      return &e.attrs.Get<Shardings>("sharding")[0];
  }
  return nullptr;
}

}  // namespace

void BindPartition(py::module_& m) {
  // x, which is to lie as `cuts` say on a mesh of these axes; nothing is said of its dimensions `open`.
  m.def("sharding_constraint", [](py::handle x, const Axes& axes, const CutsOfDims& cuts, const Ints& open) {
    const Value v = ValueFrom(x, "with_sharding_constraint");
    Values y = Bind(FindPrim("sharding_constraint"), {v},
                    {{"mesh", MeshFrom(axes)}, {"sharding", Shardings{{cuts, {}}}}, {"open", open}});
    return Take(WrapValue(y[0].WithWeak(v.weak())));
  });
  // The meshes of the constraints and the spmd equations of a program: [(axes, whether of a constraint), ...].
  m.def("meshes_of", [](const Traced& t) {
    std::vector<Axes> meshes;
    for (const Mesh& mesh : MeshesOf(*t.fn)) meshes.push_back(AxesOf(mesh));
    return meshes;
  });
  m.def("has_constraint", [](const Traced& t) { return HasConstraint(*t.fn); });
  // The same program with sums in a fixed order.
  m.def("fixed_order", [](const Traced& t) {
    Traced fixed = t;
    fixed.fn = FixedOrder(t.fn);
    return fixed;
  });
  // partition(traced, axes of the mesh, cuts of each parameter or None, with cheaper layouts, sums in a fixed order)
  //   -> (Fn, cuts of each parameter, cuts of each result, communications, bytes in all)
  m.def("partition", [](const Traced& t, const Axes& axes, const std::vector<std::optional<CutsOfDims>>& cuts,
                        bool cheaper, bool fixed_order) {
    const Mesh mesh = MeshFrom(axes);
    PartitionOptions options{mesh, LayoutsFrom(mesh, cuts), {}, fixed_order};
    Partitioned p;
    std::vector<CheaperLayout> less;
    {
      py::gil_scoped_release unlocked;
      p = Partition(t.fn, options);
      if (cheaper) less = CheaperLayouts(t.fn, options, p);
    }
    std::vector<CutsOfDims> params, results;
    for (const Layout& l : p.params) params.push_back(ShardingOf(mesh, l).dims);
    for (size_t i = 0; i < p.results.size(); ++i) {
      const Sharding* asked = AskedFor(*t.fn, t.fn->results()[i]);
      results.push_back(asked != nullptr ? asked->dims : ShardingOf(mesh, p.results[i]).dims);
    }
    py::list comms;
    for (const Communication& c : p.comms) {
      py::object better = py::none();
      for (const CheaperLayout& l : less) {
        if (l.param == c.param && l.layout == c.needed)
          better = py::make_tuple(l.param, ShardingOf(mesh, l.layout).dims, l.bytes);
      }
      comms.append(py::make_tuple(c.prim, c.axes, c.bytes, c.times, c.cause, c.loc ? c.loc.ToString() : "", better));
    }
    return py::make_tuple(FnHandle{p.fn}, params, results, comms, p.Bytes());
  });
}

}  // namespace weft::python
