// A program for the devices of a mesh, from one for whole arrays.
//
//   Partitioned p = Partition(fn, {.mesh = mesh, .params = {LayoutOf(...), std::nullopt}, .results = {std::nullopt}});
//   p.fn        // the same parameters and results, and one equation: spmd
//   p.comms     // every collective that was put in: where, how much, and why
//
// How values are cut spreads from what is said of parameters, results and in sharding_constraint (propagation.h). Then
// each equation is cut in the way that costs least: bytes sent for its operands and results, and work per device. A
// sum over a cut dimension stays in parts as long as what follows is linear in it. Nothing depends on how many devices
// an axis has.
#ifndef WEFT_TRANSFORMS_SHARD_PARTITION_H_
#define WEFT_TRANSFORMS_SHARD_PARTITION_H_

#include <string>
#include <utility>
#include <vector>

#include "ir/fn.h"
#include "transforms/shard/propagation.h"
#include "transforms/shard/reshard.h"

namespace weft {

struct PartitionOptions {
  Mesh mesh;
  OptionalLayouts params, results;  // empty: nothing is said of any
  // Of each parameter and result the axes along which it is a sum in parts (empty: none is). Those of the program that
  // is made have the parts side by side, along a dimension of their own in front that these axes cut.
  std::vector<uint32_t> params_in_parts, results_in_parts;
  // The program is one of deterministic.h: no sum is cut or kept in parts where that would change its order.
  bool deterministic = false;
};

// A collective of a partitioned program.
struct Communication {
  std::string prim;
  Strings axes;
  double bytes = 0;   // that each device receives, each time
  double times = 1;   // how often it runs; trips of a loop of unknown length count once
  std::string cause;  // what lies how, and who needs it otherwise
  Loc loc;            // of who needs it
  int param = -1;     // the parameter of the program that is moved, if it is one, and how it is needed
  Layout needed;
};

struct Partitioned {
  FnRef fn;
  std::vector<Layout> params, results;
  std::vector<Communication> comms;
  std::vector<std::pair<int64_t, Layout>> told;  // by the numbers of callbacks that ask: how their first operands lie
  double Bytes() const;                          // that each device receives
};

// Raises kType for a program with symbolic sizes, kValue for one that holds meshes of its own that are another one, and
// for layouts that do not divide sizes evenly. A mesh of one device needs no spmd.
Partitioned Partition(const FnRef& fn, const PartitionOptions& options);
// Its two steps, for those who do the second more than once: the program that can be cut, and that, cut.
FnRef PreparedToCut(const FnRef& given, const Mesh& mesh);
Partitioned PartitionPrepared(const FnRef& prepared, const PartitionOptions& options);

// The layout of a parameter with which the program would send least, if that is less than it does.
struct CheaperLayout {
  int param = 0;
  Layout layout;
  double bytes = 0;  // of the whole program then
};
// Of the first so many parameters, each alone: the program is partitioned with every layout, those with fewer axes
// first, up to 256 for a parameter and 1,000 in all.
std::vector<CheaperLayout> CheaperLayouts(const FnRef& fn, size_t arguments, const PartitionOptions& options,
                                          const Partitioned& given);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_SHARD_PARTITION_H_
