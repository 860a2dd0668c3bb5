// A loaded artifact, ready to run. Needs neither LLVM nor MLIR.
//
//   auto program = cpu::Program::Load(artifact);
//   const cpu::Argument arguments[] = {{x_data, x_sizes}, {y_data, y_sizes}};
//   std::vector<cpu::Array> out = program->Run(arguments);
#ifndef WEFT_BACKENDS_CPU_CORE_PROGRAM_H_
#define WEFT_BACKENDS_CPU_CORE_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/loaded_code.h"
#include "base/fork_safe_mutex.h"
#include "lowering/abi/abi.h"
#include "lowering/abi/artifact.h"

namespace weft::cpu {

struct Argument {
  const void* data = nullptr;
  const int64_t* shape = nullptr;  // as many sizes as the parameter has dimensions
  // Of a parameter that the artifact calls donated: its memory, which `data` is the beginning of and which nobody else
  // looks at. It is overwritten, and may come back as that of a result.
  std::shared_ptr<void> donated = nullptr;
  // Of a parameter of tapes: what they live in; results that hold tapes keep it.
  std::shared_ptr<void> tapes = nullptr;
};

struct Array {
  std::shared_ptr<void> data;
  std::shared_ptr<const std::vector<int64_t>> shape;  // the program's own where no size is symbolic
};

// Thread-safe: any number of threads may run one program at once.
class Program {
 public:
  // `callbacks`: what the host calls those that the artifact numbers 0, 1 ... Throws std::runtime_error when the code
  // cannot be loaded.
  static std::shared_ptr<Program> Load(Artifact artifact, std::vector<int64_t> callbacks = {});
  Program(const Program&) = delete;

  // One argument per parameter; dtypes are the caller's business, sizes are checked. Throws std::invalid_argument for a
  // size that does not fit, std::runtime_error when the program itself fails or was compiled for another CPU, and what
  // a hook of the host threw.
  std::vector<Array> Run(std::span<const Argument> arguments) const;
  // Into an array per result.
  void Run(std::span<const Argument> arguments, std::span<Array> results) const;

  const Artifact& artifact() const { return artifact_; }
  // Of the last plan made (symbolic programs have one per combination of sizes).
  int64_t arena_bytes() const;

 private:
  explicit Program(Artifact artifact) : artifact_(std::move(artifact)) {}
  // Everything that depends on the symbols' values only.
  struct Layout {
    std::vector<int64_t> symbols;
    std::vector<int64_t> desc;
    std::vector<int64_t> slot_offset;  // arena slots: offset; others as in the artifact
    int64_t arena_bytes = 0;
    struct Function {
      std::vector<int64_t> slot_offset;
      int64_t arena_bytes = 0;
    };
    std::vector<Function> functions;
    std::vector<std::shared_ptr<const std::vector<int64_t>>> result_shapes;
    std::vector<int64_t> result_bytes;
    std::vector<std::vector<int64_t>> param_shapes;
  };
  std::shared_ptr<const Layout> LayoutFor(std::span<const Argument> arguments) const;
  std::shared_ptr<const Layout> MakeLayout(std::vector<int64_t> symbols) const;

  Artifact artifact_;
  std::vector<int64_t> callbacks_;
  std::string lacking_;  // the instructions without which the code cannot run here
  std::unique_ptr<LoadedCode> code_;
  WeftMain main_ = nullptr;
  std::vector<WeftMain> functions_;
  std::shared_ptr<void> constants_;
  mutable ForkSafeMutex mutex_;
  // Most recent first. Of a program without symbols the only one, which stays.
  mutable std::vector<std::shared_ptr<const Layout>> layouts_;
};

}  // namespace weft::cpu
#endif  // WEFT_BACKENDS_CPU_CORE_PROGRAM_H_
