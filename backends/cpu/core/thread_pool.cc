#include "backends/cpu/core/thread_pool.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "backends/cpu/core/other_cpus.h"
#include "base/environment.h"
#include "base/interrupt.h"
#include "base/out_of_memory.h"

namespace weft::cpu {
namespace {

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// A stack of the usual size, and what else a thread begins with.
constexpr int64_t kThread = int64_t{12} << 20;

// Consecutive units that one thread begins with: it walks through memory in order, as the processor's prefetching wants
// it, and finds in its own caches what it wrote there in the kernel before.
struct alignas(64) Range {
  std::atomic<int64_t> next{0};
  int64_t end = 0;
  bool HasMore() const { return next.load(std::memory_order_relaxed) < end; }
};
constexpr int kMostRanges = 64;

struct Job {
  Job(int64_t units, int64_t chunk_, int threads, void (*body_)(void*, int64_t, int64_t), void* context_)
      : body(body_), context(context_), chunk(chunk_), num_ranges(std::min(threads, kMostRanges)) {
    for (int r = 0; r < num_ranges; ++r) {
      ranges[r].next = units / num_ranges * r + std::min<int64_t>(r, units % num_ranges);
      ranges[r].end = units / num_ranges * (r + 1) + std::min<int64_t>(r + 1, units % num_ranges);
    }
  }

  void (*body)(void*, int64_t, int64_t);
  void* context;
  int64_t chunk;
  int num_ranges;
  std::array<Range, kMostRanges> ranges;
  std::atomic<int> helpers{0};
  std::atomic_flag failed = ATOMIC_FLAG_INIT;
  std::exception_ptr exception;  // the first one that a chunk raised; the others are not begun

  bool HasMore() const {
    return std::any_of(ranges.begin(), ranges.begin() + num_ranges, [](const Range& r) { return r.HasMore(); });
  }

  // The chunks of the thread's own range, then those that others have left.
  void Work(int thread, bool polls) {
    for (int r = 0; r < num_ranges; ++r) Work(ranges[(thread + r) % num_ranges], polls);
  }

 private:
  void Work(Range& range, bool polls) {
    for (;;) {
      const int64_t begin = range.next.fetch_add(chunk, std::memory_order_relaxed);
      if (begin >= range.end) return;
      try {
        body(context, begin, std::min(range.end, begin + chunk));
        if (polls) PollInterrupt();
      } catch (...) {
        if (!failed.test_and_set()) exception = std::current_exception();
        for (Range& r : ranges) r.next.store(r.end, std::memory_order_relaxed);
      }
    }
  }
};

class Pool {
 public:
  Pool() { jobs_.reserve(64); }

  // As many workers as can be started: they live as long as the process, and as this. Callers work themselves, so with
  // fewer all is done, only later.
  void Start(int workers) {
    int started = 0;
    std::string problem;
    try {
      for (; started < workers; ++started) {
        // The C library ends the process where a thread gets no memory for its variables: each makes its own while
        // there surely is some.
        if (!CanAllocate(kThread)) throw std::bad_alloc();
        std::thread([this, thread = started + 1] {
          InSection::Current();
          other_cpus_.Add(gettid());
          begun_.fetch_add(1, std::memory_order_release);
          begun_.notify_all();
          Loop(thread);
        }).detach();
        for (int begun = begun_; begun <= started; begun = begun_) begun_.wait(begun);
      }
    } catch (const std::system_error& error) {
      problem = error.code().message();
    } catch (const std::bad_alloc&) {
      problem = "out of memory";
    }
    if (started < workers) {
      std::fprintf(stderr, "weft: %d of %d threads could be started (%s); programs run on %d\n", started, workers,
                   problem.c_str(), started + 1);
    }
  }

  void Run(Job& job) {
    try {
      std::lock_guard<std::mutex> lock(mutex_);
      jobs_.push_back(&job);
      epoch_.fetch_add(1, std::memory_order_release);
    } catch (const std::bad_alloc&) {  // nobody else gets to know of it
      return job.Work(0, /*polls=*/true);
    }
    if (sleeping_.load(std::memory_order_acquire) > 0) {
      other_cpus_.KeepOffThisCpu();
      wake_.notify_all();
    }
    job.Work(0, /*polls=*/true);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      jobs_.erase(std::find(jobs_.begin(), jobs_.end(), &job));
    }
    // Nobody can join any more; wait for those who did.
    for (int spins = 0; job.helpers.load(std::memory_order_acquire) != 0; ++spins) {
      if (spins < 2000)
        Pause();
      else
        std::this_thread::yield();
    }
  }

 private:
  // Joins a job that still has chunks.
  Job* Join() {
    std::lock_guard<std::mutex> lock(mutex_);
    for (Job* job : jobs_) {
      if (job->HasMore()) {
        job->helpers.fetch_add(1, std::memory_order_acq_rel);
        return job;
      }
    }
    return nullptr;
  }

  // `thread`: its number among those of the pool, from 1; callers are 0.
  void Loop(int thread) {
    uint64_t seen = 0;
    for (;;) {
      while (Job* job = Join()) {
        job->Work(thread, /*polls=*/false);
        job->helpers.fetch_sub(1, std::memory_order_acq_rel);
      }
      const auto start = std::chrono::steady_clock::now();
      bool fresh = false;
      do {
        for (int i = 0; i < 64 && !fresh; ++i) {
          fresh = epoch_.load(std::memory_order_acquire) != seen;
          Pause();
        }
      } while (!fresh && std::chrono::steady_clock::now() - start < std::chrono::microseconds(10));
      if (!fresh) {
        std::unique_lock<std::mutex> lock(mutex_);
        sleeping_.fetch_add(1, std::memory_order_acq_rel);
        wake_.wait(lock, [&] { return epoch_.load(std::memory_order_acquire) != seen; });
        sleeping_.fetch_sub(1, std::memory_order_acq_rel);
      }
      seen = epoch_.load(std::memory_order_acquire);
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Job*> jobs_;
  OtherCpus other_cpus_;
  std::atomic<uint64_t> epoch_{0};
  std::atomic<int> sleeping_{0};
  std::atomic<int> begun_{0};  // threads
};

constexpr int64_t kNanosecondsBetweenPolls = 10'000'000;

std::atomic<int> g_threads{0};
std::atomic<Pool*> g_pool{nullptr};
// A plain flag: a mutex might be held by a thread that a fork does not copy.
std::atomic_flag g_making = ATOMIC_FLAG_INIT;

// nullptr where there is no memory for one.
Pool* ThePool() {
  Pool* pool = g_pool.load(std::memory_order_acquire);
  if (pool != nullptr) return pool;
  while (g_making.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  pool = g_pool.load(std::memory_order_acquire);
  if (pool == nullptr) {
    static const int registered = pthread_atfork(nullptr, nullptr, [] {
      // The child has no worker threads; the old pool's memory is left alone.
      g_pool.store(nullptr, std::memory_order_release);
      g_making.clear();
    });
    (void)registered;
    try {
      pool = new Pool();
    } catch (const std::bad_alloc&) {
      pool = nullptr;
    }
    if (pool != nullptr) pool->Start(std::max(1, std::max(DefaultThreads(), NumThreads()) - 1));
    g_pool.store(pool, std::memory_order_release);
  }
  g_making.clear(std::memory_order_release);
  return pool;
}

}  // namespace

int NumThreads() {
  int n = g_threads.load(std::memory_order_relaxed);
  if (n == 0) {
    n = DefaultThreads();
    g_threads.store(n, std::memory_order_relaxed);
  }
  return n;
}

void SetNumThreads(int n) { g_threads.store(std::max(1, n), std::memory_order_relaxed); }

void ParallelFor(int64_t units, int64_t nanoseconds, void (*body)(void*, int64_t, int64_t), void* context) {
  const int threads = NumThreads();
  if (units <= 0) return;
  if (nanoseconds < kMinParallelNanoseconds) return body(context, 0, units);
  PollInterrupt();
  if (units == 1 || threads == 1) {
    const int64_t pieces = std::clamp<int64_t>(nanoseconds / kNanosecondsBetweenPolls, 1, units);
    for (int64_t i = 0; i < pieces; ++i) {
      if (i > 0) PollInterrupt();
      body(context, units / pieces * i + std::min(i, units % pieces),
           units / pieces * (i + 1) + std::min(i + 1, units % pieces));
    }
    return;
  }
  // At least four chunks per thread, none shorter than about 10 microseconds.
  const int64_t short_chunk = std::max<int64_t>(1, units * 10000 / std::max<int64_t>(nanoseconds, 1));
  int64_t chunk = std::max<int64_t>(1, std::min(units / (4 * threads), std::max(short_chunk, units / (64 * threads))));
  chunk = std::max(chunk, std::min(short_chunk, (units + threads - 1) / threads));
  Job job(units, chunk, threads, body, context);
  if (Pool* pool = ThePool())
    pool->Run(job);
  else
    job.Work(0, /*polls=*/true);
  if (job.exception != nullptr) std::rethrow_exception(job.exception);
}

}  // namespace weft::cpu
