// The jitted function object: a signature of the arguments finds the traced and compiled function; everything else is
// one call of Python (weft.compiled._trace_jit) per new signature.
#include "python/native/jit.h"

#include <Python.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "driver/executable.h"
#include "python/native/array.h"
#include "python/native/call_arguments.h"
#include "python/native/convert.h"
#include "python/native/effects.h"
#include "python/native/errors.h"
#include "python/native/frames.h"
#include "python/native/jit_donation.h"
#include "python/native/jit_mesh.h"
#include "python/native/jit_object.h"
#include "python/native/jit_trace.h"
#include "python/native/nans.h"
#include "python/native/placed.h"
#include "python/native/plans.h"
#include "python/native/run.h"
#include "tracer/context.h"
#include "tracer/regions.h"
#include "transforms/ad/traced_rules.h"
#include "transforms/shard/deterministic.h"
#include "transforms/shard/program_meshes.h"

namespace weft::python {

PyObject* g_flatten_hook = nullptr;    // (object) -> (leaves, tree), by weft.tree
PyObject* g_trace_jit_hook = nullptr;  // (jitted, args, kwargs, leaves, trees) -> (Traced, tree, names)
// (jitted, args, kwargs): the result of a call with a leaf that is no array, but something that Python knows how to
// pass (a reference); raises TypeError, which names the leaf, for others
PyObject* g_refuse_hook = nullptr;
PyObject* g_compiled_hook = nullptr;   // (jitted): told that a program has been compiled; null where nobody listens
PyObject* g_stateful_hook = nullptr;   // (jitted, args, kwargs): the result of a function that uses references
PyObject* g_stateful_error = nullptr;  // raised by g_trace_jit_hook where it finds that a function does
// (Traced, a sharding or None for each argument, deterministic sums, for stacks of blocks)
//   -> (Fn for the devices of a mesh or None, a sharding or None for each result), or None where nothing has a place
PyObject* g_partition_hook = nullptr;

namespace {

bool HasPosition(PyObject* set, Py_ssize_t position) {
  Ref index(PyLong_FromSsize_t(position));
  return PySet_Contains(set, index.get()) == 1;
}

void Collect(JitObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames, Arguments& a) {
  const TraceContext& context = Context();
  context.AppendKey(a.signature.tokens);
  a.signature.tokens.push_back(PlanAround());
  if (context.mesh) {
    a.signature.objects.push_back(Ref::Borrow(static_cast<PyObject*>(context.mesh)));
    a.signature.tokens.push_back(MeshIsChosen());
  }
  a.signature.tokens.push_back(static_cast<uint64_t>(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (self->has_static && HasPosition(self->static_argnums, i))
      AddStatic(args[i], a, std::to_string(i), self->function);
    else
      FlattenArgument(args[i], a, self->has_donated && HasPosition(self->donate_argnums, i));
  }
  if (kwnames == nullptr) return;
  absl::InlinedVector<std::pair<PyObject*, PyObject*>, 8> items;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kwnames); ++i)
    items.emplace_back(PyTuple_GET_ITEM(kwnames, i), args[n + i]);
  std::sort(items.begin(), items.end(),
            [](const auto& x, const auto& y) { return PyUnicode_Compare(x.first, y.first) < 0; });
  for (auto& [k, v] : items) {
    a.signature.tokens.push_back(kKeywordToken);
    a.signature.objects.push_back(Ref::Borrow(k));
    if (self->has_static && PySet_Contains(self->static_argnames, k) == 1) {
      AddStatic(v, a, "'" + Text(k) + "'", self->function);
    } else {
      FlattenArgument(v, a, self->has_donated && PySet_Contains(self->donate_argnames, k) == 1);
    }
  }
}

// The arguments of a call as a tuple and a dictionary.
std::pair<Ref, Ref> Packed(PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  Ref tuple(Check(PyTuple_New(n)));
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(tuple.get(), i, Py_NewRef(args[i]));
  Ref kwargs(Check(PyDict_New()));
  for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); ++i) {
    CheckStatus(PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(kwnames, i), args[n + i]));
  }
  return {tuple, kwargs};
}

// The leaves of the arguments, and the trees of those containers that only Python can take apart, which it does once:
// what does that is the user's, and may say something else the next time.
std::pair<Ref, Ref> TakenApart(const Arguments& a) {
  Ref leaves(Check(PyList_New(0))), trees(Check(PyList_New(0)));
  for (const Leaf& leaf : a.leaves) CheckStatus(PyList_Append(leaves.get(), leaf.object));
  for (const Ref& pair : a.apart) CheckStatus(PyList_Append(trees.get(), PyTuple_GET_ITEM(pair.get(), 1)));
  return {leaves, trees};
}

// The call as Python makes it, by one of the hooks.
PyObject* CallByPython(PyObject* hook, JitObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  const auto [tuple, kwargs] = Packed(args, n, kwnames);
  return Check(RunningPython([&, &tuple = tuple, &kwargs = kwargs] {
    return PyObject_CallFunctionObjArgs(hook, reinterpret_cast<PyObject*>(self), tuple.get(), kwargs.get(), nullptr);
  }));
}

std::shared_ptr<Entry> Make(JitObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames, Arguments& a) {
  const auto [tuple, kwargs] = Packed(args, n, kwnames);
  const auto [leaves, trees] = TakenApart(a);
  const Ref call(
      Check(PyTuple_Pack(5, reinterpret_cast<PyObject*>(self), tuple.get(), kwargs.get(), leaves.get(), trees.get())));
  auto entry = std::make_shared<Entry>();
  const Ref pair = [&] {
    const InsidePython inside;
    return TraceFunction(self, call.get(), a.signature, &entry->traced, &entry->cacheable);
  }();
  entry->signature = std::move(a.signature);
  entry->tree = Ref::Borrow(PyTuple_GET_ITEM(pair.get(), 1));
  entry->names = Ref::Borrow(PyTuple_GET_ITEM(pair.get(), 2));
  WEFT_CHECK(entry->traced.num_params == static_cast<int>(a.leaves.size())) << "leaves of the arguments of a trace";
  if (entry->tree.get() == Py_None)
    entry->out = Entry::Out::kLeaf;
  else if (PyLong_Check(entry->tree.get()))
    entry->out = Entry::Out::kTuple;
  entry->placed = a.placed || MeshIsChosen() || !MeshesOf(*entry->traced.fn).empty();
  for (const Value& v : entry->traced.captures) {
    entry->cacheable &= !v.traced();
    if (!v.traced() && SpansProcesses(v)) v.tensor();  // raises
  }
  if (self->has_donated) {
    const std::string name = NameOf(self->function);
    for (size_t i = 0; i < a.leaves.size(); ++i) {
      Deletion d{entry->traced.fn->params()[i].type, a.leaves[i].array && PeekValue(a.leaves[i].array).weak(), ""};
      d.how = "was donated as argument " + Text(PyList_GET_ITEM(entry->names.get(), i)) + " of '" + name + "'";
      entry->deletions.push_back(std::make_shared<Deletion>(std::move(d)));
      entry->donated.push_back(a.leaves[i].donated);
    }
    entry->donated.resize(entry->traced.fn->params().size(), false);
    if (On(Setting::kJaxSemantics)) KeepUseless(*entry);
  }
  if (entry->cacheable) self->cache->Insert(entry);
  return entry;
}

std::chrono::milliseconds g_patience_with_tracing(30000);
constexpr std::chrono::hours kPatienceWithCompiling(1000);

// The version for these arguments, made by one thread for all that ask meanwhile.
std::shared_ptr<Entry> FindOrMake(JitObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames,
                                  Arguments& a) {
  while (const std::shared_ptr<Flight> other = self->cache->FindFlight(a.signature)) {
    if (!other->Wait(g_patience_with_tracing)) break;
    // None if tracing failed, and if what was traced belongs to one call.
    if (std::shared_ptr<Entry> entry = self->cache->Find(a.signature)) return entry;
  }
  const EntryCache::Tracing tracing(*self->cache, a.signature);
  return Make(self, args, n, kwnames, a);
}

// Compiles it, unless another thread does.
void Compile(JitObject* self, Entry& entry, const Arguments& a) {
  while (const std::shared_ptr<Flight> other = entry.compiling) {
    if (!other->Wait(kPatienceWithCompiling)) break;
    if (entry.program) return;
  }
  const InFlight here(&entry.compiling);
  const bool same_bits = IsDeterministic(self);
  OnDevices on{entry.traced.fn};
  if (entry.placed) {
    std::vector<PyObject*> shardings;
    for (const Leaf& leaf : a.leaves) shardings.push_back(leaf.array ? ShardingOf(PeekValue(leaf.array)) : nullptr);
    // What is cut is simplified first: by the plan, too.
    const PlanWhileTracing plan(self);
    const WatchOfTrace watch;
    on = PlaceProgram(entry.traced, shardings, same_bits, BackendOf(self));
  } else {
    if (!entry.traced.held.empty()) on.fn = WithoutHostRules(on.fn);
    if (same_bits) on.fn = WithDeterministicSums(on.fn);
  }
  Tensors constants;
  for (const Value& v : entry.traced.captures) {
    if (v.traced()) continue;
    constants.push_back(on.part ? StackFor(on, a.leaves.size() + constants.size(), v) : v.tensor());
  }
  const bool planned = HasPlan(self);
  std::shared_ptr<Program> program =
      ProgramOf(planned ? ByPlan(self, on.fn) : on.fn, {BackendOf(self), entry.donated, same_bits, planned});
  if (entry.program) return;  // a thread that could not wait runs the first
  entry.on = std::move(on);
  entry.constants = std::move(constants);
  entry.program = std::move(program);
  if (self->has_donated) WarnOfUseless(entry);
  if (g_compiled_hook != nullptr) {
    const auto tell = [&] { return PyObject_CallOneArg(g_compiled_hook, reinterpret_cast<PyObject*>(self)); };
    const Ref told(Check(RunningPython(tell)));
  }
}

PyObject* BuildResult(const Entry& entry, absl::Span<Value> values) {
  if (entry.out == Entry::Out::kLeaf) return WrapValue(std::move(values[0]));
  if (entry.out == Entry::Out::kTuple) {
    Ref tuple(Check(PyTuple_New(static_cast<Py_ssize_t>(values.size()))));
    for (size_t i = 0; i < values.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), Check(WrapValue(std::move(values[i]))));
    return tuple.release();
  }
  Ref list(Check(PyList_New(static_cast<Py_ssize_t>(values.size()))));
  for (size_t i = 0; i < values.size(); ++i)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), Check(WrapValue(std::move(values[i]))));
  return RunningPython([&] { return PyObject_CallMethod(entry.tree.get(), "unflatten", "(O)", list.get()); });
}

// A Python number that is an argument. Raises IntegerOverflow, which names it.
const Tensor& Number(const Entry& entry, const Leaf& leaf, size_t i) {
  try {
    return NumberTensor(leaf.scalar.dtype().dtype, leaf.scalar);
  } catch (const IntegerOverflow& error) {
    RaiseOverflowOf(Text(PyList_GET_ITEM(entry.names.get(), static_cast<Py_ssize_t>(i))), error);
  }
}

// The value of an argument, or what a donated one held, which is deleted.
Value TakeArgument(const Entry& entry, const Leaf& leaf, size_t i, bool give, Loc here) {
  if (!leaf.array) {
    return Value(leaf.tensor.defined() ? leaf.tensor : Number(entry, leaf, i));
  }
  // Warning may have run Python code, so the array is looked at again.
  if (give && MayGive(PeekValue(leaf.array))) return Delete(leaf.array, entry.deletions[i], here);
  return DemandValue(ValueOf(leaf.array), "the value");
}

// All of an array that is gone, which nobody else refers to then.
Tensor Memory(const Value& v) { return v.shards() == nullptr ? v.tensor() : v.shards()->Whole(); }

// Runs the version of a function for a mesh.
Values RunOnMesh(const Entry& entry, const Arguments& a, const std::vector<bool>& give, Loc here, bool same_bits) {
  // What is looked at again is not written to: the program works on copies of donated blocks.
  bool keep = LooksForNans();
  for (size_t i = 0; i < give.size(); ++i) keep = keep && (!give[i] || PeekValue(a.leaves[i].array).shards());
  Values kept;
  Tensors stacks;
  stacks.reserve(a.leaves.size() + entry.constants.size());
  for (size_t i = 0; i < a.leaves.size(); ++i) {
    Value v = TakeArgument(entry, a.leaves[i], i, !give.empty() && give[i], here);
    stacks.push_back(StackFor(entry.on, i, v));
    if (keep) kept.push_back(std::move(v));
  }
  stacks.insert(stacks.end(), entry.constants.begin(), entry.constants.end());
  Tensors out = RunPart(entry.traced, entry.on, *entry.program, std::move(stacks), keep ? &kept : nullptr, same_bits);
  Values results;
  for (size_t i = 0; i < out.size(); ++i)
    results.push_back(PlacedResult(entry.on, i, std::move(out[i]), entry.traced.weak_results[i]));
  return results;
}

}  // namespace

void SetPatienceWithTracing(double seconds) {
  g_patience_with_tracing = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

namespace {

// Whether the call is part of a function that is being traced, and not to be run.
bool IsRecorded(const Entry& entry, Arguments& a) {
  const Trace* trace = Trace::Current();
  if (trace == nullptr || !trace->computes_known()) return trace != nullptr;
  const auto is_traced = [](const Leaf& leaf) { return leaf.array && PeekValue(leaf.array).traced(); };
  const Traced& traced = entry.traced;
  return std::any_of(a.leaves.begin(), a.leaves.end(), is_traced) || Recorder(traced.captures) != nullptr ||
         !RunsAlone(*traced.fn);
}

}  // namespace

PyObject* TracedBefore(PyObject* object, PyObject* args, PyObject* kwargs) {
  auto* self = reinterpret_cast<JitObject*>(object);
  return Guarded([&]() -> PyObject* {
    std::vector<PyObject*> given;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) given.push_back(PyTuple_GET_ITEM(args, i));
    const Ref names(Check(PyTuple_New(PyDict_Size(kwargs))));
    PyObject *key, *value;
    for (Py_ssize_t at = 0, i = 0; PyDict_Next(kwargs, &at, &key, &value); ++i) {
      PyTuple_SET_ITEM(names.get(), i, Py_NewRef(key));
      given.push_back(value);
    }
    Arguments a;
    std::shared_ptr<Entry> entry;
    if (!self->stateful) {
      try {
        Collect(self, given.data(), PyTuple_GET_SIZE(args), names.get(), a);
        entry = self->cache->Find(a.signature);
      } catch (const NoArray&) {
        Py_RETURN_NONE;  // of types alone, say
      }
    }
    if (!entry) Py_RETURN_NONE;
    const Ref traced(WrapTraced(entry->traced));
    return Check(PyTuple_Pack(3, traced.get(), entry->tree.get(), entry->names.get()));
  });
}

PyObject* CallJitted(PyObject* object, PyObject* const* args, size_t flags, PyObject* kwnames) {
  auto* self = reinterpret_cast<JitObject*>(object);
  if (On(Setting::kDisableJit)) return PyObject_Vectorcall(self->function, args, flags, kwnames);
  return Guarded([&]() -> PyObject* {
    const Py_ssize_t n = PyVectorcall_NARGS(flags);
    if (self->stateful) return CallByPython(g_stateful_hook, self, args, n, kwnames);
    Arguments a;
    try {
      Collect(self, args, n, kwnames, a);
    } catch (const NoArray&) {
      return CallByPython(g_refuse_hook, self, args, n, kwnames);
    }
    std::shared_ptr<Entry> entry = self->cache->Find(a.signature);
    if (!entry && Trace::Current()) {
      if (const int depth = BeingTracedAt(self, a.signature); depth >= 0) return RecursiveCall(depth, a);
    }
    if (!entry) {
      const ScopedLicences licences(LicencesHere(self));
      try {
        entry = FindOrMake(self, args, n, kwnames, a);
      } catch (const PythonError&) {
        if (!self->stateful || PyErr_ExceptionMatches(g_stateful_error) == 0) throw;
        PyErr_Clear();
        return CallByPython(g_stateful_hook, self, args, n, kwnames);
      }
    }
    ++entry->calls;
    absl::InlinedVector<Value, 4> results;
    if (IsRecorded(*entry, a)) {
      CheckSurroundings(self);
      NoteAgain(entry->traced.rules);
      Values values = ArgumentValues(a);
      values.insert(values.end(), entry->traced.captures.begin(), entry->traced.captures.end());
      for (const Value& result : Apply(entry->traced.fn, values, On(Setting::kKeepsCalls) && !IsInline(self)))
        results.push_back(result.WithWeak(entry->traced.weak_results[results.size()]));
    } else {
      std::optional<NoTrace> none;
      if (Trace::Current()) none.emplace();
      const bool watched = SettingsHere().HasAny(kSettingsOfRuns);
      if (watched) CheckMayRun(NameOf(self->function));
      std::vector<bool> give;
      if (self->has_donated) give = MayGive(*entry, a);
      if (!entry->program) {
        const ScopedLicences licences(LicencesHere(self));
        Compile(self, *entry, a);
      }
      const Loc here = self->has_donated ? UserLoc() : Loc();
      if (entry->on.part) {
        Values blocks = RunOnMesh(*entry, a, give, here, IsDeterministic(self));
        return BuildResult(*entry, absl::MakeSpan(blocks));
      }
      Tensors tensors;
      tensors.reserve(a.leaves.size() + entry->constants.size());
      for (size_t i = 0; i < a.leaves.size(); ++i) {
        Leaf& leaf = a.leaves[i];
        // Warning may have run Python code, so the array is looked at again.
        if (!give.empty() && give[i] && MayGive(PeekValue(leaf.array)))
          tensors.push_back(Memory(Delete(leaf.array, entry->deletions[i], here)));
        else if (leaf.array)
          tensors.push_back(PeekValue(leaf.array).traced() ? Demand(ValueOf(leaf.array), "the value")
                                                           : PeekValue(leaf.array).tensor());
        else if (leaf.tensor.defined())
          tensors.push_back(leaf.tensor);
        else
          tensors.push_back(Number(*entry, leaf, i));
      }
      const bool keep = std::find(give.begin(), give.end(), true) == give.end();
      tensors.insert(tensors.end(), entry->constants.begin(), entry->constants.end());
      // Only memory that stays as it is can be looked at again.
      std::optional<Tensors> kept;
      const bool look_for_nans = watched && LooksForNans();
      if (look_for_nans && keep) kept = tensors;
      Tensors out = RunProgram(*entry->program, std::move(tensors));
      if (look_for_nans) CheckNans(entry->traced.fn, kept, out);
      results.reserve(out.size());
      std::vector<const void*> numpy_owns;
      for (const Leaf& leaf : a.leaves) {
        if (leaf.tensor.defined()) numpy_owns.push_back(leaf.tensor.owner().get());
      }
      std::sort(numpy_owns.begin(), numpy_owns.end());
      for (size_t i = 0; i < out.size(); ++i) {
        // A result that is an argument unchanged must not share NumPy's memory.
        if (std::binary_search(numpy_owns.begin(), numpy_owns.end(), out[i].owner().get())) out[i] = out[i].Copy();
        results.push_back(entry->placed ? PlacedResult(entry->on, i, std::move(out[i]), entry->traced.weak_results[i])
                                        : Value(std::move(out[i]), entry->traced.weak_results[i]));
      }
    }
    return BuildResult(*entry, absl::MakeSpan(results));
  });
}

}  // namespace weft::python
