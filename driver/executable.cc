#include "driver/executable.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <list>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <unordered_map>

#include "absl/container/inlined_vector.h"
#include "backends/cpu/buffer_cache.h"
#include "backends/cpu/fork_safe_mutex.h"
#include "backends/cpu/program.h"
#include "driver/connect_effects.h"
#include "driver/disk_cache.h"
#include "driver/stages.h"
#include "ir/interrupt.h"
#include "ir/text_printer.h"
#include "lowering/abi.h"
#include "lowering/lower.h"
#include "transforms/ordinals.h"
#include "transforms/pass.h"

namespace weft {
namespace {

struct Key {
  FnRef fn;
  std::string options;
  friend bool operator==(const Key& a, const Key& b) { return a.options == b.options && FnEqual()(a.fn, b.fn); }
};
struct KeyHash {
  size_t operator()(const Key& k) const { return k.fn->StructuralHash() * 31 + std::hash<std::string>()(k.options); }
};

std::string OptionsText(const CompileOptions& o) {
  std::string donated;
  for (bool d : o.donated) donated += d ? '1' : '0';
  return o.pipeline_name + "|" + o.target.ToString() + "|" + std::to_string(o.target.vector_bytes) + "|" +
         std::to_string(o.fusion.fuse) + "," + std::to_string(o.fusion.max_members) + "," +
         std::to_string(o.fusion.max_inline_cost) + "," + std::to_string(o.fusion.min_parallel_rows) + "," +
         std::to_string(o.fusion.large_row) + "," + std::to_string(o.fusion.distinct_buffers) + "|" + donated;
}

// Which build of the compiler this is: cached code of another one is not used.
std::string BuildIdentity() {
  static const std::string* identity = [] {
    auto* text = new std::string;
    Dl_info info;
    struct stat file;
    if (dladdr(reinterpret_cast<void*>(&BuildIdentity), &info) != 0 && info.dli_fname != nullptr &&
        stat(info.dli_fname, &file) == 0) {
      *text = std::to_string(file.st_size) + "." + std::to_string(file.st_mtim.tv_sec) + "." +
              std::to_string(file.st_mtim.tv_nsec);
    }
    return text;
  }();
  return *identity;
}

std::string DiskKey(const Fn& optimized, const CompileOptions& o) {
  CompileOptions named = o;
  named.pipeline_name.clear();  // the passes have run
  return "abi " + std::to_string(WEFT_ABI_VERSION) + "\nbuild " + BuildIdentity() + "\n" + OptionsText(named) + "\n" +
         Print(optimized);
}

// Held (shared) by whoever compiles, so that forking waits: LLVM, the linker and the caches have locks of their own
// that the child would find held by threads it does not have. Who forks may hold Python's lock.
class Compiling {
 public:
  Compiling() { Gate().lock_shared(); }
  ~Compiling() { Gate().unlock_shared(); }
  Compiling(const Compiling&) = delete;

 private:
  static std::shared_mutex& Gate() {
    static auto* gate = [] {
      // Before forking the mutexes of backends/ are locked after this one, since compiling takes them: the handlers run
      // in reverse order of registration, and making a mutex registers theirs.
      cpu::ForkSafeMutex();
      // The child's thread has another number than the one that locked, so it cannot unlock.
      pthread_atfork([] { Gate().lock(); }, [] { Gate().unlock(); }, [] { new (&Gate()) std::shared_mutex; });
      return new std::shared_mutex;
    }();
    return *gate;
  }
  NoInterrupts no_interrupts_;
};

// The most recently used programs. One lock: a lookup takes a microsecond, and compilation happens outside of it.
class Cache {
 public:
  // Waits for a thread that compiles it. Null: this thread is to, and calls End when it has inserted it or failed.
  std::shared_ptr<Executable> FindOrBegin(const Key& key) {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      if (const auto it = map_.find(key); it != map_.end()) {
        order_.splice(order_.begin(), order_, it->second);
        return it->second->second;
      }
      const auto [other, is_mine] = compiling_.emplace(key, std::this_thread::get_id());
      if (is_mine || WouldWaitForItself(other->second)) return nullptr;
      waiting_.emplace(std::this_thread::get_id(), key);
      ended_.wait(lock);
      waiting_.erase(std::this_thread::get_id());
    }
  }
  void End(const Key& key) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      const auto it = compiling_.find(key);
      if (it == compiling_.end() || it->second != std::this_thread::get_id()) return;
      compiling_.erase(it);
    }
    ended_.notify_all();
  }
  // Of two threads that compiled the same, the first wins.
  std::shared_ptr<Executable> Insert(const Key& key, std::shared_ptr<Executable> e) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = map_.find(key);
    if (it != map_.end()) return it->second->second;
    order_.emplace_front(key, e);
    map_[key] = order_.begin();
    while (order_.size() > kLimit) {
      map_.erase(order_.back().first);
      order_.pop_back();
    }
    return e;
  }
  int64_t Size() {
    std::lock_guard<std::mutex> lock(mutex_);
    return static_cast<int64_t>(order_.size());
  }
  void Clear() {
    std::lock_guard<std::mutex> lock(mutex_);
    map_.clear();
    order_.clear();
  }

 private:
  static constexpr size_t kLimit = 4096;

  // Passes may ask the host for something, and so compile another program.
  bool WouldWaitForItself(std::thread::id other) {
    while (other != std::this_thread::get_id()) {
      const auto waits = waiting_.find(other);
      if (waits == waiting_.end()) return false;
      const auto next = compiling_.find(waits->second);
      if (next == compiling_.end()) return false;
      other = next->second;
    }
    return true;
  }

  std::mutex mutex_;
  std::condition_variable ended_;
  std::unordered_map<Key, std::thread::id, KeyHash> compiling_;
  std::unordered_map<std::thread::id, Key> waiting_;
  std::list<std::pair<Key, std::shared_ptr<Executable>>> order_;
  std::unordered_map<Key, std::list<std::pair<Key, std::shared_ptr<Executable>>>::iterator, KeyHash> map_;
};

std::atomic<int64_t> g_compiled{0};

Cache& TheCache() {
  static Cache* cache = new Cache;
  return *cache;
}

}  // namespace

std::shared_ptr<Executable> Compile(const FnRef& fn, const CompileOptions& options) {
  const Key key{fn, OptionsText(options)};
  Compiling compiling;
  struct Begun {
    const Key* key = nullptr;
    ~Begun() {
      if (key != nullptr) TheCache().End(*key);
    }
  } begun;
  if (options.use_cache) {
    if (auto found = TheCache().FindOrBegin(key)) return found;
    begun.key = &key;
  }
  g_compiled.fetch_add(1);
  ConnectEffects();
  const auto start = std::chrono::steady_clock::now();
  auto e = std::make_shared<Executable>();
  e->fn_ = fn;
  e->options_ = options;
  e->optimized_ = fn;
  for (const auto& pass : options.passes) e->optimized_ = pass(e->optimized_);
  // Code names callbacks 0, 1 ..., so that it is the same in all processes.
  Ints callbacks;
  const FnRef numbered = WithOrdinals(e->optimized_, &callbacks);
  const std::string disk_key = options.use_disk_cache ? DiskKey(*numbered, options) : "";
  if (options.use_disk_cache) {
    if (std::optional<Artifact> cached = ReadCachedArtifact(disk_key)) {
      try {
        e->program_ = cpu::Program::Load(std::move(*cached), callbacks);
        e->from_disk_ = true;
      } catch (const std::exception&) {
        // Compiled anew below, and replaced.
      }
    }
  }
  if (e->program_ == nullptr) {
    Artifact artifact = Lower(numbered, options.target, {options.fusion, options.donated});
    if (options.use_disk_cache) WriteCachedArtifact(disk_key, artifact);
    try {
      e->program_ = cpu::Program::Load(std::move(artifact), callbacks);
    } catch (const std::exception& failure) {
      throw Error(ErrorKind::kInternal, failure.what());
    }
  }
  e->compile_milliseconds_ =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return options.use_cache ? TheCache().Insert(key, e) : e;
}

CompileOptions CompileOptions::Optimizing() {
  CompileOptions options;
  options.pipeline_name = "default";
  options.passes = {Optimize};
  return options;
}

bool MayOverwrite(const Tensor& t) {
  return t.owner().use_count() == 1 && t.raw() == t.owner().get() && (t.made_here() || cpu::IsCacheBuffer(t.owner()));
}

Tensors Executable::RunOwned(Tensors args) const {
  const std::vector<Param>& params = fn_->params();
  if (args.size() != params.size())
    throw TypeError(fn_->name(), ": takes ", params.size(), " arguments, got ", args.size());
  absl::InlinedVector<cpu::Argument, 8> arguments(args.size());
  for (size_t i = 0; i < args.size(); ++i) {
    const Type& t = params[i].type;
    if (args[i].dtype() != t.dtype || args[i].rank() != t.rank()) {
      throw TypeError(fn_->name(), ": argument ", i, params[i].name.empty() ? "" : " (" + params[i].name + ")", " is ",
                      args[i].type(), "; expected ", t);
    }
    if (!options_.donated.empty() && options_.donated[i]) {
      if (!MayOverwrite(args[i])) args[i] = args[i].Copy();
      arguments[i] = {args[i].raw(), args[i].shape().data(), args[i].owner()};
    } else {
      arguments[i] = {args[i].raw(), args[i].shape().data(), nullptr};
    }
    if (t.dtype == DType::kTape) arguments[i].tapes = args[i].owner();
  }
  absl::InlinedVector<cpu::Array, 4> out(program_->artifact().results.size());
  try {
    program_->Run(arguments, out);
  } catch (const std::invalid_argument& failure) {
    throw TypeError(fn_->name(), ": ", failure.what());
  } catch (const std::runtime_error& failure) {
    throw Error(ErrorKind::kRuntime, failure.what());
  }
  args.clear();  // its memory holds the results
  args.reserve(out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    const DType dtype = static_cast<DType>(program_->artifact().results[i].dtype);
    void* data = out[i].data.get();
    args.emplace_back(dtype, std::move(out[i].shape), std::move(out[i].data), data);
  }
  return args;
}

std::string Executable::Stage(const std::string& stage) const {
  if (stage == "schedule") return program_->artifact().schedule;
  Compiling compiling;
  return LowerToText(optimized_, options_.target, {options_.fusion, options_.donated}, stage);
}

std::string StageText(const FnRef& fn, const std::string& stage, const CompileOptions& options) {
  CheckStage(stage);
  if (stage == "ir") return Print(*fn);
  if (stage != "optimized") return Compile(fn, options)->Stage(stage);
  FnRef optimized = fn;
  for (const auto& pass : options.passes) optimized = pass(optimized);
  return Print(*optimized);
}

const Artifact& Executable::artifact() const { return program_->artifact(); }
const Artifact::Counters& Executable::counters() const { return program_->artifact().counters; }
int64_t Executable::arena_bytes() const { return program_->arena_bytes(); }

int64_t ProgramsCompiled() { return g_compiled.load(); }
int64_t CompileCacheSize() {
  Compiling compiling;
  return TheCache().Size();
}
void ClearCompileCache() {
  Compiling compiling;
  TheCache().Clear();
}

void WarmUpCompiler() {
  Compiling compiling;
  WarmUpLowering();
}

}  // namespace weft
