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
// more. Asking takes at most a hundredth of the time, unless it takes long (for a lock, say): it is done twice a second
// at least.
void PollInterrupt();

// What a thread is inside of while it works, and leaves while the handler is asked: a thread that has what the handler
// needs may wait until nobody is inside.
struct Section {
  void (*enter)();
  void (*leave)();
};

// In its scope the thread is inside of the section; unless it was in one before, which it stays in. Null: in none.
class InSection {
 public:
  explicit InSection(const Section* section);
  ~InSection();
  InSection(const InSection&) = delete;
  // Of this thread; null.
  static const Section* Current();

 private:
  bool entered_ = false;
};

// Loops whose trips may be short, of less than 10 microseconds for each step, poll once in so many.
inline constexpr int32_t kTripsPerPoll = 1024;

}  // namespace weft
#endif  // WEFT_BASE_INTERRUPT_H_
