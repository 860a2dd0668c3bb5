// A program without the numbers that are particular to it: the same code then serves `sin(x)*0.3 + x` and
// `sin(x)*0.7 + x`.
//
//   Tensors numbers;
//   const FnRef code = NumbersAsParameters(f, &numbers);   // f(x) = code(x, numbers...)
#ifndef WEFT_TRANSFORMS_OPT_NUMBERS_H_
#define WEFT_TRANSFORMS_OPT_NUMBERS_H_

#include <cstdint>

#include "ir/fn.h"
#include "ir/tensor.h"

namespace weft {

enum class WhichNumbers : uint8_t { kParticular, kAll };

// Literals of rank 0 that element-wise equations of `fn` read become parameters after its own, constants of their
// dtypes in the order of their first use; `numbers` gets their values. Of kAll so do those in loops, branches and
// calls. Of kParticular these stay, and numbers that programs have in common, since code may know them: integers, 0,
// infinities, NaN and multiples of 1/4 up to 1024. Booleans stay, and what is beyond the first 32.
FnRef NumbersAsParameters(const FnRef& fn, Tensors* numbers, WhichNumbers which = WhichNumbers::kParticular);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_NUMBERS_H_
