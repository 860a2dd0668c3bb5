// Programs for GPUs.
#include "driver/gpu.h"
#include "python/bindings.h"

namespace weft::python {

void BindGpu(py::module_& m) {
  m.def("gpu_check_target", [](const std::string& target) { CheckGpuTarget(target); });
  // The program at a stage of compilation for a target, as text.
  m.def("gpu_stage", [](const FnHandle& f, const std::string& target, const std::string& stage) {
    py::gil_scoped_release unlocked;
    return GpuStage(f.fn, target, stage);
  });
  // Its results by the kernels' twins on the CPU.
  m.def("gpu_emulate", [](const FnHandle& f, const std::string& target, py::handle args) {
    Tensors tensors;
    for (const Value& v : ValuesFrom(args, f.fn->name().c_str())) {
      if (v.traced()) throw TypeError(f.fn->name(), ": emulate takes arrays, not traced values");
      tensors.push_back(v.tensor());
    }
    Tensors out;
    {
      py::gil_scoped_release unlocked;
      out = EmulateGpu(f.fn, target, tensors);
    }
    py::list list;
    for (Tensor& t : out) list.append(Take(WrapValue(Value(std::move(t)))));
    return list;
  });
}

}  // namespace weft::python
