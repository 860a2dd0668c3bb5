#include "lowering/cpu/compiler_memory.h"

namespace weft {

thread_local int CompilingThread::depth_ = 0;

}  // namespace weft
