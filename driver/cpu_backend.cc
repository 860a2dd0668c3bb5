// Programs for the CPU at hand: lowered to a shared object, which the disk cache keeps, and loaded.
#include <dlfcn.h>
#include <sys/stat.h>

#include <stdexcept>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "backends/cpu/core/program.h"
#include "driver/backend.h"
#include "driver/connect_effects.h"
#include "driver/disk_cache.h"
#include "driver/executable.h"
#include "ir/error.h"
#include "ir/text/printer.h"
#include "lowering/abi/abi.h"
#include "lowering/lower.h"
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

std::string DiskKey(const Fn& optimized, const CompileRequest& request) {
  CompileRequest rest = request;
  rest.passes.clear();  // they have run
  return "abi " + std::to_string(WEFT_ABI_VERSION) + "\nbuild " + BuildIdentity() + "\n" + rest.Key() + "\n" +
         Print(optimized);
}

LowerOptions OptionsOf(const CompileRequest& request) { return {request.fusion, request.donated}; }

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

class CpuProgram : public LoadedProgram {
 public:
  CpuProgram(std::string name, std::shared_ptr<const cpu::Program> program, std::vector<bool> donated, bool from_disk)
      : name_(std::move(name)), program_(std::move(program)), donated_(std::move(donated)), from_disk_(from_disk) {}

  Tensors Run(Tensors args) const override;
  std::vector<bool> UsesDonated() const override {
    std::vector<bool> uses;
    for (uint8_t d : program_->artifact().donated) uses.push_back(d == 2);
    return uses;
  }
  std::vector<std::pair<std::string, double>> Facts() const override {
    const Artifact::Counters& c = program_->artifact().counters;
    return {{"kernels", static_cast<double>(c.kernels)},
            {"kernel_calls", static_cast<double>(c.kernel_calls)},
            {"library_calls", static_cast<double>(c.library_calls)},
            {"bytes_moved", static_cast<double>(c.bytes_moved)},
            {"bytes_copied", static_cast<double>(c.bytes_copied)},
            {"donated", static_cast<double>(c.donated)},
            {"arena_bytes", static_cast<double>(program_->arena_bytes())}};
  }
  const Artifact* artifact() const override { return &program_->artifact(); }
  bool from_disk() const override { return from_disk_; }

 private:
  std::string name_;
  std::shared_ptr<const cpu::Program> program_;
  std::vector<bool> donated_;
  bool from_disk_;
};

Tensors CpuProgram::Run(Tensors args) const {
  absl::InlinedVector<cpu::Argument, 8> arguments(args.size());
  for (size_t i = 0; i < args.size(); ++i) {
    const bool donated = !donated_.empty() && donated_[i];
    if (donated && !MayOverwrite(args[i])) args[i] = args[i].Copy();
    arguments[i] = {args[i].raw(), args[i].shape().data(), donated ? args[i].owner() : nullptr};
    if (args[i].dtype() == DType::kTape) arguments[i].tapes = args[i].owner();
  }
  absl::InlinedVector<cpu::Array, 4> out(program_->artifact().results.size());
  try {
    program_->Run(arguments, out);
  } catch (const std::invalid_argument& failure) {
    throw TypeError(name_, ": ", failure.what());
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

class Cpu : public Backend {
 public:
  std::string Description() const override { return "a CPU"; }
  std::vector<std::string> Stages() const override {
    return {"fusion", "schedule", "liveness", "buffers", "mlir", "llvm", "asm"};
  }
  std::string StageText(const CompileRequest& request, const FnRef& optimized,
                        const std::string& stage) const override {
    return LowerToText(optimized, request.target, OptionsOf(request), stage);
  }
  std::unique_ptr<const LoadedProgram> Load(const CompileRequest& request, const FnRef& optimized) const override;
  void Export(const CompileRequest& request, const FnRef& optimized, bool, Bundle* bundle) const override {
    bundle->cpu = *Load(request, optimized)->artifact();
  }
};

std::unique_ptr<const LoadedProgram> Cpu::Load(const CompileRequest& request, const FnRef& optimized) const {
  ConnectEffects();
  // Code names callbacks 0, 1 ..., so that it is the same in all processes.
  Ints callbacks;
  const FnRef numbered = WithOrdinals(optimized, &callbacks);
  auto loaded = [&](std::shared_ptr<const cpu::Program> program, bool from_disk) {
    return std::make_unique<CpuProgram>(request.program->name(), std::move(program), request.donated, from_disk);
  };
  const std::string disk_key = request.use_disk_cache ? DiskKey(*numbered, request) : "";
  if (request.use_disk_cache) {
    if (std::optional<Artifact> cached = ReadCachedArtifact(disk_key)) {
      try {
        return loaded(cpu::Program::Load(std::move(*cached), callbacks), true);
      } catch (const std::exception&) {
        // Compiled anew below, and replaced.
      }
    }
  }
  Artifact artifact = Lower(numbered, request.target, OptionsOf(request));
  if (request.use_disk_cache) WriteCachedArtifact(disk_key, artifact);
  return loaded(LoadCode(artifact, callbacks), false);
}

}  // namespace

std::shared_ptr<const Backend> CpuBackend(const std::string& name) {
  static const auto& backend = *new std::shared_ptr<const Backend>(std::make_shared<Cpu>());
  return name == "cpu" ? backend : nullptr;
}

}  // namespace weft
