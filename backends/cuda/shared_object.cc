#include "backends/cuda/shared_object.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>

namespace weft::cuda {

void* LoadSharedObject(const std::string& code) {
  // The dynamic linker takes equal paths for one library, and file descriptors are reused: the path spells a counter.
  static std::atomic<uint64_t> counter{0};
  const int fd = memfd_create("weft-twin", MFD_CLOEXEC);
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
  std::string path = "/proc/self/fd//";
  for (uint64_t n = ++counter; n != 0; n >>= 1) path += n & 1 ? ".//" : "./";
  void* library = dlopen((path + std::to_string(fd)).c_str(), RTLD_NOW | RTLD_LOCAL);
  const char* error = library == nullptr ? dlerror() : nullptr;
  const std::string message = error == nullptr ? "" : error;
  close(fd);
  if (library == nullptr) throw std::runtime_error("cannot load the kernels' twin: " + message);
  return library;
}

}  // namespace weft::cuda
