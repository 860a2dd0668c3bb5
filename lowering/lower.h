// Fn -> Artifact. The only entry to the compiler; no MLIR or LLVM type is visible.
//
//   Artifact a = Lower(fn, Target::Host(), {});
#ifndef WEFT_LOWERING_LOWER_H_
#define WEFT_LOWERING_LOWER_H_

#include <string>
#include <vector>

#include "ir/fn.h"
#include "lowering/abi/artifact.h"
#include "lowering/fusion/fusion.h"
#include "lowering/kernel/target.h"

namespace weft {

struct LowerOptions {
  FusionPolicy fusion;
  // By parameter: whoever runs the code gives its memory away, for results or temporaries. Empty: none.
  std::vector<bool> donated;
};

// Compiles `fn`, which is taken as it is: optimising it first is the caller's business.
Artifact Lower(const FnRef& fn, const Target& target, const LowerOptions& options);

// The text of a stage: "fusion", "schedule", "liveness", "buffers", "mlir", "llvm" or "asm". Raises kValue for another
// name.
std::string LowerToText(const FnRef& fn, const Target& target, const LowerOptions& options, const std::string& stage);

// lld has LLVM take a dozen signals when it writes its output, unless LLVM believes that it has them. This lets it take
// them once and gives them back at once; afterwards it leaves alone what the program makes of them. The first
// compilation does it if nobody has; a program with threads does it before it starts them.
void LeaveSignalsToTheProgram();

// Compiles a trifle, so that the first real compilation finds everything loaded.
void WarmUpLowering();

}  // namespace weft
#endif  // WEFT_LOWERING_LOWER_H_
