#include "lowering/fusion/siblings.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

namespace weft {
namespace {

// More of either in one kernel take registers from each other.
constexpr size_t kMostMembers = 48, kMostResults = 6;

std::vector<Dim> WithoutOnes(const Dims& dims) {
  std::vector<Dim> out;
  std::copy_if(dims.begin(), dims.end(), std::back_inserter(out), [](const Dim& d) { return !(d == Dim(1)); });
  return out;
}

}  // namespace

void MergeSiblings(const Fn& fn, const FusionPolicy& policy, BlockPlan* plan, UnitGraph* graph) {
  if (!policy.fuse) return;
  std::vector<bool> is_result(fn.num_vars(), false);
  for (const Atom& a : fn.results()) {
    if (a.is_var()) is_result[plan->Root(a.id())] = true;
  }
  const auto written = [&](const BlockPlan::Unit& u) {
    size_t count = 0;
    for (const int i : u.members) {
      const uint32_t var = fn.eqns()[i].first_result;
      if (!plan->values[var].stored) continue;
      if (!is_result[var]) return kMostResults + 1;
      ++count;
    }
    return count;
  };
  const auto waits_for = [&](int unit) {
    std::vector<int> sources = graph->Sources(unit);
    std::sort(sources.begin(), sources.end());
    return sources;
  };
  std::map<uint32_t, std::vector<int>> readers;  // of an array that fills the domain: groups, in order
  for (int k = 0; k < static_cast<int>(plan->units.size()); ++k) {
    BlockPlan::Unit& u = plan->units[k];
    if (u.opaque >= 0 || u.dead || u.has_inner() || written(u) >= kMostResults) continue;
    const auto fills = [&](uint32_t var) { return WithoutOnes(fn.TypeOf(Var{var}).dims) == u.dims; };
    int into = -1;
    for (const uint32_t var : u.reads) {
      if (into >= 0 || !fills(var)) continue;
      for (const int other : readers[var]) {
        BlockPlan::Unit& o = plan->units[other];
        if (o.dead || !(o.dims == u.dims) || o.members.size() + u.members.size() > kMostMembers ||
            written(o) + written(u) > kMostResults || waits_for(other) != waits_for(k) || !graph->Merge(other, k))
          continue;
        into = other;
        break;
      }
    }
    if (into < 0) {
      for (const uint32_t var : u.reads) {
        if (fills(var)) readers[var].push_back(k);
      }
      continue;
    }
    BlockPlan::Unit& o = plan->units[into];
    for (const int i : u.members) {
      plan->values[fn.eqns()[i].first_result].unit = into;
      o.members.push_back(i);
    }
    std::sort(o.members.begin(), o.members.end());
    std::vector<uint32_t> reads;
    std::set_union(o.reads.begin(), o.reads.end(), u.reads.begin(), u.reads.end(), std::back_inserter(reads));
    for (const uint32_t var : u.reads) {
      if (fills(var) && std::find(readers[var].begin(), readers[var].end(), into) == readers[var].end())
        readers[var].push_back(into);
    }
    o.reads = std::move(reads);
    u.dead = true;
    u.members.clear();
  }
}

}  // namespace weft
