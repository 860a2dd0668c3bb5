// Programs of several processes: joining the job, arrays of which this process holds some blocks, what the processes
// send each other outside of compiled code.
#include <cstring>
#include <stdexcept>

#include "backends/cpu/distributed/process_group.h"
#include "base/digest.h"
#include "ir/text/printer.h"
#include "python/native/bindings.h"
#include "python/native/frames.h"
#include "transforms/opt/ordinals.h"
#include "transforms/shard/processes.h"

namespace weft::python {
namespace {

using Axes = std::vector<std::pair<std::string, int64_t>>;

Mesh MeshFrom(const Axes& axes) {
  Mesh mesh;
  for (const auto& [name, size] : axes) mesh.axes.push_back({name, size});
  return mesh;
}

cpu::ProcessGroup& TheProcessGroup() {
  if (cpu::ProcessGroup::Current() == nullptr)
    throw Error(ErrorKind::kRuntime,
                "this process is none of several: weft.distributed.initialize() was not called, or it was forked from "
                "one that has called it");
  return *cpu::ProcessGroup::Current();
}

// The first 15 hexadecimal digits of the program's digest. Host functions have other numbers in other processes.
int64_t DigestOf(const FnRef& fn) {
  Ints callbacks;
  return static_cast<int64_t>(std::stoull(Sha256(Print(*WithOrdinals(fn, &callbacks))).substr(0, 15), nullptr, 16));
}

}  // namespace

void BindProcessGroup(py::module_& m) {
  // join_job(seconds that processes wait for each other) -> (rank, number of processes)
  m.def("join_job", [](double deadline) {
    try {
      py::gil_scoped_release unlocked;
      cpu::ProcessGroup::Join(deadline);
    } catch (const std::runtime_error& error) {
      throw Error(ErrorKind::kRuntime, std::string("distributed.initialize: ") + error.what());
    }
    return py::make_tuple(TheProcessGroup().rank(), TheProcessGroup().size());
  });
  m.def("leave_job", [] {
    py::gil_scoped_release unlocked;
    TheProcessGroup().Leave();
  });
  m.def("end_job",
        [](const std::string& message, const std::string& before) { TheProcessGroup().End(message, before); });
  // What every process gives, in order; `what` says what for.
  m.def("all_gather_bytes", [](const std::string& what, const py::bytes& bytes) {
    const std::string mine = bytes;
    std::vector<std::string> all;
    cpu::ProcessGroup::SetSite(UserLoc().ToString());
    {
      py::gil_scoped_release unlocked;
      all = TheProcessGroup().AllGather(what, mine);
    }
    py::list list;
    for (const std::string& theirs : all) list.append(py::bytes(theirs));
    return list;
  });
  // The part of a partitioned program that this process runs. `processes`: this one, then that of each device.
  m.def("for_process", [](const FnHandle& fn, const Ints& processes) {
    std::string program = "'" + fn.fn->name() + "' (";
    for (size_t i = 0; i < fn.fn->params().size(); ++i)
      program += (i == 0 ? "" : ", ") + fn.fn->params()[i].type.ToString();
    return FnHandle{ForProcess(fn.fn, processes, program + ")", DigestOf(fn.fn))};
  });
  // An array of which the process keeps its blocks, from all of it.
  m.def("span_whole", [](py::handle array, const Axes& axes, const std::vector<Strings>& cuts, const Ints& processes,
                         py::handle sharding) {
    const Value v = ValueOf(array.ptr());
    Tensor blocks = StackOfBlocks(v.tensor(), MeshFrom(axes), Sharding{cuts, {}}, processes);
    return Take(WrapBlocks(std::move(blocks), v.type(), v.weak(), sharding.ptr()));
  });
  // The same from the blocks, one behind the other.
  m.def("span_blocks", [](py::handle blocks, const py::tuple& shape, py::handle sharding) {
    const Value v = ValueOf(blocks.ptr());
    const Type whole{v.dtype(), DimsFrom(shape.ptr(), "shape"), {}};
    return Take(WrapBlocks(v.tensor(), whole, false, sharding.ptr()));
  });
  m.def("spans", [](py::handle array) { return IsArray(array.ptr()) && BlocksOf(array.ptr()) != nullptr; });
  // Block number k of those that this process holds.
  m.def("held_block", [](py::handle array, int64_t k) {
    const Tensor* blocks = BlocksOf(array.ptr());
    WEFT_CHECK(blocks != nullptr && k < blocks->shape()[0]) << "no such block";
    Shape shape(blocks->shape().begin() + 1, blocks->shape().end());
    Tensor block(blocks->dtype(), std::move(shape));
    std::memcpy(block.raw(), blocks->data<char>() + k * block.bytes(), static_cast<size_t>(block.bytes()));
    return Take(WrapValue(Value(std::move(block))));
  });
}

}  // namespace weft::python
