#include "backends/shared_object.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
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

// The linker's message says that there is no memory where there are too many mappings.
std::string MappingsText() {
  int64_t most = 0, mappings = 0;
  std::ifstream limit("/proc/sys/vm/max_map_count"), maps("/proc/self/maps");
  if (!(limit >> most)) return "";
  for (std::string line; std::getline(maps, line);) ++mappings;
  if (mappings < most - 16) return "";
  return " (the process has " + std::to_string(mappings) + " mappings of memory; the system allows " +
         std::to_string(most) + ", vm.max_map_count. Each compiled program that is alive takes some: drop functions " +
         "that are needed no more, and weft.jit's that are made again and again)";
}

}  // namespace

// Shared objects can be opened from a path only; a memory file has one.
void* LoadSharedObject(const std::string& code) {
  const int fd = memfd_create("weft-code", MFD_CLOEXEC);
  if (fd < 0)
    throw std::runtime_error(std::string("cannot make a memory file for compiled code: ") + std::strerror(errno));
  size_t done = 0;
  while (done < code.size()) {
    const ssize_t n = write(fd, code.data() + done, code.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int why = errno;
      close(fd);
      throw std::runtime_error(std::string("cannot write compiled code to memory: ") + std::strerror(why));
    }
    done += static_cast<size_t>(n);
  }
  void* library = dlopen(UniquePath(fd).c_str(), RTLD_NOW | RTLD_LOCAL);
  const char* error = library == nullptr ? dlerror() : nullptr;
  const std::string message = error == nullptr ? "" : error;
  close(fd);
  if (library == nullptr) throw std::runtime_error("cannot load compiled code: " + message + MappingsText());
  return library;
}

}  // namespace weft
