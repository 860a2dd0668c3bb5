#include "backends/cpu/runtime.h"

namespace weft::cpu {

void FillEffects(WeftOp*) {}

}  // namespace weft::cpu
