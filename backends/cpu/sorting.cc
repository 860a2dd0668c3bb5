#include "backends/cpu/runtime.h"

namespace weft::cpu {

void FillSorting(WeftOp*) {}

}  // namespace weft::cpu
