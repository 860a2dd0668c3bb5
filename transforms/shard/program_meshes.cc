#include "transforms/shard/program_meshes.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <variant>

#include "ir/builder.h"
#include "ir/prim.h"
#include "transforms/opt/rewrite.h"
#include "transforms/shard/propagation.h"

namespace weft {
namespace {

void CollectMeshes(const Fn& fn, std::unordered_set<const Fn*>& seen, std::vector<PlacedMesh>& meshes) {
  for (const Eqn& e : fn.eqns()) {
    const bool spmd = e.prim->region_use == RegionUse::kDevices;
    if (spmd || IsConstraint(e)) {
      const PlacedMesh mesh = PlacedMesh::Of(e);
      if (std::find(meshes.begin(), meshes.end(), mesh) == meshes.end()) meshes.push_back(mesh);
    }
    if (spmd) continue;
    for (const FnRef& r : e.regions) {
      if (seen.insert(r.get()).second) CollectMeshes(*r, seen, meshes);
    }
  }
}

}  // namespace

PlacedMesh PlacedMesh::Of(const Eqn& e) { return {e.attrs.Get<Mesh>("mesh"), e.attrs.GetOr<Ints>("devices", {})}; }

std::vector<PlacedMesh> MeshesOf(const Fn& fn) {
  std::vector<PlacedMesh> meshes;
  std::unordered_set<const Fn*> seen;
  CollectMeshes(fn, seen, meshes);
  return meshes;
}

FnRef WithConstraintsOn(const FnRef& fn, const PlacedMesh& mesh,
                        const std::function<const NamesOfAxes*(const PlacedMesh&)>& names) {
  return Rewrite(fn, [&](Builder& b, const Eqn& e, const Atoms& x) -> std::optional<Atoms> {
    const NamesOfAxes* const of = IsConstraint(e) ? names(PlacedMesh::Of(e)) : nullptr;
    if (of == nullptr) return std::nullopt;
    const auto renamed = [&](const Strings& axes) {
      Strings all;
      for (const std::string& axis : axes) all.insert(all.end(), of->at(axis).begin(), of->at(axis).end());
      return all;
    };
    Attrs attrs = e.attrs;
    Shardings sharding = e.attrs.Get<Shardings>("sharding");
    for (Strings& axes : sharding[0].dims) axes = renamed(axes);
    attrs.Set("sharding", sharding);
    attrs.Set("mesh", mesh.mesh);
    if (!mesh.devices.empty()) attrs.Set("devices", mesh.devices);
    for (const char* name : {"unreduced", "reduced", "typed"}) {
      if (const Attr* axes = e.attrs.Find(name)) attrs.Set(name, renamed(std::get<Strings>(*axes)));
    }
    return b.Emit(*e.prim, x, attrs, e.regions);
  });
}

FnRef WithoutConstraints(const FnRef& fn) {
  return Rewrite(fn, [](Builder&, const Eqn& e, const Atoms& x) -> std::optional<Atoms> {
    if (IsConstraint(e)) return x;
    return std::nullopt;
  });
}

bool HasConstraint(const Fn& fn) {
  return AnyFunction(fn, [](const Fn& f) { return std::any_of(f.eqns().begin(), f.eqns().end(), IsConstraint); });
}

}  // namespace weft
