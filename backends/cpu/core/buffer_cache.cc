#include "backends/cpu/core/buffer_cache.h"

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "base/array_memory.h"
#include "base/fork_safe_mutex.h"
#include "base/out_of_memory.h"

namespace weft::cpu {
namespace {

// Four classes per power of two, so that at most a quarter is wasted.
int ClassOf(int64_t bytes, int64_t* rounded) {
  if (bytes <= 64) {
    *rounded = 64;
    return 0;
  }
  const int log = 63 - __builtin_clzll(static_cast<uint64_t>(bytes - 1));  // 2^log < bytes <= 2^(log+1)
  const int64_t step = int64_t{1} << (log - 2);
  const int64_t steps = (bytes - 1 - (int64_t{1} << log)) / step + 1;
  *rounded = (int64_t{1} << log) + steps * step;
  return (log - 5) * 4 + static_cast<int>(steps);
}

// The other way: how large the buffers of a class are.
int64_t BytesOf(int index) {
  if (index == 0) return 64;
  const int log = (index - 1) / 4 + 5, steps = (index - 1) % 4 + 1;
  return (int64_t{1} << log) + steps * (int64_t{1} << (log - 2));
}

constexpr int kClasses = 240;

struct Class {
  ForkSafeMutex mutex;
  std::vector<void*> free;
};

struct Cache {
  Class classes[kClasses];
  std::atomic<int64_t> kept{0};
  int64_t limit;
  Cache() {
    const int64_t pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    limit = pages > 0 ? pages * size / 8 : int64_t{1} << 30;
  }
};

Cache& TheCache() {
  static Cache* cache = new Cache;  // outlives every array
  return *cache;
}

constexpr int64_t kInBlock = -1;  // memory that goes with the block of the counts: OfBlock

struct BackToCache {
  int64_t bytes;
  void operator()(void* p) const {
    if (bytes != kInBlock) FreeRaw(p, bytes);
  }
};

// A small buffer has the counts of its owners in its own block, at the beginning: one allocation and no lock, which
// would be much of the time of a small call.
constexpr int64_t kSmall = 1024, kAlignment = 64;
constexpr size_t kCounts = 64;

template <class T>
struct OfBlock {
  using value_type = T;
  explicit OfBlock(void* b) : block(b) {}
  template <class U>
  OfBlock(const OfBlock<U>& other) : block(other.block) {}  // NOLINT(google-explicit-constructor): an allocator's
  T* allocate(size_t n) {
    static_assert(sizeof(T) <= kCounts && alignof(T) <= alignof(std::max_align_t));
    return n == 1 ? static_cast<T*>(block) : throw std::bad_alloc();
  }
  void deallocate(T*, size_t) { std::free(block); }
  template <class U>
  bool operator==(const OfBlock<U>& other) const {
    return block == other.block;
  }
  void* block;
};

[[noreturn]] void NoMemory(int64_t bytes) {
  throw OutOfMemory("out of memory: a program needs " + std::to_string(bytes) +
                    " bytes for an array or its intermediate ones");
}

// `bytes` of `size` were asked for.
void* FromSystem(int64_t size, int64_t bytes) {
  void* p = AllocateArray(static_cast<size_t>(size));
  if (p == nullptr) {
    TrimBufferCache();  // what is kept may be what is lacking
    p = AllocateArray(static_cast<size_t>(size));
  }
  if (p == nullptr) NoMemory(bytes);
  return p;
}

}  // namespace

void* AllocateRaw(int64_t bytes) {
  int64_t size;
  Class& c = TheCache().classes[ClassOf(bytes, &size)];
  {
    std::lock_guard<ForkSafeMutex> lock(c.mutex);
    if (!c.free.empty()) {
      void* p = c.free.back();
      c.free.pop_back();
      TheCache().kept.fetch_sub(size, std::memory_order_relaxed);
      return p;
    }
  }
  return FromSystem(size, bytes);
}

void FreeRaw(void* data, int64_t bytes) {
  int64_t size;
  Cache& cache = TheCache();
  Class& c = cache.classes[ClassOf(bytes, &size)];
  if (cache.kept.load(std::memory_order_relaxed) + size > cache.limit) {
    FreeArray(data, static_cast<size_t>(size));
    return;
  }
  try {
    std::lock_guard<ForkSafeMutex> lock(c.mutex);
    c.free.push_back(data);
  } catch (const std::bad_alloc&) {
    FreeArray(data, static_cast<size_t>(size));
    return;
  }
  cache.kept.fetch_add(size, std::memory_order_relaxed);
}

std::shared_ptr<void> AllocateBuffer(int64_t bytes) {
  if (bytes > kSmall) return std::shared_ptr<void>(AllocateRaw(bytes), BackToCache{bytes});
  void* block = std::malloc(kCounts + static_cast<size_t>(kAlignment + bytes));
  if (block == nullptr) NoMemory(bytes);
  void* data = static_cast<char*>(block) + kCounts;
  auto room = static_cast<size_t>(kAlignment + bytes);
  std::align(kAlignment, static_cast<size_t>(bytes), data, room);
  return std::shared_ptr<void>(data, BackToCache{kInBlock}, OfBlock<char>(block));
}

bool IsCacheBuffer(const std::shared_ptr<void>& owner) { return std::get_deleter<BackToCache>(owner) != nullptr; }

int64_t CachedBytes() { return TheCache().kept.load(std::memory_order_relaxed); }

void TrimBufferCache() {
  Cache& cache = TheCache();
  for (int i = 0; i < kClasses; ++i) {
    Class& c = cache.classes[i];
    std::lock_guard<ForkSafeMutex> lock(c.mutex);
    if (c.free.empty()) continue;
    for (void* p : c.free) FreeArray(p, static_cast<size_t>(BytesOf(i)));
    cache.kept.fetch_sub(static_cast<int64_t>(c.free.size()) * BytesOf(i), std::memory_order_relaxed);
    c.free.clear();
  }
}

}  // namespace weft::cpu
