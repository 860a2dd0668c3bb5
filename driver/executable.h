// Compile and run: the one place that knows both the compiler and the back ends.
//
//   std::shared_ptr<Executable> f = Compile(fn, {});
//   Tensors out = f->Run({x, y});
//
// Compiling the same program again (up to names and locations) gives the same Executable. Everything is thread-safe.
#ifndef WEFT_DRIVER_EXECUTABLE_H_
#define WEFT_DRIVER_EXECUTABLE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "ir/fn.h"
#include "lowering/artifact.h"
#include "lowering/fusion.h"
#include "lowering/target.h"

namespace weft {

namespace cpu {
class Program;
}

struct CompileOptions {
  // Those of programs that users write: with the passes of Optimize.
  static CompileOptions Optimizing();

  // Run before lowering, in order. The key of the cache is the program before them, so a list needs a name: two
  // options with the same name and different lists are taken for the same.
  std::string pipeline_name = "none";
  std::vector<std::function<FnRef(const FnRef&)>> passes;
  FusionPolicy fusion;
  Target target = Target::Host();
  bool use_cache = true;       // in memory
  bool use_disk_cache = true;  // see driver/disk_cache.h
  // By parameter: the memory of the argument may hold a result or temporaries. Empty: none.
  std::vector<bool> donated;
};

class Executable {
 public:
  // One tensor per parameter (constants too), of its dtype and shape; raises kType otherwise. The arguments are only
  // read. Results are fresh arrays. Raises kRuntime when the program fails (assert, callback).
  Tensors Run(absl::Span<const Tensor> args) const { return RunOwned(Tensors(args.begin(), args.end())); }
  // The same, but donated arguments whose memory nobody else holds (see MayOverwrite) are overwritten; of others a
  // copy.
  Tensors RunOwned(Tensors args) const;

  const FnRef& fn() const { return fn_; }  // as given to Compile
  const FnRef& optimized() const { return optimized_; }
  // "schedule", "fusion", "mlir", "llvm" or "asm"; made on demand. Raises kValue for another name.
  std::string Stage(const std::string& stage) const;
  const Artifact::Counters& counters() const;
  int64_t arena_bytes() const;
  // How long compiling took, in milliseconds; 0 when it came from a cache.
  double compile_milliseconds() const { return compile_milliseconds_; }
  // Whether the code came from the disk cache.
  bool from_disk() const { return from_disk_; }
  const Artifact& artifact() const;

 private:
  friend std::shared_ptr<Executable> Compile(const FnRef& fn, const CompileOptions& options);
  FnRef fn_, optimized_;
  CompileOptions options_;
  std::shared_ptr<const cpu::Program> program_;
  double compile_milliseconds_ = 0;
  bool from_disk_ = false;
};

// Whether the memory of `t` is Weft's own and held by `t` alone, so that a program that it is donated to may write
// there.
bool MayOverwrite(const Tensor& t);

// Raises what lowering raises, with the user's location where it is known.
std::shared_ptr<Executable> Compile(const FnRef& fn, const CompileOptions& options = {});

// The text of a stage of compiling for a CPU (driver/stages.h); "ir" and "optimized" compile nothing. Raises kValue for
// another name, and what Compile raises.
std::string StageText(const FnRef& fn, const std::string& stage,
                      const CompileOptions& options = CompileOptions::Optimizing());

// How many programs this process has compiled, or read from the disk cache.
int64_t ProgramsCompiled();
// How many programs the in-memory cache holds; ClearCompileCache drops them (running ones live on).
int64_t CompileCacheSize();
void ClearCompileCache();

// Loads and binds the compiler's libraries; meant for a background thread when the package is imported.
void WarmUpCompiler();

}  // namespace weft
#endif  // WEFT_DRIVER_EXECUTABLE_H_
