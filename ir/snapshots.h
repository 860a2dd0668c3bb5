// snapshot_scan (ir/prims/snapshot_scan.cc) as plain loops, by the binomial schedule (ir/prims/binomial.h): what
// whoever lowers a program replaces it by.
#ifndef WEFT_IR_SNAPSHOTS_H_
#define WEFT_IR_SNAPSHOTS_H_

#include <cstdint>
#include <vector>

#include "ir/builder.h"
#include "ir/fn.h"

namespace weft {

// The results of the equation `e` on `operands`, which are atoms of `b`, as scan and while equations. `uses`: how often
// each of its results is read; one that is never read may come out as any value of its type.
Atoms ExpandSnapshotScan(Builder& b, const Eqn& e, const Atoms& operands, const std::vector<int>& uses);

// How many steps a backward sweep over `steps` steps runs again to come by their states, with `snapshots` stored
// states, the initial one included: r steps - beta(snapshots + 1, r - 1), for the least r with beta(snapshots, r) >=
// steps, where beta(c, r) = (c + r)! / (c! r!) (Griewank and Walther, 2000, Proposition 1).
int64_t BinomialAdvances(int64_t steps, int64_t snapshots);

}  // namespace weft
#endif  // WEFT_IR_SNAPSHOTS_H_
