// Arrays on devices: putting them there, making them of what the devices hold, and the parts of them.
#include <optional>

#include "backends/cpu/core/buffer_cache.h"
#include "python/native/bindings.h"
#include "python/native/placed.h"

namespace weft::python {
namespace {

std::shared_ptr<const ShardLayout> LayoutFor(const Value& part, py::handle sharding,
                                             const std::vector<int64_t>& shape) {
  return ShardLayout::Make(PlacementOf(sharding.ptr()), part.dtype(), shape);
}

}  // namespace

void BindShards(py::module_& m) {
  // The same concrete array in another place. `own`: in memory of its own; None: unless the same devices hold the same
  // blocks already.
  m.def("with_sharding", [](py::handle array, py::handle sharding, std::optional<bool> own) {
    const Value from = ValueOf(array.ptr());
    const Value to = Place(from, PlacementOf(sharding.ptr()));
    const bool copied = own ? *own : from.placement() != nullptr && !LieAlike(from, to);
    return Take(WrapValue(copied && ShareMemory(from, to) ? CopyOfConcrete(to) : to));
  });
  // Where it is (also of a deleted array), or None.
  m.def("sharding_of", [](py::handle array) -> py::object {
    if (!IsArray(array.ptr())) throw TypeError("sharding: expected an array, got ", Repr(array.ptr()));
    const auto* object = reinterpret_cast<const ArrayObject*>(array.ptr());
    PyObject* sharding = object->deleted ? object->deleted_sharding : ShardingOf(object->value);
    return sharding == nullptr ? py::object(py::none()) : py::reinterpret_borrow<py::object>(sharding);
  });
  // On which device it was made, by a sharding, where that was not the first one; nobody put it there.
  m.def("made_on", [](py::handle array) -> py::object {
    PyObject* place = reinterpret_cast<const ArrayObject*>(array.ptr())->made_on;
    return place == nullptr ? py::object(py::none()) : py::reinterpret_borrow<py::object>(place);
  });
  // The device on which arrays are made from here on, in this thread or in the process: a sharding, None for the first
  // device, or False: in this thread that of the process.
  m.def("set_default_place", [](py::handle sharding, bool of_process) {
    if (sharding.is_none() || sharding.ptr() == Py_False)
      SetDefaultPlace(sharding.is_none() ? Py_None : nullptr, of_process);
    else
      SetDefaultPlace(static_cast<PyObject*>(PlacementOf(sharding.ptr()).label), of_process);
  });
  // An array from the blocks that this process holds, one behind the other.
  m.def("from_blocks", [](py::handle blocks, const std::vector<int64_t>& shape, py::handle sharding) {
    const Value v = ValueOf(blocks.ptr());
    auto layout = LayoutFor(v, sharding, shape);
    WEFT_CHECK(v.shape() == layout->stack) << "these are no blocks of that array";
    return Take(WrapValue(FromStack(layout, v.tensor(), false)));
  });
  // An array from what each device of this process holds, whose memory it shares. They fit it.
  m.def("from_device_arrays", [](py::handle arrays, const std::vector<int64_t>& shape, py::handle sharding) {
    const Values parts = ValuesFrom(arrays, "make_array_from_single_device_arrays");
    auto layout = LayoutFor(parts.at(0), sharding, shape);
    std::vector<Buffer> buffers;
    for (const Value& v : parts) {
      const Tensor& t = v.tensor();
      WEFT_CHECK(t.shape() == layout->block && t.dtype() == layout->dtype) << "a part does not fit the array";
      buffers.push_back({layout->device(buffers.size()), const_cast<void*>(t.raw()), t.bytes(), t.owner(), nullptr});
    }
    if (layout->placement->one_device) return Take(WrapValue(Value(parts[0].tensor(), *layout->placement)));
    return Take(WrapValue(Value(std::make_shared<Shards>(std::move(layout), std::move(buffers)))));
  });
  // What the k-th device of this process holds, on that device: the same memory.
  m.def("block_of_device", [](py::handle array, size_t k, py::handle sharding) {
    const Value v = ValueOf(array.ptr());
    WEFT_CHECK(k < (v.shards() ? v.shards()->num_buffers() : 1)) << "no such block";
    return Take(
        WrapValue(Value(v.shards() ? v.shards()->Block(k) : v.tensor(), PlacementOf(sharding.ptr()), v.weak())));
  });
  // [(device, address, bytes, whether it is ready), ...] of the devices of this process; of an array on no device in
  // particular its only one.
  m.def("buffers", [](py::handle array) {
    const Value v = ValueOf(array.ptr());
    if (v.traced()) throw TypeError("buffers: a traced value has no memory");
    py::list list;
    const auto add = [&](const Buffer& b) {
      list.append(py::make_tuple(b.device, reinterpret_cast<uintptr_t>(b.address), b.bytes, b.Ready()));
    };
    for (size_t k = 0; v.shards() && k < v.shards()->num_buffers(); ++k) add(v.shards()->buffer(k));
    const int64_t device = v.placement() ? v.placement()->devices[0] : 0;
    if (!v.shards())
      add({device, const_cast<void*>(v.tensor().raw()), v.tensor().bytes(), v.tensor().owner(), nullptr});
    return list;
  });
  // Gives memory that is kept for the next results back to the system.
  m.def("release_kept_buffers", &cpu::TrimBufferCache);
  // How often arrays were put together, cut, blocks moved behind each other, and made of those of another layout.
  m.def("shard_copies", [] {
    const ShardCopies& copies = CountedShardCopies();
    return py::make_tuple(copies.assembled.load(), copies.cut.load(), copies.stacked.load(), copies.moved.load());
  });
}

}  // namespace weft::python
