// Runs bundles: needs no compiler.
#include <memory>
#include <stdexcept>

#include "backends/cpu/core/program.h"
#include "driver/bundle/bundle.h"
#include "driver/connect_effects.h"

namespace weft {
namespace {

Tensors RunOnCpu(const Bundle& b, const Tensors& args) {
  ConnectEffects();
  const std::shared_ptr<cpu::Program> program = cpu::Program::Load(*b.cpu);
  std::vector<cpu::Argument> arguments;
  for (const Tensor& t : args) arguments.push_back({t.raw(), t.shape().data()});
  Tensors out;
  std::vector<cpu::Array> results = program->Run(arguments);
  for (size_t i = 0; i < results.size(); ++i) {
    void* data = results[i].data.get();
    out.emplace_back(static_cast<DType>(b.results[i].dtype), SharedShape(std::move(results[i].shape)),
                     std::move(results[i].data), data);
  }
  return out;
}

}  // namespace

Tensors RunBundle(const Bundle& b, const Tensors& args, const std::string& device) {
  if (b.gpu || (!device.empty() && device != "cpu")) return RunGpuBundle(b, args, device);
  const Tensors all = AllArguments(b, args);
  try {
    return RunOnCpu(b, all);
  } catch (const std::invalid_argument& failure) {
    throw TypeError(b.name, ": ", failure.what());
  } catch (const std::runtime_error& failure) {
    throw Error(ErrorKind::kRuntime, failure.what());
  }
}

}  // namespace weft
