// Optimisations: named passes over Fn, and the list that runs before lowering.
//
//   FnRef g = RunPasses(f, {"inline", "cse", "dce"});
//   FnRef h = Optimize(f);              // the default list
//
// Every pass keeps the meaning (exactly, but for rules that need a licence of this thread: see ir/licences.h), the
// types of parameters and results, and locations.
#ifndef WEFT_TRANSFORMS_OPT_PASS_H_
#define WEFT_TRANSFORMS_OPT_PASS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ir/fn.h"

namespace weft {

struct Pass {
  const char* name;
  const char* doc;
  FnRef (*run)(FnRef);
  bool from_outside = false;  // added by RegisterPass
};

// Those of the tree, then what was added.
const std::vector<Pass>& AllPasses();
// Adds a pass. Its result is verified wherever it runs, and must have the types of its operand. Raises kValue for a
// name that is taken or that a list of passes could not hold.
void RegisterPass(const Pass& pass);
// Runs one pass.
FnRef RunPass(const Pass& pass, FnRef fn);
// Raises kValue naming the known passes when there is none of this name.
const Pass& FindPass(const std::string& name);

// What a pass did.
struct PassRecord {
  std::string name;
  double milliseconds = 0;
  int64_t equations_before = 0, equations_after = 0;  // of all regions, too
};
using PassObserver = std::function<void(const PassRecord& record, const Fn& result)>;

// One pass after the other. Where assertions are on, each result is verified (ir/verify.h). `observe` is told of each.
FnRef RunPasses(FnRef fn, const std::vector<std::string>& names, const PassObserver& observe = {});

// The passes every program goes through before it is lowered, in order.
const std::vector<std::string>& DefaultPasses();
FnRef Optimize(FnRef fn);

// The passes themselves. A function that nobody else holds (`Simplify(std::move(f))`) is taken apart rather than
// copied.
FnRef InlineEveryCall(FnRef fn);
FnRef InlineCalls(FnRef fn);  // but those that stay (transforms/opt/calls.h)
// Every call, or, in a program that would be long then, those that do not stay. For programs that are cut: a function
// that stays lies alike in all calls, and what it hands over to its derivative may be packed, which cannot be cut.
FnRef InlineMostCalls(FnRef fn);
FnRef EliminateCommonSubexpressions(FnRef fn);
FnRef EliminateDeadCode(FnRef fn);
FnRef FoldConstants(FnRef fn);
// Of each equation that is left, of regions too, why it was not folded, as a sentence with the user's line where that
// is known: "mul at model.py:3 (f) is not folded: its operand is parameter 'x'".
std::vector<std::string> WhyNotFolded(const Fn& fn);
FnRef Simplify(FnRef fn);
FnRef HoistConstants(FnRef fn);
FnRef SimplifyLoops(FnRef fn);                      // transforms/opt/loops.cc
inline constexpr char kWiderType[] = "wider-type";  // the rule's name
FnRef WidenWhatCancels(FnRef fn);
FnRef WidenBeforeDerivatives(FnRef fn);  // where a derivative will be taken
// Replaces custom_jvp, custom_vjp, custom_vmap, linear_solve, remat, stop_gradient and checkpoint_name, which matter to
// transforms only, by what they compute.
FnRef DropDifferentiationRules(FnRef fn);
// Replaces snapshot_scan by scan and while (transforms/opt/snapshots.cc).
FnRef ExpandSnapshots(FnRef fn);

}  // namespace weft
#endif  // WEFT_TRANSFORMS_OPT_PASS_H_
