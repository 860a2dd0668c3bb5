// Checks that a function is what ir/fn.h promises. Passes run it after themselves in debug builds and tests; readers of
// foreign text or bytes need it only as a second net, since they build through ir/builder.h.
//
//   Verify(*fn);                 // throws kInternal:
//
//   verify: f: add has result types (f32[3]), but the function says (f32[4])
//     fn f(x: f32[3]) -> (f32[4]) {
//     > a: f32[4] = add x x
//     }
//     made by jvp
//     at model.py:12 in loss
//     expected (f32[3])
//     found    (f32[4])
#ifndef WEFT_IR_VERIFY_H_
#define WEFT_IR_VERIFY_H_

#include "ir/fn.h"

namespace weft {

struct VerifyOptions {
  // Literals of any size: those of a program on its way to code, in which a rule of the user's may have left arrays
  // that it took from outside.
  bool large_literals = false;
};

// Numbering, definition before use, literals, attributes, regions, and every type against the primitive's type rule;
// in all regions, each function once however often it is used.
void Verify(const Fn& fn, const VerifyOptions& options = {});

}  // namespace weft
#endif  // WEFT_IR_VERIFY_H_
