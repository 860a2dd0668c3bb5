#include "base/out_of_memory.h"

#include <alloca.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace weft {
namespace {

struct Stack {
  const char *begin = nullptr, *end = nullptr;  // all that it may ever be
};

// Of the first thread: others have theirs in full from the beginning.
Stack OwnStack() {
  Stack stack;
  pthread_attr_t attributes;
  if (gettid() != getpid() || pthread_getattr_np(pthread_self(), &attributes) != 0) return stack;
  void* address = nullptr;
  size_t size = 0;
  pthread_attr_getstack(&attributes, &address, &size);
  pthread_attr_destroy(&attributes);
  stack.begin = static_cast<const char*>(address);
  stack.end = stack.begin + size;
  return stack;
}

}  // namespace

bool CanAllocate(int64_t bytes) {
  void* memory = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  munmap(memory, static_cast<size_t>(bytes));
  return true;
}

void EnsureStack(int64_t bytes, const char* what) {
  thread_local const Stack own = OwnStack();
  thread_local const char* lowest = own.end;  // that was touched
  const char* here = static_cast<const char*>(__builtin_frame_address(0));
  if (here < own.begin || here >= own.end) return;  // the stack of a fibre, which is there in full
  constexpr int64_t kPage = 4096, kReserve = 64 << 10;
  bytes = std::min(bytes, here - own.begin - kReserve);
  if (bytes <= 0 || lowest <= here - bytes) return;
  if (!CanAllocate(bytes))
    throw OutOfMemory(std::string("out of memory: ") + what + " needs " + std::to_string(bytes) + " bytes of stack");
  auto* stack = static_cast<volatile char*>(alloca(static_cast<size_t>(bytes)));
  for (int64_t at = bytes - 1; at >= 0; at -= kPage) stack[at] = 0;  // downwards, as a stack grows
  lowest = here - bytes;
}

}  // namespace weft
