// Operations outside of jit on arrays that lie on devices: each is a small program, which stays where its operands are.
//
// On one device it is the program of any other array. Over a mesh it is cut like a jitted function's, and its results
// lie as what is known of its operands spreads. What the partitioner has no way to cut (tapes, recursion) runs on whole
// arrays, and its results are on all devices of the mesh.
#include <Python.h>

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "ir/prim.h"
#include "python/native/errors.h"
#include "python/native/jit_mesh.h"
#include "python/native/placed.h"
#include "tracer/trace.h"

namespace weft::python {
namespace {

struct Key {
  FnRef fn;
  std::vector<const Placement*> places;
  bool one_operation = false;
  friend bool operator==(const Key& a, const Key& b) {
    return a.places == b.places && a.one_operation == b.one_operation && FnEqual()(a.fn, b.fn);
  }
  template <class H>
  friend H AbslHashValue(H h, const Key& k) {
    return H::combine(std::move(h), FnHash()(k.fn), k.places, k.one_operation);
  }
};

thread_local bool t_one_operation = false;
struct OneOperation {
  explicit OneOperation(bool is) : before(t_one_operation) { t_one_operation = is; }
  ~OneOperation() { t_one_operation = before; }
  OneOperation(const OneOperation&) = delete;
  bool before;
};

struct Placed {
  Traced traced;
  OnDevices on;
  std::shared_ptr<Program> program;  // null where it runs on whole arrays
};

// Python's lock guards it.
using ProgramsByKey = std::unordered_map<Key, std::shared_ptr<const Placed>, absl::Hash<Key>>;
ProgramsByKey& Programs() {
  static auto& programs = *new ProgramsByKey();
  return programs;
}
constexpr size_t kMostPrograms = 4096;

std::string DevicesText(const Placement& p) {
  std::string text = "[";
  for (size_t i = 0; i < p.devices.size(); ++i) text += (i ? ", " : "") + std::to_string(p.devices[i]);
  return text + "]";
}

const std::string& NameOf(const Fn& fn) { return fn.eqns().empty() ? fn.name() : fn.eqns().back().prim->name; }

// Where the operands lie: one place that says on which devices the program runs. Raises kValue where they are on
// different ones.
const Placement& PlaceOf(const Fn& fn, const Values& args) {
  const Placement* first = nullptr;
  size_t of_first = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].placement() == nullptr) continue;
    const Placement& p = *args[i].placement();
    if (first == nullptr) {
      first = &p, of_first = i;
    } else if (p.devices != first->devices) {
      throw ValueError(NameOf(fn), ": operands lie on several sets of devices, or on one in different orders: operand ",
                       of_first + 1, ", ", args[of_first].type().ToString(), ", on ", DevicesText(*first), ", operand ",
                       i + 1, ", ", args[i].type().ToString(), ", on ", DevicesText(p),
                       "; weft.device_put moves an array");
    } else if (first->one_device && !p.one_device) {
      first = &p, of_first = i;
    }
  }
  return *first;
}

// All devices of the mesh have all of it.
Value PutEverywhere(Value v, const Placement& place) {
  if (v.dtype() == DType::kTape) return v;
  return Place(v, Everywhere(place));
}

bool HasTapes(const Fn& fn) {
  const auto any = [](const Types& types) {
    return std::any_of(types.begin(), types.end(), [](const Type& t) { return t.dtype == DType::kTape; });
  };
  return any(fn.ParamTypes()) || any(fn.ResultTypes());
}

std::shared_ptr<const Placed> Made(const FnRef& fn, const Values& args) {
  auto made = std::make_shared<Placed>();
  made->traced.fn = fn;
  made->traced.held = HostFunctions(*fn);
  made->traced.num_params = static_cast<int>(fn->params().size());
  made->traced.weak_results.assign(fn->results().size(), false);
  if (HasTapes(*fn)) return made;
  std::vector<PyObject*> shardings;
  for (const Value& v : args) shardings.push_back(ShardingOf(v));
  try {
    made->on = PlaceProgram(made->traced, shardings, false, "cpu");
  } catch (const PythonError&) {
    // Operands that do not lie as the operation needs them are a ValueError, too.
    if (!PyErr_ExceptionMatches(PyExc_NotImplementedError) || PyErr_ExceptionMatches(PyExc_ValueError)) throw;
    PyErr_Clear();
    return made;
  }
  if (made->on.part) made->program = ProgramOf(made->on.fn);
  return made;
}

Values RunPlaced(const FnRef& fn, const Values& args) {
  const Placement& place = PlaceOf(*fn, args);
  const auto on_whole = [&] {
    Tensors tensors;
    for (const Value& v : args) tensors.push_back(v.tensor());
    Values results;
    for (Tensor& t : Run(fn, tensors)) results.push_back(PutEverywhere(Value(std::move(t)), place));
    return results;
  };
  if (place.one_device) return on_whole();
  Key key{fn, {}, !RunsApplied()};
  for (const Value& v : args) key.places.push_back(v.placement());
  std::shared_ptr<const Placed> placed;
  if (const auto it = Programs().find(key); it != Programs().end()) placed = it->second;
  if (placed == nullptr) {
    const OneOperation operation(key.one_operation);
    placed = Made(fn, args);
    if (placed->traced.held.empty()) {  // a function of the host is another one in every call
      if (Programs().size() >= kMostPrograms) Programs().clear();
      Programs().insert_or_assign(std::move(key), placed);
    }
  }
  if (placed->program == nullptr) return on_whole();
  Tensors stacks;
  for (const Value& v : args) stacks.push_back(StackFor(placed->on, stacks.size(), v));
  Tensors out = RunPart(placed->traced, placed->on, *placed->program, std::move(stacks), &args, false);
  Values results;
  for (size_t i = 0; i < out.size(); ++i) results.push_back(PlacedResult(placed->on, i, std::move(out[i]), false));
  return results;
}

}  // namespace

bool IsOneOperation() { return t_one_operation; }

void InstallShardsRunner() { SetShardsRunner(RunPlaced); }

}  // namespace weft::python
