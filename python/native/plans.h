// How a program is optimised where that is not the default: a plan, which is Python's (weft.optimization). A number
// stands for the plan of `with weft.optimize(...)` or of weft.config; a jitted function may have one of its own.
#ifndef WEFT_PYTHON_NATIVE_PLANS_H_
#define WEFT_PYTHON_NATIVE_PLANS_H_

#include <Python.h>

#include <cstdint>

#include "ir/fn.h"
#include "python/native/jit_object.h"

namespace weft::python {

extern PyObject* g_plan_hook;  // (plan, Fn) -> Fn, by weft.optimization

// The number of the plan around the call; 0: the default passes.
uint64_t PlanAround();
void SetPlanOfProcess(uint64_t number);
// Of this thread until it is set again; returns what was there. No number: that of the process.
int64_t SetPlanOfThread(int64_t number);

// Whether the function is compiled by other passes than the default ones.
bool HasPlan(const JitObject* self);
// The program after the passes of the plan.
FnRef ByPlan(const JitObject* self, const FnRef& fn);

}  // namespace weft::python
#endif  // WEFT_PYTHON_NATIVE_PLANS_H_
