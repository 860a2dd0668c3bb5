#include "ir/prim.h"
#include "transforms/opt/expand_snapshot_scan.h"
#include "transforms/opt/pass.h"
#include "transforms/opt/rewrite.h"

namespace weft {

FnRef ExpandSnapshots(FnRef fn) {
  std::vector<std::vector<int>> uses;
  return Rewrite(
      std::move(fn),
      [&](Builder& b, const Eqn& e, const Atoms& operands) -> std::optional<Atoms> {
        if (e.prim->region_use != RegionUse::kSnapshots) return std::nullopt;
        const auto first = uses.back().begin() + e.first_result;
        return ExpandSnapshotScan(b, e, operands, std::vector<int>(first, first + e.num_results));
      },
      [&](const Fn& f, Builder&) { uses.push_back(f.UseCounts()); }, [&] { uses.pop_back(); });
}

}  // namespace weft
