#include "python/native/placed.h"

#include <Python.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "python/native/array.h"
#include "python/native/convert.h"
#include "python/native/errors.h"

namespace weft::python {
namespace {

std::string AxisName(PyObject* name) { return Text(name); }

// sharding._description() -> (numbers of the devices, [(axis, size), ...] or None for one device, the axes of each
// dimension, [this process, then that of each device], the axes along which devices hold parts of a sum)
Placement Described(PyObject* sharding) {
  Ref five(Check(RunningPython([&] { return PyObject_CallMethod(sharding, "_description", nullptr); })));
  PyObject *devices, *axes, *cuts, *processes, *partial;
  if (!PyArg_ParseTuple(five.get(), "OOOOO", &devices, &axes, &cuts, &processes, &partial)) throw PythonError();
  const auto each = [](PyObject* sequence, const auto& f) {
    Ref items(Check(PySequence_Fast(sequence, "the description of a sharding")));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) f(PySequence_Fast_GET_ITEM(items.get(), i));
  };
  Placement p;
  each(devices, [&](PyObject* n) { p.devices.push_back(IntFrom(n, "a device")); });
  p.one_device = axes == Py_None;
  if (!p.one_device) {
    each(axes, [&](PyObject* axis) {
      p.mesh.axes.push_back({AxisName(PyTuple_GET_ITEM(axis, 0)), IntFrom(PyTuple_GET_ITEM(axis, 1), "an axis")});
    });
  }
  each(cuts, [&](PyObject* names) {
    p.sharding.dims.emplace_back();
    each(names, [&](PyObject* name) { p.sharding.dims.back().push_back(AxisName(name)); });
  });
  each(partial, [&](PyObject* name) { p.sharding.partial.push_back(AxisName(name)); });
  each(processes, [&](PyObject* n) { p.processes.push_back(IntFrom(n, "a process")); });
  return p;
}

}  // namespace

const Placement& PlacementOf(PyObject* sharding) {
  // sharding -> address. Python's lock guards it. There are as many as a program has different shardings.
  static PyObject* const known = Check(PyDict_New());
  const auto find = [&]() -> const Placement* {
    PyObject* address = RunningPython([&] { return PyDict_GetItemWithError(known, sharding); });
    if (address == nullptr && PyErr_Occurred()) throw PythonError();
    return address == nullptr ? nullptr : static_cast<const Placement*>(PyLong_AsVoidPtr(address));
  };
  if (const Placement* placement = find()) return *placement;
  Placement described = Described(sharding);
  if (const Placement* placement = find()) return *placement;  // by another thread meanwhile
  auto* placement = new Placement(std::move(described));
  placement->label = Py_NewRef(sharding);
  Ref address(Check(PyLong_FromVoidPtr(placement)));
  CheckStatus(PyDict_SetItem(known, sharding, address.get()));
  return *placement;
}

namespace {
thread_local PyObject* t_default_place = nullptr;
std::atomic<PyObject*> g_default_place{nullptr};
}  // namespace

PyObject* DefaultPlace() {
  PyObject* const place =
      t_default_place != nullptr ? t_default_place : g_default_place.load(std::memory_order_relaxed);
  return place == Py_None ? nullptr : place;
}

void SetDefaultPlace(PyObject* sharding, bool of_process) {
  g_default_place_said = true;
  if (of_process)
    g_default_place = sharding;
  else
    t_default_place = sharding;
}

const Placement& Everywhere(const Placement& place) {
  if (place.one_device) return place;
  Ref sharding(Check(
      RunningPython([&] { return PyObject_CallMethod(static_cast<PyObject*>(place.label), "_replicated", nullptr); })));
  return PlacementOf(sharding.get());
}

Value Place(const Value& value, const Placement& placement) {
  if (value.placement() == &placement) return value;
  const std::shared_ptr<Shards>& shards = value.shards();
  if (placement.one_device) return Value(shards ? shards->Assembled() : value.tensor(), placement, value.weak());
  auto layout = ShardLayout::Make(placement, value.dtype(), value.shape());
  if (shards == nullptr) return Value(Shards::Cut(std::move(layout), value.tensor()), value.weak());
  Tensor stack = shards->StackAs(*layout);
  return Value(std::make_shared<Shards>(std::move(layout), std::move(stack)), value.weak());
}

Value FromStack(const std::shared_ptr<const ShardLayout>& layout, Tensor stack, bool weak) {
  const Placement& place = *layout->placement;
  if (place.one_device) return Value(stack.Reshaped(layout->shape), place, weak);
  return Value(std::make_shared<Shards>(layout, std::move(stack)), weak);
}

Value CopyOfConcrete(const Value& value) {
  const std::shared_ptr<Shards>& shards = value.shards();
  if (shards != nullptr)
    return Value(std::make_shared<Shards>(shards->shared_layout(), shards->Stack().Copy()), value.weak());
  if (value.placement() != nullptr) return Value(value.tensor().Copy(), *value.placement(), value.weak());
  return Value(value.tensor().Copy(), value.weak());
}

bool LieAlike(const Value& a, const Value& b) {
  if (a.placement()->devices != b.placement()->devices) return false;
  return !a.shards() || !b.shards() ? !a.shards() && !b.shards()
                                    : a.shards()->layout().SameBlocks(b.shards()->layout());
}

bool ShareMemory(const Value& a, const Value& b) {
  const auto owners = [](const Value& v) {
    std::vector<const void*> found;
    for (size_t k = 0; v.shards() && k < v.shards()->num_buffers(); ++k)
      found.push_back(v.shards()->buffer(k).owner.get());
    if (!v.shards()) found.push_back(v.tensor().owner().get());
    return found;
  };
  const std::vector<const void*> of_a = owners(a), of_b = owners(b);
  return std::find_first_of(of_a.begin(), of_a.end(), of_b.begin(), of_b.end()) != of_a.end();
}

}  // namespace weft::python
