// Single flight: work that one thread does for all that need it meanwhile, as tracing and compiling a function that
// several threads call for the first time.
//
//   if (slot && slot->Wait(...)) look again;      // another thread did it, or failed at it
//   else { const InFlight here(&slot); work }     // this one does it
//
// All of it with the interpreter lock held; waiting lets go of it.
#ifndef WEFT_PYTHON_NATIVE_FLIGHT_H_
#define WEFT_PYTHON_NATIVE_FLIGHT_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

namespace weft::python {

class Flight {
 public:
  Flight();  // of this thread
  Flight(const Flight&) = delete;
  // Lets those go on that wait.
  void Land();
  // Waits until it has landed; an interrupt is raised. False: the caller has to do the work itself, since its thread is
  // the one that does it, or does what that one waits for; since a fork has left that thread behind; or since
  // `patience` has run out (while tracing, that thread may wait for a lock of the user's that this one holds).
  bool Wait(std::chrono::milliseconds patience);

 private:
  struct Thread {
    const Flight* waits_for = nullptr;
  };
  static Thread& ThisThread();

  Thread* const owner_;
  const uint64_t process_;
  std::mutex mutex_;
  std::condition_variable landing_;
  bool landed_ = false;
};

// A flight of this thread in a slot, unless there is one in it.
class InFlight {
 public:
  explicit InFlight(std::shared_ptr<Flight>* slot);
  ~InFlight();
  InFlight(const InFlight&) = delete;

 private:
  std::shared_ptr<Flight>* slot_;
  std::shared_ptr<Flight> flight_;
};

}  // namespace weft::python
#endif  // WEFT_PYTHON_NATIVE_FLIGHT_H_
