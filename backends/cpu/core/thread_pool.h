// The threads that run kernels and library calls in parallel. One pool per process, made on first use and again in a
// forked child. Several callers may use it at once; the caller always works too, so nothing ever waits for a free
// thread.
#ifndef WEFT_BACKENDS_CPU_CORE_THREAD_POOL_H_
#define WEFT_BACKENDS_CPU_CORE_THREAD_POOL_H_

#include <cstdint>

namespace weft::cpu {

// Below this estimate work stays on the calling thread: waking another costs tens of microseconds.
inline constexpr int64_t kMinParallelNanoseconds = 30000;

// Threads that work on one call, the caller included. WEFT_NUM_THREADS, else the processors this process may use.
int NumThreads();
void SetNumThreads(int n);

// Calls body(context, begin, end) on chunks that cover [0, units); `nanoseconds` estimates all of it. Raises what a
// chunk raises, when all that had begun are through; and polls for an interrupt (base/interrupt.h).
void ParallelFor(int64_t units, int64_t nanoseconds, void (*body)(void* context, int64_t begin, int64_t end),
                 void* context);

template <class F>
void ParallelFor(int64_t units, int64_t nanoseconds, const F& f) {
  ParallelFor(
      units, nanoseconds,
      [](void* context, int64_t begin, int64_t end) { (*static_cast<const F*>(context))(begin, end); },
      const_cast<void*>(static_cast<const void*>(&f)));
}

}  // namespace weft::cpu
#endif  // WEFT_BACKENDS_CPU_CORE_THREAD_POOL_H_
