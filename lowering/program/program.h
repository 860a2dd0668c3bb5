// A program in memory: steps that name slots, what backends' code is emitted from. A schedule of which every value has
// its place; nothing is decided here.
#ifndef WEFT_LOWERING_PROGRAM_PROGRAM_H_
#define WEFT_LOWERING_PROGRAM_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ir/fn.h"
#include "lowering/abi/artifact.h"
#include "lowering/kernel/kernel_spec.h"
#include "lowering/memory/assignment.h"
#include "lowering/schedule/schedule.h"

namespace weft {

struct Step;
using Steps = std::vector<Step>;

struct Step {
  enum class Kind {
    kKernel,    // kernels[index](frame, desc)
    kOp,        // runtime operation `index` (WeftOpcode)
    kIf,        // blocks[clamp(slot, 0, blocks - 1)]
    kWhile,     // blocks[0] writes the predicate into `slot`; blocks[1] is the body
    kFor,       // blocks[0], `trips` times, with moving slots
    kChecked,   // blocks[0] checks; blocks[1] runs unless the frame has an error then
    kTogether,  // the kernels and products of blocks[0], in any order or at once (lowering/program/launches.h)
    kByRows,    // those of blocks[0], in order, on some rows after the other or at once (lowering/program/by_rows.h)
  };
  Kind kind = Kind::kKernel;
  int index = 0;
  int64_t desc = 0;            // where its descriptor begins in Artifact::desc
  int slot = -1;               // predicate
  DType dtype = DType::kBool;  // of the predicate
  int64_t trips = 0;           // kFor: the word of the descriptor that says how often
  bool reverse = false;        // kFor: from the last iteration to the first
  bool can_fail = false;       // kWhile, kFor: holds an operation that can set the frame's error
  struct Moving {              // slots[slot] = slots[base] + iteration * (word `stride` of the descriptor, in bytes)
    int slot = 0, base = 0;
    int64_t stride = 0;
  };
  std::vector<Moving> moving;
  std::vector<Steps> blocks;
  struct Rows {         // of kByRows and what is in it, of a product in kTogether (lowering/abi/product_form.h)
    int64_t count = 1;  // in all
    int64_t step = 1;   // a thread takes a multiple of it ...
    int64_t most = 1;   // ... that is no more than this. Of a product in kTogether: this
    int64_t units = 1;  // of a kernel in kByRows: `step` rows are so many of its units
  };
  Rows rows;
  double cost =
      -1;  // kKernel, kTogether, kByRows and what is in them: estimated nanoseconds, -1 when sizes are symbolic
};

// Kernels that take less, in nanoseconds, are called directly, on one thread.
inline constexpr double kWorthAThread = 20000;

struct Program {
  Steps steps;
  std::vector<Steps> functions;  // as in Artifact::functions
  std::vector<KernelSpec> kernels;
  Artifact artifact;  // everything but the code
  // By frame, by value: its slot, -1 where no step names the value.
  std::vector<std::vector<int>> slots;
};

// `fn`, of which `schedule` was made: what its parameters and results are called, and what sizes have to be.
Program MakeProgram(const Fn& fn, Schedule schedule, const Assignment& assignment);

// All of it: a schedule, when values live, and buffers for them. As BuildSchedule.
Program BuildProgram(const Fn& fn, const FusionPolicy& policy, const std::vector<bool>& donated = {});

// Slots, and where buffers lie.
std::string MemoryText(const Program& program);
std::string KernelsText(const std::vector<KernelSpec>& kernels);

}  // namespace weft
#endif  // WEFT_LOWERING_PROGRAM_PROGRAM_H_
