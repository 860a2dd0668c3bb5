#include "base/large_pages.h"

#include <sys/mman.h>

#include <array>
#include <bit>

namespace weft {
namespace {

constexpr size_t kPage = size_t{2} << 20, kLarge = 2 * kPage;
constexpr size_t kLargestKept = size_t{32} << 20, kKept = size_t{64} << 20;

// Blocks of one size are interchangeable, so sizes are powers of two; what is never written to takes no memory.
size_t SizeOf(size_t bytes) { return bytes <= kLargestKept ? std::bit_ceil(bytes) : bytes; }

void* Obtain(size_t size) {
  if (size < kLarge) return ::operator new(size);
  void* memory = ::operator new(size, std::align_val_t{kPage});
  madvise(memory, size / kPage * kPage, MADV_HUGEPAGE);  // a wish: where it cannot be had, pages are small
  return memory;
}

void GiveBack(void* memory, size_t size) {
  if (size < kLarge)
    ::operator delete(memory);
  else
    ::operator delete(memory, std::align_val_t{kPage});
}

// Functions that live as long as the process may be dropped after the thread's blocks are.
thread_local bool ended = false;

struct Kept {
  std::array<std::vector<void*>, std::bit_width(kLargestKept)> blocks;  // by the logarithm of their size
  size_t bytes = 0;
  ~Kept() {
    ended = true;
    for (size_t log = 0; log < blocks.size(); ++log) {
      for (void* block : blocks[log]) GiveBack(block, size_t{1} << log);
    }
  }
};

Kept& OfThisThread() {
  thread_local Kept kept;
  return kept;
}

// AddressSanitizer shall see a block that is used after its release.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kKeeps = false;
#else
constexpr bool kKeeps = true;
#endif

}  // namespace

void* AllocateBlock(size_t bytes) {
  const size_t size = SizeOf(bytes);
  if (size <= kLargestKept && kKeeps && !ended) {
    Kept& kept = OfThisThread();
    std::vector<void*>& blocks = kept.blocks[std::countr_zero(size)];
    if (!blocks.empty()) {
      void* block = blocks.back();
      blocks.pop_back();
      kept.bytes -= size;
      return block;
    }
  }
  return Obtain(size);
}

void ReleaseBlock(void* memory, size_t bytes) {
  const size_t size = SizeOf(bytes);
  if (size <= kLargestKept && kKeeps && !ended) {
    Kept& kept = OfThisThread();
    if (kept.bytes + size <= kKept) {
      kept.blocks[std::countr_zero(size)].push_back(memory);
      kept.bytes += size;
      return;
    }
  }
  GiveBack(memory, size);
}

size_t KeptBlockBytes() { return ended ? 0 : OfThisThread().bytes; }

}  // namespace weft
