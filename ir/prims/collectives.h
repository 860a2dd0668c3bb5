// What collectives have in common: their axes.
#ifndef WEFT_IR_PRIMS_COLLECTIVES_H_
#define WEFT_IR_PRIMS_COLLECTIVES_H_

#include <string>

#include "ir/prim.h"

namespace weft {

// The axes of a collective, major first. Raises kValue for none, for a repeated one, and for one without a name.
const Strings& CheckAxes(const Sig& sig);
// Their sizes, of collectives that change shapes.
const Dims& CheckSizes(const Sig& sig);

// Raises kUnsupported when a region of the equation being batched refers to the axis that is being mapped, which `why`
// does not allow.
void RefuseMappedAxis(const BatchContext& c, const char* why);

}  // namespace weft
#endif  // WEFT_IR_PRIMS_COLLECTIVES_H_
