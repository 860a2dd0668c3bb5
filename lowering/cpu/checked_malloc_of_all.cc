// The malloc of a program that has LLVM as a shared library: MLIR makes its operations in memory that it does not look
// at. (Where LLVM is in the same file, the linker puts a look between them; see checked_malloc.cc.)
#include <cstddef>
#include <new>

#include "lowering/cpu/compiler_memory.h"

// A sanitizer has its own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" {
void* __libc_malloc(size_t bytes);  // NOLINT(bugprone-reserved-identifier): the C library's name

__attribute__((visibility("default"))) void* malloc(size_t bytes) {
  void* memory = __libc_malloc(bytes);
  if (memory != nullptr || bytes == 0 || !weft::CompilingThread::Is()) return memory;
  // Room for the exception is asked for here, too; where there is none, the C++ library has some of its own.
  static thread_local bool throwing = false;
  if (throwing) return nullptr;
  throwing = true;
  const struct Reset {
    ~Reset() { throwing = false; }
  } reset;
  throw std::bad_alloc();
}
}
#endif
