// What compiled programs do besides computing goes where the interpreter's effects go (ir/eval/effects.h).
#ifndef WEFT_DRIVER_CONNECT_EFFECTS_H_
#define WEFT_DRIVER_CONNECT_EFFECTS_H_

namespace weft {

// Before the first program runs; further calls change nothing.
void ConnectEffects();

}  // namespace weft
#endif  // WEFT_DRIVER_CONNECT_EFFECTS_H_
