// Operations with infinite derivatives. 0 times infinity is NaN, so what is computed of elements that are left out
// must not have one.
#ifndef WEFT_TRANSFORMS_OPT_SINGULAR_H_
#define WEFT_TRANSFORMS_OPT_SINGULAR_H_

#include <cstdint>

#include "ir/fn.h"

namespace weft {

// Where an operation's derivatives are infinite, and where they are not.
struct Singular {
  enum class At : uint8_t {
    kNowhere,
    kOverflow,  // of operands whose result, or its derivative, is beyond the dtype
    kNumbers    // of ordinary numbers too, such as 0
  };
  At at = At::kNowhere;
  int operand = -1;     // of which operand; -1: at is kNowhere
  double harmless = 0;  // a number at which they are finite
  int count = 1;        // of operands, from `operand` on
};
const Singular& SingularOf(const Eqn& e);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_SINGULAR_H_
