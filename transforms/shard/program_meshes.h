// The meshes that a program names.
#ifndef WEFT_TRANSFORMS_SHARD_PROGRAM_MESHES_H_
#define WEFT_TRANSFORMS_SHARD_PROGRAM_MESHES_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/fn.h"
#include "ir/mesh.h"

namespace weft {

// A mesh, and the numbers of its devices in row-major order; empty: 0, 1, 2 ...
struct PlacedMesh {
  Mesh mesh;
  Ints devices;
  static PlacedMesh Of(const Eqn& e);  // of a constraint or spmd
  friend bool operator==(const PlacedMesh& a, const PlacedMesh& b) {
    return a.mesh == b.mesh && a.devices == b.devices;
  }
};
// The meshes that a program names, in constraints and spmd, at any depth.
std::vector<PlacedMesh> MeshesOf(const Fn& fn);
// The program with its constraints on some meshes on another mesh: `names` gives for such a mesh the axes of the other
// one that each of its axes is, the first one major, and null for those that stay.
using NamesOfAxes = std::map<std::string, Strings>;
FnRef WithConstraintsOn(const FnRef& fn, const PlacedMesh& mesh,
                        const std::function<const NamesOfAxes*(const PlacedMesh&)>& names);
FnRef WithoutConstraints(const FnRef& fn);
// Whether a program says how a value is to lie, at any depth.
bool HasConstraint(const Fn& fn);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_SHARD_PROGRAM_MESHES_H_
