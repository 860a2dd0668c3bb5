// What partitioning begins with, and counts in the end.
#include "absl/strings/str_join.h"
#include "ir/error.h"
#include "transforms/opt/pass.h"
#include "transforms/shard/implicit_batch.h"
#include "transforms/shard/partition.h"
#include "transforms/shard/program_meshes.h"

namespace weft {

double Partitioned::Bytes() const {
  double bytes = 0;
  for (const Communication& c : comms) bytes += c.bytes * c.times;
  return bytes;
}

FnRef PreparedToCut(const FnRef& given, const Mesh& mesh) {
  if (!given->Symbols().empty())
    throw TypeError("a program is cut over devices for sizes that are known; '", given->name(), "' has the symbols ",
                    absl::StrJoin(given->Symbols(), ", "));
  for (const PlacedMesh& own : MeshesOf(*given)) {
    if (!(own.mesh == mesh))
      throw ValueError("'", given->name(), "' is cut over ", mesh.ToString(),
                       ", but holds a constraint or function for ", own.mesh.ToString(),
                       "; all have to be for one mesh");
  }
  const FnRef plain = RunPasses(given, {"drop-rules", "snapshots", "inline-most", "fold", "simplify", "cse"});
  return EliminateDeadCode(FindBatchDimensions(plain));
}

}  // namespace weft
