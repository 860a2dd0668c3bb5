// What the symbolic sizes of a function have to be for it to run.
//
//   fn f(x: f32[n]) ...  // top_k[k=3] x
//   SizeConditions(*f)   // {size: n, least: 3, what: "top_k: dimension 0 of f32[n]"}
//
// The type rules say it, by Sig::Fits; whoever runs a function checks it when the sizes are known.
#ifndef WEFT_IR_ANALYSIS_SIZE_CONDITIONS_H_
#define WEFT_IR_ANALYSIS_SIZE_CONDITIONS_H_

#include <vector>

#include "ir/fn.h"
#include "ir/prim.h"

namespace weft {

// Of its own equations. Those of regions hold when the region runs, which it may not.
std::vector<SizeCondition> SizeConditions(const Fn& fn);
// Of one of them.
std::vector<SizeCondition> SizeConditions(const Fn& fn, const Eqn& eqn);
// That sizes of results are not negative, where they could be: of all equations, regions included, since memory is laid
// out for all of them.
std::vector<SizeCondition> ResultSizes(const Fn& fn);

}  // namespace weft
#endif  // WEFT_IR_ANALYSIS_SIZE_CONDITIONS_H_
