// Launches of kernels. Kernels that follow each other and touch nothing that another of them writes are launched as one
// parallel loop over the units of all: the updates that an optimizer makes of many parameters begin and end together,
// where each would wait for its last thread.
#ifndef WEFT_LOWERING_PROGRAM_LAUNCHES_H_
#define WEFT_LOWERING_PROGRAM_LAUNCHES_H_

#include "lowering/program/program.h"

namespace weft {

// Puts such kernels into steps kTogether, and counts launches. Results are the same to the last bit.
void JoinLaunches(Program* program);

}  // namespace weft
#endif  // WEFT_LOWERING_PROGRAM_LAUNCHES_H_
