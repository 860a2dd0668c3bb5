// Signals that arrive while a library's code runs. oneDNN's code of a product uses the stack pointer for its work
// space: the handler of a signal would run there, and write over the heap in front of it.
#ifndef WEFT_BACKENDS_CPU_CORE_SIGNALS_H_
#define WEFT_BACKENDS_CPU_CORE_SIGNALS_H_

#include <signal.h>

namespace weft::cpu {

// Blocks the signals of the calling thread for as long as this lives, all but those that a fault of the thread itself
// raises: what arrives is delivered afterwards, or to another thread. Not for good, in no thread: a process that a
// callback starts inherits it.
class SignalsBlocked {
 public:
  SignalsBlocked() : blocked_(pthread_sigmask(SIG_BLOCK, &FromElsewhere(), &before_) == 0) {}
  ~SignalsBlocked() {
    if (blocked_) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;

 private:
  static const sigset_t& FromElsewhere() {
    static const sigset_t set = [] {
      sigset_t some;
      sigfillset(&some);
      for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) sigdelset(&some, fault);
      return some;
    }();
    return set;
  }

  sigset_t before_;
  bool blocked_;
};

}  // namespace weft::cpu
#endif  // WEFT_BACKENDS_CPU_CORE_SIGNALS_H_
