#include "python/native/plans.h"

#include <atomic>
#include <utility>

#include "python/native/convert.h"
#include "python/native/errors.h"
#include "python/native/jit.h"
#include "tracer/trace.h"

namespace weft::python {

PyObject* g_plan_hook = nullptr;

namespace {

std::atomic<uint64_t> g_plan{0};
thread_local int64_t t_plan = -1;  // none

PyObject* OwnPlan(const JitObject* self) {
  PyObject* plan = self->dict ? PyDict_GetItemString(self->dict, "_plan") : nullptr;
  return plan == Py_None ? nullptr : plan;
}

}  // namespace

uint64_t PlanAround() { return t_plan >= 0 ? static_cast<uint64_t>(t_plan) : g_plan.load(std::memory_order_relaxed); }
void SetPlanOfProcess(uint64_t number) { g_plan = number; }
int64_t SetPlanOfThread(int64_t number) { return std::exchange(t_plan, number); }

bool HasPlan(const JitObject* self) { return PlanAround() != 0 || OwnPlan(self) != nullptr; }

FnRef ByPlan(const JitObject* self, const FnRef& fn) {
  PyObject* own = OwnPlan(self);
  const Ref plan = own ? Ref::Borrow(own) : Ref(Check(PyLong_FromUnsignedLongLong(PlanAround())));
  const Ref program(Check(WrapFn(fn)));
  NoTrace outside;
  const Ref made(Check(
      RunningPython([&] { return PyObject_CallFunctionObjArgs(g_plan_hook, plan.get(), program.get(), nullptr); })));
  return FnOf(made.get());
}

}  // namespace weft::python
