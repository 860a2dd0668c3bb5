// Memory for the elements of arrays.
//
// Many arrays of one medium size, as a model's parameters are, lie side by side in slabs of large pages: a loop over
// them misses fewer translations, and the processor fetches ahead across their ends. The first few of a size, small
// arrays and large ones have memory of their own, the large ones in large pages.
#ifndef WEFT_BASE_ARRAY_MEMORY_H_
#define WEFT_BASE_ARRAY_MEMORY_H_

#include <cstddef>

namespace weft {

// At least `bytes` bytes, not initialised, 64-byte aligned, and 64 more behind them that may be read: room for a full
// vector load at the end. nullptr: there is no memory. Thread-safe.
void* AllocateArray(size_t bytes);
void FreeArray(void* memory, size_t bytes);  // as many as were asked for

size_t ArraySlabs();  // how many there are

}  // namespace weft
#endif  // WEFT_BASE_ARRAY_MEMORY_H_
