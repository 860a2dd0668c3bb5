#include "python/native/jit_mesh.h"

#include <Python.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/distributed/process_group.h"
#include "python/native/array.h"
#include "python/native/errors.h"
#include "python/native/frames.h"
#include "python/native/jit.h"
#include "python/native/nans.h"
#include "tracer/context.h"
#include "transforms/ad/traced_rules.h"
#include "transforms/shard/deterministic.h"
#include "transforms/shard/partition.h"
#include "transforms/shard/processes.h"

namespace weft::python {

FnRef FnToCompile(Entry& entry, const Arguments& a, bool same_bits) {
  Traced given = entry.traced;
  if (!given.held.empty()) given.fn = WithoutHostRules(given.fn);
  if (same_bits) given.fn = WithDeterministicSums(given.fn);
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

namespace {

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
  cpu::ProcessGroup::SetSite(UserLoc().ToString());
  std::vector<std::string> all;
  {
    const Unlocked unlocked;
    all = cpu::ProcessGroup::Current()->AllGather("looks for NaNs", flags, {processes.begin(), processes.end()});
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

}  // namespace

Tensors RunPart(Entry& entry, const Arguments& a, const Tensors& whole, bool same_bits, bool keep) {
  if (!entry.part_constants_made) {
    for (size_t i = 0; i < entry.constants.size(); ++i)
      entry.constants[i] = BlocksOfArgument(*entry.part, a.leaves.size() + i, entry.constants[i]);
    entry.part_constants_made = true;
  }
  Tensors tensors = PartArguments(*entry.part, a, whole);
  tensors.insert(tensors.end(), entry.constants.begin(), entry.constants.end());
  std::optional<Tensors> kept;
  if (On(Setting::kDebugNans) && keep) kept = tensors;
  cpu::ProcessGroup::SetSite(UserLoc().ToString());
  Tensors out = RunProgram(*entry.program, std::move(tensors));
  const auto take_donated = [&] {
    for (size_t i = 0; i < a.leaves.size(); ++i) {
      if (a.leaves[i].donated && a.leaves[i].array && BlocksOf(a.leaves[i].array) != nullptr)
        Delete(a.leaves[i].array, entry.deletions[i], UserLoc());
    }
  };
  if (On(Setting::kDebugNans)) {
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

}  // namespace weft::python
