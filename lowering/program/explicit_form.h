// The explicit memory form of a program: allocations, what is computed into them, and what is given back, as equations.
//
//   x + 1 -> tanh:   a = allocate[at=0, dtype=f32, place="arena", shape=<8>]
//                    b = into a x (to, x) { c = add x 1; return c }
//                    ...
//
// It says what lowering decides for a CPU: which equations are computed together (the regions of `into`), which values
// share memory (one is computed into that of another), where in the arena they lie, and when it is given back. As a
// program it means what it meant; ir/memory_form.h checks that no value is read after its memory was taken.
#ifndef WEFT_LOWERING_PROGRAM_EXPLICIT_FORM_H_
#define WEFT_LOWERING_PROGRAM_EXPLICIT_FORM_H_

#include "ir/fn.h"

namespace weft {

// Raises kUnsupported for sizes that only a call tells, for loops that record on tapes, for recursion and for devices.
FnRef ExplicitMemory(const FnRef& fn);

// Adds it to the passes, as "explicit-alloc". Once in a process.
void RegisterExplicitMemory();

}  // namespace weft
#endif  // WEFT_LOWERING_PROGRAM_EXPLICIT_FORM_H_
