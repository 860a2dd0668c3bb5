#include "python/native/flight.h"

#include <Python.h>
#include <pthread.h>

#include "python/native/errors.h"
#include "python/native/run.h"

namespace weft::python {
namespace {

// Counts forks, in the children.
uint64_t ThisProcess(bool forked = false) {
  static uint64_t process = [] {
    pthread_atfork(nullptr, nullptr, [] { ThisProcess(true); });
    return uint64_t{0};
  }();
  if (forked) ++process;
  return process;
}

constexpr std::chrono::milliseconds kBetweenSignals(50);

}  // namespace

Flight::Thread& Flight::ThisThread() {
  thread_local Thread thread;
  return thread;
}

Flight::Flight() : owner_(&ThisThread()), process_(ThisProcess()) {}

void Flight::Land() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    landed_ = true;
  }
  landing_.notify_all();
}

bool Flight::Wait(std::chrono::milliseconds patience) {
  Thread& self = ThisThread();
  if (process_ != ThisProcess()) return false;
  for (const Thread* t = owner_; t != &self; t = t->waits_for->owner_) {
    if (t->waits_for != nullptr) continue;
    struct Waiting {
      Thread& self;
      Waiting(Thread& thread, const Flight* flight) : self(thread) { self.waits_for = flight; }
      ~Waiting() { self.waits_for = nullptr; }
    } const waiting(self, this);
    const auto end = std::chrono::steady_clock::now() + patience;
    while (std::chrono::steady_clock::now() < end) {
      bool landed = false;
      {
        const Unlocked unlocked;
        std::unique_lock<std::mutex> lock(mutex_);
        landed = landing_.wait_for(lock, kBetweenSignals, [&] { return landed_; });
      }
      if (landed) return true;
      CheckStatus(PyErr_CheckSignals());
    }
    return false;
  }
  return false;
}

InFlight::InFlight(std::shared_ptr<Flight>* slot) : slot_(slot) {
  if (*slot_ != nullptr) return;
  flight_ = std::make_shared<Flight>();
  *slot_ = flight_;
}

InFlight::~InFlight() {
  if (flight_ == nullptr) return;
  if (*slot_ == flight_) slot_->reset();
  flight_->Land();
}

}  // namespace weft::python
