// A lock between compiling and forking: a fork waits for whoever compiles.
#ifndef WEFT_DRIVER_COMPILE_GATE_H_
#define WEFT_DRIVER_COMPILE_GATE_H_

#include "base/interrupt.h"

namespace weft {

// Held (shared) by whoever compiles or looks into the cache of programs, so that forking waits: LLVM, the linker and
// the caches have locks of their own that the child would find held by threads it does not have. While an interrupt is
// asked for (PollInterrupt) the thread lets forks pass, so it holds none of those locks then.
class Compiling {
 public:
  Compiling();

 private:
  InSection inside_;
};

}  // namespace weft
#endif  // WEFT_DRIVER_COMPILE_GATE_H_
