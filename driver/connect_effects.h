// Connects the effects of compiled programs (prints, callbacks) with the handlers of the interpreter
// (ir/eval/effects.h).
#ifndef WEFT_DRIVER_CONNECT_EFFECTS_H_
#define WEFT_DRIVER_CONNECT_EFFECTS_H_

namespace weft {

// Before the first program runs; further calls change nothing.
void ConnectEffects();

}  // namespace weft
#endif  // WEFT_DRIVER_CONNECT_EFFECTS_H_
