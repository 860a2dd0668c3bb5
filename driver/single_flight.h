// Single flight: what several threads need at once is made by one of them, and the others wait for it.
#ifndef WEFT_DRIVER_SINGLE_FLIGHT_H_
#define WEFT_DRIVER_SINGLE_FLIGHT_H_

#include <memory>

#include "driver/program_key.h"

namespace weft {

// The making of `key`, by this thread while it lives, unless another one is at it. What is made of the same program is
// told apart by the key's options.
class Making {
 public:
  explicit Making(const ProgramKey& key);
  ~Making();
  Making(const Making&) = delete;
  // Waits for the other thread, and raises interrupts meanwhile. False: this thread is to make it, since no other does,
  // or the one that does waits for what this one makes (passes may ask the host for something, and so compile).
  bool WaitedForAnother() const;

 private:
  const ProgramKey& key_;
  bool begun_ = false;
};

// What `find()` gives; or `make()`, which leaves it where it is found. Both give a shared_ptr.
template <class Find, class Make>
auto FindOrMake(const ProgramKey& key, Find find, Make make) -> decltype(find()) {
  while (true) {
    if (auto found = find()) return found;
    const Making making(key);
    if (making.WaitedForAnother()) continue;  // it is there now, or the other thread has failed
    if (auto found = find()) return found;
    return make();
  }
}

}  // namespace weft
#endif  // WEFT_DRIVER_SINGLE_FLIGHT_H_
