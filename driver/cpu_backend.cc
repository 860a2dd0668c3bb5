// Programs for the CPU at hand: lowered to an image of code, which the disk cache keeps, and loaded.
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_join.h"
#include "backends/cpu/core/program.h"
#include "backends/cpu/ops/gemm.h"
#include "base/environment.h"
#include "base/fork_safe_mutex.h"
#include "base/interrupt.h"
#include "driver/backend.h"
#include "driver/connect_effects.h"
#include "driver/disk_cache.h"
#include "driver/executable.h"
#include "driver/program_key.h"
#include "driver/single_flight.h"
#include "ir/error.h"
#include "ir/prim.h"
#include "ir/text/printer.h"
#include "lowering/abi/abi.h"
#include "lowering/abi/product_cost.h"
#include "lowering/lower.h"
#include "transforms/opt/numbers.h"
#include "transforms/opt/ordinals.h"

namespace weft {
namespace {

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

// Of a request whose program has been through the passes.
std::string DiskKey(const CompileRequest& request) {
  CompileRequest rest = request;
  rest.passes.clear();
  return "abi " + std::to_string(WEFT_ABI_VERSION) + "\nbuild " + BuildIdentity() + "\n" + rest.Key() + "\n" +
         Print(*request.program);
}

LowerOptions OptionsOf(const CompileRequest& request) { return {request.fusion, request.donated}; }

// What code is made of: the optimized program without its numbers, which follow its arguments when it is called.
CompileRequest ForCode(const CompileRequest& request, const FnRef& optimized, Tensors* numbers,
                       WhichNumbers which = WhichNumbers::kParticular) {
  CompileRequest of_code = request.For(NumbersAsParameters(optimized, numbers, which));
  if (!of_code.donated.empty()) of_code.donated.resize(of_code.program->params().size());
  return of_code;
}

// Loaded, if need be after programs that nobody holds any more have been dropped: each takes mappings of memory, of
// which a process has so many.
std::shared_ptr<const cpu::Program> LoadCode(const Artifact& artifact, const Ints& callbacks) {
  try {
    return cpu::Program::Load(artifact, callbacks);
  } catch (const std::runtime_error&) {
    DropCachedPrograms();
  }
  try {
    return cpu::Program::Load(artifact, callbacks);
  } catch (const std::runtime_error& failure) {
    throw Error(ErrorKind::kRuntime, failure.what());
  }
}

// Loaded code, which programs share that differ in numbers only (transforms/opt/numbers.h).
struct Code {
  std::shared_ptr<const cpu::Program> program;
  bool from_disk = false;
};

// Whether it may have products that are oneDNN's.
bool NeedsOneDnn(const Fn& fn, std::unordered_set<const Fn*>& seen) {
  if (!seen.insert(&fn).second) return false;
  const auto elements = [&](const Atom& a) {
    const std::optional<int64_t> n = fn.TypeOf(a).size().TryValue();
    return n ? static_cast<double>(*n) : std::numeric_limits<double>::infinity();
  };
  for (const Eqn& e : fn.eqns()) {
    if (e.prim->family == Family::kContraction) {
      const Type& result = fn.TypeOf(e.result());
      // Of [m, k] and [k, n]; more where there are several.
      const double multiplications =
          std::sqrt(elements(e.operands[0]) * elements(e.operands[1]) * elements(e.result()));
      if (IsFloat(result.dtype) && ByteWidth(result.dtype) <= 4 && IsForOneDnn(multiplications)) return true;
    }
    for (const FnRef& region : e.regions) {
      if (NeedsOneDnn(*region, seen)) return true;
    }
  }
  return false;
}

std::atomic<int64_t> g_generated{0};

Artifact LoweredCode(const CompileRequest& request, const std::string& disk_key) {
  g_generated.fetch_add(1);
  Artifact artifact = Lower(request.program, request.target, OptionsOf(request));
  if (request.use_disk_cache) WriteCachedArtifact(disk_key, artifact);
  return artifact;
}

// From the disk cache, or made.
Code CodeFor(const CompileRequest& request, const Ints& callbacks) {
  const std::string disk_key = request.use_disk_cache ? DiskKey(request) : "";
  if (request.use_disk_cache) {
    if (std::optional<Artifact> cached = ReadCachedArtifact(disk_key)) {
      try {
        return {cpu::Program::Load(std::move(*cached), callbacks), true};
      } catch (const std::exception&) {
        cached.reset();  // compiled anew below, and replaced
      }
    }
  }
  return {LoadCode(LoweredCode(request, disk_key), callbacks), false};
}

// Code that some program holds.
class SharedCode {
 public:
  std::shared_ptr<const Code> Find(const ProgramKey& key) {
    std::lock_guard<ForkSafeMutex> lock(mutex_);
    const auto at = map_.find(key);
    return at == map_.end() ? nullptr : at->second.lock();
  }
  // Of two threads that made the same, the first wins.
  std::shared_ptr<const Code> Insert(const ProgramKey& key, std::shared_ptr<const Code> code) {
    std::lock_guard<ForkSafeMutex> lock(mutex_);
    if (map_.size() >= 2 * kept_ + 64) {
      std::erase_if(map_, [](const auto& entry) { return entry.second.expired(); });
      kept_ = map_.size();
    }
    std::weak_ptr<const Code>& place = map_[key];
    if (auto other = place.lock()) return other;
    place = code;
    return code;
  }
  // Whether code was made several times for programs that differ in their numbers alone, of which `key` is one without
  // any: another one had better be for all numbers. Counts it.
  bool HasManyNumbers(const ProgramKey& key) {
    constexpr int kFew = 2;
    constexpr size_t kMost = 4096;
    std::lock_guard<ForkSafeMutex> lock(mutex_);
    if (made_.size() >= kMost) made_.clear();
    return ++made_[ProgramKeyHash()(key)] > kFew;
  }

 private:
  ForkSafeMutex mutex_;
  std::unordered_map<size_t, int> made_;  // how often, by the hash of the key
  size_t kept_ = 0;                       // when those that nobody holds any more were dropped last
  std::unordered_map<ProgramKey, std::weak_ptr<const Code>, ProgramKeyHash> map_;
};

SharedCode& TheSharedCode() {
  static auto& shared = *new SharedCode;
  return shared;
}

class CpuProgram : public LoadedProgram {
 public:
  CpuProgram(std::string name, std::shared_ptr<const Code> code, Tensors numbers, std::vector<bool> donated)
      : name_(std::move(name)), code_(std::move(code)), numbers_(std::move(numbers)), donated_(std::move(donated)) {}

  Tensors Run(Tensors args) const override;
  std::vector<bool> UsesDonated() const override {
    std::vector<bool> uses;
    for (uint8_t d : program().artifact().donated) uses.push_back(d == 2);
    if (!uses.empty()) uses.resize(donated_.size());
    return uses;
  }
  std::vector<std::pair<std::string, double>> Facts() const override {
    const Artifact::Counters& c = program().artifact().counters;
    return {{"kernels", static_cast<double>(c.kernels)},
            {"kernel_calls", static_cast<double>(c.kernel_calls)},
            {"launches", static_cast<double>(c.launches)},
            {"library_calls", static_cast<double>(c.library_calls)},
            {"bytes_moved", static_cast<double>(c.bytes_moved)},
            {"bytes_copied", static_cast<double>(c.bytes_copied)},
            {"donated", static_cast<double>(c.donated)},
            {"arena_bytes", static_cast<double>(program().arena_bytes())}};
  }
  const Artifact* artifact() const override { return &program().artifact(); }
  bool from_disk() const override { return code_->from_disk; }

 private:
  const cpu::Program& program() const { return *code_->program; }

  std::string name_;
  std::shared_ptr<const Code> code_;
  Tensors numbers_;  // the code's parameters after those of the program
  std::vector<bool> donated_;
};

// The same in memory of its own, in which a program may write.
Tensor Copied(const Tensor& t) {
  const Buffer from{0, const_cast<void*>(t.raw()), t.bytes(), t.owner(), nullptr};
  Buffer to = HostMemory().Allocate(from.device, from.bytes);
  HostMemory().Copy(from, to);
  return Tensor(t.dtype(), t.shape(), std::move(to.owner), to.address);
}

Tensors CpuProgram::Run(Tensors args) const {
  absl::InlinedVector<cpu::Argument, 8> arguments(args.size() + numbers_.size());
  for (size_t i = 0; i < args.size(); ++i) {
    const bool donated = !donated_.empty() && donated_[i];
    if (donated && !MayOverwrite(args[i])) args[i] = Copied(args[i]);
    arguments[i] = {args[i].raw(), args[i].shape().data(), donated ? args[i].owner() : nullptr};
    if (args[i].dtype() == DType::kTape) arguments[i].tapes = args[i].owner();
  }
  for (size_t i = 0; i < numbers_.size(); ++i) arguments[args.size() + i] = {numbers_[i].raw(), nullptr};
  absl::InlinedVector<cpu::Array, 4> out(program().artifact().results.size());
  try {
    program().Run(arguments, out);
  } catch (const std::invalid_argument& failure) {
    throw TypeError(name_, ": ", failure.what());
  } catch (const std::runtime_error& failure) {
    throw Error(ErrorKind::kRuntime, failure.what());
  }
  args.clear();  // its memory holds the results
  args.reserve(out.size());
  for (size_t i = 0; i < out.size(); ++i) {
    const DType dtype = static_cast<DType>(program().artifact().results[i].dtype);
    void* data = out[i].data.get();
    args.emplace_back(dtype, SharedShape(std::move(out[i].shape)), std::move(out[i].data), data);
  }
  return args;
}

class Cpu : public Backend {
 public:
  std::string Description() const override { return "a CPU"; }
  std::vector<Device> Devices() const override { return HostDevices(); }
  const DeviceMemory& Memory() const override { return HostMemory(); }
  std::vector<std::string> Stages() const override {
    return {"fusion", "schedule", "liveness", "buffers", "mlir", "llvm", "asm"};
  }
  std::string StageText(const CompileRequest& request, const FnRef& optimized,
                        const std::string& stage) const override {
    Tensors numbers;
    const CompileRequest of_code = ForCode(request, optimized, &numbers);
    return LowerToText(of_code.program, request.target, OptionsOf(of_code), stage);
  }
  std::shared_ptr<void> Prepare(const Fn& program) const override;
  std::unique_ptr<const LoadedProgram> Load(const CompileRequest& request, const FnRef& optimized) const override;
  void Export(const CompileRequest& request, const FnRef& optimized, bool, Bundle* bundle) const override;
};

// oneDNN takes 30 ms before its first product, as long as compiling a small network takes.
// A thread beside a compilation, which ends before what holds this does.
class Beside {
 public:
  explicit Beside(std::function<void()> work) : thread_(std::move(work)) {}
  Beside(const Beside&) = delete;
  // A handler of signals may have forked: then there is no other thread here.
  ~Beside() { getpid() == process_ ? thread_.join() : thread_.detach(); }

 private:
  std::thread thread_;
  const pid_t process_ = getpid();
};

std::shared_ptr<void> Cpu::Prepare(const Fn& program) const {
  std::unordered_set<const Fn*> seen;
  if (DefaultThreads() == 1 || cpu::ProductsArePrepared() || !NeedsOneDnn(program, seen)) return nullptr;
  try {
    return std::make_shared<Beside>([section = InSection::Current()] {
      const InSection inside(section);  // the caller leaves it when it asks for interrupts
      try {
        cpu::PrepareProducts();
      } catch (const std::bad_alloc&) {
        return;  // the first product will say so
      }
    });
  } catch (const std::system_error&) {
    return nullptr;  // No thread: the first product takes the longer.
  }
}

std::unique_ptr<const LoadedProgram> Cpu::Load(const CompileRequest& request, const FnRef& optimized) const {
  ConnectEffects();
  Ints callbacks;
  Tensors numbers;
  const FnRef program = WithOrdinals(optimized, &callbacks);
  CompileRequest of_code = ForCode(request, program, &numbers);
  const auto loaded = [&](std::shared_ptr<const Code> code) {
    return std::make_unique<CpuProgram>(request.program->name(), std::move(code), std::move(numbers), request.donated);
  };
  const auto make = [&] { return std::make_shared<const Code>(CodeFor(of_code, callbacks)); };
  if (!request.use_cache) return loaded(make());
  const auto key_of = [&](const CompileRequest& code) {
    return ProgramKey{code.program, "code\n" + code.Key() + "\ncallbacks " + absl::StrJoin(callbacks, ",")};
  };
  ProgramKey key = key_of(of_code);
  if (TheSharedCode().Find(key) == nullptr) {
    Tensors all;
    CompileRequest for_all = ForCode(request, program, &all, WhichNumbers::kAll);
    if (all.size() > numbers.size() && TheSharedCode().HasManyNumbers(key_of(for_all))) {
      of_code = std::move(for_all);
      numbers = std::move(all);
      key = key_of(of_code);
    }
  }
  return loaded(
      FindOrMake(key, [&] { return TheSharedCode().Find(key); }, [&] { return TheSharedCode().Insert(key, make()); }));
}

void Cpu::Export(const CompileRequest& request, const FnRef& optimized, bool, Bundle* bundle) const {
  Ints callbacks;
  const CompileRequest of_code = request.For(WithOrdinals(optimized, &callbacks));
  const std::string disk_key = request.use_disk_cache ? DiskKey(of_code) : "";
  if (request.use_disk_cache) {
    if (std::optional<Artifact> cached = ReadCachedArtifact(disk_key)) {
      bundle->cpu = std::move(*cached);
      return;
    }
  }
  bundle->cpu = LoweredCode(of_code, disk_key);
}

}  // namespace

int64_t CodesGenerated() { return g_generated.load(); }

std::shared_ptr<const Backend> CpuBackend(const std::string& name) {
  static const auto& backend = *new std::shared_ptr<const Backend>(std::make_shared<Cpu>());
  return name == "cpu" ? backend : nullptr;
}

}  // namespace weft
