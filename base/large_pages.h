// An allocator for lists that may become long. A function of 100,000 equations is some 8 MB, and its derivative three
// times that, written once and read a few times by every transform; one of 1,000 is 80 KB, and a chain of transforms
// makes and drops ten such. In fresh pages of 4 KiB each time, the system would spend much of that time on handing them
// out. So blocks of medium size are kept for the next list, and large ones come in large pages where the system has
// them.
#ifndef WEFT_BASE_LARGE_PAGES_H_
#define WEFT_BASE_LARGE_PAGES_H_

#include <cstddef>
#include <new>
#include <vector>

namespace weft {

// A thread keeps up to 64 MiB of released blocks, of 64 KiB to 32 MiB each.
inline constexpr size_t kSmallestKeptBlock = size_t{64} << 10;
void* AllocateBlock(size_t bytes);  // at least kSmallestKeptBlock
void ReleaseBlock(void* memory, size_t bytes);
size_t KeptBlockBytes();  // by this thread

template <class T>
struct LargePages {
  using value_type = T;
  static constexpr size_t kSize = sizeof(T);  // NOLINT(bugprone-sizeof-expression): T may be a pointer
  LargePages() = default;
  template <class U>
  LargePages(const LargePages<U>&) {}  // NOLINT: allocators of different types are one another's

  T* allocate(size_t n) {
    const size_t bytes = n * kSize;
    return static_cast<T*>(bytes < kSmallestKeptBlock ? ::operator new(bytes) : AllocateBlock(bytes));
  }
  void deallocate(T* memory, size_t n) {
    void* block = static_cast<void*>(memory);
    if (n * kSize < kSmallestKeptBlock)
      ::operator delete(block);
    else
      ReleaseBlock(block, n * kSize);
  }
  friend bool operator==(const LargePages&, const LargePages&) { return true; }
};

// For what has an element per equation or variable.
template <class T>
using LongList = std::vector<T, LargePages<T>>;

}  // namespace weft
#endif  // WEFT_BASE_LARGE_PAGES_H_
