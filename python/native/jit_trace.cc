#include "python/native/jit_trace.h"

#include <utility>
#include <vector>

#include "python/native/convert.h"
#include "python/native/effects.h"
#include "python/native/errors.h"
#include "python/native/frames.h"
#include "python/native/function.h"
#include "python/native/jit.h"
#include "python/native/plans.h"
#include "tracer/regions.h"

namespace weft::python {
namespace {

// A call that is being traced. Functions that call themselves are traced until what they return is known: the first
// time, a branch that calls the function again is put aside (control.py), and the others say what it returns.
struct BeingTraced {
  JitObject* function = nullptr;
  const Signature* signature = nullptr;
  bool recursive = false;  // calls itself
  bool wrapped = false;  // is a `recursive` equation: it, or a function that it is called from, is called again inside
  bool open = false;     // the latter: its trace means something inside that function only
  bool typed = false;    // the rest is known
  Types results;
  Mask weak;
  Ref tree;
  Values captures;
};
thread_local std::vector<BeingTraced*> t_being_traced;
thread_local BeingTraced* t_pending = nullptr;  // whose result type was asked for
PyObject* g_recursion_pending = nullptr;

struct TracingScope {
  explicit TracingScope(BeingTraced* b) { t_being_traced.push_back(b); }
  ~TracingScope() { t_being_traced.pop_back(); }
  TracingScope(const TracingScope&) = delete;
};

thread_local int t_being_lowered = 0;

}  // namespace

bool AddRecursionPending(PyObject* module) {
  g_recursion_pending = PyErr_NewException("weft.RecursionPending", PyExc_BaseException, nullptr);
  return g_recursion_pending != nullptr && PyModule_AddObjectRef(module, "RecursionPending", g_recursion_pending) == 0;
}

Licences LicencesHere(const JitObject* self) { return t_being_traced.empty() ? LicencesOf(self) : CurrentLicences(); }

void BeingLowered(bool begins) { t_being_lowered += begins ? 1 : -1; }

// Inside of another jitted function, that one decides how everything is compiled, and can be told so. What traces
// otherwise (vmap, make_ir) makes a program that does not know.
void CheckSurroundings(const JitObject* self) {
  if (!IsDeterministic(self) || !t_being_traced.empty() || t_being_lowered > 0) return;
  throw UserError(
      ErrorKind::kUnsupported, UserLoc(), Trace::Current()->kind(), ": '", NameOf(self->function),
      "' is jitted with deterministic=True, which would be lost here. Put weft.jit(..., deterministic=True) "
      "around all that is computed; its lower(...) gives the program");
}

Values ArgumentValues(Arguments& a) {
  Values values;
  for (Leaf& leaf : a.leaves) {
    if (leaf.array)
      values.push_back(ValueOf(leaf.array));
    else if (leaf.tensor.defined())
      values.push_back(Value(KeptOnce(leaf.tensor, leaf.tensor.raw())));  // NumPy's memory may change
    else
      values.push_back(Operand(leaf.scalar).ToValue());
  }
  return values;
}

int BeingTracedAt(JitObject* self, const Signature& signature) {
  for (size_t i = t_being_traced.size(); i-- > 0;) {
    if (t_being_traced[i]->function == self && *t_being_traced[i]->signature == signature)
      return static_cast<int>(t_being_traced.size() - 1 - i);
  }
  return -1;
}

PyObject* RecursiveCall(int depth, Arguments& a) {
  const size_t at = t_being_traced.size() - 1 - static_cast<size_t>(depth);
  BeingTraced& target = *t_being_traced[at];
  target.recursive = true;
  for (size_t i = at; i < t_being_traced.size(); ++i) {
    t_being_traced[i]->wrapped = true;
    t_being_traced[i]->open |= i > at;
  }
  if (!target.typed) {
    t_pending = &target;
    PyErr_SetString(g_recursion_pending, "a recursive call whose result is not known yet");
    throw PythonError();
  }
  Values values = ArgumentValues(a);
  values.insert(values.end(), target.captures.begin(), target.captures.end());
  Values results = Bind(FindPrim("recur"), values, {{"depth", int64_t{depth}}, {"results", target.results}});
  for (size_t i = 0; i < results.size(); ++i) results[i] = results[i].WithWeak(target.weak[i]);
  if (target.tree.get() == Py_None) return WrapValue(std::move(results[0]));
  Ref list(WrapValues(results));
  if (PyLong_Check(target.tree.get())) return PyList_AsTuple(list.get());
  return PyObject_CallMethod(target.tree.get(), "unflatten", "(O)", list.get());
}

Ref TraceFunction(JitObject* self, PyObject* arguments, const Signature& signature, Traced* traced, bool* cacheable) {
  BeingTraced call;
  call.function = self;
  call.signature = &signature;
  const PlanWhileTracing plan(self);
  constexpr int kMostPasses = 6;
  for (int pass = 0; pass < kMostPasses; ++pass) {
    Ref result;
    std::vector<AppliedRule> rules;
    {
      TracingScope scope(&call);
      const WatchOfTrace watch(&rules, /*own=*/true, /*texts=*/true);
      result = Ref(RunningPython([&] { return PyObject_CallObject(g_trace_jit_hook, arguments); }));
    }
    if (!result) {
      if (PyErr_ExceptionMatches(g_recursion_pending) && t_pending == &call) {
        PyErr_Clear();
        throw TypeError("'", NameOf(self->function),
                        "' calls itself, and what it returns cannot be told: on every path it calls itself first. Put "
                        "the end of the recursion into a branch of weft.cond or weft.switch");
      }
      throw PythonError();
    }
    *traced = TracedOf(PyTuple_GET_ITEM(result.get(), 0));
    traced->rules = std::move(rules);
    if (!call.wrapped) return result;
    PyObject* tree = PyTuple_GET_ITEM(result.get(), 1);
    const Types results = traced->fn->ResultTypes();
    const bool settled =
        !call.recursive ||
        (call.typed && results == call.results && traced->weak_results == call.weak &&
         PyObject_RichCompareBool(tree, call.tree.get(), Py_EQ) == 1 && SameCaptures(traced->captures, call.captures));
    if (settled) {
      *traced = AsRecursive(*traced, call.recursive ? call.captures : traced->captures);
      *cacheable = !call.open;
      return result;
    }
    call.typed = true;
    call.results = results;
    call.weak = traced->weak_results;
    call.tree = Ref::Borrow(tree);
    call.captures = traced->captures;
  }
  throw TypeError("'", NameOf(self->function), "' calls itself, and the types of what it returns do not settle: (",
                  ToString(call.results), ") after ", kMostPasses, " passes");
}

}  // namespace weft::python
