// A piece of memory on one device, which holds one device's part of an array.
//
// What computes a buffer may still be under way: whoever reads `address` waits for `ready` before. Host programs are
// done when their call returns, so their buffers have none.
#ifndef WEFT_BASE_BUFFER_H_
#define WEFT_BASE_BUFFER_H_

#include <cstdint>
#include <memory>

namespace weft {

// Something that will have happened.
class Event {
 public:
  virtual ~Event() = default;
  virtual bool Done() const = 0;
  // Returns once it has. Raises what went wrong.
  virtual void Wait() = 0;
};

struct Buffer {
  int64_t device = 0;  // its number in the list of devices
  void* address = nullptr;
  int64_t bytes = 0;
  std::shared_ptr<void> owner;   // keeps the memory
  std::shared_ptr<Event> ready;  // null: it is

  bool Ready() const { return ready == nullptr || ready->Done(); }
  void Wait() const {
    if (ready != nullptr) ready->Wait();
  }
};

}  // namespace weft
#endif  // WEFT_BASE_BUFFER_H_
