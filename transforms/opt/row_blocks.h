// Large intermediate arrays in blocks of rows: attention without the array of all scores.
//
//   s = contract[spec="hid,hjd->hij"] q k        f32[8,2048,2048]
//   p = softmax of s over j                      each row for itself
//   o = contract[spec="hij,hjd->hid"] p v        f32[8,2048,64]
//
// becomes a scan over h, and in it one over blocks of i, whose body holds s and p of one block. What may be cut along
// i, and how, is what the sharding rules say (ir/analysis/sharding_rules.h). Where a derivative will be taken the body
// is a `remat`: reverse mode computes a block again instead of keeping it.
#ifndef WEFT_TRANSFORMS_OPT_ROW_BLOCKS_H_
#define WEFT_TRANSFORMS_OPT_ROW_BLOCKS_H_

#include "ir/fn.h"
#include "transforms/opt/loops.h"

namespace weft {

// Its name where rules are counted or left out (transforms/opt/rule_watch.h).
inline constexpr char kRowBlocks[] = "rows-in-blocks";

// A product is computed in blocks where its result has at least `least_bytes`, all that follows keeps its rows apart
// until results are small, and computing it again costs little: it sums over at most `most_summed` elements.
struct RowBlockPolicy {
  int64_t least_bytes = kMostAtOnce + 1;  // smaller ones are computed at once, in loops too
  int64_t most_summed = 256;
  int64_t block_bytes = 2 * kWorthATrip;  // of its largest value, which lies in a cache
};

// For a program that is compiled as it is.
FnRef ComputeInBlocks(FnRef fn);
// For one that is about to be differentiated.
FnRef ComputeInBlocksAgain(FnRef fn);
FnRef ComputeInBlocks(FnRef fn, const RowBlockPolicy& policy, bool again);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_ROW_BLOCKS_H_
