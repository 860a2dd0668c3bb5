#ifndef WEFT_BACKENDS_CPU_FIXED_CONTRACT_H_
#define WEFT_BACKENDS_CPU_FIXED_CONTRACT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/dtype.h"

namespace weft::cpu {

// out[b, m, n] = the sum over k of x[b, m, k] y[b, k, n], by the offsets of all points of each group of dimensions.
struct FixedContraction {
  const void* x;
  const void* y;
  void* out;
  std::vector<int64_t> xb, yb, ob, xm, om, yn, on, xk, yk;
  int64_t leaf;  // points of k that are added up one after the other
};

// What is wrong, or "".
std::string RunFixedContraction(const FixedContraction& c, DType operands, DType result);

}  // namespace weft::cpu
#endif  // WEFT_BACKENDS_CPU_FIXED_CONTRACT_H_
