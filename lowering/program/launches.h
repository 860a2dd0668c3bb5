// Launches of kernels. Kernels that follow each other and touch nothing that another of them writes are launched as one
// parallel loop over the units of all: the updates that an optimizer makes of many parameters begin and end together,
// where each would wait for its last thread. Products that run on one thread each are units of it, too: q, k and v of
// an attention side by side, in parts, so that three products take two threads the same time.
#ifndef WEFT_LOWERING_PROGRAM_LAUNCHES_H_
#define WEFT_LOWERING_PROGRAM_LAUNCHES_H_

#include "lowering/program/program.h"

namespace weft {

// Puts these into steps kTogether, and counts launches of kernels. Results are the same to the last bit. What takes
// less than `least_nanoseconds` in all stays as it is.
void JoinLaunches(Program* program, double least_nanoseconds = kWorthAThread);

}  // namespace weft
#endif  // WEFT_LOWERING_PROGRAM_LAUNCHES_H_
