#include "backends/shared_object.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>

namespace weft {
namespace {

// A path of the memory file that no earlier one had. The dynamic linker takes equal paths for the same library, and
// file descriptors are reused; "./" and ".//" between the folder and the number spell a counter in binary.
std::string UniquePath(int fd) {
  static std::atomic<uint64_t> counter{0};
  std::string path = "/proc/self/fd/";
  for (uint64_t n = ++counter; n != 0; n >>= 1) path += n & 1 ? ".//" : "./";
  return path + std::to_string(fd);
}

}  // namespace

// Shared objects can be opened from a path only; a memory file has one.
void* LoadSharedObject(const std::string& code) {
  const int fd = memfd_create("weft-code", MFD_CLOEXEC);
  if (fd < 0) throw std::runtime_error("cannot make a memory file for compiled code");
  size_t done = 0;
  while (done < code.size()) {
    const ssize_t n = write(fd, code.data() + done, code.size() - done);
    if (n <= 0) {
      close(fd);
      throw std::runtime_error("cannot write compiled code to memory");
    }
    done += static_cast<size_t>(n);
  }
  void* library = dlopen(UniquePath(fd).c_str(), RTLD_NOW | RTLD_LOCAL);
  const char* error = library == nullptr ? dlerror() : nullptr;
  const std::string message = error == nullptr ? "" : error;
  close(fd);
  if (library == nullptr) throw std::runtime_error("cannot load compiled code: " + message);
  return library;
}

}  // namespace weft
