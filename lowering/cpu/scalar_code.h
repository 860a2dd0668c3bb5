// Which element-wise operations have code, for tests.
#ifndef WEFT_LOWERING_CPU_SCALAR_CODE_H_
#define WEFT_LOWERING_CPU_SCALAR_CODE_H_

#include "base/dtype.h"
#include "ir/prim.h"

namespace weft {

// Whether a row of scalar_ops.cc computes it for a first operand of this dtype, or a function of the runtime does.
bool HasScalarCode(const Prim& prim, DType dtype);

}  // namespace weft
#endif  // WEFT_LOWERING_CPU_SCALAR_CODE_H_
