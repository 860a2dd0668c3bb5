#include "backends/cpu/runtime.h"

namespace weft::cpu {

void FillIndexing(WeftOp*) {}

}  // namespace weft::cpu
