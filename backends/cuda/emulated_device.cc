#include "backends/cuda/emulated_device.h"

#include <setjmp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "base/dtype.h"
#include "base/fibres.h"
#include "base/out_of_memory.h"
#include "base/special_functions.h"
#include "lowering/abi/cpu_features.h"
#include "lowering/abi/emulation_abi.h"

namespace weft::cuda {
namespace {

constexpr int kWarp = 32;

// Who touched a byte last. A thread is its number in the whole grid plus one; an epoch counts its block's barriers.
struct Touch {
  uint32_t writer = 0, write_epoch = 0;
  uint32_t reader = 0, read_epoch = 0;
};
constexpr uint32_t kSeveral = ~uint32_t{0};

// Memory that threads may touch.
struct Region {
  const char* begin = nullptr;
  int64_t bytes = 0;
  bool written = false, shared = false;
  std::vector<Touch> touches;  // of bytes that anybody may write
};

enum class Waits { kNo, kBarrier, kShuffle };

struct Thread {
  Waits waits = Waits::kNo;
  int32_t site = 0, value = 0, distance = 0, answer = 0;
  bool ended = false;  // with the current block
  jmp_buf escape;
};

struct Grid {
  const GpuKernel* kernel = nullptr;
  std::vector<Region> regions;
  std::vector<Thread> threads;
  int32_t thread = 0, block = 0;
  uint32_t epoch = 1;
  std::string failure;

  uint32_t Number() const {
    return static_cast<uint32_t>(block) * static_cast<uint32_t>(kernel->threads) + static_cast<uint32_t>(thread) + 1;
  }
  std::string Where() const {
    return "kernel " + kernel->name + ", block " + std::to_string(block) + ", thread " + std::to_string(thread) + ": ";
  }
};
thread_local Grid* t_grid = nullptr;

// Leaves compiled code, which has no frames that need unwinding.
[[noreturn]] void Fail(const std::string& what) {
  Grid& g = *t_grid;
  if (g.failure.empty()) g.failure = g.Where() + what;
  longjmp(g.threads[static_cast<size_t>(g.thread)].escape, 1);
}

int32_t ThreadIndex() { return t_grid->thread; }
int32_t BlockIndex() { return t_grid->block; }

void Wait(Waits what, int32_t site) {
  Grid& g = *t_grid;
  if (!g.kernel->meets) Fail("waits for others in a kernel whose threads are said not to");
  const int32_t thread = g.thread;
  Thread& t = g.threads[static_cast<size_t>(thread)];
  t.waits = what;
  t.site = site;
  const bool go_on = WaitFibre();
  t_grid->thread = thread;
  if (!go_on) longjmp(t.escape, 1);
}

void Barrier(int32_t site) { Wait(Waits::kBarrier, site); }

int32_t Shuffle(int32_t site, int32_t value, int32_t distance) {
  Thread& t = t_grid->threads[static_cast<size_t>(t_grid->thread)];
  t.value = value;
  t.distance = distance;
  Wait(Waits::kShuffle, site);
  return t.answer;
}

void Access(const void* address, int64_t bytes, int64_t alignment, int32_t write) {
  Grid& g = *t_grid;
  const char* at = static_cast<const char*>(address);
  const std::string what = std::string(write ? "writes " : "reads ") + std::to_string(bytes) + " bytes ";
  if (reinterpret_cast<uintptr_t>(at) % static_cast<uintptr_t>(alignment) != 0)
    Fail(what + "at an address that is no multiple of " + std::to_string(alignment));
  Region* region = nullptr;
  for (Region& r : g.regions) {
    if (at >= r.begin && at + bytes <= r.begin + r.bytes && (!write || r.written)) region = &r;
  }
  if (region == nullptr) {
    for (const Region& r : g.regions) {
      if (at >= r.begin && at + bytes <= r.begin + r.bytes) Fail(what + "of an operand that is only read");
    }
    Fail(what + "outside of its operands");
  }
  const uint32_t me = g.Number();
  // Bytes that nobody writes need no account.
  if (region->touches.empty()) return;
  const uint32_t first_of_block = me - static_cast<uint32_t>(g.thread);
  auto concurrent = [&](uint32_t other, uint32_t epoch) {
    if (other == 0 || other == me) return false;
    const bool same_block = other == kSeveral || (other >= first_of_block &&
                                                  other < first_of_block + static_cast<uint32_t>(g.kernel->threads));
    return !same_block || epoch == g.epoch;
  };
  for (int64_t i = 0; i < bytes; ++i) {
    Touch& t = region->touches[static_cast<size_t>(at - region->begin + i)];
    if (region->shared && !write && t.writer == 0) Fail(what + "of shared memory that nobody has written");
    if (concurrent(t.writer, t.write_epoch) || (write && concurrent(t.reader, t.read_epoch)))
      Fail(what + "that another thread touches with no barrier in between");
    if (write) {
      t.writer = me;
      t.write_epoch = g.epoch;
    } else if (t.read_epoch == g.epoch && t.reader != 0 && t.reader != me) {
      t.reader = kSeveral;
    } else {
      t.reader = me;
      t.read_epoch = g.epoch;
    }
  }
}

double erfinv(double x) { return ErfInv(x); }
float erfinvf(float x) { return static_cast<float>(ErfInv(x, /*single=*/true)); }

EmulationTable* Table() {
  static EmulationTable& table = *new EmulationTable([] {
    EmulationTable t;
    t.weft_thread = ThreadIndex;
    t.weft_block = BlockIndex;
    t.weft_barrier = Barrier;
    t.weft_shuffle = Shuffle;
    t.weft_access = Access;
    // Those of libdevice have the C library's names.
#define WEFT_MACHINE(name, type)
#define WEFT_MATH(name) t.nv_##name = name, t.nv_##name##f = name##f;
    WEFT_EMULATION_FUNCTIONS(WEFT_MACHINE, WEFT_MATH, WEFT_MATH)
#undef WEFT_MACHINE
#undef WEFT_MATH
    return t;
  }());
  return &table;
}

using Launcher = void (*)(void**);

// One thread of one block. False when it was stopped.
bool RunThread(Launcher launcher, void** arguments) {
  Grid& g = *t_grid;
  if (setjmp(g.threads[static_cast<size_t>(g.thread)].escape) != 0) return false;
  launcher(arguments);
  return true;
}

void StartBlock(Grid& g) {
  ++g.epoch;
  for (Region& r : g.regions) {
    if (!r.shared) continue;
    std::fill(r.touches.begin(), r.touches.end(), Touch{});
    std::memset(const_cast<char*>(r.begin), 0xCB, static_cast<size_t>(r.bytes));
  }
  for (Thread& t : g.threads) t.ended = false;
}

std::string List(const std::vector<int>& threads) {
  std::string text;
  for (size_t i = 0; i < threads.size() && i < 4; ++i) text += (i ? ", " : "") + std::to_string(threads[i]);
  return text + (threads.size() > 4 ? ", ..." : "");
}

// All fibres wait: for a shuffle of their warp, the block's barrier, or the end of the block. Says who goes on.
std::vector<bool> Meet(Grid& g) {
  const size_t n = g.threads.size();
  std::vector<bool> ready(n, false);
  bool any = false;
  for (size_t warp = 0; warp < n; warp += kWarp) {
    const size_t end = std::min(n, warp + kWarp);
    const auto begin_thread = g.threads.begin() + static_cast<int64_t>(warp),
               end_thread = g.threads.begin() + static_cast<int64_t>(end);
    const bool shuffle = std::all_of(begin_thread, end_thread, [&](const Thread& t) {
      return t.waits == Waits::kShuffle && t.site == begin_thread->site && !t.ended;
    });
    if (!shuffle) continue;
    any = true;
    for (size_t i = warp; i < end; ++i) {
      g.threads[i].answer = g.threads[warp + (((i - warp) ^ static_cast<size_t>(g.threads[i].distance)) % kWarp)].value;
      ready[i] = true;
    }
  }
  if (any) return ready;
  const Thread& first = g.threads[0];
  if (std::all_of(g.threads.begin(), g.threads.end(), [](const Thread& t) { return t.ended; })) {
    ++g.block;
    if (g.block < g.kernel->blocks) StartBlock(g);
    return std::vector<bool>(n, true);
  }
  if (std::all_of(g.threads.begin(), g.threads.end(),
                  [&](const Thread& t) { return t.waits == Waits::kBarrier && t.site == first.site && !t.ended; })) {
    ++g.epoch;
    return std::vector<bool>(n, true);
  }
  std::vector<int> ended, barrier, shuffle;
  for (size_t i = 0; i < n; ++i)
    (g.threads[i].ended                      ? ended
     : g.threads[i].waits == Waits::kBarrier ? barrier
                                             : shuffle)
        .push_back(static_cast<int>(i));
  g.failure = "kernel " + g.kernel->name + ", block " + std::to_string(g.block) +
              ": its threads wait for each other at different places";
  if (!barrier.empty()) g.failure += "; at a barrier: " + List(barrier);
  if (!shuffle.empty()) g.failure += "; at a shuffle: " + List(shuffle);
  if (!ended.empty()) g.failure += "; at the end: " + List(ended);
  return std::vector<bool>(n, false);
}

void RunMeeting(Grid& g, Launcher launcher, void** arguments) {
  StartBlock(g);
  RunFibres(
      g.kernel->threads,
      [&](int i) {
        for (int64_t block = 0; block < g.kernel->blocks; ++block) {
          g.thread = i;
          if (!RunThread(launcher, arguments)) return;
          g.threads[static_cast<size_t>(i)].ended = true;
          if (!WaitFibre()) return;
        }
      },
      [&](const std::vector<bool>& waiting) {
        // A thread that was stopped waits for nothing any more.
        if (!g.failure.empty()) return std::vector<bool>(waiting.size(), false);
        return Meet(g);
      });
}

}  // namespace

EmulatedDevice::EmulatedDevice(const std::string& code, const std::string& target) {
  if (const std::string lacking = LackingFeature(target); !lacking.empty())
    throw std::runtime_error("the kernels were compiled for emulation on a CPU with " + lacking +
                             ", which this one lacks");
  code_ = std::make_unique<LoadedCode>(code);
  auto** table = static_cast<EmulationTable**>(code_->Find("weft_emulation"));
  if (table == nullptr) throw std::runtime_error("the emulated kernels lack their table");
  *table = Table();
}

EmulatedDevice::~EmulatedDevice() {
  for (const auto& [address, bytes] : allocated_) std::free(const_cast<char*>(address));
}

void* EmulatedDevice::Allocate(int64_t bytes) {
  const size_t size = (static_cast<size_t>(bytes) + 511) / 256 * 256;
  void* p = std::aligned_alloc(256, size);
  if (p == nullptr) throw OutOfMemory("out of memory: " + std::to_string(bytes) + " bytes of emulated device memory");
  std::memset(p, 0xCB, size);
  allocated_[static_cast<const char*>(p)] = bytes;
  return p;
}

void EmulatedDevice::Free(void* address) {
  allocated_.erase(static_cast<const char*>(address));
  std::free(address);
}

void EmulatedDevice::Within(const void* address, int64_t bytes, const char* what) const {
  const char* at = static_cast<const char*>(address);
  auto it = allocated_.upper_bound(at);
  if (bytes == 0) return;
  if (it == allocated_.begin() || at + bytes > std::prev(it)->first + std::prev(it)->second)
    throw std::runtime_error(std::string(what) + " leaves the memory that was allocated");
}

void EmulatedDevice::CopyIn(void* to, const void* from, int64_t bytes) {
  Within(to, bytes, "a copy to the device");
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}
void EmulatedDevice::CopyOut(void* to, const void* from, int64_t bytes) {
  Within(from, bytes, "a copy from the device");
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}
void EmulatedDevice::CopyWithin(void* to, const void* from, int64_t bytes) {
  Within(to, bytes, "a copy");
  Within(from, bytes, "a copy");
  if (bytes > 0) std::memmove(to, from, static_cast<size_t>(bytes));
}

void EmulatedDevice::Launch(const GpuKernel& kernel, const std::vector<Operand>& operands) {
  const auto launcher = reinterpret_cast<Launcher>(code_->Find(kernel.name + "_launch"));
  if (launcher == nullptr) throw std::runtime_error("the emulated kernels lack " + kernel.name);
  if (kernel.blocks * kernel.threads > 0x7fffffff)
    throw std::runtime_error("kernel " + kernel.name + " has " + std::to_string(kernel.blocks) + " blocks of " +
                             std::to_string(kernel.threads) + " threads; emulation runs at most 2^31 - 1 threads");
  Grid g;
  g.kernel = &kernel;
  g.threads.resize(static_cast<size_t>(kernel.threads));
  std::vector<void*> arguments;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Operand& o = operands[i];
    Within(o.address, o.bytes, "an operand");
    arguments.push_back(o.address);
    for (size_t j = 0; j < i; ++j) {
      const Operand& p = operands[j];
      const char *a = static_cast<const char*>(o.address), *b = static_cast<const char*>(p.address);
      if ((o.written || p.written) && a < b + p.bytes && b < a + o.bytes)
        throw std::runtime_error("kernel " + kernel.name + ": operands " + std::to_string(j) + " and " +
                                 std::to_string(i) + " overlap, and one of them is written");
    }
    g.regions.push_back({static_cast<const char*>(o.address), o.bytes, o.written, false, {}});
    if (o.written) g.regions.back().touches.resize(static_cast<size_t>(o.bytes));
  }
  if (kernel.shared_bytes > 0) {
    const auto* shared = static_cast<const char*>(code_->Find(kernel.name + "_shared"));
    if (shared == nullptr) throw std::runtime_error("the emulated kernels lack the shared memory of " + kernel.name);
    g.regions.push_back(
        {shared, kernel.shared_bytes, true, true, std::vector<Touch>(static_cast<size_t>(kernel.shared_bytes))});
  }
  Grid* const outer = t_grid;
  t_grid = &g;
  if (kernel.meets) {
    RunMeeting(g, launcher, arguments.data());
  } else {
    for (; g.block < kernel.blocks && g.failure.empty(); ++g.block) {
      StartBlock(g);
      for (g.thread = 0; g.thread < kernel.threads; ++g.thread) {
        if (!RunThread(launcher, arguments.data())) break;
      }
    }
  }
  t_grid = outer;
  if (!g.failure.empty()) throw std::runtime_error(g.failure);
}

namespace {

template <class T, class Sum>
void Product(const GpuMatmul& p, const void* x, const void* y, void* out) {
  const T *a = static_cast<const T*>(x), *b = static_cast<const T*>(y);
  T* c = static_cast<T*>(out);
  for (int64_t batch = 0; batch < p.batch; ++batch) {
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < p.n; ++j) {
        Sum sum = 0;
        for (int64_t k = 0; k < p.k; ++k)
          sum += static_cast<Sum>(a[batch * p.x_batch + i * p.x_m + k * p.x_k]) *
                 static_cast<Sum>(b[batch * p.y_batch + k * p.y_k + j * p.y_n]);
        c[batch * p.out_batch + i * p.out_m + j * p.out_n] = static_cast<T>(sum);
      }
    }
  }
}

}  // namespace

void EmulatedDevice::Matmul(const GpuMatmul& p, const void* x, const void* y, void* out) {
  if (p.dtype != p.out_dtype)
    throw std::runtime_error(std::string("a product of ") + Name(p.dtype) + " into " + Name(p.out_dtype) +
                             " is not supported yet; expected one dtype");
  VisitDType(p.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (IsKind(DTypeOf<T>(), DTypeKind::kComplex))
      Product<T, std::complex<double>>(p, x, y, out);
    else if constexpr (IsKind(DTypeOf<T>(), DTypeKind::kFloat))
      Product<T, std::conditional_t<sizeof(T) < sizeof(float), float, double>>(p, x, y, out);
    else
      throw std::runtime_error(std::string("products of ") + Name(p.dtype) +
                               " are not supported; expected f16, bf16, f32, f64, c64 or c128");
  });
}

double EmulatedDevice::Milliseconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace weft::cuda
