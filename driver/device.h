// The devices of this process that a backend's programs run on, and the memory in which their arrays lie.
#ifndef WEFT_DRIVER_DEVICE_H_
#define WEFT_DRIVER_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/buffer.h"

namespace weft {

struct Device {
  struct Memory {
    std::string kind;   // "host"
    int64_t bytes = 0;  // how much there is; devices that share memory have all of it
  };
  std::string platform;  // as weft.devices() names it: "cpu"
  std::string kind;      // which model
  int64_t index = 0;     // among the backend's devices in this process; Buffer::device
  Memory memory;
};

// Thread-safe.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  // Uninitialised, for a vector to be loaded from anywhere in it. Raises kValue where there is no such device,
  // OutOfMemory.
  virtual Buffer Allocate(int64_t device, int64_t bytes) const = 0;
  // All of `from` into the beginning of `to`, on whatever devices they are. Waits for both.
  virtual void Copy(const Buffer& from, const Buffer& to) const = 0;
  // Whether it has given out this memory, so that whoever holds it alone may write there.
  virtual bool Gave(const std::shared_ptr<void>& owner) const = 0;
  // Bytes that are kept for reuse, of all devices.
  virtual int64_t KeptBytes() const = 0;
};

// The host as so many virtual devices as WEFT_NUM_CPU_DEVICES says: they share memory and threads. Raises kValue for
// what is no number of devices.
const std::vector<Device>& HostDevices();
const DeviceMemory& HostMemory();

}  // namespace weft
#endif  // WEFT_DRIVER_DEVICE_H_
