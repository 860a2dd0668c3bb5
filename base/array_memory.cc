#include "base/array_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#include "base/fork_safe_mutex.h"

namespace weft {
namespace {

constexpr size_t kPage = size_t{2} << 20, kSlab = size_t{32} << 20, kBehind = 64;
constexpr size_t kSmallestMedium = size_t{64} << 10, kLargestMedium = size_t{4} << 20;
// Of one size, before more of them come in slabs: a program of few arrays pays for no large page that it half fills.
constexpr size_t kOfTheirOwn = size_t{8} << 20;

// AddressSanitizer shall see what lies around each array.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kUsesSlabs = false;
#else
constexpr bool kUsesSlabs = true;
#endif

bool IsMedium(size_t bytes) { return kUsesSlabs && bytes >= kSmallestMedium && bytes <= kLargestMedium; }

// Eight sizes per power of two, so that at most an eighth is wasted.
constexpr int kSizes = 8 * (std::bit_width(kLargestMedium - 1) - std::bit_width(kSmallestMedium - 1) + 1) + 1;
struct Size {
  int index;
  size_t bytes;
};
Size SizeOf(size_t bytes) {
  const int log = static_cast<int>(std::bit_width(bytes - 1)) - 1;  // 2^log < bytes <= 2^(log+1)
  const size_t step = size_t{1} << (log - 3);
  const size_t steps = (bytes - 1 - (size_t{1} << log)) / step + 1;
  return {8 * (log + 1 - static_cast<int>(std::bit_width(kSmallestMedium - 1))) + static_cast<int>(steps),
          (size_t{1} << log) + steps * step};
}

void* OfItsOwn(size_t bytes) {
  if (bytes > SIZE_MAX / 2) return nullptr;
  const size_t padded = (bytes + kBehind - 1) / kBehind * kBehind + kBehind;
  if (padded < kPage) return std::aligned_alloc(kBehind, padded);
  // The standard wants a multiple of the alignment, and so do the sanitizers. What is behind the end is never touched.
  void* memory = std::aligned_alloc(kPage, (padded + kPage - 1) / kPage * kPage);
  if (memory != nullptr) madvise(memory, padded / kPage * kPage, MADV_HUGEPAGE);  // a wish: else pages are small
  return memory;
}

// An aligned piece of memory for arrays of one size.
struct Slab {
  char* memory;
  size_t begun = 0, used = 0;  // arrays that have been there, and that are
  std::vector<void*> free;     // of those that have been
};

class Slabs {
 public:
  // nullptr: memory of its own.
  void* Allocate(size_t bytes) {
    const Size size = SizeOf(bytes);
    OfSize& all = sizes_[static_cast<size_t>(size.index)];
    const std::lock_guard<ForkSafeMutex> lock(mutex_);
    if (++all.arrays * size.bytes <= kOfTheirOwn) return nullptr;
    if (all.with_room.empty() && !Add(all, size.bytes)) return nullptr;
    Slab& slab = *all.with_room.back();
    void* memory = slab.memory + slab.begun * size.bytes;
    if (slab.free.empty()) {
      ++slab.begun;
    } else {
      memory = slab.free.back();
      slab.free.pop_back();
    }
    if (++slab.used == CountIn(size.bytes)) all.with_room.pop_back();
    return memory;
  }

  // False: it has memory of its own.
  bool Free(void* memory, size_t bytes) {
    const Size size = SizeOf(bytes);
    OfSize& all = sizes_[static_cast<size_t>(size.index)];
    char* empty = nullptr;
    {
      const std::lock_guard<ForkSafeMutex> lock(mutex_);
      --all.arrays;
      const auto at = slabs_.find(reinterpret_cast<uintptr_t>(memory) / kSlab);
      if (at == slabs_.end()) return false;
      Slab& slab = *at->second;
      slab.free.push_back(memory);
      if (slab.used-- == CountIn(size.bytes)) all.with_room.push_back(&slab);
      if (slab.used > 0) return true;
      all.with_room.erase(std::find(all.with_room.begin(), all.with_room.end(), &slab));
      empty = slab.memory;
      slabs_.erase(at);
    }
    std::free(empty);
    return true;
  }

  // One that was counted could not be had.
  void NotThere(size_t bytes) {
    const std::lock_guard<ForkSafeMutex> lock(mutex_);
    --sizes_[static_cast<size_t>(SizeOf(bytes).index)].arrays;
  }

  size_t size() {
    const std::lock_guard<ForkSafeMutex> lock(mutex_);
    return slabs_.size();
  }

 private:
  struct OfSize {
    size_t arrays = 0;
    std::vector<Slab*> with_room;
  };

  // The last bytes stay free: what is read behind the last array.
  static size_t CountIn(size_t size) { return (kSlab - kBehind) / size; }

  bool Add(OfSize& all, size_t size) {
    char* memory = static_cast<char*>(std::aligned_alloc(kSlab, kSlab));
    if (memory == nullptr) return false;
    try {
      auto slab = std::make_unique<Slab>(Slab{memory});
      slab->free.reserve(CountIn(size));  // so that giving back never needs memory
      all.with_room.reserve(slabs_.size() + 1);
      Slab* added = slab.get();
      slabs_.emplace(reinterpret_cast<uintptr_t>(memory) / kSlab, std::move(slab));
      all.with_room.push_back(added);
    } catch (const std::bad_alloc&) {
      std::free(memory);
      return false;
    }
    madvise(memory, kSlab, MADV_HUGEPAGE);
    return true;
  }

  ForkSafeMutex mutex_;
  std::array<OfSize, kSizes> sizes_;
  std::unordered_map<uintptr_t, std::unique_ptr<Slab>> slabs_;  // by the place of their memory
};

Slabs& TheSlabs() {
  static Slabs* slabs = new Slabs;  // outlives every array
  return *slabs;
}

}  // namespace

void* AllocateArray(size_t bytes) {
  void* memory = IsMedium(bytes) ? TheSlabs().Allocate(bytes) : nullptr;
  if (memory == nullptr) memory = OfItsOwn(bytes);
  if (memory == nullptr && IsMedium(bytes)) TheSlabs().NotThere(bytes);
  return memory;
}

void FreeArray(void* memory, size_t bytes) {
  if (!IsMedium(bytes) || !TheSlabs().Free(memory, bytes)) std::free(memory);
}

size_t ArraySlabs() { return TheSlabs().size(); }

}  // namespace weft
