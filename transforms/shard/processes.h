// The part of a partitioned program that one of several processes runs.
//
//   const Ints processes = {1, 0, 0, 1, 1};        // this is process 1; of the devices 0 to 3, it has 2 and 3
//   FnRef part = ForProcess(partitioned.fn, processes, "step(x: f32[8])", digest);
//
// A process holds of an array the blocks of its own devices, each once, one behind the other: a stack. Parameters and
// results of the part are stacks.
#ifndef WEFT_TRANSFORMS_SHARD_PROCESSES_H_
#define WEFT_TRANSFORMS_SHARD_PROCESSES_H_

#include <string>
#include <vector>

#include "ir/fn.h"
#include "ir/mesh.h"
#include "ir/tensor.h"

namespace weft {

// What a process holds of an array.
struct HeldBlocks {
  std::vector<int64_t> devices;             // of the mesh, that belong to the process
  std::vector<size_t> place;                // of each one's block in the stack
  std::vector<std::vector<int64_t>> index;  // of each block of the stack: which one it is, along every dimension
};

// `processes`: this one, then that of each device of the mesh.
HeldBlocks BlocksHeld(const Mesh& mesh, const Sharding& sharding, const Ints& processes);

// The blocks that the process holds of an array that it has all of.
Tensor StackOfBlocks(const Tensor& whole, const Mesh& mesh, const Sharding& sharding, const Ints& processes);

// `fn`: its only equation is spmd, as Partition leaves it. `program` and `digest` say what runs: processes compare
// them. Raises kValue where this one has no device of the mesh.
FnRef ForProcess(const FnRef& fn, const Ints& processes, const std::string& program, int64_t digest);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_SHARD_PROCESSES_H_
