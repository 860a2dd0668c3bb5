// Checks programs in explicit memory form: those that say by `allocate`, `into` and `free` where every value lies.
//
//   fn f(x: f32[8]) -> (f32[8]) {
//     a = allocate[at=0, dtype=f32, place="arena", shape=<8>]
//     b = into a x (to: f32[8], x: f32[8]) { c = sin x; return c }     // b lies where a is
//     d = allocate[at=0, dtype=f32, place="result", shape=<8>]
//     e = into d b (to: f32[8], x: f32[8]) { c = exp x; return c }
//     free b
//     return e
//   }
//
// A value lies in the memory of an allocation or of a parameter; what `load` gives needs none. What is computed into
// memory ends what was there. Of operations with regions, results of branches lie in the memory of an operand that the
// branches have computed into; carries of loops in that of the carry they replace; stacked results in that of an array
// whose slices the body computed into. Reshapes, and whatever else leaves an array's bytes as they are, lie where their
// operand does.
#ifndef WEFT_IR_MEMORY_FORM_H_
#define WEFT_IR_MEMORY_FORM_H_

#include <cstdint>

#include "ir/fn.h"

namespace weft {

// Whether an equation of it, at any depth, allocates.
bool IsInMemoryForm(const Fn& fn);

// Raises kValue, with the operation, what it reads or takes, and its line, where a value is read that is not there any
// more or not yet, memory is taken that another value has or given back twice, or an operation has no memory to compute
// into. `fn` is a program, and has been verified (ir/verify.h).
void VerifyMemory(const Fn& fn);

// The bytes of the arena that the allocations of `fn` reach to, at any depth.
int64_t ArenaBytes(const Fn& fn);

}  // namespace weft
#endif  // WEFT_IR_MEMORY_FORM_H_
