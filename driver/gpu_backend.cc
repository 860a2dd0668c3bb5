// Programs for GPUs: their stages as text, bundles, and their kernels run thread by thread on the host, one fibre per
// CUDA thread, with every access, barrier and shuffle checked (backends/cuda/emulated_device.h).
#include <cstring>
#include <stdexcept>
#include <utility>

#include "backends/cuda/emulated_device.h"
#include "backends/cuda/program.h"
#include "driver/backend.h"
#include "ir/error.h"
#include "lowering/gpu/lower.h"

namespace weft {
namespace {

class Gpu : public Backend {
 public:
  explicit Gpu(GpuTarget target) : target_(std::move(target)) {}
  std::string Description() const override { return target_.ToString(); }
  std::vector<std::string> Stages() const override { return {"schedule", "mlir", "llvm", "ptx"}; }
  std::string StageText(const CompileRequest&, const FnRef& optimized, const std::string& stage) const override {
    return LowerGpuToText(optimized, target_, stage);
  }
  // Programs run from bundles, which need none of the compiler (driver/bundle/bundle.h).
  std::unique_ptr<const LoadedProgram> Load(const CompileRequest&, const FnRef&) const override {
    throw Error(ErrorKind::kUnsupported, "compile: programs for " + Description() +
                                             " do not run in this process yet; export(path) writes what `weft run` "
                                             "runs, emulate(...) runs their kernels on the CPU");
  }
  Tensors Emulate(const CompileRequest& request, const FnRef& optimized, const Tensors& args) const override;
  void Export(const CompileRequest& request, const FnRef& optimized, bool emulation, Bundle* bundle) const override {
    CheckRounding(request, "export");
    bundle->gpu = LowerGpu(optimized, target_, {.ptx = true, .emulation = emulation});
  }

 private:
  static void CheckRounding(const CompileRequest& request, const char* what) {
    WEFT_CHECK(request.target.fused_products) << what << ": products that are rounded apart are for CPUs";
  }
  GpuTarget target_;
};

Tensors Gpu::Emulate(const CompileRequest& request, const FnRef& optimized, const Tensors& args) const {
  CheckRounding(request, "emulate");
  const Fn& fn = *optimized;
  GpuArtifact artifact = LowerGpu(optimized, target_, {.ptx = false, .emulation = true});
  std::vector<cuda::HostArgument> arguments;
  for (size_t i = 0; i < args.size(); ++i) {
    if (i < fn.params().size() && args[i].dtype() != fn.params()[i].type.dtype)
      throw TypeError(fn.name(), ": argument ", i, " is ", args[i].type(), "; expected ", fn.params()[i].type);
    arguments.push_back({args[i].raw(), args[i].shape()});
  }
  std::vector<cuda::HostArray> results;
  try {
    auto device = std::make_shared<cuda::EmulatedDevice>(artifact.emulation, artifact.emulation_target);
    results = cuda::Program(std::move(artifact), device).Run(arguments);
  } catch (const std::invalid_argument& failure) {
    throw TypeError(fn.name(), ": ", failure.what());
  } catch (const std::runtime_error& failure) {
    throw Error(ErrorKind::kRuntime, failure.what());
  }
  Tensors out;
  for (const cuda::HostArray& a : results) {
    Tensor t(static_cast<DType>(a.dtype), a.shape);
    if (t.bytes() > 0) std::memcpy(t.raw(), a.bytes.data(), static_cast<size_t>(t.bytes()));
    out.push_back(std::move(t));
  }
  return out;
}

}  // namespace

std::shared_ptr<const Backend> GpuBackend(const std::string& name) {
  // A description is of several lines.
  if (name.rfind("cuda", 0) != 0 && name.find('\n') == std::string::npos) return nullptr;
  return std::make_shared<Gpu>(GpuTarget::Named(name));
}

}  // namespace weft
