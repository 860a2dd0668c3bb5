#include "python/native/jit_mesh.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "backends/cpu/distributed/process_group.h"
#include "driver/backend.h"
#include "python/native/errors.h"
#include "python/native/frames.h"
#include "python/native/function.h"
#include "python/native/jit.h"
#include "python/native/nans.h"
#include "python/native/placed.h"
#include "tracer/context.h"
#include "transforms/ad/traced_rules.h"
#include "transforms/shard/deterministic.h"
#include "transforms/shard/processes.h"

namespace weft::python {
namespace {

std::shared_ptr<const ShardLayout> LayoutOf(PyObject* sharding, const Type& type) {
  if (sharding == Py_None || !type.is_static()) return nullptr;
  return ShardLayout::Make(PlacementOf(sharding), type.dtype, StaticSizes(type.dims, "a result"));
}

}  // namespace

namespace {
thread_local bool t_mesh_is_chosen = false;
}  // namespace

bool MeshIsChosen() { return t_mesh_is_chosen; }

void SetMeshAround(PyObject* mesh, bool chosen) {
  Context().mesh = mesh == Py_None ? nullptr : mesh;
  t_mesh_is_chosen = chosen && mesh != Py_None;
}

OnDevices PlaceProgram(const Traced& traced, const std::vector<PyObject*>& shardings, bool same_bits,
                       const std::string& backend) {
  Traced given = traced;
  if (!given.held.empty()) given.fn = WithoutHostRules(given.fn);
  if (same_bits) given.fn = WithDeterministicSums(given.fn);
  OnDevices on;
  on.fn = given.fn;
  Ref list(Check(PyList_New(0)));
  for (PyObject* sharding : shardings) CheckStatus(PyList_Append(list.get(), sharding ? sharding : Py_None));
  Ref object(WrapTraced(given));
  PyObject* const stacks = FindBackend(backend)->TakesBlocks() && !InterpretAlways() ? Py_True : Py_False;
  Ref pair(Check(RunningPython([&] {
    return PyObject_CallFunctionObjArgs(g_partition_hook, object.get(), list.get(), same_bits ? Py_True : Py_False,
                                        stacks, nullptr);
  })));
  if (pair.get() == Py_None) return on;
  PyObject* results = PyTuple_GET_ITEM(pair.get(), 1);
  const Types types = traced.fn->ResultTypes();
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(results); ++i)
    on.results.push_back(LayoutOf(PyList_GET_ITEM(results, i), types[static_cast<size_t>(i)]));
  if (PyTuple_GET_ITEM(pair.get(), 0) == Py_None) return on;
  on.cut = true;
  on.fn = FnOf(PyTuple_GET_ITEM(pair.get(), 0));
  const Attr* processes = on.fn->eqns().size() == 1 ? on.fn->eqns()[0].attrs.Find("processes") : nullptr;
  if (processes == nullptr) return on;
  on.part = true;
  const Attrs& attrs = on.fn->eqns()[0].attrs;
  for (size_t i = 0; i < traced.fn->params().size(); ++i) {
    const Type& type = traced.fn->params()[i].type;
    // A sum in parts has them side by side, along a dimension of its own.
    Sharding lies_as = attrs.Get<Shardings>("in_shardings")[i];
    if (static_cast<int>(lies_as.dims.size()) > type.rank()) {
      lies_as.partial = lies_as.dims[0];
      lies_as.dims.erase(lies_as.dims.begin());
    }
    on.params.push_back(ShardLayout::Make(attrs.Get<Mesh>("mesh"), std::move(lies_as), attrs.Get<Ints>("processes"),
                                          type.dtype, StaticSizes(type.dims, "a program for several devices"),
                                          nullptr));
    PyObject* const lies = i < shardings.size() ? shardings[i] : nullptr;
    on.fits.push_back(lies != nullptr && LayoutOf(lies, type)->SameBlocks(*on.params[i]));
  }
  return on;
}

Tensor StackFor(const OnDevices& on, size_t i, const Value& v) {
  const ShardLayout& to = *on.params[i];
  const Tensor stack = v.shards() == nullptr ? StackOfBlocks(v.tensor(), to)
                       : on.fits[i]          ? v.shards()->Stack()
                                             : v.shards()->StackAs(to);
  const Type& wanted = on.fn->params()[i].type;
  return wanted.rank() == static_cast<int>(to.stack.size()) ? stack
                                                            : stack.Reshaped(StaticSizes(wanted.dims, "a stack"));
}

Value PlacedResult(const OnDevices& on, size_t i, Tensor result, bool weak) {
  if (i >= on.results.size() || on.results[i] == nullptr) return Value(std::move(result), weak);
  const std::shared_ptr<const ShardLayout>& layout = on.results[i];
  if (layout->placement->one_device && !on.part) return Value(std::move(result), *layout->placement, weak);
  if (on.part) {
    const bool as_is = result.shape() == layout->stack;  // parts of a sum have a dimension of their own
    return FromStack(layout, as_is ? std::move(result) : result.Reshaped(layout->stack), weak);
  }
  return Value(Shards::Cut(layout, result), weak);
}

namespace {

// Whether a tensor holds a NaN in any of the processes that run a part, and whether `*everywhere` holds in all.
std::vector<bool> HoldNansAnywhere(const Fn& part, const Tensors& mine, bool* everywhere) {
  std::vector<bool> found = HoldNans(mine);
  const Ints& devices = part.eqns()[0].attrs.Get<Ints>("processes");
  const std::set<int> processes(devices.begin(), devices.end());
  if (processes.size() == 1) return found;
  std::string flags;
  for (bool nan : found) flags += nan ? '1' : '0';
  flags += *everywhere ? '1' : '0';
  cpu::ProcessGroup::SetSite(UserLoc().ToString());
  std::vector<std::string> all;
  {
    const Unlocked unlocked;
    all = cpu::ProcessGroup::Current()->AllGather("looks for NaNs", flags, {processes.begin(), processes.end()});
  }
  for (const std::string& theirs : all) {
    for (size_t i = 0; i < found.size(); ++i) found[i] = found[i] || theirs[i] == '1';
    *everywhere = *everywhere && theirs.back() == '1';
  }
  return found;
}

// CheckNans for a program over a mesh: all processes raise. `stacks`: what it got.
void CheckPartForNans(const Traced& traced, const OnDevices& on, const std::optional<Tensors>& stacks,
                      const Values* args, bool same_bits, const Tensors& results) {
  bool kept = args != nullptr;  // which each process decides by what else refers to its memory
  const std::vector<bool> nans = HoldNansAnywhere(*on.fn, results, &kept);
  if (std::find(nans.begin(), nans.end(), true) == nans.end()) return;
  std::optional<std::vector<bool>> given;
  if (kept) given = HoldNansAnywhere(*on.fn, *stacks, &kept);
  RaiseForNans(
      traced.fn, given, nans,
      [&](const FnRef& watch) {
        Traced watched = traced;
        watched.fn = watch;
        watched.weak_results.assign(watch->results().size(), false);
        std::vector<PyObject*> shardings;
        for (const Value& v : *args) shardings.push_back(ShardingOf(v));
        const OnDevices there = PlaceProgram(watched, shardings, same_bits, "cpu");
        WEFT_CHECK(there.part) << "the watched program is for no mesh";
        const std::shared_ptr<Program> program = ProgramOf(there.fn, {.same_bits = same_bits});
        Tensors arguments;
        for (const Value& v : *args) arguments.push_back(StackFor(there, arguments.size(), v));
        for (const Value& v : traced.captures) arguments.push_back(StackFor(there, arguments.size(), v));
        return RunProgram(*program, std::move(arguments));
      },
      /*whole_arrays=*/false);
}

}  // namespace

Tensors RunPart(const Traced& traced, const OnDevices& on, Program& program, Tensors stacks, const Values* args,
                bool same_bits) {
  std::optional<Tensors> kept;
  const bool look_for_nans = LooksForNans();
  if (look_for_nans && args != nullptr) kept = stacks;
  if (cpu::ProcessGroup::Current() != nullptr) cpu::ProcessGroup::SetSite(UserLoc().ToString());
  Tensors out = RunProgram(program, std::move(stacks));
  if (look_for_nans) CheckPartForNans(traced, on, kept, args, same_bits, out);
  return out;
}

}  // namespace weft::python
