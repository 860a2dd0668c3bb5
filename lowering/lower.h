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

// Compiles a trifle, so that the first real compilation finds everything loaded.
void WarmUpLowering();

}  // namespace weft
#endif  // WEFT_LOWERING_LOWER_H_
