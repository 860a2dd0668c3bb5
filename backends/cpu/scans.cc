#include "backends/cpu/runtime.h"

namespace weft::cpu {

void FillScans(WeftOp*) {}

}  // namespace weft::cpu
