// The schedule of a program: its steps in order, and the buffers they work on. What the main function is emitted from,
// and what `explain` prints.
#ifndef WEFT_LOWERING_SCHEDULE_SCHEDULE_H_
#define WEFT_LOWERING_SCHEDULE_SCHEDULE_H_

#include <memory>
#include <string>
#include <vector>

#include "ir/fn.h"
#include "lowering/abi/abi.h"
#include "lowering/abi/artifact.h"
#include "lowering/fusion/fusion.h"
#include "lowering/kernel/kernel_spec.h"

namespace weft {

struct Step;
using Steps = std::vector<Step>;

struct Step {
  enum class Kind {
    kKernel,   // kernels[index](frame, desc)
    kOp,       // runtime operation `index` (WeftOpcode)
    kIf,       // blocks[clamp(slot, 0, blocks - 1)]
    kWhile,    // blocks[0] writes the predicate into `slot`; blocks[1] is the body
    kFor,      // blocks[0], desc[0] times, with moving slots
    kChecked,  // blocks[0] checks; blocks[1] runs unless the frame has an error then
  };
  Kind kind = Kind::kKernel;
  int index = 0;
  int64_t desc = 0;            // where the step's entries begin in Artifact::desc
  int slot = -1;               // predicate
  DType dtype = DType::kBool;  // of the predicate
  bool reverse = false;        // kFor: from the last iteration to the first
  bool can_fail = false;       // kWhile, kFor: holds an operation that can set the frame's error
  struct Moving {              // slots[slot] = slots[base] + iteration * (desc entry `stride`, in bytes)
    int slot = 0, base = 0;
    int64_t stride = 0;
  };
  std::vector<Moving> moving;
  std::vector<Steps> blocks;
  double cost = -1;  // kKernel: estimated nanoseconds, -1 when sizes are symbolic
};

// Whether there is a kChecked, at any depth.
bool HoldsChecks(const Steps& steps);

struct Program {
  Steps steps;
  std::vector<Steps> functions;  // as in Artifact::functions
  std::vector<KernelSpec> kernels;
  Artifact artifact;  // everything but the code
};

// Lays out `fn`. `fn` must hold no call-like equations (see WithoutCalls). `donated`: parameters whose memory may be
// overwritten once their value is not needed any more; empty: none.
Program BuildProgram(const Fn& fn, const FusionPolicy& policy, const std::vector<bool>& donated = {});

// What becomes of large functions that a program calls more than once (CalledFunctions in transforms/opt/calls.h).
enum class Functions {
  kShared,   // laid out once each, as functions that call themselves are
  kInlined,  // where nothing can be called
};
// `fn` with call, remat and the custom rules replaced by their bodies, in regions too. A call that stays is a
// `recursive` whose function happens not to call itself.
FnRef WithoutCalls(const FnRef& fn, Functions functions = Functions::kShared);

}  // namespace weft
#endif  // WEFT_LOWERING_SCHEDULE_SCHEDULE_H_
