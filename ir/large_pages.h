// An allocator for lists that may become very long: above a few megabytes their memory comes in large pages, where the
// system has them. A function of 100,000 equations is some 30 MB, written once and read a few times by every transform;
// in pages of 4 KiB the system would spend a fifth of that time on handing them out.
#ifndef WEFT_IR_LARGE_PAGES_H_
#define WEFT_IR_LARGE_PAGES_H_

#include <sys/mman.h>

#include <cstddef>
#include <new>

namespace weft {

template <class T>
struct LargePages {
  using value_type = T;
  LargePages() = default;
  template <class U>
  LargePages(const LargePages<U>&) {}  // NOLINT: allocators of different types are one another's

  T* allocate(size_t n) {
    const size_t bytes = n * sizeof(T);
    if (bytes < kLarge) return static_cast<T*>(::operator new(bytes));
    void* memory = ::operator new(bytes, std::align_val_t{kPage});
    madvise(memory, bytes / kPage * kPage, MADV_HUGEPAGE);  // a wish: where it cannot be had, pages are small
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t n) {
    if (n * sizeof(T) < kLarge)
      ::operator delete(memory);
    else
      ::operator delete(memory, std::align_val_t{kPage});
  }
  friend bool operator==(const LargePages&, const LargePages&) { return true; }

 private:
  static constexpr size_t kPage = size_t{2} << 20, kLarge = 2 * kPage;
};

}  // namespace weft
#endif  // WEFT_IR_LARGE_PAGES_H_
