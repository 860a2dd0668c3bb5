// What `weft opt --passes=` knows: the passes of transforms/pass.h, the transforms with their arguments, and a few
// that only a command line needs.
//
//   FnRef g = RunCommandPasses(f, "grad(0),optimize,print");
#ifndef WEFT_DRIVER_COMMAND_PASSES_H_
#define WEFT_DRIVER_COMMAND_PASSES_H_

#include <string>

#include "ir/fn.h"

namespace weft {

// Runs the passes in order, verifying the program after each. Raises kValue for an unknown pass or a malformed argument
// before it runs any.
FnRef RunCommandPasses(const FnRef& fn, const std::string& passes);

// One line per pass: how it is written and what it does.
std::string ListCommandPasses();

}  // namespace weft
#endif  // WEFT_DRIVER_COMMAND_PASSES_H_
