// The jitted function object: a signature of the arguments finds the traced and compiled function; everything else is
// one call of Python (weft.compiled._trace_jit) per new signature.
#include "python/jit.h"

#include <Python.h>
#include <structmember.h>

#include <algorithm>
#include <new>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "backends/cpu/job.h"
#include "driver/executable.h"
#include "ir/residuals.h"
#include "python/array.h"
#include "python/call_arguments.h"
#include "python/convert.h"
#include "python/effects.h"
#include "python/frames.h"
#include "python/function.h"
#include "python/nans.h"
#include "python/run.h"
#include "tracer/axes.h"
#include "tracer/regions.h"
#include "transforms/fixed_order.h"
#include "transforms/partition.h"
#include "transforms/processes.h"
#include "transforms/traced_rules.h"

namespace weft::python {

PyObject* g_flatten_hook = nullptr;    // (object) -> (leaves, tree), by weft.tree
PyObject* g_trace_jit_hook = nullptr;  // (jitted, args, kwargs) -> (Traced, tree, names)
PyObject* g_refuse_hook = nullptr;     // (jitted, args, kwargs): raises TypeError, which names a leaf that is no array
PyObject* g_mesh_around = nullptr;     // the mesh of the `with mesh:` around the caller; null: there is none
// (Traced, a sharding or None for each argument, sums in a fixed order)
//   -> (Fn for the devices of a mesh or None, a sharding or None for each result), or None where nothing has a place
PyObject* g_partition_hook = nullptr;
bool g_disable_jit = false;

namespace {

struct Entry {
  Signature signature;
  Traced traced;
  std::shared_ptr<Program> program;
  Tensors constants;
  Ref tree;  // of the results
  // Donated leaves of the arguments: what their arrays say afterwards; by parameter, empty when none is donated.
  std::vector<std::shared_ptr<const Deletion>> deletions;
  std::vector<bool> donated;
  enum class Out { kLeaf, kTuple, kTree } out = Out::kTree;
  bool cacheable = true;
  int64_t calls = 0;
  bool placed = false;               // somebody said where an argument lies, or the program names a mesh
  bool cut = false;                  // what is compiled is for the devices of a mesh
  std::vector<Ref> shardings;        // of the results, once compiled: None on no device in particular
  FnRef part;                        // what this process runs of a program for several; null: there is one
  bool part_constants_made = false;  // then `constants` are stacks of blocks
};

struct JitObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* function;
  PyObject* static_argnums;   // frozenset of ints
  PyObject* static_argnames;  // frozenset of strings
  PyObject* donate_argnums;   // frozenset of ints
  PyObject* donate_argnames;  // frozenset of strings
  PyObject* dict;
  PyObject* weakrefs;
  absl::flat_hash_map<size_t, std::vector<std::shared_ptr<Entry>>>* entries;
  std::shared_ptr<Entry>* last;
  bool has_static, has_donated;
};

PyTypeObject* g_jit_type = nullptr;

bool HasPosition(PyObject* set, Py_ssize_t position) {
  Ref index(PyLong_FromSsize_t(position));
  return PySet_Contains(set, index.get()) == 1;
}

void Collect(JitObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames, Arguments& a) {
  a.signature.tokens.push_back(static_cast<uint64_t>(n) << 1 | static_cast<uint64_t>(X64()));
  // What is traced refers to the named axes around it; most calls are outside of any.
  if (const uint64_t axes = AxesKey()) {
    a.signature.tokens.push_back(kAxesToken);
    a.signature.tokens.push_back(axes);
  }
  // ... and means that mesh by its partition specs.
  if (g_mesh_around) {
    a.signature.tokens.push_back(kMeshToken);
    a.signature.objects.push_back(Ref::Borrow(g_mesh_around));
  }
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

std::shared_ptr<Entry> Find(JitObject* self, const Signature& s) {
  // Comparing static arguments may run Python code, and so other threads, which may add entries meanwhile, and change
  // which is the last one.
  // (Not const, so that it is moved out.)
  if (std::shared_ptr<Entry> last = *self->last; last && last->signature == s) return last;
  auto it = self->entries->find(s.Hash());
  if (it == self->entries->end()) return nullptr;
  const std::vector<std::shared_ptr<Entry>> entries = it->second;
  for (const auto& entry : entries) {
    if (entry->signature == s) {
      *self->last = entry;
      return entry;
    }
  }
  return nullptr;
}

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
void BeingLowered(bool begins) { t_being_lowered += begins ? 1 : -1; }
namespace {

// Of jit(backend=...); the outermost jitted function decides.
std::string BackendOf(const JitObject* self) {
  PyObject* name = self->dict ? PyDict_GetItemString(self->dict, "_backend") : nullptr;
  return name ? PyUnicode_AsUTF8(name) : HowToCompile().backend;
}

bool IsDeterministic(const JitObject* self) {
  return self->dict && PyDict_GetItemString(self->dict, "_deterministic") == Py_True;
}

// Inside of another jitted function, that one decides how everything is compiled, and can be told so. What traces
// otherwise (vmap, make_ir) makes a program that does not know.
void CheckSurroundings(const JitObject* self) {
  if (!IsDeterministic(self) || !t_being_traced.empty() || t_being_lowered > 0) return;
  throw UserError(
      ErrorKind::kUnsupported, UserLoc(), Trace::Current()->kind(), ": '", NameOf(self->function),
      "' is jitted with deterministic=True, which would be lost here. Put weft.jit(..., deterministic=True) "
      "around all that is computed; its lower(...) gives the program");
}

// The traced values of the arguments.
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

// How many calls up a call with these arguments is being traced; -1: it is not.
int BeingTracedAt(JitObject* self, const Signature& signature) {
  for (size_t i = t_being_traced.size(); i-- > 0;) {
    if (t_being_traced[i]->function == self && *t_being_traced[i]->signature == signature)
      return static_cast<int>(t_being_traced.size() - 1 - i);
  }
  return -1;
}

// A call of a function that is being traced.
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

// Traces the function until the types of its own calls agree with what it returns. (Traced, tree, names)
Ref TraceFunction(JitObject* self, PyObject* args, PyObject* kwargs, const Signature& signature, Traced* traced,
                  bool* cacheable) {
  BeingTraced call;
  call.function = self;
  call.signature = &signature;
  constexpr int kMostPasses = 6;
  for (int pass = 0; pass < kMostPasses; ++pass) {
    Ref result;
    {
      TracingScope scope(&call);
      result = Ref(RunningPython([&] {
        return PyObject_CallFunctionObjArgs(g_trace_jit_hook, reinterpret_cast<PyObject*>(self), args, kwargs, nullptr);
      }));
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

// Raises TypeError for a leaf that is no array; the Python side knows what its argument is called.
[[noreturn]] void Refuse(JitObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames, PyObject* leaf) {
  const auto [tuple, kwargs] = Packed(args, n, kwnames);
  Check(RunningPython([&, &tuple = tuple, &kwargs = kwargs] {
    return PyObject_CallFunctionObjArgs(g_refuse_hook, reinterpret_cast<PyObject*>(self), tuple.get(), kwargs.get(),
                                        nullptr);
  }));
  throw TypeError("jit: an argument of '", NameOf(self->function), "' holds ", Repr(leaf), " of type '",
                  Py_TYPE(leaf)->tp_name, "'; expected an array, a number, or a container of them");
}

bool WeakOf(PyObject* array) {
  return BlocksOf(array) != nullptr ? reinterpret_cast<ArrayObject*>(array)->deleted->weak : PeekValue(array).weak();
}

std::shared_ptr<Entry> Make(JitObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames, Arguments& a) {
  const auto [tuple, kwargs] = Packed(args, n, kwnames);
  auto entry = std::make_shared<Entry>();
  const Ref pair = [&] {
    const InsidePython inside;
    return TraceFunction(self, tuple.get(), kwargs.get(), a.signature, &entry->traced, &entry->cacheable);
  }();
  entry->signature = std::move(a.signature);
  entry->tree = Ref::Borrow(PyTuple_GET_ITEM(pair.get(), 1));
  WEFT_CHECK(entry->traced.num_params == static_cast<int>(a.leaves.size()))
      << "the two ways to flatten arguments disagree";
  if (entry->tree.get() == Py_None)
    entry->out = Entry::Out::kLeaf;
  else if (PyLong_Check(entry->tree.get()))
    entry->out = Entry::Out::kTuple;
  entry->placed = a.placed || !MeshesOf(*entry->traced.fn).empty();
  for (const Value& v : entry->traced.captures) {
    entry->cacheable &= !v.traced();
    if (!v.traced()) entry->constants.push_back(v.tensor());
  }
  if (self->has_donated) {
    const std::string name = NameOf(self->function);
    PyObject* names = PyTuple_GET_ITEM(pair.get(), 2);
    for (size_t i = 0; i < a.leaves.size(); ++i) {
      Deletion d{entry->traced.fn->params()[i].type, a.leaves[i].array && WeakOf(a.leaves[i].array), ""};
      d.how = "was donated as argument " + Text(PyList_GET_ITEM(names, i)) + " of '" + name + "'";
      entry->deletions.push_back(std::make_shared<Deletion>(std::move(d)));
      entry->donated.push_back(a.leaves[i].donated);
    }
    entry->donated.resize(entry->traced.fn->params().size(), false);
  }
  if (entry->cacheable) {
    (*self->entries)[entry->signature.Hash()].push_back(entry);
    *self->last = entry;
  }
  return entry;
}

// "the argument x ([f32[3]) of 'step'"
std::string Donated(const Entry& entry, size_t i) {
  const std::string& how = entry.deletions[i]->how;
  return how.substr(how.find("argument ")) + ", " + entry.deletions[i]->type.ToString() + ",";
}

void Warn(const std::string& text) {
  if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) < 0) throw PythonError();
}

// Some of the donated arguments: what a warning says of all of them at once.
struct SomeDonated {
  int count = 0;
  std::string first;

  void Add(const Entry& entry, size_t i) {
    if (count++ == 0) first = Donated(entry, i);
  }
  std::string Text(const char* of_one, const char* of_many) const {
    if (count == 1) return first + of_one;
    return std::to_string(count) + " arguments" + of_many + "; the first is " + first.substr(0, first.size() - 1);
  }
};

// Which donated arguments can be given away. Raises ValueError for one that is passed twice; warns of those whose
// memory somebody else holds, once for all.
std::vector<bool> MayGive(const Entry& entry, const Arguments& a) {
  std::vector<bool> give(a.leaves.size(), false);
  SomeDonated shared, borrowed;
  for (size_t i = 0; i < a.leaves.size(); ++i) {
    const Leaf& leaf = a.leaves[i];
    if (!leaf.donated || leaf.array == nullptr || BlocksOf(leaf.array) != nullptr || PeekValue(leaf.array).traced())
      continue;
    for (size_t k = 0; k < a.leaves.size(); ++k) {
      if (k != i && a.leaves[k].array == leaf.array) {
        throw ValueError(Donated(entry, i), " is donated, and the same array is also passed as argument ",
                         entry.traced.fn->params()[k].name.empty() ? "number " + std::to_string(k + 1)
                                                                   : entry.traced.fn->params()[k].name);
      }
    }
    const bool pinned = reinterpret_cast<ArrayObject*>(leaf.array)->pinned;
    const Tensor& t = PeekValue(leaf.array).tensor();
    give[i] = !pinned && MayOverwrite(t);
    if (!give[i]) (t.owner().use_count() > 1 || pinned ? shared : borrowed).Add(entry, i);
  }
  constexpr const char* kShared = " not donated: a NumPy array, DLPack or buffer export, or another array shares ";
  constexpr const char* kBorrowed = " not donated: ";
  if (shared.count > 0)
    Warn("jit: " + shared.Text((std::string(" was") + kShared + "its memory").c_str(),
                               (std::string(" were") + kShared + "their memory").c_str()));
  if (borrowed.count > 0)
    Warn("jit: " +
         borrowed.Text((std::string(" was") + kBorrowed + "its memory belongs to another library").c_str(),
                       (std::string(" were") + kBorrowed + "their memory belongs to another library").c_str()));
  return give;
}

// Once per compiled version. Of a program over a mesh no donated memory is written to: it is free when the program
// ends.
void WarnOfUseless(const Entry& entry) {
  if (entry.cut) return;
  const std::vector<bool> uses = entry.program->UsesDonated();
  SomeDonated useless;
  for (size_t i = 0; i < uses.size(); ++i) {
    if (entry.donated[i] && !uses[i] && !(entry.deletions[i]->type.size() == Dim(0))) useless.Add(entry, i);
  }
  if (useless.count > 0)
    Warn("jit: donating " + useless.Text(" brings nothing: no result or temporary fits its memory",
                                         " brings nothing: no result or temporary fits their memory"));
}

// Result i as an array, which lies as the program left it.
PyObject* WrapResult(const Entry& entry, Value value, size_t i) {
  const bool concrete = !value.traced();
  if (concrete && entry.part) {
    const Type whole = entry.traced.fn->TypeOf(entry.traced.fn->results()[i]);
    // What every device holds all of is there.
    const Tensor& blocks = value.tensor();
    const Shape& shape = blocks.shape();
    const bool all = shape[0] == 1 && std::equal(shape.begin() + 1, shape.end(), whole.dims.begin(), whole.dims.end(),
                                                 [](int64_t n, const Dim& d) { return d == Dim(n); });
    if (!all) return WrapBlocks(blocks, whole, value.weak(), entry.shardings[i].get());
    value = Value(blocks.Reshaped(Shape(shape.begin() + 1, shape.end())), value.weak());
  }
  PyObject* array = Check(WrapValue(std::move(value)));
  if (concrete && i < entry.shardings.size() && entry.shardings[i].get() != Py_None)
    reinterpret_cast<ArrayObject*>(array)->sharding = Py_NewRef(entry.shardings[i].get());
  return array;
}

PyObject* BuildResult(const Entry& entry, absl::Span<Value> values) {
  if (entry.out == Entry::Out::kLeaf) return WrapResult(entry, std::move(values[0]), 0);
  if (entry.out == Entry::Out::kTuple) {
    Ref tuple(Check(PyTuple_New(static_cast<Py_ssize_t>(values.size()))));
    for (size_t i = 0; i < values.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), WrapResult(entry, std::move(values[i]), i));
    return tuple.release();
  }
  Ref list(Check(PyList_New(static_cast<Py_ssize_t>(values.size()))));
  for (size_t i = 0; i < values.size(); ++i)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), WrapResult(entry, std::move(values[i]), i));
  return RunningPython([&] { return PyObject_CallMethod(entry.tree.get(), "unflatten", "(O)", list.get()); });
}

Values WithWeak(Tensors results, const Traced& traced) {
  Values values;
  for (size_t i = 0; i < results.size(); ++i) values.push_back(Value(std::move(results[i]), traced.weak_results[i]));
  return values;
}

// What is compiled: the traced program, or for a mesh that of its devices. Sets how the results lie.
FnRef FnToCompile(Entry& entry, const Arguments& a, bool same_bits) {
  Traced given = entry.traced;
  if (!given.held.empty()) given.fn = WithoutHostRules(given.fn);
  if (same_bits) given.fn = FixedOrder(given.fn);
  if (!entry.placed) return given.fn;
  Ref shardings(Check(PyList_New(0)));
  for (const Leaf& leaf : a.leaves) {
    PyObject* sharding = leaf.array ? reinterpret_cast<ArrayObject*>(leaf.array)->sharding : nullptr;
    CheckStatus(PyList_Append(shardings.get(), sharding ? sharding : Py_None));
  }
  Ref traced(WrapTraced(given));
  Ref pair(Check(RunningPython([&] {
    return PyObject_CallFunctionObjArgs(g_partition_hook, traced.get(), shardings.get(), same_bits ? Py_True : Py_False,
                                        nullptr);
  })));
  if (pair.get() == Py_None) return given.fn;
  PyObject* results = PyTuple_GET_ITEM(pair.get(), 1);
  std::vector<Ref> lie;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(results); ++i) lie.push_back(Ref::Borrow(PyList_GET_ITEM(results, i)));
  entry.shardings = std::move(lie);
  if (PyTuple_GET_ITEM(pair.get(), 0) == Py_None) return given.fn;
  entry.cut = true;
  const FnRef fn = FnOf(PyTuple_GET_ITEM(pair.get(), 0));
  if (fn->eqns().size() == 1 && fn->eqns()[0].attrs.Find("processes") != nullptr) entry.part = fn;
  return fn;
}

// Argument i of a program for several processes, from an array that this process has all of.
Tensor BlocksOfArgument(const Fn& part, size_t i, const Tensor& whole) {
  const Attrs& attrs = part.eqns()[0].attrs;
  const Shape shape = StaticSizes(part.params()[i].type.dims, "a program for several processes");
  if (NumElements(shape) == whole.size() && shape[0] == 1) return whole.Reshaped(shape);
  return StackOfBlocks(whole, attrs.Get<Mesh>("mesh"), attrs.Get<Shardings>("in_shardings")[i],
                       attrs.Get<Ints>("processes"));
}

// The arguments of what this process has of a program, without captured values: blocks of arrays that span processes,
// and of whole ones.
Tensors PartArguments(const Fn& part, const Arguments& a, const Tensors& whole) {
  Tensors tensors;
  for (size_t i = 0; i < a.leaves.size(); ++i) {
    const Tensor* blocks = a.leaves[i].array ? BlocksOf(a.leaves[i].array) : nullptr;
    tensors.push_back(blocks != nullptr ? *blocks : BlocksOfArgument(part, i, whole[i]));
  }
  return tensors;
}

// Whether a tensor holds a NaN in any of the processes that run a part, and whether `*everywhere` holds in all.
std::vector<bool> HoldNansAnywhere(const Fn& part, const Tensors& mine, bool* everywhere) {
  std::string flags;
  for (bool nan : HoldNans(mine)) flags += nan ? '1' : '0';
  flags += *everywhere ? '1' : '0';
  const Ints& devices = part.eqns()[0].attrs.Get<Ints>("processes");
  const std::set<int> processes(devices.begin() + 1, devices.end());
  cpu::Job::SetSite(UserLoc().ToString());
  std::vector<std::string> all;
  {
    const Unlocked unlocked;
    all = cpu::Job::Current()->AllGather("looks for NaNs", flags, {processes.begin(), processes.end()});
  }
  std::vector<bool> found(mine.size(), false);
  for (const std::string& theirs : all) {
    for (size_t i = 0; i < found.size(); ++i) found[i] = found[i] || theirs[i] == '1';
    *everywhere = *everywhere && theirs.back() == '1';
  }
  return found;
}

// CheckNans for a program over several processes: all of them raise. `args`: what the program got; without them their
// memory was given away.
void CheckPartForNans(const Entry& entry, const Arguments& a, bool same_bits, const Tensors& whole,
                      const std::optional<Tensors>& args, const Tensors& results) {
  bool kept = args.has_value();  // which each process decides by what else refers to its memory
  const std::vector<bool> nans = HoldNansAnywhere(*entry.part, results, &kept);
  if (std::find(nans.begin(), nans.end(), true) == nans.end()) return;
  std::optional<std::vector<bool>> given;
  if (kept) given = HoldNansAnywhere(*entry.part, *args, &kept);
  RaiseForNans(entry.traced.fn, given, nans, [&](const FnRef& watch) {
    Entry watched;
    watched.traced = entry.traced;
    watched.traced.fn = watch;
    watched.traced.weak_results.assign(watch->results().size(), false);
    watched.placed = true;
    const FnRef fn = FnToCompile(watched, a, same_bits);
    const std::shared_ptr<Program> program = ProgramOf(fn, {.same_bits = same_bits});
    WEFT_CHECK(watched.part != nullptr) << "the watched program is for one process";
    Tensors arguments = PartArguments(*watched.part, a, whole);
    for (const Value& v : watched.traced.captures)
      arguments.push_back(BlocksOfArgument(*watched.part, arguments.size(), v.tensor()));
    return RunProgram(*program, std::move(arguments));
  });
}

// Runs what this process has of a program for several. `keep`: arguments can be looked at again.
Tensors RunPart(Entry& entry, const Arguments& a, const Tensors& whole, bool same_bits, bool keep) {
  if (!entry.part_constants_made) {
    for (size_t i = 0; i < entry.constants.size(); ++i)
      entry.constants[i] = BlocksOfArgument(*entry.part, a.leaves.size() + i, entry.constants[i]);
    entry.part_constants_made = true;
  }
  Tensors tensors = PartArguments(*entry.part, a, whole);
  tensors.insert(tensors.end(), entry.constants.begin(), entry.constants.end());
  std::optional<Tensors> kept;
  if (g_debug_nans && keep) kept = tensors;
  cpu::Job::SetSite(UserLoc().ToString());
  Tensors out = RunProgram(*entry.program, std::move(tensors));
  const auto take_donated = [&] {
    for (size_t i = 0; i < a.leaves.size(); ++i) {
      if (a.leaves[i].donated && a.leaves[i].array && BlocksOf(a.leaves[i].array) != nullptr)
        Delete(a.leaves[i].array, entry.deletions[i], UserLoc());
    }
  };
  if (g_debug_nans) {
    try {
      CheckPartForNans(entry, a, same_bits, whole, kept, out);
    } catch (...) {
      take_donated();
      throw;
    }
  }
  take_donated();
  return out;
}

PyObject* Call(PyObject* object, PyObject* const* args, size_t flags, PyObject* kwnames) {
  auto* self = reinterpret_cast<JitObject*>(object);
  if (g_disable_jit) return PyObject_Vectorcall(self->function, args, flags, kwnames);
  return Guarded([&]() -> PyObject* {
    const Py_ssize_t n = PyVectorcall_NARGS(flags);
    Arguments a;
    try {
      Collect(self, args, n, kwnames, a);
    } catch (const NoArray& found) {
      Refuse(self, args, n, kwnames, found.leaf);
    }
    std::shared_ptr<Entry> entry = Find(self, a.signature);
    if (!entry && !t_being_traced.empty() && Trace::Current()) {
      if (const int depth = BeingTracedAt(self, a.signature); depth >= 0) return RecursiveCall(depth, a);
    }
    if (!entry) entry = Make(self, args, n, kwnames, a);
    ++entry->calls;
    absl::InlinedVector<Value, 4> results;
    if (Trace::Current()) {
      CheckSurroundings(self);
      Values values = ArgumentValues(a);
      values.insert(values.end(), entry->traced.captures.begin(), entry->traced.captures.end());
      for (const Value& result : Apply(entry->traced.fn, values))
        results.push_back(result.WithWeak(entry->traced.weak_results[results.size()]));
    } else {
      std::vector<bool> give;
      if (self->has_donated) give = MayGive(*entry, a);
      if (!entry->program) {
        const bool same_bits = IsDeterministic(self);
        std::shared_ptr<Program> program =
            ProgramOf(FnToCompile(*entry, a, same_bits), {BackendOf(self), entry->donated, same_bits});
        if (!entry->program) entry->program = std::move(program);  // another thread may run the first
        if (self->has_donated) WarnOfUseless(*entry);
      }
      const Loc here = self->has_donated ? UserLoc() : Loc();
      Tensors tensors;
      tensors.reserve(a.leaves.size() + entry->constants.size());
      for (size_t i = 0; i < a.leaves.size(); ++i) {
        Leaf& leaf = a.leaves[i];
        if (entry->part && leaf.array && BlocksOf(leaf.array) != nullptr) {
          tensors.emplace_back();
          continue;
        }
        // Warning may have run Python code, so the array is looked at again.
        if (!give.empty() && give[i] && MayOverwrite(PeekValue(leaf.array).tensor()))
          tensors.push_back(Delete(leaf.array, entry->deletions[i], here).tensor());
        else if (leaf.array)
          tensors.push_back(PeekValue(leaf.array).traced() ? Demand(ValueOf(leaf.array), "the value")
                                                           : PeekValue(leaf.array).tensor());
        else if (leaf.tensor.defined())
          tensors.push_back(leaf.tensor);
        else
          tensors.push_back(NumberTensor(leaf.scalar.dtype().dtype, leaf.scalar));
      }
      const bool keep = std::find(give.begin(), give.end(), true) == give.end();
      if (entry->part) {
        Values blocks = WithWeak(RunPart(*entry, a, tensors, IsDeterministic(self), keep), entry->traced);
        return BuildResult(*entry, absl::MakeSpan(blocks));
      }
      tensors.insert(tensors.end(), entry->constants.begin(), entry->constants.end());
      // Only memory that stays as it is can be looked at again.
      std::optional<Tensors> kept;
      if (g_debug_nans && keep) kept = tensors;
      Tensors out = RunProgram(*entry->program, std::move(tensors));
      if (g_debug_nans) CheckNans(entry->traced.fn, kept, out);
      results.reserve(out.size());
      for (size_t i = 0; i < out.size(); ++i) {
        // A result that is an argument unchanged must not share NumPy's memory.
        for (const Leaf& leaf : a.leaves) {
          if (leaf.tensor.defined() && leaf.tensor.owner() == out[i].owner()) out[i] = out[i].Copy();
        }
        results.push_back(Value(std::move(out[i]), entry->traced.weak_results[i]));
      }
    }
    return BuildResult(*entry, absl::MakeSpan(results));
  });
}

// --- The Python type -------------------------------------------------------------------------------------------------

PyObject* New(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* kNames[] = {"function",       "static_argnums",  "static_argnames",
                                 "donate_argnums", "donate_argnames", nullptr};
  PyObject *function, *nums, *names, *donate_nums, *donate_names;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOO", const_cast<char**>(kNames), &function, &nums, &names,
                                   &donate_nums, &donate_names))
    return nullptr;
  auto* self = reinterpret_cast<JitObject*>(type->tp_alloc(type, 0));
  if (self == nullptr) return nullptr;
  self->vectorcall = Call;
  self->function = Py_NewRef(function);
  self->static_argnums = Py_NewRef(nums);
  self->static_argnames = Py_NewRef(names);
  self->donate_argnums = Py_NewRef(donate_nums);
  self->donate_argnames = Py_NewRef(donate_names);
  self->entries = new (std::nothrow) absl::flat_hash_map<size_t, std::vector<std::shared_ptr<Entry>>>();
  self->last = new (std::nothrow) std::shared_ptr<Entry>();
  if (self->entries == nullptr || self->last == nullptr) {
    Py_DECREF(self);
    return PyErr_NoMemory();
  }
  self->has_static = PySet_Size(nums) > 0 || PySet_Size(names) > 0;
  self->has_donated = PySet_Size(donate_nums) > 0 || PySet_Size(donate_names) > 0;
  return reinterpret_cast<PyObject*>(self);
}

int Traverse(PyObject* object, visitproc visit, void* arg) {
  auto* self = reinterpret_cast<JitObject*>(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->function);
  Py_VISIT(self->dict);
  if (self->entries) {
    for (auto& [hash, entries] : *self->entries) {
      for (auto& entry : entries) {
        if (entry.use_count() > 2) continue;  // in use
        for (auto& o : entry->signature.objects) Py_VISIT(o.get());
      }
    }
  }
  return 0;
}

int Clear(PyObject* object) {
  auto* self = reinterpret_cast<JitObject*>(object);
  Py_CLEAR(self->function);
  Py_CLEAR(self->dict);
  if (self->last) self->last->reset();
  if (self->entries) {
    auto entries = std::move(*self->entries);
    self->entries->clear();
  }
  return 0;
}

void Dealloc(PyObject* object) {
  auto* self = reinterpret_cast<JitObject*>(object);
  PyObject_GC_UnTrack(object);
  if (self->weakrefs) PyObject_ClearWeakRefs(object);
  Clear(object);
  Py_CLEAR(self->static_argnums);
  Py_CLEAR(self->static_argnames);
  Py_CLEAR(self->donate_argnums);
  Py_CLEAR(self->donate_argnames);
  delete self->entries;
  delete self->last;
  PyTypeObject* type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject* Bound(PyObject* self, PyObject* object, PyObject*) {
  return object == nullptr || object == Py_None ? Py_NewRef(self) : PyMethod_New(self, object);
}

PyObject* Repr(PyObject* object) {
  return PyUnicode_FromFormat("<weft.jit of %R>", reinterpret_cast<JitObject*>(object)->function);
}

PyObject* ClearCache(PyObject* object, PyObject*) {
  auto* self = reinterpret_cast<JitObject*>(object);
  self->last->reset();
  auto entries = std::move(*self->entries);
  self->entries->clear();
  Py_RETURN_NONE;
}

PyObject* CacheSize(PyObject* object, PyObject*) {
  size_t n = 0;
  for (auto& [hash, entries] : *reinterpret_cast<JitObject*>(object)->entries) n += entries.size();
  return PyLong_FromSize_t(n);
}

PyObject* Explain(PyObject* object, PyObject*) {
  return Guarded([&]() -> PyObject* {
    Ref list(Check(PyList_New(0)));
    for (auto& [hash, entries] : *reinterpret_cast<JitObject*>(object)->entries) {
      for (auto& entry : entries) {
        std::string types;
        for (int i = 0; i < entry->traced.num_params; ++i)
          types += (i ? ", " : "") + entry->traced.fn->params()[i].type.ToString();
        Ref item(Check(Py_BuildValue("{s:s,s:L,s:L}", "signature", types.c_str(), "calls",
                                     static_cast<long long>(entry->calls), "equations",
                                     static_cast<long long>(entry->traced.fn->NumEqns()))));
        if (entry->program) {
          for (const auto& [name, value] : entry->program->Facts()) {
            Ref number(Check(PyFloat_FromDouble(value)));
            if (value == static_cast<double>(static_cast<int64_t>(value)))
              number = Ref(Check(PyLong_FromDouble(value)));
            CheckStatus(PyDict_SetItemString(item.get(), name.c_str(), number.get()));
          }
        }
        const std::vector<std::string> loops = LoopMemory(*entry->traced.fn);
        Ref lines(Check(PyList_New(0)));
        for (const std::string& line : loops) {
          Ref text(Check(PyUnicode_FromStringAndSize(line.data(), static_cast<Py_ssize_t>(line.size()))));
          CheckStatus(PyList_Append(lines.get(), text.get()));
        }
        CheckStatus(PyDict_SetItemString(item.get(), "loops", lines.get()));
        CheckStatus(PyList_Append(list.get(), item.get()));
      }
    }
    return list.release();
  });
}

// A compiled function never changes: a copy is itself.
PyObject* Itself(PyObject* self, PyObject*) { return Py_NewRef(self); }

PyMethodDef kMethods[] = {
    {"__copy__", Itself, METH_NOARGS, nullptr},
    {"__deepcopy__", Itself, METH_O, nullptr},
    {"clear_cache", ClearCache, METH_NOARGS, "clear_cache($self, /)\n--\n\nForgets every compiled version."},
    {"_cache_size", CacheSize, METH_NOARGS, "The number of compiled versions."},
    {"explain", Explain, METH_NOARGS,
     "explain($self, /)\n--\n\n"
     "A list with one dict per compiled version: signature (the types of its arguments), calls and equations; once\n"
     "compiled also milliseconds of compiling, kernels, library calls, bytes moved and copied per call, and bytes of "
     "the\n"
     "arena for temporaries. `loops` has a line for each loop that records something: bytes per trip, and trips where\n"
     "their number is known.\n"},
    {nullptr, nullptr, 0, nullptr}};
PyMemberDef kMembers[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(JitObject, vectorcall), READONLY, nullptr},
                          {"__dictoffset__", T_PYSSIZET, offsetof(JitObject, dict), READONLY, nullptr},
                          {"__weaklistoffset__", T_PYSSIZET, offsetof(JitObject, weakrefs), READONLY, nullptr},
                          {"_function", T_OBJECT, offsetof(JitObject, function), READONLY, nullptr},
                          {"_static_argnums", T_OBJECT, offsetof(JitObject, static_argnums), READONLY, nullptr},
                          {"_static_argnames", T_OBJECT, offsetof(JitObject, static_argnames), READONLY, nullptr},
                          {"_donate_argnums", T_OBJECT, offsetof(JitObject, donate_argnums), READONLY, nullptr},
                          {"_donate_argnames", T_OBJECT, offsetof(JitObject, donate_argnames), READONLY, nullptr},
                          {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef kGetSet[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                         {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot kSlots[] = {{Py_tp_new, reinterpret_cast<void*>(New)},
                        {Py_tp_dealloc, reinterpret_cast<void*>(Dealloc)},
                        {Py_tp_traverse, reinterpret_cast<void*>(Traverse)},
                        {Py_tp_clear, reinterpret_cast<void*>(Clear)},
                        {Py_tp_repr, reinterpret_cast<void*>(Repr)},
                        {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                        {Py_tp_descr_get, reinterpret_cast<void*>(Bound)},
                        {Py_tp_members, kMembers},
                        {Py_tp_methods, kMethods},
                        {Py_tp_getset, kGetSet},
                        {0, nullptr}};
PyType_Spec kSpec = {"weft.JitFunction", sizeof(JitObject), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, kSlots};

}  // namespace

bool AddJitType(PyObject* module) {
  g_jit_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&kSpec));
  g_recursion_pending = PyErr_NewException("weft.RecursionPending", PyExc_BaseException, nullptr);
  if (g_recursion_pending == nullptr || PyModule_AddObjectRef(module, "RecursionPending", g_recursion_pending) != 0)
    return false;
  return g_jit_type && PyModule_AddObjectRef(module, "JitFunction", reinterpret_cast<PyObject*>(g_jit_type)) == 0;
}

}  // namespace weft::python
