#include "ir/mesh.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "ir/error.h"

namespace weft {

int64_t Mesh::num_devices() const {
  int64_t n = 1;
  for (const Axis& a : axes) n *= a.size;
  return n;
}

bool Mesh::Has(const std::string& axis) const {
  return std::any_of(axes.begin(), axes.end(), [&](const Axis& a) { return a.name == axis; });
}

int64_t Mesh::Size(const std::string& axis) const {
  for (const Axis& a : axes) {
    if (a.name == axis) return a.size;
  }
  throw ValueError("there is no axis '", axis, "' in ", ToString());
}

std::vector<int64_t> Mesh::Coordinates(int64_t device) const {
  std::vector<int64_t> at(axes.size());
  for (size_t i = axes.size(); i-- > 0; device /= axes[i].size) at[i] = device % axes[i].size;
  return at;
}

std::string Mesh::ToString() const {
  return "mesh(" +
         absl::StrJoin(axes, ",",
                       [](std::string* out, const Axis& a) { *out += a.name + "=" + std::to_string(a.size); }) +
         ")";
}

std::vector<std::string> Sharding::Axes() const {
  std::vector<std::string> all;
  for (const auto& d : dims) all.insert(all.end(), d.begin(), d.end());
  std::sort(all.begin(), all.end());
  return all;
}

std::string Sharding::ToString() const {
  std::string text = "(" +
                     absl::StrJoin(dims, ",",
                                   [](std::string* out, const std::vector<std::string>& axes) {
                                     *out += axes.empty() ? "-" : absl::StrJoin(axes, ".");
                                   }) +
                     ")";
  if (!partial.empty()) text += "+" + absl::StrJoin(partial, ".");
  return text;
}

void CheckSharding(const Mesh& mesh, const Sharding& sharding, int rank, const std::string& what) {
  if (static_cast<int>(sharding.dims.size()) != rank) {
    throw ValueError(what, ": the sharding ", sharding.ToString(), " has ", sharding.dims.size(),
                     " entries for an array of ", rank, " dimensions");
  }
  std::vector<std::string> all = sharding.Axes();
  all.insert(all.end(), sharding.partial.begin(), sharding.partial.end());
  std::sort(all.begin(), all.end());
  for (size_t i = 0; i < all.size(); ++i) {
    if (!mesh.Has(all[i]))
      throw ValueError(what, ": the sharding ", sharding.ToString(), " names '", all[i], "', which is no axis of ",
                       mesh.ToString());
    if (i > 0 && all[i] == all[i - 1])
      throw ValueError(what, ": the sharding ", sharding.ToString(), " uses the axis '", all[i], "' twice");
  }
}

Type LocalType(const Mesh& mesh, const Sharding& sharding, const Type& global, const std::string& what) {
  CheckSharding(mesh, sharding, global.rank(), what);
  Type local = global;
  for (size_t d = 0; d < sharding.dims.size(); ++d) {
    int64_t cuts = 1;
    for (const std::string& axis : sharding.dims[d]) cuts *= mesh.Size(axis);
    if (cuts == 1) continue;
    const int64_t size = global.dims[d].value("a sharded dimension");
    if (size % cuts != 0) {
      throw ValueError(what, ": dimension ", d, " of ", global, " has size ", size, ", which the ", cuts,
                       " devices of ", absl::StrJoin(sharding.dims[d], " x "), " cannot share evenly (sharding ",
                       sharding.ToString(), " on ", mesh.ToString(), ")");
    }
    local.dims[d] = size / cuts;
  }
  local.varying = UnionOfAxes(local.varying, sharding.Axes());
  local.varying = UnionOfAxes(local.varying, sharding.partial);
  return local;
}

Type GlobalType(const Mesh& mesh, const Sharding& sharding, const Type& local) {
  Type global = local;
  for (size_t d = 0; d < sharding.dims.size(); ++d) {
    for (const std::string& axis : sharding.dims[d]) global.dims[d] = global.dims[d] * Dim(mesh.Size(axis));
  }
  global.varying = AxesWithout(AxesWithout(local.varying, sharding.Axes()), sharding.partial);
  return global;
}

Block BlockOf(const Mesh& mesh, const Sharding& sharding, size_t dim, const std::vector<int64_t>& coordinates) {
  Block block;
  for (const std::string& axis : sharding.dims[dim]) {
    for (size_t a = 0; a < mesh.axes.size(); ++a) {
      if (mesh.axes[a].name != axis) continue;
      block.index = block.index * mesh.axes[a].size + coordinates[a];
      block.count *= mesh.axes[a].size;
    }
  }
  return block;
}

std::vector<std::string> UnionOfAxes(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<std::string> all = a;
  all.insert(all.end(), b.begin(), b.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::vector<std::string> AxesWithout(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<std::string> rest;
  for (const std::string& axis : a) {
    if (std::find(b.begin(), b.end(), axis) == b.end()) rest.push_back(axis);
  }
  return rest;
}

}  // namespace weft
