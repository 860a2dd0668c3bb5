// libcuda.so.1 and libcublasLt for machines without a GPU, for tests: the program of the bundle $WEFT_FAKE_CUDA_BUNDLE
// (of several, parted by colons, the one whose PTX is loaded, one at a time) runs emulated, in the order in which
// it is launched, on a thread per stream that is late by random times (seeded by $WEFT_FAKE_CUDA_SEED), so that a
// missing synchronisation shows. Device memory is filled with 0xCB; what leaves it ends the process. $WEFT_FAKE_CUDA_IS
// makes it another machine: no_device, stub, old_driver, sm_75, sm_80, bad_lt, bad_ptx, idle (kernels do nothing).
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <queue>
#include <random>
#include <sstream>
#include <thread>

#include "backends/cuda/driver_api.h"
#include "backends/cuda/emulated_device.h"
#include "base/dtype.h"
#include "lowering/bundle/bundle.h"

namespace {

using weft::Bundle;
using weft::GpuKernel;
using weft::cuda::DevicePointer;
using weft::cuda::EmulatedDevice;
using weft::cuda::LtHeuristic;
using weft::cuda::Operand;

bool Is(const char* what) {
  const char* is = std::getenv("WEFT_FAKE_CUDA_IS");
  return is != nullptr && std::strcmp(is, what) == 0;
}

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "fake cuda: %s\n", why.c_str());
  std::abort();
}

class Stream {
 public:
  Stream() : thread_([this] { Work(); }) {}
  ~Stream() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void Add(std::function<void()> work) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      queue_.push(std::move(work));
    }
    changed_.notify_all();
  }
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return queue_.empty() && !busy_; });
  }

 private:
  void Work() {
    const char* seed = std::getenv("WEFT_FAKE_CUDA_SEED");
    std::mt19937 rng(seed == nullptr ? 1 : static_cast<unsigned>(std::atoi(seed)));
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return !queue_.empty() || ends_; });
      if (queue_.empty()) return;
      const std::function<void()> work = std::move(queue_.front());
      queue_.pop();
      busy_ = true;
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(rng() % 500));
      try {
        work();
      } catch (const std::exception& error) {
        Die(error.what());
      }
      lock.lock();
      busy_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::queue<std::function<void()>> queue_;
  bool busy_ = false, ends_ = false;
  std::thread thread_;
};

struct Loaded {
  Bundle bundle;
  std::unique_ptr<EmulatedDevice> device;
};

struct Machine {
  std::vector<Loaded> programs;
  size_t program = 0;  // that runs: one without kernels until another's PTX is loaded
  size_t next_word = 0;

  const Bundle& bundle() const { return programs[program].bundle; }
  EmulatedDevice& device() const { return *programs[program].device; }
};

Machine& TheMachine() {
  static auto& machine = *[] {
    auto* m = new Machine;
    const char* paths = std::getenv("WEFT_FAKE_CUDA_BUNDLE");
    if (paths == nullptr) Die("WEFT_FAKE_CUDA_BUNDLE is not set");
    std::stringstream list(paths);
    std::string path;
    while (std::getline(list, path, ':')) {
      std::ifstream file(path, std::ios::binary);
      std::stringstream bytes;
      bytes << file.rdbuf();
      Loaded loaded{Bundle::Parse(bytes.str()), nullptr};
      if (!loaded.bundle.gpu || loaded.bundle.gpu->emulation.empty()) Die("the bundle holds no emulation");
      loaded.device =
          std::make_unique<EmulatedDevice>(loaded.bundle.gpu->emulation, loaded.bundle.gpu->emulation_target);
      m->programs.push_back(std::move(loaded));
    }
    return m;
  }();
  return machine;
}

void* Memory(DevicePointer p) { return reinterpret_cast<void*>(p); }

int64_t SlotBytes(const Bundle& b, int64_t slot) {
  const weft::Artifact& plan = b.gpu->plan;
  const weft::Artifact::Slot& s = plan.slots[static_cast<size_t>(slot)];
  const size_t i = static_cast<size_t>(s.index);
  auto bytes = [](const Bundle::Value& v) {
    int64_t n = weft::ByteWidth(static_cast<weft::DType>(v.dtype));
    for (int64_t d : v.shape) n *= d;
    return n;
  };
  switch (s.place) {
    case weft::Artifact::Place::kArena: return plan.buffers[i].bytes.constant;
    case weft::Artifact::Place::kParam: return bytes(b.params[i]);
    case weft::Artifact::Place::kResult: return bytes(b.results[i]);
    default: return static_cast<int64_t>(plan.constants.size()) - s.index;
  }
}

// The next step of the program that runs, which is to be an S.
template <class S>
S NextStep() {
  Machine& m = TheMachine();
  const std::vector<int64_t>& words = m.bundle().gpu->plan.desc;
  const int64_t* at = words.data() + m.next_word % words.size();
  if (*at != S::kOpcode) Die("the steps of the program come in another order");
  const S step = weft::abi::Decode<S>(at, &at);
  m.next_word = static_cast<size_t>(at - words.data());
  return step;
}

struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t ld;
  int32_t batch = 1;
  int64_t stride = 0;
};
struct Event {
  Stream* stream = nullptr;
  std::atomic<std::chrono::steady_clock::time_point> reached{};
};
struct Operation {
  int32_t transpose[2] = {0, 0};
};

}  // namespace

#define WEFT_FAKE extern "C" __attribute__((visibility("default"))) int

WEFT_FAKE cuInit(unsigned) { return Is("stub") ? 34 : Is("no_device") ? 100 : 0; }
WEFT_FAKE cuDriverGetVersion(int* version) {
  *version = Is("old_driver") ? 11040 : 12040;
  return 0;
}
WEFT_FAKE cuGetErrorName(int status, const char** name) {
  *name = status == 218 ? "CUDA_ERROR_INVALID_PTX" : "CUDA_ERROR_INVALID_VALUE";
  return 0;
}
WEFT_FAKE cuGetErrorString(int, const char** text) {
  *text = "a PTX JIT compilation failed";
  return 0;
}
WEFT_FAKE cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}
WEFT_FAKE cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
WEFT_FAKE cuDeviceGetName(char* name, int size, int) {
  std::snprintf(name, static_cast<size_t>(size), "Fake GPU");
  return 0;
}
WEFT_FAKE cuDeviceGetAttribute(int* value, int attribute, int) {
  const bool major = attribute == 75;
  *value = Is("sm_75") ? (major ? 7 : 5) : major ? (Is("sm_80") ? 8 : 9) : 0;
  return 0;
}
WEFT_FAKE cuDevicePrimaryCtxRetain(void** context, int) {
  Machine& m = TheMachine();
  for (size_t i = 0; i < m.programs.size(); ++i) {
    if (m.programs[i].bundle.gpu->kernels.empty()) m.program = i;
  }
  m.next_word = 0;
  *context = &m;
  return 0;
}
WEFT_FAKE cuDevicePrimaryCtxRelease_v2(int) { return 0; }
WEFT_FAKE cuCtxSetCurrent(void*) { return 0; }
WEFT_FAKE cuModuleLoadDataEx(void** module, const void* ptx, unsigned count, int* options, void** values) {
  if (Is("bad_ptx")) {
    for (unsigned i = 0; i < count; ++i) {
      if (options[i] == 5) std::strcpy(static_cast<char*>(values[i]), "ptxas: line 7");
    }
    return 218;
  }
  Machine& m = TheMachine();
  for (size_t i = 0; i < m.programs.size(); ++i) {
    if (m.programs[i].bundle.gpu->ptx != static_cast<const char*>(ptx)) continue;
    m.program = i;
    m.next_word = 0;
    *module = &m;
    return 0;
  }
  Die("the PTX is not that of the bundle");
}
WEFT_FAKE cuModuleUnload(void*) { return 0; }
WEFT_FAKE cuModuleGetFunction(void** function, void*, const char* name) {
  for (const GpuKernel& k : TheMachine().bundle().gpu->kernels) {
    if (k.name == name) {
      *function = const_cast<GpuKernel*>(&k);
      return 0;
    }
  }
  return 1;
}
WEFT_FAKE cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                         unsigned, void* stream, void** arguments, void**) {
  const auto* kernel = static_cast<const GpuKernel*>(function);
  if (gx != kernel->blocks || bx != static_cast<unsigned>(kernel->threads) || gy * gz * by * bz != 1)
    Die("a kernel is launched with another grid");
  const auto step = NextStep<weft::abi::Launch<weft::abi::InWords>>();
  if (&TheMachine().bundle().gpu->kernels[static_cast<size_t>(step.kernel)] != kernel) Die("another kernel is due");
  std::vector<Operand> operands;
  for (const auto& o : step.operands)
    operands.push_back(
        {Memory(*static_cast<DevicePointer*>(*arguments++)), SlotBytes(TheMachine().bundle(), o.place), o.written});
  if (Is("idle")) return 0;
  static_cast<Stream*>(stream)->Add([kernel, operands] { TheMachine().device().Launch(*kernel, operands); });
  return 0;
}
WEFT_FAKE cuMemAlloc_v2(DevicePointer* p, size_t bytes) {
  *p = reinterpret_cast<DevicePointer>(TheMachine().device().Allocate(static_cast<int64_t>(bytes)));
  return 0;
}
WEFT_FAKE cuMemFree_v2(DevicePointer p) {
  TheMachine().device().Free(Memory(p));
  return 0;
}
WEFT_FAKE cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, size_t bytes, void* stream) {
  static_cast<Stream*>(stream)->Add(
      [=] { TheMachine().device().CopyIn(Memory(to), from, static_cast<int64_t>(bytes)); });
  return 0;
}
WEFT_FAKE cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, size_t bytes, void* stream) {
  static_cast<Stream*>(stream)->Add(
      [=] { TheMachine().device().CopyOut(to, Memory(from), static_cast<int64_t>(bytes)); });
  return 0;
}
WEFT_FAKE cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, size_t bytes, void* stream) {
  NextStep<weft::abi::Copy<weft::abi::InWords>>();
  static_cast<Stream*>(stream)->Add(
      [=] { TheMachine().device().CopyWithin(Memory(to), Memory(from), static_cast<int64_t>(bytes)); });
  return 0;
}
WEFT_FAKE cuStreamCreate(void** stream, unsigned) {
  *stream = new Stream;
  return 0;
}
WEFT_FAKE cuStreamSynchronize(void* stream) {
  static_cast<Stream*>(stream)->Wait();
  return 0;
}
WEFT_FAKE cuStreamDestroy_v2(void* stream) {
  delete static_cast<Stream*>(stream);
  return 0;
}

WEFT_FAKE cuEventCreate(void** event, unsigned) {
  *event = new Event;
  return 0;
}
WEFT_FAKE cuEventRecord(void* event, void* stream) {
  auto* e = static_cast<Event*>(event);
  e->stream = static_cast<Stream*>(stream);
  e->stream->Add([e] { e->reached = std::chrono::steady_clock::now(); });
  return 0;
}
WEFT_FAKE cuEventSynchronize(void* event) {
  static_cast<Event*>(event)->stream->Wait();
  return 0;
}
WEFT_FAKE cuEventElapsedTime(float* milliseconds, void* begin, void* end) {
  const auto *b = static_cast<Event*>(begin), *e = static_cast<Event*>(end);
  const std::chrono::steady_clock::time_point none;
  if (b->reached.load() == none || e->reached.load() == none) return 600;  // CUDA_ERROR_NOT_READY
  *milliseconds = std::chrono::duration<float, std::milli>(e->reached.load() - b->reached.load()).count();
  return 0;
}
WEFT_FAKE cuEventDestroy_v2(void* event) {
  delete static_cast<Event*>(event);
  return 0;
}

WEFT_FAKE cublasLtCreate(void** handle) {
  *handle = &TheMachine();
  return Is("bad_lt") ? 1 : 0;
}
WEFT_FAKE cublasLtDestroy(void*) { return 0; }
WEFT_FAKE cublasLtMatmulDescCreate(void** operation, int, int) {
  *operation = new Operation;
  return 0;
}
WEFT_FAKE cublasLtMatmulDescDestroy(void* operation) {
  delete static_cast<Operation*>(operation);
  return 0;
}
WEFT_FAKE cublasLtMatmulDescSetAttribute(void* operation, int attribute, const void* value, size_t) {
  static_cast<Operation*>(operation)->transpose[attribute - 3] = *static_cast<const int32_t*>(value);
  return 0;
}
WEFT_FAKE cublasLtMatrixLayoutCreate(void** layout, int type, uint64_t rows, uint64_t columns, int64_t ld) {
  if (ld < static_cast<int64_t>(rows)) return 7;
  *layout = new Layout{type, rows, columns, ld};
  return 0;
}
WEFT_FAKE cublasLtMatrixLayoutDestroy(void* layout) {
  delete static_cast<Layout*>(layout);
  return 0;
}
WEFT_FAKE cublasLtMatrixLayoutSetAttribute(void* layout, int attribute, const void* value, size_t size) {
  auto* l = static_cast<Layout*>(layout);
  if (attribute == 5 && size == 4) l->batch = *static_cast<const int32_t*>(value);
  if (attribute == 6 && size == 8) l->stride = *static_cast<const int64_t*>(value);
  return 0;
}
WEFT_FAKE cublasLtMatmulPreferenceCreate(void** preference) {
  *preference = &TheMachine();
  return 0;
}
WEFT_FAKE cublasLtMatmulPreferenceDestroy(void*) { return 0; }
WEFT_FAKE cublasLtMatmulPreferenceSetAttribute(void*, int, const void*, size_t) { return 0; }
WEFT_FAKE cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void*, int, LtHeuristic* found,
                                         int* count) {
  *found = {};
  *count = 1;
  return 0;
}
// Column by column, as the layouts say; the product itself is the emulated device's.
WEFT_FAKE cublasLtMatmul(void*, void* operation, const void*, const void* a, void* la, const void* b, void* lb,
                         const void*, const void*, void*, void* out, void* lc, const void*, void*, size_t,
                         void* stream) {
  const auto *x = static_cast<Layout*>(la), *y = static_cast<Layout*>(lb), *z = static_cast<Layout*>(lc);
  const auto* op = static_cast<Operation*>(operation);
  weft::GpuMatmul p;
  p.dtype = p.out_dtype = NextStep<weft::abi::Product<weft::abi::InWords>>().product.dtype;
  p.batch = z->batch;
  p.m = static_cast<int64_t>(z->rows);
  p.n = static_cast<int64_t>(z->columns);
  p.k = static_cast<int64_t>(op->transpose[0] ? x->rows : x->columns);
  if (static_cast<int64_t>(op->transpose[0] ? x->columns : x->rows) != p.m ||
      static_cast<int64_t>(op->transpose[1] ? y->rows : y->columns) != p.n ||
      static_cast<int64_t>(op->transpose[1] ? y->columns : y->rows) != p.k)
    return 7;
  p.x_m = op->transpose[0] ? x->ld : 1;
  p.x_k = op->transpose[0] ? 1 : x->ld;
  p.y_k = op->transpose[1] ? y->ld : 1;
  p.y_n = op->transpose[1] ? 1 : y->ld;
  p.out_m = 1;
  p.out_n = z->ld;
  p.x_batch = x->stride, p.y_batch = y->stride, p.out_batch = z->stride;
  static_cast<Stream*>(stream)->Add([=] { TheMachine().device().Matmul(p, a, b, out); });
  return 0;
}
