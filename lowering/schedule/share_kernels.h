// Kernels that differ in numbers only are one kernel, which reads the numbers from memory: the branches of a long
// chain, the layers of a network. Generating code takes most of the time of a compilation, and grows with distinct
// kernels.
#ifndef WEFT_LOWERING_SCHEDULE_SHARE_KERNELS_H_
#define WEFT_LOWERING_SCHEDULE_SHARE_KERNELS_H_

#include "lowering/schedule/schedule.h"

namespace weft {

// Integers only in kernels of a few elements: code that knows a divisor or a shift is faster. Numbers that all kernels
// of a kind have in common stay in the code. Results are the same to the last bit.
void ShareKernels(Schedule* schedule);

}  // namespace weft
#endif  // WEFT_LOWERING_SCHEDULE_SHARE_KERNELS_H_
