#include "driver/gpu.h"

#include <cstring>
#include <memory>
#include <stdexcept>

#include "backends/cuda/program.h"
#include "backends/cuda/twin_device.h"
#include "driver/stages.h"
#include "ir/error.h"
#include "ir/text_printer.h"
#include "lowering/gpu/lower.h"
#include "transforms/pass.h"

namespace weft {

void CheckGpuTarget(const std::string& name) { GpuTarget::Named(name); }

std::string GpuStage(const FnRef& fn, const std::string& target, const std::string& stage) {
  const GpuTarget t = GpuTarget::Named(target);
  CheckStage(stage, target);
  if (stage == "ir") return Print(*fn);
  const FnRef optimized = Optimize(fn);
  return stage == "optimized" ? Print(*optimized) : LowerGpuToText(optimized, t, stage);
}

Tensors EmulateGpu(const FnRef& fn, const std::string& target, const Tensors& args) {
  GpuArtifact artifact = LowerGpu(Optimize(fn), GpuTarget::Named(target), {.ptx = false, .twin = true});
  std::vector<cuda::HostArgument> arguments;
  for (size_t i = 0; i < args.size(); ++i) {
    if (i < fn->params().size() && args[i].dtype() != fn->params()[i].type.dtype)
      throw TypeError(fn->name(), ": argument ", i, " is ", args[i].type(), "; expected ", fn->params()[i].type);
    arguments.push_back({args[i].raw(), args[i].shape()});
  }
  std::vector<cuda::HostArray> results;
  try {
    auto device = std::make_shared<cuda::TwinDevice>(artifact.twin, artifact.twin_target);
    results = cuda::Program(std::move(artifact), device).Run(arguments);
  } catch (const std::invalid_argument& failure) {
    throw TypeError(fn->name(), ": ", failure.what());
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

}  // namespace weft
