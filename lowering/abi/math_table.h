// The runtime's table of element-wise functions that compiled code calls where it has no inline expansion.
//
// Entry MathIndex(op, dtype) computes n elements in memory. Elements of f16 and bf16 are passed as f32; integers,
// f32, f64, c64 and c128 as themselves; bool does not occur.
#ifndef WEFT_LOWERING_ABI_MATH_TABLE_H_
#define WEFT_LOWERING_ABI_MATH_TABLE_H_

#include <string>

namespace weft {

inline constexpr const char* kMathOps[] = {
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1p",
    "sqrt",
    "cbrt",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "erf",
    "erfc",
    "erf_inv",
    "lgamma",
    "digamma",
    "trigamma",
    "abs",
    "round_away",
    // two operands
    "pow",
    "atan2",
    "rem",
    "div",
    // 8-bit floats (dtype: the 8-bit one) to f32 and back
    "load_f8",
    "store_f8",
};
inline constexpr int kNumMathOps = sizeof(kMathOps) / sizeof(kMathOps[0]);
inline constexpr int kMathDTypes = 18;

inline int MathIndex(const std::string& op, int dtype) {
  for (int i = 0; i < kNumMathOps; ++i) {
    if (op == kMathOps[i]) return i * kMathDTypes + dtype;
  }
  return -1;
}

}  // namespace weft
#endif  // WEFT_LOWERING_ABI_MATH_TABLE_H_
