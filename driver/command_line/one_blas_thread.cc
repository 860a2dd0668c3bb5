// OpenBLAS starts threads when it is loaded, before anything of this program runs, and waits for ever where there is no
// memory for them. It starts none where OPENBLAS_NUM_THREADS says so, which only who starts the program could have set:
// so this is the getenv that it finds. The threads that programs use are Weft's own.
#include <unistd.h>

#include <cstring>

extern "C" __attribute__((visibility("default"))) char* getenv(const char* name) noexcept {
  const size_t length = std::strlen(name);
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') return *entry + length + 1;
  }
  static char one[] = "1";
  return std::strcmp(name, "OPENBLAS_NUM_THREADS") == 0 ? one : nullptr;
}
