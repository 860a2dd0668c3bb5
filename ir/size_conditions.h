// What the symbolic sizes of a function have to be for it to run.
//
//   fn f(x: f32[n]) ...  // top_k[k=3] x
//   SizeConditions(*f)   // {size: n, least: 3, what: "top_k: dimension 0 of f32[n]"}
//
// The type rules say it, by Sig::Fits; whoever runs a function checks it when the sizes are known.
#ifndef WEFT_IR_SIZE_CONDITIONS_H_
#define WEFT_IR_SIZE_CONDITIONS_H_

#include <vector>

#include "ir/fn.h"
#include "ir/prim.h"

namespace weft {

// Those of all equations, regions included, also where a branch may not be taken. Sizes of results that could be
// negative are among them.
std::vector<SizeCondition> SizeConditions(const Fn& fn);

}  // namespace weft
#endif  // WEFT_IR_SIZE_CONDITIONS_H_
