// A library to be loaded before all others (LD_PRELOAD): makes calls fail by which programs get memory, threads, files
// and mappings, so that tests see what becomes of each failure.
//
//   fail_calls(kMemory, "/_weft.so", 7, 1);   // the seventh call from now on fails that this module makes, and no other
//   fail_calls(kMemory, "/_weft.so", 7, -1);  // it and all after it
//   fail_calls(kMemory, "/_weft.so", 0, 0);   // none: counts
//   counted_calls();                          // how many there were since
//
// Calls that the C library makes inside itself do not come by here.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>

enum Kind { kNone, kMemory, kThread, kFile, kMapping };

// Where the code of some modules lies.
enum { kMostPieces = 16 };
struct Pieces {
  int count;
  struct {
    uintptr_t begin, end;
  } at[kMostPieces];
};
static struct Pieces g_modules;
// Which asks for others: for memory of strings, and for threads.
static struct Pieces g_between;
static atomic_int g_kind;
static atomic_long g_calls, g_first, g_count;

static bool Holds(const struct Pieces* pieces, const void* code) {
  const uintptr_t at = (uintptr_t)code;
  for (int i = 0; i < pieces->count; ++i) {
    if (at >= pieces->at[i].begin && at < pieces->at[i].end) return true;
  }
  return false;
}

static bool IsFrom(const void* caller) {
  if (!Holds(&g_between, caller)) return Holds(&g_modules, caller);
  void* frames[24];
  const int n = backtrace(frames, 24);
  int i = 0;
  while (i < n && !Holds(&g_between, frames[i])) ++i;
  while (i < n && Holds(&g_between, frames[i])) ++i;
  return i < n && Holds(&g_modules, frames[i]);
}

// Whether a call of this kind, from there, fails.
static bool Fails(int kind, const void* caller) {
  if (g_kind != kind || !IsFrom(caller)) return false;
  const long call = ++g_calls, first = g_first, count = g_count;
  return first > 0 && call >= first && (count < 0 || call < first + count);
}
#define FAILS(kind) Fails(kind, __builtin_return_address(0))

// Finding the function that one of these stands before may ask for memory: from here, since the allocator is not known
// yet.
static _Alignas(16) char g_early[1 << 16];
static atomic_size_t g_early_used;
static __thread bool t_finding __attribute__((tls_model("initial-exec")));

static void* Early(size_t bytes) {
  const size_t at = atomic_fetch_add(&g_early_used, (bytes + 31) / 16 * 16);
  return at + bytes <= sizeof g_early ? g_early + at : NULL;
}
static bool IsEarly(const void* p) { return (const char*)p >= g_early && (const char*)p < g_early + sizeof g_early; }

static void* Find(_Atomic(void*) * found, const char* name) {
  void* f = *found;
  if (f == NULL) {
    t_finding = true;
    f = dlsym(RTLD_NEXT, name);
    t_finding = false;
    *found = f;
  }
  return f;
}
#define NEXT(name)                  \
  ({                                \
    static _Atomic(void*) found;    \
    (__typeof__(&name)) Find(&found, #name); \
  })

static int AddModule(struct dl_phdr_info* info, size_t size, void* module) {
  (void)size;
  const bool wanted = strstr(info->dlpi_name, module) != NULL;
  if (!wanted && strstr(info->dlpi_name, "libstdc++") == NULL) return 0;
  struct Pieces* pieces = wanted ? &g_modules : &g_between;
  for (int i = 0; i < info->dlpi_phnum && pieces->count < kMostPieces; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD || (info->dlpi_phdr[i].p_flags & PF_X) == 0) continue;
    const uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    pieces->at[pieces->count].begin = begin;
    pieces->at[pieces->count].end = begin + info->dlpi_phdr[i].p_memsz;
    ++pieces->count;
  }
  return 0;
}

// `module`: a part of its file's name.
void fail_calls(int kind, const char* module, long first, long count) {
  g_kind = kNone;
  g_modules.count = g_between.count = 0;
  dl_iterate_phdr(AddModule, (void*)module);
  void* frames[2];
  backtrace(frames, 2);  // which asks for memory when it is called first
  g_calls = 0;
  g_first = first;
  g_count = count;
  g_kind = kind;
}

long counted_calls(void) { return g_calls; }

static void* NoMemory(void) {
  errno = ENOMEM;
  return NULL;
}

void* malloc(size_t bytes) {
  if (t_finding) return Early(bytes);
  return FAILS(kMemory) ? NoMemory() : NEXT(malloc)(bytes);
}

void* calloc(size_t count, size_t bytes) {
  if (t_finding) return Early(count * bytes);  // nobody has written there
  return FAILS(kMemory) ? NoMemory() : NEXT(calloc)(count, bytes);
}

void* realloc(void* old, size_t bytes) {
  if (IsEarly(old)) {
    void* p = malloc(bytes);
    const size_t there = (size_t)(g_early + sizeof g_early - (char*)old);
    if (p != NULL) memcpy(p, old, bytes < there ? bytes : there);
    return p;
  }
  return FAILS(kMemory) ? NoMemory() : NEXT(realloc)(old, bytes);
}

void free(void* p) {
  if (!IsEarly(p)) NEXT(free)(p);
}

int posix_memalign(void** p, size_t alignment, size_t bytes) {
  return FAILS(kMemory) ? ENOMEM : NEXT(posix_memalign)(p, alignment, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) {
  return FAILS(kMemory) ? NoMemory() : NEXT(aligned_alloc)(alignment, bytes);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) {
  return FAILS(kThread) ? EAGAIN : NEXT(pthread_create)(thread, attributes, start, argument);
}

void* mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) {
  if (!FAILS(kMapping)) return NEXT(mmap)(address, bytes, protection, flags, fd, offset);
  errno = ENOMEM;
  return MAP_FAILED;
}

int mprotect(void* address, size_t bytes, int protection) {
  if (!FAILS(kMapping)) return NEXT(mprotect)(address, bytes, protection);
  errno = ENOMEM;
  return -1;
}

int memfd_create(const char* name, unsigned flags) {
  if (!FAILS(kFile)) return NEXT(memfd_create)(name, flags);
  errno = EMFILE;
  return -1;
}

#define OPEN(name)                                         \
  int name(const char* path, int flags, ...) {             \
    va_list rest;                                          \
    va_start(rest, flags);                                 \
    const mode_t mode = va_arg(rest, mode_t);              \
    va_end(rest);                                          \
    if (!FAILS(kFile)) return NEXT(name)(path, flags, mode); \
    errno = EMFILE;                                        \
    return -1;                                             \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                               \
  int name(int folder, const char* path, int flags, ...) {         \
    va_list rest;                                                  \
    va_start(rest, flags);                                         \
    const mode_t mode = va_arg(rest, mode_t);                      \
    va_end(rest);                                                  \
    if (!FAILS(kFile)) return NEXT(name)(folder, path, flags, mode); \
    errno = EMFILE;                                                \
    return -1;                                                     \
  }
OPENAT(openat)
OPENAT(openat64)

char* mkdtemp(char* pattern) {
  if (!FAILS(kFile)) return NEXT(mkdtemp)(pattern);
  errno = ENOSPC;
  return NULL;
}
