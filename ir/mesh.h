// Meshes of devices, and how arrays lie on them.
//
//   Mesh mesh{{{"data", 2}, {"model", 4}}};                  // mesh(data=2,model=4): 8 devices, the last axis fastest
//   Sharding s{{{"data"}, {}, {"model"}}, {}};               // (data,-,model): dimension 0 is cut in 2, dimension 2 in
//   4
//
// A dimension may be cut by several axes, major first: device (i, j) of (x.y) holds block i * size of y + j. Axes that
// a sharding does not name hold the same on all their devices; `partial` ones hold parts whose sum is the array.
#ifndef WEFT_IR_MESH_H_
#define WEFT_IR_MESH_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/type.h"

namespace weft {

struct Mesh {
  struct Axis {
    std::string name;
    int64_t size = 1;
    friend bool operator==(const Axis& a, const Axis& b) { return a.name == b.name && a.size == b.size; }
    template <class H>
    friend H AbslHashValue(H h, const Axis& a) {
      return H::combine(std::move(h), a.name, a.size);
    }
  };
  std::vector<Axis> axes;

  int64_t num_devices() const;
  bool Has(const std::string& axis) const;
  int64_t Size(const std::string& axis) const;  // raises kValue for an axis that it does not have
  // The place of a device along each axis; devices are numbered in row-major order.
  std::vector<int64_t> Coordinates(int64_t device) const;
  std::string ToString() const;
  friend bool operator==(const Mesh& a, const Mesh& b) { return a.axes == b.axes; }
  template <class H>
  friend H AbslHashValue(H h, const Mesh& m) {
    return H::combine(std::move(h), m.axes);
  }
};

struct Sharding {
  std::vector<std::vector<std::string>> dims;  // the axes that cut each dimension
  std::vector<std::string> partial;

  // The axes that cut a dimension, sorted.
  std::vector<std::string> Axes() const;
  std::string ToString() const;
  friend bool operator==(const Sharding& a, const Sharding& b) { return a.dims == b.dims && a.partial == b.partial; }
  template <class H>
  friend H AbslHashValue(H h, const Sharding& s) {
    return H::combine(std::move(h), s.dims, s.partial);
  }
};
using Shardings = std::vector<Sharding>;

// Raises kValue, beginning with `what`, unless every axis is one of the mesh and is used once, and there is an entry
// for each of `rank` dimensions.
void CheckSharding(const Mesh& mesh, const Sharding& sharding, int rank, const std::string& what);
// What one device holds of an array of type `global`. Raises kValue where a size is not a multiple of the cuts.
Type LocalType(const Mesh& mesh, const Sharding& sharding, const Type& global, const std::string& what);
// The array whose pieces have type `local`.
Type GlobalType(const Mesh& mesh, const Sharding& sharding, const Type& local);
// The block of dimension `dim` that the device at `coordinates` holds, and how many there are.
struct Block {
  int64_t index = 0, count = 1;
};
Block BlockOf(const Mesh& mesh, const Sharding& sharding, size_t dim, const std::vector<int64_t>& coordinates);

// Both sets of axes, sorted.
std::vector<std::string> UnionOfAxes(const std::vector<std::string>& a, const std::vector<std::string>& b);
// Those of `a` that are not in `b`.
std::vector<std::string> AxesWithout(const std::vector<std::string>& a, const std::vector<std::string>& b);

}  // namespace weft
#endif  // WEFT_IR_MESH_H_
