// The part of a partitioned program that one of several processes runs.
//
//   const Ints processes = {1, 0, 0, 1, 1};        // this is process 1; of the devices 0 to 3, it has 2 and 3
//   FnRef part = ForProcess(partitioned.fn, processes, "step(x: f32[8])", digest);
//
// A process holds of an array the blocks of its own devices, each once, one behind the other: a stack (ir/shards.h).
// Parameters and results of the part are stacks. Where there is one process, its part is all of the program.
#ifndef WEFT_TRANSFORMS_SHARD_PROCESSES_H_
#define WEFT_TRANSFORMS_SHARD_PROCESSES_H_

#include <string>

#include "ir/fn.h"
#include "ir/shards.h"

namespace weft {

// `fn`: its only equation is spmd, as Partition leaves it. `program` and `digest` say what runs: processes compare
// them. Raises kValue where this one has no device of the mesh.
FnRef ForProcess(const FnRef& fn, const Ints& processes, const std::string& program, int64_t digest);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_SHARD_PROCESSES_H_
