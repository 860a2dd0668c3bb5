// Products as cuBLASLt takes them: one dimension of each kind, and matrices that it can describe.
#ifndef WEFT_LOWERING_GPU_PRODUCTS_H_
#define WEFT_LOWERING_GPU_PRODUCTS_H_

#include <optional>

#include "ir/fn.h"
#include "lowering/abi/gpu_artifact.h"

namespace weft {

// None where cuBLASLt cannot describe it.
std::optional<GpuMatmul> DescribeProduct(const abi::Contract<abi::InWords>& told);

// `fn` with products that can all be described. An operand that cannot be read where it lies, as one that is broadcast,
// is computed into an array of its own; a sum of no terms is zero. Raises kUnsupported, with the user's line, for what
// cuBLASLt does not do. Sizes have to be known.
FnRef WithDescribedProducts(const FnRef& fn);

}  // namespace weft
#endif  // WEFT_LOWERING_GPU_PRODUCTS_H_
