// Runs bundles: needs no compiler.
#include <cstring>
#include <memory>
#include <stdexcept>

#include "backends/cpu/program.h"
#include "backends/cuda/cuda_device.h"
#include "backends/cuda/program.h"
#include "backends/cuda/twin_device.h"
#include "driver/bundle.h"
#include "driver/connect_effects.h"

namespace weft {
namespace {

Type TypeOf(const Bundle::Value& v) {
  return Type{static_cast<DType>(v.dtype), Dims(v.shape.begin(), v.shape.end()), {}};
}

// All parameters' values: constants from the bundle, the rest from args.
Tensors AllArguments(const Bundle& b, const Tensors& args) {
  Tensors all;
  size_t next = 0, wanted = 0;
  for (const Bundle::Value& v : b.params) wanted += !v.is_constant;
  if (args.size() != wanted) throw TypeError(b.name, " takes ", wanted, " arguments, got ", args.size());
  for (const Bundle::Value& v : b.params) {
    if (v.is_constant) {
      Tensor t(static_cast<DType>(v.dtype), v.shape);
      if (t.bytes() != static_cast<int64_t>(v.constant.size()))
        throw ValueError("the bundle is damaged: a constant has another size");
      if (t.bytes() > 0) std::memcpy(t.raw(), v.constant.data(), v.constant.size());
      all.push_back(std::move(t));
      continue;
    }
    if (!(args[next].type() == TypeOf(v)))
      throw TypeError(b.name, ": argument ", next, v.name.empty() ? "" : " (" + v.name + ")", " is ", args[next].type(),
                      "; expected ", TypeOf(v));
    all.push_back(args[next++]);
  }
  return all;
}

Tensors RunOnCpu(const Bundle& b, const Tensors& args) {
  ConnectEffects();
  const std::shared_ptr<cpu::Program> program = cpu::Program::Load(*b.cpu);
  std::vector<cpu::Argument> arguments;
  for (const Tensor& t : args) arguments.push_back({t.raw(), t.shape().data()});
  Tensors out;
  std::vector<cpu::Array> results = program->Run(arguments);
  for (size_t i = 0; i < results.size(); ++i) {
    void* data = results[i].data.get();
    out.emplace_back(static_cast<DType>(b.results[i].dtype), std::move(results[i].shape), std::move(results[i].data),
                     data);
  }
  return out;
}

Tensors RunOnGpu(const Bundle& b, const Tensors& args, bool twin) {
  std::shared_ptr<cuda::Device> device;
  if (twin)
    device = std::make_shared<cuda::TwinDevice>(b.gpu->twin);
  else
    device = std::make_shared<cuda::CudaDevice>(*b.gpu);
  cuda::Program program(*b.gpu, device);
  std::vector<cuda::HostArgument> arguments;
  for (const Tensor& t : args) arguments.push_back({t.raw(), t.shape()});
  Tensors out;
  for (const cuda::HostArray& a : program.Run(arguments)) {
    Tensor t(static_cast<DType>(a.dtype), a.shape);
    if (t.bytes() > 0) std::memcpy(t.raw(), a.bytes.data(), a.bytes.size());
    out.push_back(std::move(t));
  }
  return out;
}

}  // namespace

Tensors RunBundle(const Bundle& b, const Tensors& args, const std::string& device) {
  const std::string is_for = b.gpu ? "cuda" : "cpu", chosen = device.empty() ? is_for : device;
  if (chosen != "cpu" && chosen != "cuda" && chosen != "twin")
    throw ValueError("device: there is no device \"", device, "\"; expected cpu, cuda or twin");
  if ((chosen == "cpu") != !b.gpu)
    throw ValueError("device: the bundle is for ", b.gpu ? b.gpu->plan.target : is_for, ", not for ", chosen);
  if (chosen == "twin" && b.gpu->twin.empty())
    throw ValueError("device: the bundle has no twins; it was exported without them");
  const Tensors all = AllArguments(b, args);
  try {
    return b.gpu ? RunOnGpu(b, all, chosen == "twin") : RunOnCpu(b, all);
  } catch (const std::invalid_argument& failure) {
    throw TypeError(b.name, ": ", failure.what());
  } catch (const std::runtime_error& failure) {
    throw Error(ErrorKind::kRuntime, failure.what());
  }
}

}  // namespace weft
