// Forward-mode differentiation.
//
//   jvp : (a -> b)  =>  (a, T a) -> (b, T b)
//
//   JvpFn d = Jvp(f, {true, false});   // f: (x, y) -> z    d.fn: (x, y, dx) -> (z, dz)
//
// Only parameters marked active get a tangent, and only results that depend on one (`active_out`), so a value without
// tangent is a symbolic zero and costs nothing. Integers and booleans have no tangents. Raises kDerivative, with the
// user's line, for an operation whose derivative is not defined.
#ifndef WEFT_TRANSFORMS_AD_JVP_H_
#define WEFT_TRANSFORMS_AD_JVP_H_

#include "ir/fn.h"
#include "ir/prim.h"

namespace weft {

// Inexact results marked in `force_active` get a tangent even where it is zero.
JvpFn Jvp(const FnRef& fn, const Mask& active, const Mask& force_active = {});

}  // namespace weft
#endif  // WEFT_TRANSFORMS_AD_JVP_H_
