// Programs of several processes: joining the job, what the processes
// send each other outside of compiled code.
#include <algorithm>
#include <stdexcept>

#include "backends/cpu/distributed/process_group.h"
#include "base/digest.h"
#include "ir/text/printer.h"
#include "python/native/bindings.h"
#include "python/native/frames.h"
#include "python/native/placed.h"
#include "transforms/opt/ordinals.h"
#include "transforms/shard/processes.h"

namespace weft::python {
namespace {

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
    const bool others = std::any_of(processes.begin(), processes.end(), [&](int64_t p) { return p != processes[0]; });
    if (!others) return FnHandle{ForProcess(fn.fn, processes, "", 0)};  // nobody to compare it with
    return FnHandle{ForProcess(fn.fn, processes, program + ")", DigestOf(fn.fn))};
  });
  m.def("spans", [](py::handle array) {
    if (!IsArray(array.ptr())) return false;
    const auto* object = reinterpret_cast<const ArrayObject*>(array.ptr());
    return !object->deleted && SpansProcesses(object->value);
  });
}

}  // namespace weft::python
