// Moving an array from one layout on a mesh to another: the cheapest sequence of collectives, found by Dijkstra's
// algorithm over layouts. One step works on one whole axis of the mesh, a sum on any number of them:
//
//   slice          an axis begins to cut a dimension, from within               nothing is sent
//   gather         the innermost axis of a dimension no longer cuts it          b (n - 1) bytes
//   all_to_all     the innermost axis of one dimension goes to another one      b (n - 1) / n
//   scatter        an axis along which parts of a sum lie cuts a dimension      b (n - 1) / n
//   sum            the parts are added                                          2 b (n - 1) / n
//   swap           two axes of one size change places (a permutation)           b
//
// b is what one device holds at that moment, n how many devices take part. Gathers and scatters that follow each other
// and are one collective over several axes are emitted as one.
#ifndef WEFT_TRANSFORMS_SHARD_RESHARD_H_
#define WEFT_TRANSFORMS_SHARD_RESHARD_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/builder.h"
#include "ir/mesh.h"

namespace weft {

// A sharding by numbers of axes. Axes of size 1 cut nothing and are never named.
struct Layout {
  std::vector<std::vector<int>> dims;
  uint32_t partial = 0;   // axes along which parts of a sum lie
  uint32_t Cuts() const;  // the axes that cut a dimension
  uint32_t Axes() const { return Cuts() | partial; }
  friend bool operator==(const Layout& a, const Layout& b) { return a.dims == b.dims && a.partial == b.partial; }
};

inline uint32_t AxisBit(int axis) { return uint32_t{1} << axis; }
Layout Replicated(int rank);
Layout LayoutOf(const Mesh& mesh, const Sharding& sharding);
Sharding ShardingOf(const Mesh& mesh, const Layout& layout);
Strings AxisNames(const Mesh& mesh, uint32_t axes);  // sorted
// How many blocks the axes make.
int64_t Blocks(const Mesh& mesh, const std::vector<int>& axes);
// The bytes that a device receives in a collective among n devices, each of which holds that many, where every one
// sends and receives as little as it can: a sum or maximum on all of them is a scatter and a gather.
double BytesReceived(const std::string& prim, double bytes, double n);
// What one device holds.
Type LocalTypeOf(const Mesh& mesh, const Layout& layout, const Type& global);

struct ReshardStep {
  enum class Kind { kSlice, kGather, kAllToAll, kScatter, kSum, kSwap };
  Kind kind = Kind::kSlice;
  std::vector<int> axes;  // major first; of a swap both
  int dim = 0, to = 0;
  double bytes = 0;  // that a device receives
};

struct ReshardPlan {
  std::vector<ReshardStep> steps;
  double bytes = 0;
  double cost = 0;       // bytes, and something for every collective
  double gathered = 0;   // of the bytes, those of gathers
  uint32_t gathers = 0;  // the axes that are gathered
};

// A collective as it was emitted.
struct Emitted {
  std::string prim;
  Strings axes;
  double bytes = 0;
};

class Resharder {
 public:
  // Raises kValue for a mesh of more than 16 axes.
  explicit Resharder(Mesh mesh);
  const Mesh& mesh() const { return mesh_; }

  // `from` and `to` cut the sizes of `global` evenly; `to` is partial over axes of `from` alone. `costs` alone: the
  // plan's cost.
  const ReshardPlan& Plan(const Type& global, const Layout& from, const Layout& to);
  // x, which lies as `from`, as it is after `plan`. Reports each collective.
  Atom Emit(Builder& b, const Atom& x, const ReshardPlan& plan, std::vector<Emitted>* emitted) const;

 private:
  ReshardPlan Search(const Shape& shape, int width, const Layout& from, const Layout& to) const;

  Mesh mesh_;
  std::map<std::string, ReshardPlan> plans_;
};

// x, of which each device along the axes holds its value, on all of them: stacked in a new first dimension.
Atom GatherStacked(Builder& b, const Atom& x, const Mesh& mesh, const Strings& axes);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_SHARD_RESHARD_H_
