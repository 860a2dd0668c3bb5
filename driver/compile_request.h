// What is to be compiled, and how: one value, from which everything that compiles starts (jit, eager calls, lower,
// export, emulate, the command line), and whose serialisation is the key of the caches.
//
//   CompileRequest request{fn};
//   request.backend = "interpreter";
//   std::shared_ptr<Executable> f = Compile(request);   // driver/executable.h
#ifndef WEFT_DRIVER_COMPILE_REQUEST_H_
#define WEFT_DRIVER_COMPILE_REQUEST_H_

#include <string>
#include <vector>

#include "ir/fn.h"
#include "ir/licences.h"
#include "lowering/fusion/fusion.h"
#include "lowering/kernel/target.h"
#include "transforms/opt/pass.h"

namespace weft {

struct CompileRequest {
  FnRef program = nullptr;
  // Who makes code of it and runs it, by its name in driver/backend.h: "cpu", "interpreter", "operations",
  // "cuda:sm_90a".
  std::string backend = "cpu";
  // Run before the backend gets the program, in order; see AllPasses (transforms/opt/pass.h).
  std::vector<std::string> passes = DefaultPasses();
  // Which rules the passes may use: those of who asks.
  Licences licences = CurrentLicences();
  // By parameter: the memory of the argument may hold a result or temporaries. Empty: none.
  std::vector<bool> donated = {};
  // What the CPU's code generator is told.
  FusionPolicy fusion = {};
  Target target = Target::Host();
  bool use_cache = true;       // in memory
  bool use_disk_cache = true;  // see driver/disk_cache.h

  // The same for another program.
  CompileRequest For(FnRef fn) const;
  // All that decides what is compiled, but for the program and the caches, as text.
  std::string Key() const;
  // The program after the passes. `observe` is told of each.
  FnRef Optimized(const PassObserver& observe = {}) const;
};

}  // namespace weft
#endif  // WEFT_DRIVER_COMPILE_REQUEST_H_
