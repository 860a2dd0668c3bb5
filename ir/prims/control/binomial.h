// The binomial schedule for reversing a loop with few snapshots: when to store a state on the way, so that the loop is
// run again as little as possible. A. Griewank and A. Walther, "Algorithm 799: Revolve", ACM TOMS 26 (2000).
//
// beta(c, r) = (c + r)! / (c! r!) steps can be reversed with c snapshots, the first of which holds the initial state,
// when no step is advanced more than r times. Reversing l steps takes r l - beta(c + 1, r - 1) advances, for the least
// r with beta(c, r) >= l, and nothing takes fewer.
#ifndef WEFT_IR_PRIMS_CONTROL_BINOMIAL_H_
#define WEFT_IR_PRIMS_CONTROL_BINOMIAL_H_

#include <cstdint>
#include <vector>

namespace weft {

// How far to go from a stored state before storing the next one, when `steps` >= 2 steps are to be reversed with
// `snapshots` >= 2 of them, the stored state's included.
int64_t BinomialAdvance(int64_t steps, int64_t snapshots);

// Where the snapshots are after the first pass over a loop of `steps` steps: at most `snapshots` of them, the first 0.
std::vector<int64_t> FirstSnapshots(int64_t steps, int64_t snapshots);

// How many steps a backward sweep over `steps` steps runs again to come by their states, with `snapshots` stored
// states, the initial one included: r steps - beta(snapshots + 1, r - 1), for the least r with beta(snapshots, r) >=
// steps, where beta(c, r) = (c + r)! / (c! r!) (Griewank and Walther, 2000, Proposition 1).
int64_t BinomialAdvances(int64_t steps, int64_t snapshots);

}  // namespace weft
#endif  // WEFT_IR_PRIMS_CONTROL_BINOMIAL_H_
