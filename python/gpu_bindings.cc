// Programs for GPUs.
#include "driver/bundle.h"
#include "driver/gpu.h"
#include "python/bindings.h"

namespace weft::python {
namespace {

Tensors TensorsFrom(py::handle sequence, const char* what) {
  Tensors tensors;
  for (const Value& v : ValuesFrom(sequence, what)) {
    if (v.traced()) throw TypeError(what, ": takes arrays, not traced values");
    tensors.push_back(v.tensor());
  }
  return tensors;
}

}  // namespace

void BindGpu(py::module_& m) {
  m.def("gpu_check_target", [](const std::string& target) { CheckGpuTarget(target); });
  // The program at a stage of compilation for a target, as text.
  m.def("gpu_stage", [](const FnHandle& f, const std::string& target, const std::string& stage) {
    py::gil_scoped_release unlocked;
    return GpuStage(f.fn, target, stage);
  });
  // A bundle's bytes. `captured`: values of the last parameters. `target`: of a GPU, or "cpu".
  m.def("export_bundle",
        [](const FnHandle& f, const std::string& target, py::handle captured, bool twins, bool same_bits) {
          const Tensors values = TensorsFrom(captured, "export");
          std::string bytes;
          {
            py::gil_scoped_release unlocked;
            bytes = MakeBundle(f.fn, target, values, twins, same_bits).Serialize();
          }
          return py::bytes(bytes);
        });
  // Its results by the kernels' twins on the CPU.
  m.def("gpu_emulate", [](const FnHandle& f, const std::string& target, py::handle args) {
    const Tensors tensors = TensorsFrom(args, "emulate");
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
