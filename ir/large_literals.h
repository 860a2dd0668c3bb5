// Literals of more than kMaxLiteralElements elements, which no text or bytes of a program hold. A derivative rule that
// is run in a transform leaves them where it uses an array from outside: the function that is transformed has no
// parameter for it.
#ifndef WEFT_IR_LARGE_LITERALS_H_
#define WEFT_IR_LARGE_LITERALS_H_

#include "ir/fn.h"
#include "ir/tensor.h"

namespace weft {

struct WithConstants {
  FnRef fn;  // what it took, then a parameter of kind kConstant for each large literal
  Tensors constants;
};

// `fn` without large literals. In regions they are constants that loops, branches and functions with rules hand on
// (PlaceOfConstants, ir/prims/control/constant_operands.h).
WithConstants WithoutLargeLiterals(const FnRef& fn);

// Whether there has ever been one in this process: what most programs need not be searched for.
bool LargeLiteralsWereMade();

}  // namespace weft
#endif  // WEFT_IR_LARGE_LITERALS_H_
