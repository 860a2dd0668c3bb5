// snapshot_scan (ir/prims/control/snapshot_scan.cc) as plain loops, by the binomial schedule
// (ir/prims/control/binomial.h): what whoever lowers a program replaces it by.
#ifndef WEFT_TRANSFORMS_OPT_EXPAND_SNAPSHOT_SCAN_H_
#define WEFT_TRANSFORMS_OPT_EXPAND_SNAPSHOT_SCAN_H_

#include <vector>

#include "ir/builder.h"
#include "ir/fn.h"

namespace weft {

// The results of the equation `e` on `operands`, which are atoms of `b`, as scan and while equations. `uses`: how often
// each of its results is read; one that is never read may come out as any value of its type.
Atoms ExpandSnapshotScan(Builder& b, const Eqn& e, const Atoms& operands, const std::vector<int>& uses);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_EXPAND_SNAPSHOT_SCAN_H_
