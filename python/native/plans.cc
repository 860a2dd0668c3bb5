#include "python/native/plans.h"

#include <atomic>
#include <set>
#include <string>
#include <utility>

#include "python/native/convert.h"
#include "python/native/errors.h"
#include "python/native/jit.h"
#include "tracer/trace.h"

namespace weft::python {

PyObject* g_plan_hook = nullptr;
PyObject* g_left_out_hook = nullptr;

namespace {

std::atomic<uint64_t> g_plan{0};
thread_local int64_t t_plan = -1;  // none

PyObject* OwnPlan(const JitObject* self) {
  PyObject* plan = self != nullptr && self->dict ? PyDict_GetItemString(self->dict, "_plan") : nullptr;
  return plan == Py_None ? nullptr : plan;
}

// Names that the plan around leaves out where derivatives are taken. With the interpreter lock held.
std::set<std::string> LeftOut() {
  std::set<std::string> names;
  if (PlanAround() == 0) return names;
  const Ref number(Check(PyLong_FromUnsignedLongLong(PlanAround())));
  const Ref all(Check(RunningPython([&] { return PyObject_CallOneArg(g_left_out_hook, number.get()); })));
  const Ref each(Check(PyObject_GetIter(all.get())));
  while (const Ref name{PyIter_Next(each.get())}) names.insert(Text(name.get()));
  if (PyErr_Occurred() != nullptr) throw PythonError();
  return names;
}

}  // namespace

PlanWhileTracing::PlanWhileTracing(const JitObject* self) {
  PyObject* const own = OwnPlan(self);
  if (own == nullptr) return;
  const Ref number(Check(PyObject_GetAttrString(own, "number")));
  before_ = SetPlanOfThread(PyLong_AsLongLong(number.get()));
}

PlanWhileTracing::~PlanWhileTracing() {
  if (before_) SetPlanOfThread(*before_);
}

WatchOfTrace::WatchOfTrace(std::vector<AppliedRule>* applied, bool own, bool texts) {
  if (!own && (RuleWatch::Current() != nullptr || (applied == nullptr && PlanAround() == 0))) return;
  watch_.emplace(LeftOut());
  watch_->marks = true;
  watch_->texts = texts;
  if (applied != nullptr) watch_->applied = [applied](const AppliedRule& rule) { applied->push_back(rule); };
}

void NoteAgain(const std::vector<AppliedRule>& applied) {
  const RuleWatch* const watch = RuleWatch::Current();
  if (watch == nullptr || !watch->applied) return;
  for (const AppliedRule& rule : applied) watch->applied(rule);
}

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
