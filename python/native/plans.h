// How a program is optimised where that is not the default: a plan, which is Python's (weft.optimization). A number
// stands for the plan of `with weft.optimize(...)` or of weft.config; a jitted function may have one of its own.
#ifndef WEFT_PYTHON_NATIVE_PLANS_H_
#define WEFT_PYTHON_NATIVE_PLANS_H_

#include <Python.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/fn.h"
#include "python/native/jit_object.h"
#include "transforms/opt/rule_watch.h"

namespace weft::python {

extern PyObject* g_plan_hook;      // (plan, Fn) -> Fn, by weft.optimization
extern PyObject* g_left_out_hook;  // number of a plan -> names of the rules and passes that derivatives do without

// The number of the plan around the call; 0: the default passes.
uint64_t PlanAround();
void SetPlanOfProcess(uint64_t number);
// Of this thread until it is set again; returns what was there. No number: that of the process.
int64_t SetPlanOfThread(int64_t number);

// The plan of a function of its own is that of this thread while the function is traced.
class PlanWhileTracing {
 public:
  explicit PlanWhileTracing(const JitObject* self);
  ~PlanWhileTracing();
  PlanWhileTracing(const PlanWhileTracing&) = delete;

 private:
  std::optional<int64_t> before_;
};

// Watches the rules that apply before a program is compiled, where derivatives are taken: it leaves out those that the
// plan around does without, marks what the others make, and notes them.
class WatchOfTrace {
 public:
  // `applied`: null where nobody asks. Where somebody watches already, that stays so unless `own`.
  explicit WatchOfTrace(std::vector<AppliedRule>* applied = nullptr, bool own = false, bool texts = false);

 private:
  std::optional<RuleWatch> watch_;
};
// Tells who watches of what applied where a part of the program was traced before.
void NoteAgain(const std::vector<AppliedRule>& applied);

// Whether the function is compiled by other passes than the default ones.
bool HasPlan(const JitObject* self);
// The program after the passes of the plan: that of the function, or without one that around the call.
FnRef ByPlan(const JitObject* self, const FnRef& fn);

}  // namespace weft::python
#endif  // WEFT_PYTHON_NATIVE_PLANS_H_
