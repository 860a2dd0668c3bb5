// The axes of collectives: checks of their names and sizes, and the block of an array that this device holds.
#ifndef WEFT_IR_PRIMS_COLLECTIVES_H_
#define WEFT_IR_PRIMS_COLLECTIVES_H_

#include <string>

#include "ir/ops.h"
#include "ir/prim.h"

namespace weft {

// The axes of a collective, major first. Raises kValue for none, for a repeated one, and for one without a name.
const Strings& CheckAxes(const Sig& sig);
// Their sizes, of collectives that change shapes.
const Dims& CheckSizes(const Sig& sig);

// Where this device's block of `block` elements begins, of a dimension cut along `axes`: i32[], or i64[] where it has
// to be.
Atom FirstIndex(Builder& b, const Strings& axes, const Dims& sizes, int64_t block);
// This device's block of x, which is cut along `axes` in dimension `dim`.
Atom OwnBlock(Builder& b, const Atom& x, const Strings& axes, const Dims& sizes, int64_t dim);

// Raises kUnsupported when a region of the equation being batched refers to the axis that is being mapped, which `why`
// does not allow.
void RefuseMappedAxis(const BatchContext& c, const char* why);

}  // namespace weft
#endif  // WEFT_IR_PRIMS_COLLECTIVES_H_
