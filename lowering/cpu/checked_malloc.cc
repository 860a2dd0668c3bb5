// What LLVM calls for malloc where it is linked with -Wl,--wrap=malloc: MLIR makes its operations in memory that it
// does not look at.
#include <cstddef>
#include <new>

#include "lowering/cpu/compiler_memory.h"

extern "C" {
void* __real_malloc(size_t bytes);  // NOLINT(bugprone-reserved-identifier): the linker's names

void* __wrap_malloc(size_t bytes) {  // NOLINT(bugprone-reserved-identifier)
  void* memory = __real_malloc(bytes);
  if (memory == nullptr && bytes > 0 && weft::CompilingThread::Is()) throw std::bad_alloc();
  return memory;
}
}
