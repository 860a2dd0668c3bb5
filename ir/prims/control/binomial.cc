#include "ir/prims/control/binomial.h"

#include <algorithm>

namespace weft {

// An advance of m is optimal iff beta(c, r-2) <= m <= beta(c, r-1) and beta(c-1, r-1) <= l - m <= beta(c-1, r): the
// m steps before the next snapshot are reversed last, with all c snapshots, those after it with c - 1. The largest such
// m is taken. (transforms/opt/expand_snapshot_scan.cc computes the same in the program.)
int64_t BinomialAdvance(int64_t steps, int64_t snapshots) {
  const int64_t c = snapshots;
  int64_t r = 1, range = c + 1;  // beta(c, r)
  while (range < steps) ++r, range = range * (c + r) / r;
  const int64_t before = range * r / (c + r);      // beta(c, r - 1)
  const int64_t after = before * c / (c + r - 1);  // beta(c - 1, r - 1)
  return std::min(before, steps - after);
}

std::vector<int64_t> FirstSnapshots(int64_t steps, int64_t snapshots) {
  std::vector<int64_t> positions = {0};
  while (static_cast<int64_t>(positions.size()) < snapshots && positions.back() < steps - 1) {
    const int64_t free = snapshots - static_cast<int64_t>(positions.size()) + 1;
    positions.push_back(positions.back() + BinomialAdvance(steps - positions.back(), free));
  }
  return positions;
}

int64_t BinomialAdvances(int64_t steps, int64_t snapshots) {
  if (steps <= 1) return 0;
  const int64_t c = snapshots;
  int64_t r = 1, range = c + 1;  // beta(c, r)
  while (range < steps) ++r, range = range * (c + r) / r;
  return r * steps - range * r / (c + 1);  // beta(c + 1, r - 1) = beta(c, r) r / (c + 1)
}

}  // namespace weft
