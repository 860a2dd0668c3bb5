#include "backends/cpu/runtime.h"

namespace weft::cpu {

void FillLinalg(WeftOp*) {}

}  // namespace weft::cpu
