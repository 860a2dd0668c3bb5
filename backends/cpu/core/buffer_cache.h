// Memory for results and arenas, kept by size class instead of going back to the system: a fresh page costs far more
// than the computation that fills it. Results of a KiB or less come from malloc: they need no pages.
#ifndef WEFT_BACKENDS_CPU_CORE_BUFFER_CACHE_H_
#define WEFT_BACKENDS_CPU_CORE_BUFFER_CACHE_H_

#include <cstdint>
#include <memory>

namespace weft::cpu {

// At least `bytes` bytes, from base/array_memory.h where they are more than a KiB. Thread-safe.
// Throws a std::bad_alloc that says how many bytes were asked for.
std::shared_ptr<void> AllocateBuffer(int64_t bytes);
// Whether `owner` comes from AllocateBuffer: memory that nobody outside of this process's programs has given.
bool IsCacheBuffer(const std::shared_ptr<void>& owner);
void* AllocateRaw(int64_t bytes);
void FreeRaw(void* data, int64_t bytes);

// Bytes that are kept for reuse now; gives them all back to the system.
int64_t CachedBytes();
void TrimBufferCache();

}  // namespace weft::cpu
#endif  // WEFT_BACKENDS_CPU_CORE_BUFFER_CACHE_H_
