#include "transforms/shard/program_meshes.h"

#include <algorithm>
#include <unordered_set>

#include "ir/prim.h"
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

bool HasConstraint(const Fn& fn) {
  return AnyFunction(fn, [](const Fn& f) { return std::any_of(f.eqns().begin(), f.eqns().end(), IsConstraint); });
}

}  // namespace weft
