// The runtime's table of element-wise functions that compiled code calls where it has no inline expansion: a row each,
// with its name, which compiled code knows, and its meaning, which backends/cpu/ops/math_library.cc reads.
//
// Entry MathIndex(op, dtype) computes n elements in memory. Elements of f16 and bf16 are passed as f32; integers,
// f32, f64, c64 and c128 as themselves; bool does not occur.
#ifndef WEFT_LOWERING_ABI_MATH_TABLE_H_
#define WEFT_LOWERING_ABI_MATH_TABLE_H_

#include <string>

#include "base/dtype.h"

// ROW(name, meanings ...). Of floats and complex numbers, in double precision, v and w; in their own precision, x and
// y. (Single precision through double is rounded correctly nearly always, and these calls are rare.)
#define WEFT_MATH_TABLE(ROW)                                                           \
  ROW("exp", FLOATS(std::exp(v)), COMPLEX(std::exp(v)))                                \
  ROW("exp2", FLOATS(std::exp2(v)), COMPLEX(Exp2(v)))                                  \
  ROW("expm1", FLOATS(std::expm1(v)), COMPLEX(Expm1(v)))                               \
  ROW("log", FLOATS(std::log(v)), COMPLEX(std::log(v)))                                \
  ROW("log1p", FLOATS(std::log1p(v)), COMPLEX(Log1p(v)))                               \
  ROW("sqrt", FLOATS(std::sqrt(v)), COMPLEX(std::sqrt(v)))                             \
  ROW("rsqrt", COMPLEX(1.0 / std::sqrt(v)))                                            \
  ROW("logistic", COMPLEX(Logistic(v)))                                                \
  ROW("cbrt", FLOATS(CubeRoot(v)))                                                     \
  ROW("sin", FLOATS(std::sin(v)), COMPLEX(std::sin(v)))                                \
  ROW("cos", FLOATS(std::cos(v)), COMPLEX(std::cos(v)))                                \
  ROW("tan", FLOATS(std::tan(v)), COMPLEX(std::tan(v)))                                \
  ROW("asin", FLOATS(std::asin(v)), COMPLEX(std::asin(v)))                             \
  ROW("acos", FLOATS(std::acos(v)), COMPLEX(std::acos(v)))                             \
  ROW("atan", FLOATS(std::atan(v)), COMPLEX(std::atan(v)))                             \
  ROW("sinh", FLOATS(std::sinh(v)), COMPLEX(std::sinh(v)))                             \
  ROW("cosh", FLOATS(std::cosh(v)), COMPLEX(std::cosh(v)))                             \
  ROW("tanh", FLOATS(std::tanh(v)), COMPLEX(std::tanh(v)))                             \
  ROW("asinh", FLOATS(std::asinh(v)), COMPLEX(std::asinh(v)))                          \
  ROW("acosh", FLOATS(std::acosh(v)), COMPLEX(std::acosh(v)))                          \
  ROW("atanh", FLOATS(std::atanh(v)), COMPLEX(std::atanh(v)))                          \
  ROW("erf", FLOATS(std::erf(v)))                                                      \
  ROW("erfc", FLOATS(std::erfc(v)))                                                    \
  ROW("erf_inv", FLOATS(ErfInv(v, sizeof(x) == sizeof(float))))                        \
  ROW("lgamma", FLOATS(LogGamma(v)))                                                   \
  ROW("digamma", FLOATS(Digamma(v)))                                                   \
  ROW("trigamma", FLOATS(Trigamma(v)))                                                 \
  ROW("abs", MAGNITUDE(std::abs(v)))                                                   \
  ROW("pow", FLOATS2(std::pow(v, w)), COMPLEX2(Power(v, w)), INTEGERS2(PowInts(x, y))) \
  ROW("atan2", FLOATS2(std::atan2(v, w)))                                              \
  ROW("rem", FLOATS2(std::fmod(x, y)))                                                 \
  ROW("div", COMPLEX2(Quotient(x, y)))                                                 \
  /* 8-bit floats (dtype: the 8-bit one) to f32 and back. */                           \
  ROW("load_f8", LOAD_FLOAT8)                                                          \
  ROW("store_f8", STORE_FLOAT8)

namespace weft {

inline constexpr const char* kMathOps[] = {
#define WEFT_MATH_NAME(name, ...) name,
    WEFT_MATH_TABLE(WEFT_MATH_NAME)
#undef WEFT_MATH_NAME
};
inline constexpr int kNumMathOps = sizeof(kMathOps) / sizeof(kMathOps[0]);

inline int MathIndex(const std::string& op, int dtype) {
  for (int i = 0; i < kNumMathOps; ++i) {
    if (op == kMathOps[i]) return i * kNumDTypes + dtype;
  }
  return -1;
}

}  // namespace weft
#endif  // WEFT_LOWERING_ABI_MATH_TABLE_H_
