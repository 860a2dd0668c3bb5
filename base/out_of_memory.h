// Memory that was asked for and is not there: a std::bad_alloc that says what for. Becomes a MemoryError in Python.
#ifndef WEFT_BASE_OUT_OF_MEMORY_H_
#define WEFT_BASE_OUT_OF_MEMORY_H_

#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>

namespace weft {

class OutOfMemory : public std::bad_alloc {
 public:
  // `message` begins with "out of memory: ".
  explicit OutOfMemory(std::string message) : message_(std::make_shared<const std::string>(std::move(message))) {}
  const char* what() const noexcept override { return message_->c_str(); }
  // Whether `message` is that of one: compiled code hands on the text of an error alone.
  static bool Says(const std::string& message) { return message.compare(0, 15, "out of memory: ") == 0; }

 private:
  std::shared_ptr<const std::string> message_;  // shared: copying an exception must not need memory
};

// What `error` says, if it says more than that it is one.
inline std::string WhatFor(const std::bad_alloc& error, const std::string& otherwise) {
  return dynamic_cast<const OutOfMemory*>(&error) != nullptr ? error.what() : "out of memory: " + otherwise;
}

// Whether the process can get `bytes` more now: of address space, and of whatever the system counts when memory is
// mapped. For libraries that do not look whether they got what they asked for.
bool CanAllocate(int64_t bytes);

// Makes the calling thread's stack at least `bytes` long from here. That of the first thread grows when it is used, and
// where it cannot, that is a segmentation fault. Throws OutOfMemory, with `what` as what the memory is for.
void EnsureStack(int64_t bytes, const char* what);

}  // namespace weft
#endif  // WEFT_BASE_OUT_OF_MEMORY_H_
