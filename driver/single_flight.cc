#include "driver/single_flight.h"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>
#include <unordered_map>

#include "base/interrupt.h"

namespace weft {
namespace {

constexpr std::chrono::milliseconds kBetweenInterrupts(50);

// Forking waits until no thread is inside of the compiler (driver/compile_gate.h), so the lock is free in a child. What
// is being made is made by threads that the child does not have.
struct Flights {
  std::mutex mutex;
  std::condition_variable ended;
  std::unordered_map<ProgramKey, std::thread::id, ProgramKeyHash> makers;
  std::unordered_map<std::thread::id, const ProgramKey*> waiting;

  static Flights& Get() {
    static auto* flights = [] {
      pthread_atfork(nullptr, nullptr, [] {
        Get().makers.clear();
        Get().waiting.clear();
        new (&Get().ended) std::condition_variable;  // nobody waits here
      });
      return new Flights;
    }();
    return *flights;
  }

  // Whether `maker` waits, directly or not, for what this thread makes.
  bool WaitsForThisThread(std::thread::id maker) const {
    while (maker != std::this_thread::get_id()) {
      const auto waits = waiting.find(maker);
      if (waits == waiting.end()) return false;
      const auto next = makers.find(*waits->second);
      if (next == makers.end()) return false;
      maker = next->second;
    }
    return true;
  }
};

}  // namespace

Making::Making(const ProgramKey& key) : key_(key) {
  Flights& flights = Flights::Get();
  const std::lock_guard<std::mutex> lock(flights.mutex);
  begun_ = flights.makers.emplace(key, std::this_thread::get_id()).second;
}

bool Making::WaitedForAnother() const {
  if (begun_) return false;
  Flights& flights = Flights::Get();
  while (true) {
    {
      std::unique_lock<std::mutex> lock(flights.mutex);
      const auto other = flights.makers.find(key_);
      if (other == flights.makers.end()) return true;
      if (flights.WaitsForThisThread(other->second)) return false;
      flights.waiting.emplace(std::this_thread::get_id(), &key_);
      flights.ended.wait_for(lock, kBetweenInterrupts);
      flights.waiting.erase(std::this_thread::get_id());
    }
    PollInterrupt();
  }
}

Making::~Making() {
  if (!begun_) return;
  Flights& flights = Flights::Get();
  {
    const std::lock_guard<std::mutex> lock(flights.mutex);
    const auto mine = flights.makers.find(key_);
    if (mine == flights.makers.end() || mine->second != std::this_thread::get_id()) return;
    flights.makers.erase(mine);
  }
  flights.ended.notify_all();
}

}  // namespace weft
