#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "backends/cpu/core/buffer_cache.h"
#include "driver/device.h"
#include "ir/error.h"

namespace weft {
namespace {

constexpr int64_t kMostDevices = 4096;

int64_t NumHostDevices() {
  const char* set = std::getenv("WEFT_NUM_CPU_DEVICES");
  const std::string_view given = set == nullptr || *set == '\0' ? "1" : set;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), number);
  if (error != std::errc() || end != given.data() + given.size() || number < 1 || number > kMostDevices)
    throw ValueError("WEFT_NUM_CPU_DEVICES is '", std::string(given), "'; expected a number from 1 to ", kMostDevices);
  return number;
}

class Host : public DeviceMemory {
 public:
  Buffer Allocate(int64_t device, int64_t bytes) const override {
    // The first one is there, whatever the environment says; it may be set until somebody asks for more.
    if (device != 0 && (device < 0 || device >= static_cast<int64_t>(HostDevices().size())))
      throw ValueError("there is no device ", device, " to take memory of; there are ", HostDevices().size(),
                       " (WEFT_NUM_CPU_DEVICES)");
    Buffer b;
    b.device = device;
    b.owner = cpu::AllocateBuffer(bytes);
    b.address = b.owner.get();
    b.bytes = bytes;
    return b;
  }
  void Copy(const Buffer& from, const Buffer& to) const override {
    WEFT_CHECK(from.bytes <= to.bytes) << "a copy of " << from.bytes << " bytes into " << to.bytes;
    from.Wait();
    to.Wait();
    if (from.bytes > 0) std::memcpy(to.address, from.address, static_cast<size_t>(from.bytes));
  }
  bool Gave(const std::shared_ptr<void>& owner) const override { return cpu::IsCacheBuffer(owner); }
  int64_t KeptBytes() const override { return cpu::CachedBytes(); }
};

}  // namespace

const std::vector<Device>& HostDevices() {
  static const auto& devices = *new std::vector<Device>([] {
    std::vector<Device> all;
    const int64_t bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
    for (int64_t i = 0, n = NumHostDevices(); i < n; ++i) all.push_back({"cpu", "cpu", i, {"host", bytes}});
    return all;
  }());
  return devices;
}

const DeviceMemory& HostMemory() {
  static const auto& memory = *new Host;
  return memory;
}

}  // namespace weft
