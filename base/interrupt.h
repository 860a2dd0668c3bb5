// How a running program learns that the user wants it to end (Ctrl-C). Whoever runs loops or long operations calls
// PollInterrupt now and then; the host's handler, asked some twenty times a second, throws to end the program.
//
// Knows no IR: the interpreter and compiled code share it.
#ifndef WEFT_BASE_INTERRUPT_H_
#define WEFT_BASE_INTERRUPT_H_

#include <cstdint>

namespace weft {

// Set once, before programs run. The handler throws what ends the program.
void SetInterruptHandler(void (*handler)());

// Asks the handler, unless this thread has asked it lately. Costs a look at the clock: for work of 10 microseconds and
// more. Asking takes at most a hundredth of the time, however long it takes (for a lock, say).
void PollInterrupt();

// In its scope the thread does not ask: it holds something that a thread may wait for which has what the handler needs.
class NoInterrupts {
 public:
  NoInterrupts();
  ~NoInterrupts();
  NoInterrupts(const NoInterrupts&) = delete;
};

// Loops whose trips may be short, of less than 10 microseconds for each step, poll once in so many.
inline constexpr int32_t kTripsPerPoll = 1024;

}  // namespace weft
#endif  // WEFT_BASE_INTERRUPT_H_
