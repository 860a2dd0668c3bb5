// Transposition of linear functions: reverse mode is linearise, then transpose.
//
//   transpose : (r, Ta -o Tb)  =>  (r, CT b) -> CT a
//
// The linear equations are visited last to first; a value used twice receives the sum of its cotangents; a value never
// reached has a symbolic zero. Equations that do not depend on the linear parameters are computed forwards first.
// Raises kDerivative for an equation that is not linear in what depends on them.
#ifndef WEFT_TRANSFORMS_AD_TRANSPOSE_H_
#define WEFT_TRANSFORMS_AD_TRANSPOSE_H_

#include "ir/builder.h"

namespace weft {

// Parameters of the result: those that are not linear, then the cotangent of every result. Results: the cotangent of
// every linear parameter.
FnRef Transpose(const FnRef& fn, const Mask& linear);

// The same for a function that `Split` has cut off: no equation mixes linear results with others.
FnRef TransposeLinearHalf(const FnRef& fn, const Mask& linear);

// Appends that to a function under construction, for these values of its parameters.
Atoms EmitTransposed(Builder& b, const Fn& fn, const Mask& linear, absl::Span<const Atom> args);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_AD_TRANSPOSE_H_
