// Optimisations: named passes over Fn, and the list that runs before lowering.
//
//   FnRef g = RunPasses(f, {"inline", "cse", "dce"});
//   FnRef h = Optimize(f);              // the default list
//
// Every pass keeps the meaning (exactly, but for rules that need a licence: see simplify.h), the types of parameters
// and results, and locations.
#ifndef WEFT_TRANSFORMS_PASS_H_
#define WEFT_TRANSFORMS_PASS_H_

#include <string>
#include <vector>

#include "ir/fn.h"

namespace weft {

struct Pass {
  const char* name;
  const char* doc;
  FnRef (*run)(const FnRef&);
};

const std::vector<Pass>& AllPasses();
// Raises kValue naming the known passes when there is none of this name.
const Pass& FindPass(const std::string& name);
FnRef RunPasses(const FnRef& fn, const std::vector<std::string>& names);

// The passes every program goes through before it is lowered, in order.
const std::vector<std::string>& DefaultPasses();
FnRef Optimize(const FnRef& fn);

// The passes themselves.
FnRef InlineEveryCall(const FnRef& fn);
FnRef EliminateCommonSubexpressions(const FnRef& fn);
FnRef EliminateDeadCode(const FnRef& fn);
FnRef FoldConstants(const FnRef& fn);
FnRef Simplify(const FnRef& fn);
FnRef HoistConstants(const FnRef& fn);
// Replaces custom_jvp, custom_vjp, custom_vmap, linear_solve, remat, stop_gradient and checkpoint_name, which matter to
// transforms only, by what they compute.
FnRef DropDifferentiationRules(const FnRef& fn);
// Replaces snapshot_scan by scan and while (transforms/snapshots.cc).
FnRef ExpandSnapshots(const FnRef& fn);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_PASS_H_
