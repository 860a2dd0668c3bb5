// What `weft opt --passes=` knows: the passes of transforms/opt/pass.h, the transforms with their arguments, and a few
// that only a command line needs.
//
//   FnRef g = RunCommandPasses(f, "grad(0),optimize,print");
#ifndef WEFT_DRIVER_COMMAND_LINE_COMMAND_PASSES_H_
#define WEFT_DRIVER_COMMAND_LINE_COMMAND_PASSES_H_

#include <string>
#include <vector>

#include "ir/fn.h"

namespace weft {

struct PassReport {
  bool timing = false;                  // a table of what each pass took
  std::vector<std::string> dump_after;  // the program after these passes, or after "all"
};

// Runs the passes in order, verifying the program after each. What is to be reported goes to standard error; of
// `optimize`, each of its passes is. Raises kValue for an unknown pass or a malformed argument before it runs any.
FnRef RunCommandPasses(const FnRef& fn, const std::string& passes, const PassReport& report = {});

// One line per pass: how it is written and what it does.
std::string ListCommandPasses();

}  // namespace weft
#endif  // WEFT_DRIVER_COMMAND_LINE_COMMAND_PASSES_H_
