// Compile and run: a request becomes a program by its passes and its backend, and is found again by its key.
//
//   std::shared_ptr<Executable> f = Compile({fn});
//   Tensors out = f->Run({x, y});
//
// Compiling the same program again (up to names and locations) gives the same Executable. Everything is thread-safe.
#ifndef WEFT_DRIVER_EXECUTABLE_H_
#define WEFT_DRIVER_EXECUTABLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "driver/backend.h"
#include "driver/compile_request.h"
#include "ir/fn.h"
#include "lowering/abi/artifact.h"

namespace weft {

class Executable {
 public:
  // One tensor per parameter (constants too), of its dtype and shape; raises kType otherwise. The arguments are only
  // read. Results are fresh arrays. Raises kRuntime when the program fails (assert, callback).
  Tensors Run(absl::Span<const Tensor> args) const { return RunOwned(Tensors(args.begin(), args.end())); }
  // The same, but donated arguments whose memory nobody else holds (see MayOverwrite) are overwritten; of others a
  // copy.
  Tensors RunOwned(Tensors args) const;

  const CompileRequest& request() const { return request_; }
  const FnRef& optimized() const { return optimized_; }
  // The text of one (driver/backend.h), made on demand. Raises kValue for another name.
  std::string Stage(const std::string& stage) const;
  // By parameter: a donated argument whose memory the program has a use for. Empty: none was donated.
  std::vector<bool> UsesDonated() const { return loaded_->UsesDonated(); }
  // Named numbers about the program and its code.
  std::vector<std::pair<std::string, double>> Facts() const;
  // Whether a call takes a few microseconds at most, and waits for nothing: a few elementwise operations on few
  // elements.
  bool is_short() const { return is_short_; }
  // How long compiling took, in milliseconds.
  double compile_milliseconds() const { return compile_milliseconds_; }
  // Whether the code came from the disk cache.
  bool from_disk() const { return loaded_->from_disk(); }
  // Of a program for a CPU.
  const Artifact& artifact() const;
  const Artifact::Counters& counters() const { return artifact().counters; }

 private:
  friend std::shared_ptr<Executable> Compile(const CompileRequest& request);
  CompileRequest request_;
  FnRef optimized_;
  std::unique_ptr<const LoadedProgram> loaded_;
  double compile_milliseconds_ = 0;
  bool is_short_ = false;
};

// Whether the memory of `t` is Weft's own and held by `t` alone, so that a program that it is donated to may write
// there.
bool MayOverwrite(const Tensor& t);

// Raises what lowering raises, with the user's location where it is known; OutOfMemory; kRuntime where the code cannot
// be loaded; kValue for an unknown backend or pass.
std::shared_ptr<Executable> Compile(const CompileRequest& request);

// How many programs this process has compiled, or read from the disk cache.
int64_t ProgramsCompiled();
// How often this process has generated code for a CPU; programs that differ in numbers only share theirs.
int64_t CodesGenerated();
// How many programs the in-memory cache holds; ClearCompileCache drops them (running ones live on).
int64_t CompileCacheSize();
void ClearCompileCache();
// The latter for a backend that is loading code, and needs what programs that nobody holds take.
void DropCachedPrograms();

// Loads and binds the compiler's libraries; meant for a background thread when the package is imported.
void WarmUpCompiler();

}  // namespace weft
#endif  // WEFT_DRIVER_EXECUTABLE_H_
